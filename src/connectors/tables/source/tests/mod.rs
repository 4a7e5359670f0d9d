//! Reads a table of a database file, one round at a time.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::reader::{RoundEnd, TableReading};
use super::table::{CountBound, OrderKind, PAGE_BYTES, RowPage, TableNow, TableRow, TableRows};
use super::*;
use crate::intake::{BadRecords, CatchUp, CatchUpLine, Decoder, Dequeued, NoText, Queue, QueueRoom};
use crate::tables::database::{Address, DatabaseFailure};
use dupflow_core::doc::{DocId, Position};
use dupflow_core::time::{Epoch, LiveFrom};

/// A database file with a table of pages, ordered by a number.
struct TestDatabase {
    folder: tempfile::TempDir,
    connection: Connection,
}

/// An event: its epoch, offset, id and text.
type TableEvent = (Epoch, u64, String, Option<String>);

impl TestDatabase {
    fn new(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("a.db")).unwrap();
        connection.execute_batch(schema).unwrap();
        Self { folder, connection }
    }

    fn numbers() -> Self {
        Self::new("CREATE TABLE pages (id, body, version, gone, title, at)")
    }

    fn put(&self, values: &str) {
        let sql = format!("INSERT INTO pages (id, body, version) VALUES {values}");
        self.connection.execute_batch(&sql).unwrap();
    }

    fn run(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }

    fn table(&self) -> DatabaseTable {
        DatabaseTable {
            address: Address::Sqlite(self.folder.path().join("a.db")),
            relation: Relation::Table("pages".to_owned()),
            id: "id".to_owned(),
            text: "body".to_owned(),
            order: "version".to_owned(),
            deleted: None,
            ts: None,
            fields: Vec::new(),
            page: 2,
            poll: Duration::from_millis(1),
            overlap: RoundOverlap { time: Duration::from_secs(60), number: 10 },
            follow: false,
            patience: Duration::from_secs(1),
            limits: EpochLimits::default(),
            is_here: true,
            regression: Regression::Refuse,
            row_security: false,
        }
    }
}

fn queue() -> Queue {
    Queue::new(1, 1, QueueRoom { bytes: 1 << 20, batches: 1000 }, EpochLimits::default())
}

/// A reader, a queue, and the last position that was taken from it.
struct ReaderBench {
    reading: TableReading,
    queue: Queue,
    bad: BadRecords,
    fields: Vec<String>,
    next: u64,
}

impl ReaderBench {
    fn new(table: DatabaseTable, begin: u64) -> Self {
        let fields = table.fields.clone();
        Self {
            reading: TableReading::new(table, begin, None, Arc::default()),
            queue: queue(),
            bad: BadRecords::default(),
            fields,
            next: 0,
        }
    }

    /// Reads one round; returns its events.
    fn turn(&mut self) -> Vec<TableEvent> {
        self.reading.turn(&self.queue, &self.bad).unwrap_or_else(|_| panic!("a turn failed"));
        self.drain()
    }

    fn drain(&mut self) -> Vec<TableEvent> {
        let mut decoder = Decoder::new(&self.fields.clone().into());
        let mut events = Vec::new();
        while let Dequeued::Batch(epoch, batch) = self.queue.take(Epoch::MAX) {
            assert!(batch.next >= self.next, "what has been read never goes back");
            self.next = batch.next;
            let each = |at: Position, event: dupflow_core::doc::DocEvent<'_>| {
                events.push((epoch, at.offset, event.id.to_string(), event.text.map(Into::into)));
            };
            decoder.decode(&batch, &self.bad, &mut Vec::new(), each).unwrap();
        }
        events
    }
}

fn event(epoch: Epoch, offset: u64, id: &str, text: &str) -> TableEvent {
    (epoch, offset, id.to_owned(), Some(text.to_owned()))
}

