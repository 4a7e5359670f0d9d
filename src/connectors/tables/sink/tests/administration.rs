//! What administrators do to the tables of an output, beside a run and between two runs: a cell for each, in
//! PostgreSQL and SQLite. The cells are also the table in `docs/tables.md`.
//!
//! Each cell writes an output, changes something, and writes on. The output is then exact, or the run was
//! refused with this message; after the remedy and a start with `--reconcile` it is exact in any case.
//!
//! Bug classes: rows that are not written, exit code 0; a table that is filled twice; a message that names
//! another cause, or no way out.

use std::thread;

use super::*;
use dupflow_run::metrics::Metrics;

/// What a cell gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Exact,
    /// The run ends, or is refused, and says this.
    Refused(&'static str),
    /// The run waits, and is exact.
    Waits,
    /// Only `--reconcile` compares the values.
    Unnoticed,
    /// The database has no such thing.
    Absent,
}
use Gives::{Absent, Exact, Refused, Unnoticed, Waits};

/// What an administrator does. Names of tables are in braces.
#[derive(Clone, Copy)]
enum Does {
    /// SQL of both databases.
    Sql(&'static str),
    /// SQL of PostgreSQL, then of SQLite.
    Either(&'static str, &'static str),
    /// Restores the tables as they were after the first commit.
    Restore,
    /// Begins a transaction that holds a lock, until the run waits for it.
    Lock(&'static str, &'static str),
    /// Kills the server and starts it again.
    Restart,
}

struct Row {
    /// The cell of the table in the documentation.
    what: &'static str,
    does: Does,
    /// What is done before the start with `--reconcile`: SQL of PostgreSQL, then of SQLite.
    remedy: [&'static str; 2],
    /// PostgreSQL beside a run, and between two; then SQLite.
    gives: [Gives; 4],
}

const NONE: [&str; 2] = ["", ""];
const KEPT_BACK: &str = "to be deleted, 0 were deleted";
const COUNTED_OTHER: &str = "deleted or added some";
const MISSING: &str = "is missing: it was dropped or renamed";
const NO_MARK: &str = "holds rows, and the table";

const ROWS: &[Row] = &[
    Row {
        what: "rows of `pairs`, `clusters` or `documents` deleted, also all (`TRUNCATE`)",
        does: Does::Either("TRUNCATE {pairs}", "DELETE FROM {pairs}"),
        remedy: NONE,
        gives: [Refused(KEPT_BACK), Refused(COUNTED_OTHER), Refused(KEPT_BACK), Refused(COUNTED_OTHER)],
    },
    Row {
        what: "rows added to them",
        does: Does::Sql(
            "INSERT INTO {documents} (id, bytes, source_partition, source_offset)
            VALUES ('z', 1, 0, 0)",
        ),
        remedy: NONE,
        gives: [Refused(COUNTED_OTHER); 4],
    },
    Row {
        what: "values of a row changed",
        does: Does::Sql("UPDATE {documents} SET bytes = 99 WHERE id = 'a'"),
        remedy: NONE,
        gives: [Unnoticed; 4],
    },
    Row {
        what: "the row of `progress` deleted",
        does: Does::Sql("DELETE FROM {progress}"),
        remedy: NONE,
        gives: [
            Refused("the row of the table of progress was deleted"),
            Refused(NO_MARK),
            Refused("the row of the table of progress was deleted"),
            Refused(NO_MARK),
        ],
    },
    Row {
        what: "an older backup restored, or a standby promoted that lacks commits",
        does: Does::Restore,
        remedy: NONE,
        gives: [
            Refused("the output has lost commits 2 to 2"),
            Exact,
            Refused("the output has lost commits 2 to 2"),
            Exact,
        ],
    },
    Row {
        what: "a trigger that leaves rows as they are",
        does: Does::Either(
            "CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE TRIGGER keep BEFORE DELETE ON {pairs} FOR EACH ROW EXECUTE FUNCTION {schema}.keep()",
            "CREATE TRIGGER keep BEFORE DELETE ON {pairs} BEGIN SELECT RAISE(IGNORE); END",
        ),
        remedy: ["DROP TRIGGER keep ON {pairs}", "DROP TRIGGER keep"],
        gives: [Refused(KEPT_BACK); 4],
    },
    Row {
        what: "a trigger that writes other values (a warning at the start)",
        does: Does::Either(
            "CREATE FUNCTION {schema}.half() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN NEW.similarity := 0.5; RETURN NEW; END';
             CREATE TRIGGER half BEFORE INSERT ON {pairs} FOR EACH ROW EXECUTE FUNCTION {schema}.half()",
            "CREATE TRIGGER half AFTER INSERT ON {pairs} BEGIN
                UPDATE {pairs} SET similarity = 0.5 WHERE a = NEW.a AND b = NEW.b; END",
        ),
        remedy: ["DROP TRIGGER half ON {pairs}", "DROP TRIGGER half"],
        gives: [Unnoticed; 4],
    },
    Row {
        what: "a rule `DO INSTEAD NOTHING`",
        does: Does::Either("CREATE RULE keep AS ON DELETE TO {documents} DO INSTEAD NOTHING", ""),
        remedy: ["DROP RULE keep ON {documents}", ""],
        gives: [Refused(KEPT_BACK), Refused(KEPT_BACK), Absent, Absent],
    },
    Row {
        what: "a policy (row level security) for the role of the run",
        does: Does::Either(
            "CREATE POLICY a_few ON {pairs} USING (a <> 'a');
             ALTER TABLE {pairs} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            "",
        ),
        remedy: ["ALTER TABLE {pairs} DISABLE ROW LEVEL SECURITY", ""],
        gives: [Refused("give the role BYPASSRLS"), Refused("give the role BYPASSRLS"), Absent, Absent],
    },
    Row {
        what: "a constraint that refuses rows",
        does: Does::Either("ALTER TABLE {pairs} ADD CONSTRAINT few CHECK (similarity < 0.95) NOT VALID", ""),
        remedy: ["ALTER TABLE {pairs} DROP CONSTRAINT few", ""],
        gives: [
            Refused("violates check constraint \"few\""),
            Refused("violates check constraint \"few\""),
            Absent,
            Absent,
        ],
    },
    Row {
        what: "a right of the role revoked",
        does: Does::Either("REVOKE ALL ON {pairs} FROM writer", ""),
        remedy: ["GRANT ALL ON {pairs} TO writer", ""],
        gives: [Refused("GRANT SELECT, INSERT"), Refused("GRANT SELECT, INSERT"), Absent, Absent],
    },
    Row {
        what: "`pairs`, `clusters` or `documents` dropped or renamed",
        does: Does::Sql("ALTER TABLE {documents} RENAME TO away"),
        remedy: NONE,
        gives: [Refused(MISSING); 4],
    },
    Row {
        what: "`deltas` or `decisions` dropped or renamed, where they are written",
        does: Does::Sql("DROP TABLE {deltas}"),
        remedy: NONE,
        gives: [Refused(MISSING); 4],
    },
    Row {
        what: "`progress` dropped or renamed",
        does: Does::Sql("DROP TABLE {progress}"),
        remedy: NONE,
        gives: [Refused(MISSING), Refused(NO_MARK), Refused(MISSING), Refused(NO_MARK)],
    },
    Row {
        what: "all tables dropped",
        does: Does::Either(
            "DROP TABLE {pairs}, {clusters}, {documents}, {deltas}, {progress} CASCADE",
            "DROP VIEW {kept}; DROP VIEW {removed}; DROP TABLE {pairs}; DROP TABLE {clusters};
             DROP TABLE {documents}; DROP TABLE {deltas}; DROP TABLE {progress}",
        ),
        remedy: NONE,
        gives: [Refused(MISSING), Exact, Refused(MISSING), Exact],
    },
    Row {
        what: "the schema renamed",
        does: Does::Either("ALTER SCHEMA {schema} RENAME TO {away}", ""),
        remedy: NONE,
        gives: [Refused("Rename it back"), Exact, Absent, Absent],
    },
    Row {
        what: "another table of as many rows put in the place of one",
        does: Does::Either(
            "ALTER TABLE {pairs} RENAME TO away; CREATE TABLE {pairs} (LIKE {schema}.away INCLUDING ALL);
             INSERT INTO {pairs} (a, b, similarity, epoch) SELECT a, b || 'x', 1, 1 FROM {schema}.away;
             ALTER TABLE {pairs} OWNER TO writer",
            "CREATE TABLE away (a TEXT, b TEXT, similarity REAL, epoch INTEGER, blocks INTEGER,
                look INTEGER, components INTEGER, standard_error REAL, at TEXT, PRIMARY KEY (a, b));
             INSERT INTO away (a, b, similarity, epoch) SELECT a, b || 'x', 1, 1 FROM {pairs};
             ALTER TABLE {pairs} RENAME TO gone; ALTER TABLE away RENAME TO {=pairs}",
        ),
        remedy: NONE,
        gives: [Refused(KEPT_BACK); 4],
    },
    Row {
        what: "a primary key dropped",
        does: Does::Either(
            "ALTER TABLE {clusters} DROP CONSTRAINT p_clusters_pkey",
            "CREATE TABLE away AS SELECT * FROM {clusters}; DROP VIEW {kept}; DROP VIEW {removed};
             DROP TABLE {clusters}; ALTER TABLE away RENAME TO {=clusters}",
        ),
        remedy: ["DROP TABLE {clusters} CASCADE", "DROP TABLE {clusters}"],
        gives: [Refused("has no primary key (document)"); 4],
    },
    Row {
        what: "a column dropped or renamed",
        does: Does::Sql("ALTER TABLE {documents} RENAME COLUMN bytes TO size"),
        remedy: ["ALTER TABLE {documents} RENAME COLUMN size TO bytes"; 2],
        gives: [Refused("has no column \"bytes\""); 4],
    },
    Row {
        what: "a column added that must have a value",
        does: Does::Either(
            "ALTER TABLE {pairs} ADD COLUMN x integer NOT NULL DEFAULT 0;
             ALTER TABLE {pairs} ALTER COLUMN x DROP DEFAULT",
            "",
        ),
        remedy: ["ALTER TABLE {pairs} DROP COLUMN x", ""],
        gives: [
            Refused("a column \"x\" that must have a value"),
            Refused("a column \"x\" that must have a value"),
            Absent,
            Absent,
        ],
    },
    Row {
        what: "another column added",
        does: Does::Sql("ALTER TABLE {clusters} ADD COLUMN x integer; ALTER TABLE {pairs} ADD COLUMN x text"),
        remedy: NONE,
        gives: [Exact; 4],
    },
    Row {
        what: "an index dropped; a view dropped (the next start makes it again)",
        does: Does::Either(
            "DROP INDEX {schema}.p_pairs_b_idx; DROP VIEW {kept}",
            "DROP INDEX p_pairs_b; DROP VIEW {kept}",
        ),
        remedy: NONE,
        gives: [Exact; 4],
    },
    Row {
        what: "a lock held by another session",
        does: Does::Lock("BEGIN; LOCK TABLE {pairs}", "BEGIN IMMEDIATE"),
        remedy: NONE,
        gives: [Waits; 4],
    },
    Row {
        what: "the server restarted, or replaced by a standby with all commits",
        does: Does::Restart,
        remedy: NONE,
        gives: [Exact, Exact, Absent, Absent],
    },
];

/// A database with one output, as its administrator and its readers have it.
pub(super) struct Bench<'s> {
    pub(super) address: Address,
    pub(super) schema: String,
    /// 0 for PostgreSQL, 1 for SQLite.
    pub(super) database: usize,
    /// Executes statements, on one connection.
    pub(super) admin: Box<dyn FnMut(&str) + 's>,
    /// Reads a number, on another one.
    pub(super) number: Box<dyn FnMut(&str) -> i64 + 's>,
    /// Restarts the server.
    pub(super) restart: &'s dyn Fn(),
}

