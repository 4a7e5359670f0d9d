//! The tables of an output as a reader of the database finds them.

#![expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]

use std::time::Duration;

use super::*;
use crate::sinks::BookMetrics;
use crate::sinks::side::SideRow;
use crate::tables::database::Address;
use crate::tables::sink::progress::ProgressRow;
use crate::tables::sink::store::must_write;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::description::Description;
use dupflow_core::doc::Position;
use dupflow_core::pair::{Cause, Evidence, Pair, Similarity};
use dupflow_core::time::Offsets;
use dupflow_run::metrics::Metrics;

fn doc(text: &str) -> DocId {
    DocId::new(text).unwrap()
}

fn delta(a: &str, b: &str, similarity: f64, diff: isize) -> Delta {
    let pair = Pair::new(doc(a), doc(b)).unwrap();
    let evidence = Evidence { blocks: 3, look: 2, components: 128 };
    let pair = DocPair { pair, similarity: Similarity::clamped(similarity), evidence };
    Delta { pair, diff, cause: Cause::Insert }
}

fn change(text: &str, bytes: Option<u32>) -> DocChange {
    let position = Position { partition: 0, offset: 7 };
    let now = bytes.map(|bytes| Facts { ts: Some(0.5), bytes, position });
    DocChange { now, ..DocChange::end(doc(text)) }
}

/// That of a run that keeps deltas.
fn mark(epoch: u64, in_correction: bool) -> Mark {
    let (key, value) = TableOutput::WITH_DELTAS;
    Mark {
        run: String::new(),
        progress: Progress { epoch, ..Progress::default() },
        start: Offsets::new(),
        pipeline: String::from_utf8(Description::new().with(key, value).encode()).unwrap(),
        in_correction,
        letters: None,
        ..Mark::default()
    }
}

/// Writes one epoch and commits it.
fn step(sink: &mut TableSink, epoch: u64, documents: &[DocChange], deltas: &mut [Delta]) -> io::Result<()> {
    deltas.sort();
    sink.documents(documents, false)?;
    sink.epoch(&Progress { epoch, ..Progress::default() }, deltas, &[])?;
    sink.commit(&Mark { run: sink.output.run.clone(), ..mark(epoch, false) })
}

#[test]
fn a_run_writes_only_on_its_own_last_commit() {
    let stand = |run: &str, commits| ProgressRow { run: run.to_owned(), commits, mark: None, counts: None };
    assert_eq!(must_write(&stand("a", 5), "a", 5), Ok(true));
    assert_eq!(must_write(&stand("a", 6), "a", 5), Ok(false), "an earlier attempt wrote it");
    for (found, said) in [
        (stand("b", 5), "another run (b) has taken the tables over"),
        (stand("b", 6), "another run (b) has taken the tables over"),
        (stand("a", 7), "counts 2 commits that this run has not written"),
        (stand("a", 4), "has lost commits 5 to 5"),
        (stand("a", 2), "has lost commits 3 to 5"),
        (stand("b", 2), "has lost commits 3 to 5: its tables were restored from a backup, as run b left it"),
        (stand("", 0), "the row of the table of progress was deleted"),
    ] {
        let message = must_write(&found, "a", 5).unwrap_err();
        assert!(!message.is_retriable() && message.to_string().contains(said), "{message}");
    }
}

/// Ids with characters that are hard to store, in order of their bytes.
const IDS: [&str; 8] = ["\0", "a\0b", "a\u{1a}0b", "a'b\"c", "مرحبا", "เอกสาร", "重複した文書", "🦀"];

/// The memberships of (document, cluster).
fn members(of: &[(&str, &str)]) -> BTreeSet<ClusterReport> {
    of.iter()
        .map(|(document, cluster)| ClusterReport::Member { cluster: doc(cluster), document: doc(document) })
        .collect()
}

/// Ids and sizes in the table of documents.
fn documents(sink: &mut TableSink) -> Vec<(String, u32)> {
    let found = sink.store.documents().unwrap();
    found.into_iter().map(|(id, facts)| (id.to_string(), facts.bytes)).collect()
}