#[test]
fn rows_are_events_page_by_page() {
    let place = TestDatabase::numbers();
    // Five rows with the same order, over three pages.
    place.put(
        "('文', '重複した文書', 7), ('ب', 'مرحبا', 7), ('ท', 'เอกสาร', 7), ('🦀', '', 7), (5, 'number', 7), \
     ('a', 'before', 3)",
    );
    let mut bench = ReaderBench::new(place.table(), 0);
    let expected = [
        event(1, 3, "a", "before"),
        event(1, 7, "5", "number"),
        event(1, 7, "ب", "مرحبا"),
        event(1, 7, "ท", "เอกสาร"),
        event(1, 7, "文", "重複した文書"),
        event(1, 7, "🦀", ""),
    ];
    assert_eq!((bench.turn(), bench.next), (expected.to_vec(), 8));
    assert_eq!(bench.turn(), [], "nothing has changed");
    place.put("('b', 'later', 8)");
    assert_eq!((bench.turn(), bench.next), (vec![event(2, 8, "b", "later")], 9), "each round ends its epoch");
    assert!(bench.bad.counts().is_empty());
}

/// Ids that are equal as their column compares them, at the ends of pages.
#[test]
fn equal_ids_are_rows_of_their_own() {
    let place = TestDatabase::new(
        "CREATE TABLE pages (id TEXT COLLATE NOCASE, body, version);
         CREATE INDEX i ON pages (version, id); CREATE TABLE mixed (id, body, version)",
    );
    place.put("('A', 'x', 5), ('a', 'y', 5), ('b', 'z', 5)");
    let table = DatabaseTable { page: 1, ..place.table() };
    let ids = |events: Vec<TableEvent>| events.into_iter().map(|(_, _, id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(ReaderBench::new(table.clone(), 0).turn()), ["A", "a", "b"]);
    let source = TableSource::new(table.clone());
    let mut texts = source.texts(&TextColumns::default()).unwrap();
    let at = Position { partition: 0, offset: 5 };
    let found = ["A", "a"].map(|id| texts.text(&DocId::new(id).unwrap(), at).unwrap().text);
    assert_eq!(found, ["x", "y"]);
    place.run("INSERT INTO mixed VALUES (1.0, 'x', 5), (1, 'x', 5), (2, 'x', 5)");
    let mixed = DatabaseTable { relation: Relation::Table("mixed".to_owned()), ..table };
    let mut bench = ReaderBench::new(mixed, 0);
    assert_eq!(ids(bench.turn()), ["1", "2"]);
    assert_eq!(bench.bad.counts(), BTreeMap::from([("bad_id", 1)]));
    // The index is used all the same.
    let explained = "EXPLAIN QUERY PLAN SELECT * FROM pages AS source \
        WHERE (version, id, CAST(id AS TEXT) COLLATE BINARY) > (5, 'A', 'A') \
        ORDER BY version, id, CAST(id AS TEXT) COLLATE BINARY LIMIT 9";
    let plan: String = place.connection.query_row(explained, [], |row| row.get(3)).unwrap();
    assert!(plan.starts_with("SEARCH source USING INDEX i"), "{plan}");
}

/// Rows of 5 MB, as many as a page may have: without the limit in bytes, one page would be all of them.
#[test]
fn pages_are_bounded_in_bytes() {
    let place = TestDatabase::numbers();
    let long = 5 << 20;
    place.run(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
         INSERT INTO pages (id, body, version) SELECT i, printf('%.*c', {long}, 'x'), i FROM n"
    ));
    let table = DatabaseTable { page: 300, ..place.table() };
    let mut rows = table.reach().unwrap();
    let mut sizes = Vec::new();
    let mut page = rows.page(Some(0)).unwrap();
    loop {
        let bytes: usize = page.rows.iter().map(TableRow::bytes).sum();
        assert!(bytes < PAGE_BYTES + long + 100, "{bytes}");
        sizes.push(page.rows.len());
        if page.is_last {
            break;
        }
        page = rows.page(None).unwrap();
    }
    assert_eq!(sizes.iter().sum::<usize>(), 9, "{sizes:?}");
    assert_eq!(sizes[..2], [4, 4], "16 MiB and the row that passes them");
}