impl Bench<'_> {
    /// SQL with the names of this place: `{pairs}` with its schema, `{=pairs}` without.
    fn named(&self, sql: &str) -> String {
        let quoted = format!("\"{}\"", self.schema);
        let dot = if self.database == 0 { format!("{quoted}.") } else { String::new() };
        let sql = sql.replace("{old}", &format!("{dot}old_")).replace("{schema}", &quoted);
        let sql = sql.replace("{away}", &format!("\"{} away\"", self.schema));
        let tables = ["pairs", "clusters", "documents", "deltas", "progress", "kept", "removed"];
        tables.into_iter().fold(sql, |sql, name| {
            let table = format!("\"p_{name}\"");
            sql.replace(&format!("{{={name}}}"), &table)
                .replace(&format!("{{{name}}}"), &format!("{dot}{table}"))
        })
    }

    fn run(&mut self, sql: &str) {
        let sql = self.named(sql);
        (self.admin)(&sql);
    }

    fn open(&self, run: &str) -> TableSink {
        if let Address::Sqlite(path) = &self.address {
            // Held for a moment more by a process that another test starts.
            drop(std::fs::remove_file(format!("{}-p_owner.lock", path.display())));
        }
        let output = TableOutput {
            schema: self.schema.clone(),
            run: run.to_owned(),
            deltas: true,
            ..place(self.address.clone(), "p_")
        };
        TableSink::new(&output, None, ClusterKind::Components, BookMetrics::new(&Arc::new(Metrics::new(0))))
    }

    /// Whether everything is that of the last commit.
    fn is_exact(&mut self, sink: &mut TableSink) -> bool {
        let pairs: BTreeSet<_> = last().iter().map(|delta| delta.pair.pair.clone()).collect();
        let found = sink.store.pairs().unwrap();
        let similarities: Vec<f64> = found.iter().map(|pair| pair.similarity.get()).collect();
        let clusters = members(&[("b", "b"), ("c", "b"), ("d", "b"), ("e", "b")]);
        let alive: Vec<(String, u32)> = LAST.iter().map(|id| ((*id).to_owned(), 1)).collect();
        let sums = self.named(
            "SELECT count(*) FROM (SELECT d.a, d.b FROM {deltas} d LEFT JOIN {pairs} p
                ON p.a = d.a AND p.b = d.b AND p.similarity = d.similarity
             GROUP BY d.a, d.b, d.similarity
             HAVING sum(diff) <> max(CASE WHEN p.a IS NULL THEN 0 ELSE 1 END)) x",
        );
        found.into_iter().map(|pair| pair.pair).collect::<BTreeSet<_>>() == pairs
            && similarities == [0.95, 0.85, 0.8]
            && sink.store.clusters().unwrap() == clusters
            && documents(sink) == alive
            && (self.number)(&sums) == 0
    }
}