/// The behaviour required of every database.
fn meets_the_contract(open: &dyn Fn(&str) -> TableSink) {
    let mut first = open("first");
    assert_eq!(open("looks").inspect().unwrap(), Some(Standing::New));
    assert_eq!(first.take_over().unwrap(), Standing::New);
    assert_eq!(open("looks").inspect().unwrap(), Some(Standing::New));
    let all: Vec<DocChange> = IDS.iter().map(|id| change(id, Some(10))).collect();
    let [nul, inner, sub, quotes, arabic, thai, japanese, crab] = IDS;
    let mut deltas = [
        delta(nul, quotes, 0.9, 1),
        delta(quotes, inner, 0.912109375, 1),
        delta(sub, crab, 1.0, 1),
        delta(arabic, thai, 0.8, 1),
    ];
    step(&mut first, 1, &all, &mut deltas).unwrap();
    // `inspect` takes nothing over.
    let last = Mark { run: "first".to_owned(), ..mark(1, false) };
    assert_eq!(open("looks").inspect().unwrap(), Some(Standing::At(Box::new(last))));
    // A similarity changes, a pair ends, a document is deleted, and a document without a pair gets one.
    let mut later = [
        delta(quotes, inner, 0.912109375, -1),
        delta(quotes, inner, 0.95, 1),
        delta(arabic, thai, 0.8, -1),
        delta(japanese, crab, 0.85, 1),
    ];
    step(&mut first, 2, &[change(thai, None), change(nul, Some(11))], &mut later).unwrap();
    let kept: BTreeSet<DocPair> = [
        delta(nul, quotes, 0.9, 1).pair,
        delta(quotes, inner, 0.95, 1).pair,
        delta(sub, crab, 1.0, 1).pair,
        delta(japanese, crab, 0.85, 1).pair,
    ]
    .into();
    let clusters =
        members(&[(nul, nul), (quotes, nul), (inner, nul), (sub, sub), (crab, sub), (japanese, sub)]);

    // Another run takes over and finds what is durable.
    let mut second = open("second");
    let Standing::At(found) = second.take_over().unwrap() else { panic!("a mark is there") };
    assert_eq!(*found, Mark { run: "first".to_owned(), ..mark(2, false) });
    assert_eq!(second.store.pairs().unwrap(), kept);
    assert_eq!(second.store.clusters().unwrap(), clusters);
    let mut bytes: Vec<(String, u32)> =
        IDS.iter().filter(|id| **id != thai).map(|id| ((*id).to_owned(), 10)).collect();
    bytes[0].1 = 11;
    assert_eq!(documents(&mut second), bytes);

    // The first run has been replaced: nothing that it writes is stored.
    let message = step(&mut first, 3, &[change("x", Some(1))], &mut [delta("x", "y", 1.0, 1)]).unwrap_err();
    assert!(message.to_string().contains("another run (second)"), "{message}");

    // The second run continues: restored documents and pairs are in the tables already.
    second.documents(&all, true).unwrap();
    second.restored(
        &kept
            .iter()
            .map(|pair| Delta { pair: pair.clone(), diff: 1, cause: Cause::Insert })
            .collect::<Vec<_>>(),
    );
    step(&mut second, 3, &[change("z", Some(3))], &mut [delta(arabic, "z", 0.99, 1)]).unwrap();
    assert_eq!(second.store.pairs().unwrap().len(), 5);
    let more = members(&[("z", "z"), (arabic, "z")]);
    assert_eq!(second.store.clusters().unwrap(), clusters.union(&more).cloned().collect());

    corrects_an_output(&mut open("third"));
}