/// A row with the same order that changes, and those that are committed late. One that is late by more than
/// the overlap ends the run.
#[test]
fn late_rows_are_read() {
    let place = TestDatabase::numbers();
    place.put("('a', 'one', 100), ('b', 'one', 100)");
    let mut bench = ReaderBench::new(place.table(), 0);
    assert_eq!(bench.turn().len(), 2);
    place.run("UPDATE pages SET body = 'two' WHERE id = 'b'");
    assert_eq!(bench.turn(), [event(2, 100, "b", "two")], "another text of the same order");
    place.put("('c', 'late', 95)");
    assert_eq!((bench.turn(), bench.next), (vec![event(3, 95, "c", "late")], 101));
    place.put("('e', 'far on', 500)");
    assert_eq!(bench.turn(), [event(4, 500, "e", "far on")]);
    // The next round begins at the greatest order of the previous one, minus the overlap.
    place.put("('f', 'late', 490)");
    assert_eq!(bench.turn(), [event(5, 490, "f", "late")]);
    // Another run continues at the last position. It reads the overlap again, and with it the rows that were
    // committed in between.
    place.put("('g', 'late', 491)");
    let mut next = ReaderBench::new(place.table(), bench.next);
    let ids: Vec<String> = next.turn().into_iter().map(|(_, _, id, _)| id).collect();
    assert_eq!(ids, ["f", "g", "e"], "from 490 on, what the last one had read too");
    place.put("('h', 'too late', 489)");
    let RoundEnd::Failed(why) = next.reading.turn(&next.queue, &next.bad).unwrap_err() else { panic!() };
    assert!(why.to_string().contains("1 row has come where all rows had been read"), "{why}");
}

/// Rows, and a change to the table after their first page.
struct Meanwhile<F>(Box<dyn TableRows>, Option<F>);

impl<F: FnOnce() + Send> TableRows for Meanwhile<F> {
    fn order(&self) -> OrderKind {
        self.0.order()
    }

    fn look(&mut self, bound: CountBound<'_>) -> Result<TableNow, DatabaseFailure> {
        self.0.look(bound)
    }

    fn begin_page(&mut self) -> Result<(), DatabaseFailure> {
        self.0.begin_page()
    }

    fn end_page(&mut self) -> Result<(), DatabaseFailure> {
        let ended = self.0.end_page();
        self.1.take().into_iter().for_each(|happens| happens());
        ended
    }

    fn page(&mut self, from: Option<u64>) -> Result<RowPage, DatabaseFailure> {
        self.0.page(from)
    }

    fn row(&mut self, id: &str) -> Result<Option<TableRow>, DatabaseFailure> {
        self.0.row(id)
    }

    fn unseen(&mut self) -> Result<u64, DatabaseFailure> {
        self.0.unseen()
    }

    fn count(&mut self) -> Result<u64, DatabaseFailure> {
        self.0.count()
    }

    fn is_derived(&self) -> bool {
        self.0.is_derived()
    }

    fn has_changed(&mut self) -> Result<bool, DatabaseFailure> {
        self.0.has_changed()
    }
}

/// A row that is committed late, within the overlap, during a round that then reads far beyond it.
#[test]
fn rows_committed_during_a_round_are_read_by_the_next() {
    let place = TestDatabase::numbers();
    place.put("('a', 'x', 1), ('b', 'x', 2), ('c', 'x', 100)");
    let path = place.folder.path().join("a.db");
    let happens = move || {
        let more: Vec<String> = (101..200).map(|n| format!("('n{n}', 'x', {n})")).collect();
        let sql = format!("INSERT INTO pages (id, body, version) VALUES {}", more.join(", "));
        Connection::open(path).unwrap().execute_batch(&sql).unwrap();
    };
    let mut bench = ReaderBench::new(place.table(), 0);
    bench.reading.rows = Some(Box::new(Meanwhile(place.table().reach().unwrap(), Some(happens))));
    assert_eq!(bench.turn().len(), 3 + 99);
    // Its transaction began while 100 was the greatest order.
    place.put("('late', 'x', 95)");
    let ids: Vec<String> = bench.turn().into_iter().map(|(_, _, id, _)| id).collect();
    assert_eq!(ids, ["late"], "what was read before is not given again");
}