/// The first epoch.
fn first() -> [Delta; 3] {
    [delta("a", "b", 0.9, 1), delta("b", "c", 0.9, 1), delta("d", "e", 0.8, 1)]
}

/// The pairs in the end.
fn last() -> [Delta; 3] {
    [delta("b", "c", 0.95, 1), delta("c", "d", 0.85, 1), delta("d", "e", 0.8, 1)]
}

/// The documents of the first epoch, and those in the end.
const FIRST: [&str; 5] = ["a", "b", "c", "d", "e"];
const LAST: [&str; 6] = ["a", "b", "c", "d", "e", "g"];

fn one(id: &str) -> DocChange {
    change(id, Some(1))
}

fn second_step(sink: &mut TableSink) -> io::Result<()> {
    step(sink, 2, &[one("f")], &mut [])
}

/// A step that changes rows of each table, and a look as at the end.
fn last_step(sink: &mut TableSink) -> io::Result<()> {
    let mut deltas = [
        delta("a", "b", 0.9, -1),
        delta("b", "c", 0.9, -1),
        delta("b", "c", 0.95, 1),
        delta("c", "d", 0.85, 1),
    ];
    step(sink, 3, &[change("f", None), one("g")], &mut deltas)?;
    sink.finish()
}

/// Starts as a run does, without `--reconcile`, and writes up to the end.
fn continued(sink: &mut TableSink) -> io::Result<()> {
    if let Some(Standing::Unmarked(what)) = sink.inspect()? {
        return Err(io::Error::other(what));
    }
    let epoch = match sink.take_over()? {
        Standing::New => 0,
        Standing::At(mark) => mark.progress.epoch,
        other => panic!("{other:?} was not found before"),
    };
    sink.check_unchanged()?;
    sink.live(epoch);
    if epoch == 0 {
        step(sink, 1, &FIRST.map(one), &mut first())?;
    } else {
        sink.documents(&FIRST.map(one), true)?;
        sink.restored(&first());
    }
    if epoch < 2 {
        second_step(sink)?;
    }
    last_step(sink)
}