/// Rows of side outputs are part of a commit, and are read back by the next run.
fn keeps_rows(open: &dyn Fn(&str) -> TableSink) {
    let rows = |sink: &mut TableSink, table: &str| {
        let mut rows = BTreeSet::new();
        sink.side_rows(table, &mut |delta| assert!(rows.insert((delta.row.key, delta.row.json)))).unwrap();
        rows
    };
    let row = |json: &str, diff| SideDelta {
        row: SideRow { key: "[\"v\"]".to_owned(), json: json.to_owned() },
        diff,
    };
    // Longer than most indexes of a server accept, and not compressible.
    let digits: String = (0..400).map(|n: u64| format!("{:016x}", dupflow_core::hash::mix(n))).collect();
    let long = format!("\"value\":\"{digits}\"");
    let mut first = open("writes rows");
    first.take_over().unwrap();
    assert_eq!((rows(&mut first, "ours"), rows(&mut first, "others")), (BTreeSet::new(), BTreeSet::new()));
    first.side("ours", 1, &[row("\"value\":\"a'\\u0000\"", 1), row("\"value\":2", 1)]).unwrap();
    first.side("others", 1, &[row("\"value\":9", 1)]).unwrap();
    step(&mut first, 1, &[], &mut []).unwrap();
    first.side("ours", 2, &[row("\"value\":2", -1), row("\"value\":3", 1), row(&long, 1)]).unwrap();
    step(&mut first, 2, &[], &mut []).unwrap();
    // A row that is there already has a new epoch.
    first.side("ours", 2, &[row(&long, 1)]).unwrap();
    step(&mut first, 2, &[], &mut []).unwrap();
    first.side("ours", 3, &[row("\"value\":4", 1)]).unwrap();
    let mut second = open("reads rows");
    second.take_over().unwrap();
    let held = |json: &str| ("[\"v\"]".to_owned(), json.to_owned());
    let expected = [held("\"value\":\"a'\\u0000\""), held("\"value\":3"), held(&long)];
    assert_eq!(rows(&mut second, "ours"), expected.into());
    assert_eq!(rows(&mut second, "others"), [held("\"value\":9")].into());
    assert!(step(&mut first, 3, &[], &mut []).is_err(), "another run has taken over");
}

/// Shares are columns of the tables once a run has written them, and its successors read them back.
fn keeps_shares(open: &dyn Fn(&str, bool) -> TableSink) {
    let mut plain = open("plain", false);
    assert_eq!(plain.take_over().unwrap(), Standing::New);
    plain.live(0);
    let documents = ["p", "q", "r"].map(|id| change(id, Some(1)));
    step(&mut plain, 1, &documents, &mut [delta("p", "q", 0.9, 1), delta("p", "r", 1.0, 1)]).unwrap();
    let with_shares = |diff, [in_b, in_a]: [f64; 2]| {
        let found = delta("p", "q", 0.0, diff);
        Delta { pair: DocPair { similarity: Similarity::of_shares([in_b, in_a]), ..found.pair }, ..found }
    };
    let mut directed = open("directed", true);
    directed.take_over().unwrap();
    directed.live(1);
    directed.restored(&[delta("p", "q", 0.9, 1), delta("p", "r", 1.0, 1)]);
    let before = directed.store.pairs().unwrap();
    assert_eq!(before, [delta("p", "q", 0.9, 1).pair, delta("p", "r", 1.0, 1).pair].into());
    let mut first = [delta("p", "q", 0.9, -1), with_shares(1, [0.125, 0.9])];
    step(&mut directed, 2, &[], &mut first).unwrap();
    let mut second = [with_shares(-1, [0.125, 0.9]), with_shares(1, [0.25, 0.9])];
    step(&mut directed, 3, &[], &mut second).unwrap();
    // The next run writes none, and still reads which pairs it must replace.
    let mut last = open("last", false);
    last.take_over().unwrap();
    let there = last.store.pairs().unwrap();
    assert_eq!(there, [with_shares(1, [0.25, 0.9]).pair, delta("p", "r", 1.0, 1).pair].into());
    last.live(3);
    last.restored(&[with_shares(1, [0.25, 0.9]), delta("p", "r", 1.0, 1)]);
    step(&mut last, 4, &[], &mut [with_shares(-1, [0.25, 0.9]), delta("p", "q", 0.95, 1)]).unwrap();
    let read = last.store.pairs().unwrap();
    assert_eq!(read, [delta("p", "q", 0.95, 1).pair, delta("p", "r", 1.0, 1).pair].into());
}