#[test]
fn every_kind_of_column() {
    let place = TestDatabase::numbers();
    place.run(
        "INSERT INTO pages VALUES
            ('a', 'text', 1, 0, 'title', 1700000000), ('b', 'gone', 2, 1, NULL, NULL), ('c', 'gone', 3, \
         '2026-01-01', NULL, NULL),
            ('d', 'here', 4, '', NULL, '2026-11-22 07:10:00.5'), ('e', NULL, 5, NULL, NULL, NULL), ('f', \
         x'00', 6, NULL, NULL, NULL),
            ('g', CAST(x'ff' AS TEXT), 7, NULL, NULL, NULL), (1.5, 'real', 8, NULL, NULL, NULL), ('', \
         'empty', 9, NULL, NULL, NULL),
            ('h', 'when', 10, NULL, NULL, 'yesterday'), (NULL, 'no id', 11, NULL, NULL, NULL), ('i', 'no \
         order', NULL, NULL, NULL, NULL),
            ('j', 'negative', -1, NULL, NULL, NULL), ('null', 'null', 12, NULL, '', NULL)",
    );
    let table = DatabaseTable {
        deleted: Some("gone".to_owned()),
        ts: Some("at".to_owned()),
        fields: vec!["title".to_owned()],
        page: 100,
        ..place.table()
    };
    let mut bench = ReaderBench::new(table.clone(), 0);
    let expected = [
        event(1, 1, "a", "text\u{1e}title"),
        (1, 2, "b".to_owned(), None),
        (1, 3, "c".to_owned(), None),
        event(1, 4, "d", "here"),
        event(1, 12, "null", "null"),
    ];
    assert_eq!(bench.turn(), expected);
    let bad = [("bad_id", 2), ("bad_ts", 1), ("missing_text", 2), ("not_utf8", 1)];
    assert_eq!(bench.bad.counts(), BTreeMap::from(bad));
    assert_eq!(table.reach().unwrap().unseen().unwrap(), 3, "no id, no order, one before 0");
    assert!(table.examine().unwrap().contains("14 rows, in order of numbers, 3 of them not read"));
}

/// Values as they are in columns of each declared type: of rows that are alive, and of deleted ones.
#[test]
fn a_deletion_is_read_by_its_meaning() {
    for (declared, alive, deleted) in [
        ("INTEGER", "NULL, 0, '0'", "1, -1, '1'"),
        (
            "TEXT",
            "NULL, 0, '', ' ', '0', '0.00', 'f', 'False', 'NO', 'off'",
            "1, '1', 'true', 'x', '2026-01-01'",
        ),
        ("REAL", "NULL, 0, -0.0, '0'", "1, 0.5, '1'"),
        ("BOOLEAN", "FALSE, 'false', 0", "TRUE, 'true', 1"),
        ("NUMERIC", "0, '0.0', 'null'", "1, '2026-01-01 00:00:00'"),
        ("BLOB", "x'', x'00', x'30', 0", "x'01', x'ff', x'31', 1"),
        ("DATETIME", "'infinity', ''", "'2026-01-01', 1767225600"),
    ] {
        let place = TestDatabase::new(&format!(
            "CREATE TABLE pages (id PRIMARY KEY, body, version, gone {declared})"
        ));
        for (what, values) in [("alive", alive), ("deleted", deleted)] {
            for value in values.split(", ") {
                place.run(&format!(
                    "INSERT INTO pages SELECT '{what} ' || count(*), 'x', 1 + count(*), {value} FROM pages"
                ));
            }
        }
        let table = DatabaseTable { deleted: Some("gone".to_owned()), page: 100, ..place.table() };
        for (_, _, id, text) in ReaderBench::new(table, 0).turn() {
            assert_eq!(text.is_none(), id.starts_with("deleted"), "{declared}: {id} of {alive}; {deleted}");
        }
    }
}