/// Starts as a run with `--reconcile` does, and corrects the output.
fn reconciled(sink: &mut TableSink) -> io::Result<()> {
    sink.inspect()?;
    let standing = sink.take_over()?;
    sink.live(0);
    let there = match standing {
        Standing::New => BTreeSet::new(),
        _ => sink.pairs()?,
    };
    sink.documents(&LAST.map(one), true)?;
    let wanted: BTreeSet<DocPair> = last().into_iter().map(|delta| delta.pair).collect();
    let of = |pair: &DocPair, diff| Delta { pair: pair.clone(), diff, cause: Cause::Correction };
    sink.restored(&there.intersection(&wanted).map(|pair| of(pair, 1)).collect::<Vec<_>>());
    let gone: Vec<Delta> = there.difference(&wanted).map(|pair| of(pair, -1)).collect();
    let mut deltas: Vec<Delta> = wanted.difference(&there).map(|pair| of(pair, 1)).collect();
    // The pairs that are only there are part of the clusters that the corrections change.
    sink.restored(&there.difference(&wanted).map(|pair| of(pair, 1)).collect::<Vec<_>>());
    deltas.extend(gone);
    step(sink, 4, &[], &mut deltas)?;
    sink.finish()
}

/// Tries a cell.
fn cell(bench: &mut Bench<'_>, row: &Row, is_live: bool, gives: Gives) {
    let named = format!("{}, database {}, live {is_live}", row.what, bench.database);
    let mut sink = bench.open("first");
    assert_eq!(sink.take_over().unwrap(), Standing::New, "{named}");
    sink.live(0);
    step(&mut sink, 1, &FIRST.map(one), &mut first()).unwrap();
    if matches!(row.does, Does::Restore) {
        for table in ["pairs", "clusters", "documents", "deltas", "progress"] {
            bench.run(&format!("CREATE TABLE {{old}}{table} AS SELECT * FROM {{{table}}}"));
        }
    }
    second_step(&mut sink).unwrap();
    if !is_live {
        drop(sink);
        sink = bench.open("second");
    }
    let go_on = |sink: &mut TableSink| if is_live { last_step(sink) } else { continued(sink) };
    let ended = match row.does {
        Does::Lock(postgres, sqlite) => {
            bench.run([postgres, sqlite][bench.database]);
            thread::scope(|scope| {
                let going = scope.spawn(|| go_on(&mut sink));
                // A waiting session is seen on a server alone.
                while bench.database == 0
                    && (bench.number)("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0
                    && !going.is_finished()
                {
                    thread::yield_now();
                }
                assert!(!going.is_finished() || bench.database == 1, "{named}");
                bench.run("COMMIT");
                going.join().unwrap()
            })
        }
        _ => {
            match row.does {
                Does::Sql(sql) => bench.run(sql),
                Does::Either(postgres, sqlite) => bench.run([postgres, sqlite][bench.database]),
                Does::Restore => {
                    let tables = ["pairs", "clusters", "documents", "deltas", "progress"].map(|table| {
                        format!(
                            "DELETE FROM {{{table}}}; INSERT INTO {{{table}}} SELECT * FROM {{old}}{table};"
                        )
                    });
                    bench.run(&format!("BEGIN; {} COMMIT", tables.join(" ")));
                }
                Does::Restart => (bench.restart)(),
                Does::Lock(..) => {}
            }
            go_on(&mut sink)
        }
    };
    match gives {
        Exact | Waits => {
            ended.unwrap_or_else(|error| panic!("{named}: {error}"));
            assert!(bench.is_exact(&mut sink), "{named}");
        }
        Unnoticed => {
            ended.unwrap_or_else(|error| panic!("{named}: {error}"));
            assert!(!bench.is_exact(&mut sink), "{named}: is noticed");
        }
        Refused(said) => {
            let message = ended.expect_err(&named).to_string();
            assert!(message.contains(said), "{named}: {message}");
        }
        Absent => unreachable!("such cells are not tried"),
    }
    drop(sink);
    bench.run(row.remedy[bench.database]);
    let mut sink = bench.open("corrected");
    reconciled(&mut sink).unwrap_or_else(|error| panic!("{named}, --reconcile: {error}"));
    assert!(bench.is_exact(&mut sink), "{named}, --reconcile");
    let kept = bench.named("SELECT count(*) FROM {kept}");
    assert_eq!((bench.number)(&kept), 3, "{named}: the view is there");
}

/// Tries all cells of a database; `bench` makes a new place for each.
pub(super) fn all_cells<'s>(bench: &dyn Fn(usize) -> Bench<'s>) {
    for (n, row) in ROWS.iter().enumerate() {
        for (at, is_live) in [(0, true), (1, false)] {
            let mut bench = bench(2 * n + at);
            let gives = row.gives[2 * bench.database + at];
            if gives != Absent {
                cell(&mut bench, row, is_live, gives);
            }
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_under_administration() {
    let folder = tempfile::tempdir().unwrap();
    all_cells(&|n| {
        let path = folder.path().join(format!("{n}.db"));
        let open = |path: &std::path::Path| {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.busy_timeout(Duration::from_secs(30)).unwrap();
            connection
        };
        let (admin, reader) = (open(&path), open(&path));
        Bench {
            address: Address::Sqlite(path),
            schema: String::new(),
            database: 1,
            admin: Box::new(move |sql| {
                admin.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }),
            number: Box::new(move |sql| reader.query_row(sql, [], |row| row.get(0)).unwrap()),
            restart: &|| {},
        }
    });
}

/// The documentation has these cells. `DUPFLOW_TABLES=write` writes them.
#[test]
fn the_documented_cells_are_those_tried() {
    let word = |gives: &Gives| match gives {
        Exact => "exact",
        Refused(_) => "refused",
        Waits => "waits",
        Unnoticed => "not noticed",
        Absent => "–",
    };
    let mut table =
        "| beside a run, or between two | PostgreSQL: live | between | SQLite: live | between |\n\
                     |---|---|---|---|---|\n"
            .to_owned();
    for row in ROWS {
        let cells: Vec<&str> = row.gives.iter().map(word).collect();
        table += &format!("| {} | {} |\n", row.what, cells.join(" | "));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");
    let text = std::fs::read_to_string(page).unwrap();
    let begin = "<!-- cells: tables as sink under administration -->\n";
    let (before, rest) = text.split_once(begin).unwrap();
    let (found, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("DUPFLOW_TABLES").is_some_and(|mode| mode == "write") {
        std::fs::write(page, format!("{before}{begin}{table}<!-- end -->{after}")).unwrap();
    } else {
        assert_eq!(found, table, "DUPFLOW_TABLES=write writes it");
    }
}