/// Corrects the output of [`meets_the_contract`] to other pairs and documents, in two commits.
fn corrects_an_output(third: &mut TableSink) {
    let nul = IDS[0];
    assert!(matches!(third.take_over().unwrap(), Standing::At(_)));
    let written = third.pairs().unwrap();
    assert_eq!(written.len(), 5);
    third.documents(&[change("p", Some(1)), change("q", Some(2)), change(nul, Some(11))], true).unwrap();
    let removals: Vec<Delta> =
        written.iter().map(|pair| Delta { pair: pair.clone(), diff: -1, cause: Cause::Correction }).collect();
    third.restored(&removals.iter().map(|delta| Delta { diff: 1, ..delta.clone() }).collect::<Vec<_>>());
    third.epoch(&Progress { epoch: 4, ..Progress::default() }, &removals, &[]).unwrap();
    third.commit(&mark(4, true)).unwrap();
    third.epoch(&Progress { epoch: 4, ..Progress::default() }, &[delta("p", "q", 0.5, 1)], &[]).unwrap();
    third.commit(&mark(4, false)).unwrap();
    assert_eq!(third.store.pairs().unwrap(), [delta("p", "q", 0.5, 1).pair].into());
    assert_eq!(third.store.clusters().unwrap(), members(&[("p", "p"), ("q", "p")]));
    assert_eq!(documents(third), [(nul.to_owned(), 11), ("p".to_owned(), 1), ("q".to_owned(), 2)]);
}

/// With evidence, so that pairs are read back complete.
fn output(address: Address, run: &str) -> TableSink {
    output_with(address, run, "near \"", false)
}

/// As on a file system without locks, and as if the run before had lost its connection: the later run takes
/// the tables over.
fn output_with(address: Address, run: &str, prefix: &str, shares: bool) -> TableSink {
    match &address {
        Address::Sqlite(path) => {
            drop(std::fs::remove_file(format!("{}-{prefix}owner.lock", path.display())));
        }
        #[cfg(feature = "postgres")]
        Address::Postgres(url) => {
            let ends = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                WHERE application_name = 'dupflow' AND pid <> pg_backend_pid()";
            let mut client = crate::tables::database::postgres::connect(url, Duration::from_secs(5)).unwrap();
            client.execute(ends, &[]).unwrap();
        }
        #[cfg(not(feature = "postgres"))]
        Address::Postgres(_) => {}
    }
    let output = TableOutput {
        anew: false,
        address,
        schema: "results of".to_owned(),
        prefix: prefix.to_owned(),
        deltas: true,
        causes: true,
        shares,
        decisions: None,
        patience: Duration::from_secs(5),
        run: run.to_owned(),
    };
    TableSink::new(
        &output,
        Some(Box::new(|_| 0.01)),
        ClusterKind::Components,
        BookMetrics::new(&Arc::new(Metrics::new(0))),
    )
}