/// The triggers of docs/tables.md, verbatim: existing rows, updates and delete marks are all seen.
#[test]
fn the_documented_triggers_number_every_write() {
    let documented = include_str!("../../../../../docs/tables.md");
    let (_, recipe) = documented.split_once("-- SQLite: a number\n").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let place = TestDatabase::new("CREATE TABLE pages (page_id TEXT, body TEXT, deleted_at TEXT)");
    place.run("INSERT INTO pages VALUES ('a', 'before', NULL)");
    place.run(recipe);
    let table = DatabaseTable {
        id: "page_id".to_owned(),
        deleted: Some("deleted_at".to_owned()),
        page: 100,
        overlap: RoundOverlap { time: Duration::ZERO, number: 0 },
        ..place.table()
    };
    let mut bench = ReaderBench::new(table, 0);
    place.run("INSERT INTO pages (page_id, body) VALUES ('b', 'new'), ('c', 'new')");
    let expected = [event(1, 0, "a", "before"), event(1, 1, "b", "new"), event(1, 2, "c", "new")];
    assert_eq!(bench.turn(), expected);
    place.run("UPDATE pages SET body = 'edited' WHERE page_id = 'b'");
    assert_eq!(bench.turn(), [event(2, 3, "b", "edited")]);
    place.run("UPDATE pages SET deleted_at = CURRENT_TIMESTAMP WHERE page_id = 'c'");
    assert_eq!(bench.turn(), [(3, 4, "c".to_owned(), None)]);
}

#[test]
fn future_times_do_not_count_as_greatest() {
    let place = TestDatabase::numbers();
    place.put(
        "('a', 'x', '2026-01-31 12:00:00'), ('b', 'x', '2026-01-31 12:00:00.000001'), ('z', 'x', \
     '9999-12-31 00:00:00')",
    );
    let mut bench = ReaderBench::new(place.table(), 0);
    let noon = 1_769_860_800_000_000;
    let offsets: Vec<u64> = bench.turn().into_iter().map(|(_, offset, ..)| offset).collect();
    assert_eq!(offsets, [noon, noon + 1, 253_402_214_400_000_000]);
    assert!(
        bench.next < 200 * 365 * 86_400 * 1_000_000,
        "what lies in the future does not count as the greatest"
    );
    // Rows of the present time are read at any moment of this test, and so are times in another notation.
    place.run(
        "INSERT INTO pages (id, body, version) VALUES ('c', 'x', datetime('now')), ('d', 'x', \
     strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
    );
    let ids: Vec<String> = bench.turn().into_iter().map(|(_, _, id, _)| id).collect();
    assert_eq!(ids, ["c", "d"]);
    place.put("('e', 'x', 'soon')");
    assert_eq!(bench.turn(), []);
    assert_eq!(bench.bad.counts(), BTreeMap::from([("bad_ts", 1)]), "it is no time");
    assert_eq!(bench.turn(), []);
    assert_eq!(bench.bad.counts(), BTreeMap::from([("bad_ts", 1)]), "and is told once");
}