/// The tables of one prefix in a file have one run at a time, and its commits go to the file at the path.
#[cfg(feature = "sqlite")]
#[test]
fn a_file_has_one_run_for_each_prefix_and_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let open = |prefix| output_with(Address::Sqlite(path.clone()), "r", prefix, false);
    let mut second = open("a_");
    let mut first = open("a_");
    first.take_over().unwrap();
    let message = second.take_over().unwrap_err().to_string();
    assert!(message.contains("another run writes to it") && message.contains("out.db-a_owner"), "{message}");
    open("b_").take_over().unwrap();
    step(&mut first, 1, &[], &mut []).unwrap();
    let away = folder.path().join("away.db");
    std::fs::rename(&path, &away).unwrap();
    let message = step(&mut first, 2, &[], &mut []).unwrap_err().to_string();
    assert!(message.contains("out.db was removed or renamed"), "{message}");
    assert!(first.finish().is_err());
    std::fs::write(&path, "").unwrap();
    let message = step(&mut first, 2, &[], &mut []).unwrap_err().to_string();
    assert!(message.contains("out.db was replaced by another file"), "{message}");
    std::fs::rename(&away, &path).unwrap();
    step(&mut first, 2, &[], &mut []).unwrap();
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_meets_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    meets_the_contract(&|run| output(Address::Sqlite(path.clone()), run));
    let of_rows = folder.path().join("rows.db");
    keeps_rows(&|run| output(Address::Sqlite(of_rows.clone()), run));
    let of_shares = folder.path().join("shares.db");
    let has_views = || {
        let read = rusqlite::Connection::open(&of_shares).unwrap();
        let sql = "SELECT count(*) = 2 FROM sqlite_schema WHERE type = 'view'";
        read.query_row(sql, [], |row| row.get::<_, bool>(0)).unwrap()
    };
    keeps_shares(&|run, shares| {
        assert!(run == "plain" || has_views() == (run == "directed"), "as the run before {run} left them");
        output_with(Address::Sqlite(of_shares.clone()), run, "", shares)
    });
    assert!(has_views(), "clusters say again what may be removed");
    let of_counts = folder.path().join("counts.db");
    notices_foreign_rows(&|run| output(Address::Sqlite(of_counts.clone()), run), &mut |table, sql| {
        let other = rusqlite::Connection::open(&of_counts).unwrap();
        other.execute_batch(&sql.replace("TABLE", &format!("\"near \"\"{table}\""))).unwrap();
    });
    let read = rusqlite::Connection::open(&path).unwrap();
    let column = |sql: &str| -> Vec<String> {
        let mut statement = read.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(column("SELECT id FROM \"near \"\"kept\" ORDER BY id"), ["\0", "p"]);
    assert_eq!(column("SELECT id || ' for ' || kept FROM \"near \"\"removed\""), ["q for p"]);
    let sums = "SELECT a || '+' || b FROM \"near \"\"deltas\" GROUP BY a, b, similarity HAVING sum(diff) = 1";
    assert_eq!(column(sums), ["p+q"], "deltas add up to the pairs");
    let index = column(
        "SELECT detail FROM pragma_index_list('near \"pairs'), (SELECT 'x' AS detail) WHERE name LIKE \
         '%pairs_b'",
    );
    assert_eq!(index, ["x"], "there is an index on the other end");
    let plan: Vec<String> = {
        let mut statement = read
            .prepare(
                "EXPLAIN QUERY PLAN SELECT a, b FROM \"near \"\"pairs\" ORDER BY similarity DESC LIMIT 10",
            )
            .unwrap();
        statement.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect()
    };
    assert!(plan[0].contains("pairs_similarity"), "the top pairs are read from an index: {plan:?}");
    assert_eq!(column("SELECT typeof(at) FROM \"near \"\"pairs\" GROUP BY 1"), ["text"]);
}

/// Tables of layout 1, as its statements created them.
#[cfg(feature = "sqlite")]
#[test]
fn sqlite_tables_of_layout_1_are_migrated_and_later_ones_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let open = |run: &str| output(Address::Sqlite(path.clone()), run);
    let mut first = open("first");
    first.take_over().unwrap();
    step(&mut first, 1, &[change("a", Some(1)), change("b", Some(1))], &mut [delta("a", "b", 0.9, 1)])
        .unwrap();
    drop(first);
    let read = rusqlite::Connection::open(&path).unwrap();
    read.execute_batch(
        "DROP INDEX \"near \"\"pairs_similarity\"; ALTER TABLE \"near \"\"pairs\" DROP COLUMN at;
         ALTER TABLE \"near \"\"deltas\" DROP COLUMN at; ALTER TABLE \"near \"\"progress\" DROP COLUMN at;
         ALTER TABLE \"near \"\"progress\" DROP COLUMN layout;
         ALTER TABLE \"near \"\"progress\" DROP COLUMN counts;",
    )
    .unwrap();
    let mut second = open("second");
    assert!(matches!(second.take_over().unwrap(), Standing::At(_)));
    assert_eq!(second.store.pairs().unwrap(), [delta("a", "b", 0.9, 1).pair].into());
    second.restored(&[delta("a", "b", 0.9, 1)]);
    step(&mut second, 2, &[change("c", Some(1))], &mut [delta("b", "c", 0.8, 1)]).unwrap();
    let written: Vec<(String, bool)> = {
        let mut statement =
            read.prepare("SELECT b, at IS NOT NULL FROM \"near \"\"pairs\" ORDER BY b").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(written, [("b".to_owned(), false), ("c".to_owned(), true)]);
    read.execute("UPDATE \"near \"\"progress\" SET layout = 3", []).unwrap();
    let message = open("third").take_over().unwrap_err().to_string();
    assert!(
        message.contains("layout 3") && message.contains("layout 2") && message.contains("sink.prefix"),
        "{message}"
    );
}

/// Rows that other programs delete or add are noticed, until a run corrects the tables. `other` executes a
/// statement on a table.
fn notices_foreign_rows(open: &dyn Fn(&str) -> TableSink, other: &mut dyn FnMut(&str, &str)) {
    let mut sink = open("counts");
    sink.take_over().unwrap();
    let documents = ["a", "b", "c"].map(|id| change(id, Some(1)));
    step(&mut sink, 1, &documents, &mut [delta("a", "b", 0.9, 1), delta("b", "c", 0.9, 1)]).unwrap();
    // A pair is replaced, one ends, and what ends was never written.
    sink.documents(&[change("d", Some(1))], false).unwrap();
    sink.epoch(&Progress { epoch: 2, ..Progress::default() }, &[delta("c", "d", 0.9, 1)], &[]).unwrap();
    let mut deltas = [
        delta("a", "b", 0.9, -1),
        delta("a", "b", 0.95, 1),
        delta("b", "c", 0.9, -1),
        delta("c", "d", 0.9, -1),
    ];
    step(&mut sink, 3, &[change("c", None), change("d", None)], &mut deltas).unwrap();
    sink.check_unchanged().unwrap();
    let mut guard = sink.guard().unwrap();
    guard().unwrap();
    for (table, changes) in [
        ("pairs", "DELETE FROM TABLE"),
        ("clusters", "DELETE FROM TABLE WHERE document = 'a'"),
        ("documents", "INSERT INTO TABLE (id, bytes, source_partition, source_offset) VALUES ('z', 1, 0, 0)"),
    ] {
        other(table, changes);
        let message = guard().expect_err(table).to_string();
        assert!(message.contains(table) && message.contains("--reconcile"), "{message}");
        assert_eq!(sink.finish().unwrap_err().to_string(), message);
        // A later run, and its commits, do not hide it.
        let mut later = open("later");
        later.take_over().unwrap();
        assert_eq!(later.check_unchanged().unwrap_err().to_string(), message);
        let mut corrected = open("corrected");
        corrected.take_over().unwrap();
        corrected.pairs().unwrap();
        corrected.documents(&["a", "b"].map(|id| change(id, Some(1))), true).unwrap();
        // Pairs that the output holds are restored, those that it lacks are written.
        let mut missing = vec![delta("a", "b", 0.95, 1)];
        if table != "pairs" {
            corrected.restored(&std::mem::take(&mut missing));
        }
        step(&mut corrected, 3, &[], &mut missing).unwrap();
        corrected.check_unchanged().unwrap();
        sink = corrected;
        guard = sink.guard().unwrap();
    }
    // A program without counts has written since: nothing is known.
    other("progress", "UPDATE TABLE SET commits = commits + 1");
    other("pairs", "DELETE FROM TABLE");
    sink.check_unchanged().unwrap();
}

/// An output that keeps no more than it must.
fn place(address: Address, prefix: &str) -> TableOutput {
    TableOutput {
        anew: false,
        address,
        schema: "plain".to_owned(),
        prefix: prefix.to_owned(),
        deltas: false,
        causes: false,
        shares: false,
        decisions: None,
        patience: Duration::from_secs(5),
        run: "r".to_owned(),
    }
}

/// Tables of other programs are not touched.
#[cfg(feature = "sqlite")]
#[test]
fn tables_of_other_programs_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let theirs = rusqlite::Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE Documents (id, text)").unwrap();
    let address = || Address::Sqlite(path.clone());
    let open = |prefix| {
        TableSink::new(
            &place(address(), prefix),
            None,
            ClusterKind::Components,
            BookMetrics::new(&Arc::new(Metrics::new(0))),
        )
    };
    let message = open("").take_over().unwrap_err().to_string();
    assert!(message.contains("documents") && message.contains("sink.prefix"), "{message}");
    assert_eq!(open("dup_").take_over().unwrap(), Standing::New);
    let tables: i64 = theirs
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'dup%'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(tables, 5);
}

mod administration;
#[cfg(feature = "postgres")]
mod server_tests;