/// Rows of the same day in three notations: those of the overlap are read, and an older one ends the run.
#[test]
fn older_times_of_the_same_day_are_refused() {
    let place = TestDatabase::numbers();
    place.put(
        "('a', 'x', '2026-01-31 10:00:00'), ('b', 'x', '2026-01-31T11:00:00Z'), ('c', 'x', '2026-01-31'), \
         ('d', 'x', '2026-01-31 12:00'), ('e', 'x', '2026-01-31T12:00:00.5Z'), ('f', 'x', '2026-01-30')",
    );
    let mut bench = ReaderBench::new(place.table(), 0);
    assert_eq!(bench.turn().len(), 6);
    place.put("('g', 'x', '2026-01-31T11:59:30Z'), ('h', 'x', '2026-01-31 11:59:59.750')");
    let ids = |events: Vec<TableEvent>| events.into_iter().map(|(_, _, id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(bench.turn()), ["h", "g"], "the overlap begins at 11:59:00.5");
    for late in ["2026-01-31T10:30:00Z", "2026-01-31 10:30:00"] {
        let mut next = ReaderBench::new(place.table(), bench.next);
        next.turn();
        place.put(&format!("('late', 'x', '{late}')"));
        let RoundEnd::Failed(why) = next.reading.turn(&next.queue, &next.bad).unwrap_err() else { panic!() };
        assert!(why.to_string().contains("1 row has come where all rows had been read"), "{late}: {why}");
        place.run("DELETE FROM pages WHERE id = 'late'");
    }
}

/// A restarted run reaches its line exactly, for any positions of rows.
#[test]
fn no_batch_crosses_a_line() {
    for (line, before) in [(0, 0), (1, 0), (5, 0), (6, 1), (7, 2), (8, 2), (50, 4)] {
        let place = TestDatabase::numbers();
        place.put("('a', 'x', 5), ('b', 'x', 6), ('c', 'x', 9), ('d', 'x', 9)");
        let table = DatabaseTable { page: 3, ..place.table() };
        let mut bench = ReaderBench::new(table, 0);
        let live = Arc::new(LiveFrom::default());
        let ahead = CatchUp::new([CatchUpLine::Offsets([(0, line)].into())]);
        let room = QueueRoom { bytes: 1 << 20, batches: 1000 };
        bench.queue = Queue::behind(ahead, Arc::clone(&live), None, 1, 1, room, EpochLimits::default());
        let events = bench.turn();
        let live = live.get().unwrap_or_else(|| panic!("line {line}: the run is not live"));
        let repeated = events.iter().filter(|(epoch, ..)| *epoch < live).count();
        assert_eq!((repeated, events.len()), (before, 4), "line {line}");
    }
}

#[test]
fn texts_are_found_by_id() {
    let place = TestDatabase::new(
        "CREATE TABLE pages (id INTEGER PRIMARY KEY, body TEXT, version INTEGER, title TEXT)",
    );
    place.run(
        "INSERT INTO pages VALUES (42, '重複', 7, 'title'), (43, NULL, 8, NULL), \
         (44, char(97, 30, 98), 9, NULL)",
    );
    let table = DatabaseTable { fields: vec!["title".to_owned()], ..place.table() };
    let id = |text: &str| DocId::new(text).unwrap();
    let at = |offset| Position { partition: 0, offset };
    let source = TableSource::new(table);
    let mut with_title = source.texts(&vec!["title".to_owned()].into()).unwrap();
    assert_eq!(with_title.text(&id("42"), at(7)).unwrap().text, "重複\u{1e}title");
    assert_eq!(with_title.text(&id("44"), at(9)).unwrap().text, "a b", "a separator would begin a title");
    let mut texts = source.texts(&TextColumns::default()).unwrap();
    assert_eq!(texts.text(&id("42"), at(7)).unwrap().text, "重複");
    assert_eq!(texts.text(&id("44"), at(9)).unwrap().text, "a\u{1e}b");
    for (wanted, offset, what) in
        [("42", 6, "has changed since"), ("43", 8, "no text any more"), ("45", 9, "no row has the id \"45\"")]
    {
        let told = texts.text(&id(wanted), at(offset)).unwrap_err();
        assert!(matches!(&told, NoText::Gone(why) if why.contains(what)), "{told}");
    }
}

#[test]
fn unreadable_tables_are_refused_before_a_run() {
    let place = TestDatabase::numbers();
    let told = |table: DatabaseTable| table.examine().unwrap_err().to_string();
    let many = DatabaseTable { id: "key".to_owned(), ts: Some("when".to_owned()), ..place.table() };
    let expected = |key: &str, name: &str| {
        format!(
            "{key}: {} has no column \"{name}\", its columns are id, body, version, gone, title, at",
            many.name()
        )
    };
    assert_eq!(
        told(many.clone()),
        format!("{}\n{}", expected("source.id", "key"), expected("source.ts", "when"))
    );
    assert!(
        told(DatabaseTable { relation: Relation::Table("nowhere".to_owned()), ..place.table() })
            .contains("no such table")
    );
    for (value, what) in
        [("1.5", "numbers with fractions"), ("'soon'", "texts that are no times"), ("x'00'", "blobs")]
    {
        place.run("DELETE FROM pages");
        place.put(&format!("('a', 'x', {value})"));
        let why = told(place.table());
        assert!(why.contains(what) && why.starts_with("source.order: column \"version\""), "{why}");
    }
    let query = "SELECT id, body || ' ' || coalesce(title, '') AS body, 1 AS version FROM pages;";
    let table = DatabaseTable { relation: Relation::Query(query.to_owned()), ..place.table() };
    assert!(table.examine().unwrap().contains("1 rows, in order of numbers"));
    let commented = Relation::Query("SELECT * FROM pages -- all of them".to_owned());
    let all = DatabaseTable { relation: commented, ..place.table() };
    assert!(all.examine().unwrap_err().to_string().contains("blobs"), "a comment at its end");
}

mod administration;
