//! What administrators do to a table beside a run, and between two runs: the run is exact, waits, or
//! ends with what to do. The matrix is the one of `docs/tables.md`.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod transactions;
#[cfg(feature = "postgres")]
mod values;

use std::fmt::Write as _;

use super::*;

/// What a run does after an act of administration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Its documents are those of the table.
    Exact,
    /// It ends, and says what to do.
    Refused,
    /// It waits until the table can be read.
    Waits,
    /// Its documents are others: it cannot see what happened.
    Unseen,
}

use Outcome::{Exact, Refused, Unseen, Waits};

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Exact => "exact",
            Refused => "refused",
            Waits => "waits",
            Unseen => "not noticed",
        }
    }
}

/// An act of administration.
struct Act {
    what: &'static str,
    /// Per database: the statements, and what a run does, live and between two runs.
    sqlite: Option<(&'static str, [Outcome; 2])>,
    postgres: Option<(&'static str, [Outcome; 2])>,
}

/// An act that is the same in both databases.
const fn both(what: &'static str, sql: &'static str, outcomes: [Outcome; 2]) -> Act {
    Act { what, sqlite: Some((sql, outcomes)), postgres: Some((sql, outcomes)) }
}

/// The rows before the act: `b` was changed, and `x` is marked as deleted. 20 older rows are below all
/// overlaps.
const ROWS: &str =
    "INSERT INTO pages (id, body, version, gone) SELECT 'old' || n, 'text ' || n, n, NULL FROM tens;
    INSERT INTO pages (id, body, version, gone) VALUES ('a', 'one', 100, NULL), ('b', 'two', 200, NULL), \
    ('d', 'three', 201, NULL), ('x', 'gone', 202, '1');";

const ACTS: [Act; 19] = [
    both(
        "older rows restored",
        "DELETE FROM pages WHERE version > 100; INSERT INTO pages VALUES ('b', 'old', 101, NULL)",
        [Refused; 2],
    ),
    both(
        "older rows restored, then written on",
        "DELETE FROM pages WHERE version > 100;
             INSERT INTO pages VALUES ('b', 'old', 101, NULL), ('e', 'new', 300, NULL)",
        [Refused; 2],
    ),
    Act {
        what: "emptied",
        sqlite: Some(("DELETE FROM pages", [Refused; 2])),
        postgres: Some(("TRUNCATE pages", [Refused; 2])),
    },
    Act {
        what: "emptied and filled anew, with more rows",
        sqlite: Some((
            "DELETE FROM pages; INSERT INTO pages SELECT 'new' || n, 'text', n * 30, NULL FROM tens",
            [Unseen; 2],
        )),
        postgres: Some((
            "TRUNCATE pages; INSERT INTO pages SELECT 'new' || n, 'text', n * 30, NULL FROM tens",
            [Refused; 2],
        )),
    },
    Act {
        what: "another table under its name",
        sqlite: Some((
            "ALTER TABLE pages RENAME TO before; CREATE TABLE pages AS SELECT * FROM before; UPDATE pages \
             SET body = 'other' WHERE id = 'old1'",
            [Unseen; 2],
        )),
        postgres: Some((
            "ALTER TABLE pages RENAME TO before; CREATE TABLE pages AS TABLE before; UPDATE pages SET body = \
             'other' WHERE id = 'old1'",
            [Refused; 2],
        )),
    },
    both(
        "a number below those read (a sequence that begins again)",
        "INSERT INTO pages VALUES ('new', 'text', 3, NULL)",
        [Refused; 2],
    ),
    both("the last document removed", "DELETE FROM pages WHERE version > 200", [Refused; 2]),
    both("an older document removed", "DELETE FROM pages WHERE id = 'a'", [Unseen; 2]),
    both("rows removed that were marked as deleted", "DELETE FROM pages WHERE gone IS NOT NULL", [Exact; 2]),
    Act {
        what: "written anew (`VACUUM`, `VACUUM FULL`), indexes",
        sqlite: Some(("CREATE INDEX i ON pages (version, id); VACUUM", [Exact; 2])),
        postgres: Some(("CREATE INDEX i ON pages (version, id); VACUUM FULL pages", [Exact; 2])),
    },
    Act {
        what: "a column added that is not read",
        sqlite: Some(("ALTER TABLE pages ADD more", [Exact; 2])),
        postgres: Some(("ALTER TABLE pages ADD more text", [Exact; 2])),
    },
    both("a column renamed that is read", "ALTER TABLE pages RENAME body TO text", [Refused; 2]),
    Act {
        what: "a column of another type, for which rows are written anew",
        sqlite: None,
        postgres: Some(("ALTER TABLE pages ALTER body TYPE varchar(99)", [Refused; 2])),
    },
    Act {
        what: "another type of the order",
        sqlite: Some((
            "UPDATE pages SET version = '2026-01-01 00:00:' || printf('%02d', version % 60)",
            [Refused; 2],
        )),
        postgres: Some((
            "ALTER TABLE pages ALTER version TYPE timestamptz USING to_timestamp(version)",
            [Refused; 2],
        )),
    },
    Act {
        what: "its name or schema changed",
        sqlite: Some(("ALTER TABLE pages RENAME TO other", [Refused; 2])),
        postgres: Some(("CREATE SCHEMA web; ALTER TABLE pages SET SCHEMA web", [Refused; 2])),
    },
    Act {
        what: "rights taken",
        sqlite: None,
        postgres: Some(("REVOKE SELECT ON pages FROM reader", [Refused; 2])),
    },
    Act {
        what: "row level security",
        sqlite: None,
        postgres: Some(("ALTER TABLE pages ENABLE ROW LEVEL SECURITY", [Refused; 2])),
    },
    Act {
        what: "settings of the role (`DateStyle`, `TimeZone`, `extra_float_digits`, `search_path`)",
        sqlite: None,
        postgres: Some((
            "ALTER ROLE reader SET DateStyle = 'German'; ALTER ROLE reader SET TimeZone = 'America/New_York';
             ALTER ROLE reader SET extra_float_digits = -5; CREATE SCHEMA elsewhere;
             ALTER ROLE reader SET search_path = elsewhere, public",
            [Exact; 2],
        )),
    },
    Act {
        what: "locked",
        sqlite: Some(("BEGIN EXCLUSIVE", [Waits; 2])),
        postgres: Some(("INSERT INTO tens VALUES (99); BEGIN; LOCK TABLE pages", [Waits; 2])),
    },
];

/// A database on which acts are tried.
struct Tried<'a> {
    /// Executes statements as the administrator.
    run: &'a mut dyn FnMut(&str),
    table: DatabaseTable,
}

/// The documents of a run, and its last look.
struct TriedRun {
    bench: ReaderBench,
    log: Arc<TableLog>,
    found: BTreeMap<String, String>,
}

impl TriedRun {
    fn new(table: DatabaseTable, begin: u64, past: Option<TableLook>) -> Self {
        let log = Arc::new(TableLog::default());
        let mut bench = ReaderBench::new(table.clone(), begin);
        bench.reading = TableReading::new(table, begin, past, Arc::clone(&log));
        Self { bench, log, found: BTreeMap::new() }
    }

    /// Reads a round; the error that ends the run, if one does.
    fn turn(&mut self) -> Result<(), RoundEnd> {
        let ended = self.bench.reading.turn(&self.bench.queue, &self.bench.bad);
        for (_, _, id, text) in self.bench.drain() {
            match text {
                Some(text) => self.found.insert(id, text),
                None => self.found.remove(&id),
            };
        }
        ended
    }
}

/// The documents that a fresh run finds.
fn fresh(table: &DatabaseTable) -> BTreeMap<String, String> {
    let mut run = TriedRun::new(table.clone(), 0, None);
    run.turn().unwrap_or_else(|_| panic!("a fresh run failed"));
    run.found
}

fn outcome(ended: &Result<(), RoundEnd>, found: &BTreeMap<String, String>, table: &DatabaseTable) -> Outcome {
    match ended {
        Err(RoundEnd::Failed(_)) => Refused,
        Err(RoundEnd::Away(_)) => Waits,
        Err(RoundEnd::Closed) => panic!("nothing closes the queue"),
        Ok(()) if *found == fresh(table) => Exact,
        Ok(()) => Unseen,
    }
}

/// What a live run does, and one that begins after the act.
fn tried(tried: &mut Tried<'_>, act: &str) -> [Outcome; 2] {
    let mut live = TriedRun::new(tried.table.clone(), 0, None);
    live.turn().unwrap_or_else(|_| panic!("the first round failed"));
    let look = live.log.up_to(Epoch::MAX);
    let begin = live.bench.next;
    let found = live.found.clone();
    (tried.run)(act);
    let ended = live.turn();
    let ends_live = outcome(&ended, &live.found, &tried.table);
    let past = PastInputs { table: look, has_documents: true, begin, ..PastInputs::default() };
    let mut source = TableSource::new(DatabaseTable { patience: Duration::ZERO, ..tried.table.clone() });
    let between = match source.resume(&past) {
        Err(SourceError::Changed(what)) => {
            assert!(what.contains("--reconcile"), "{what}");
            Refused
        }
        Err(_) => match tried.table.reach().and_then(|mut rows| rows.look(&mut |_| None)) {
            Err(failure) if failure.is_retriable() => Waits,
            _ => Refused,
        },
        Ok(Resumption::AsRead) => {
            let mut next = TriedRun::new(tried.table.clone(), begin, source.past);
            next.found = found;
            let ended_next = next.turn();
            outcome(&ended_next, &next.found, &tried.table)
        }
        Ok(other) => panic!("{other:?}"),
    };
    [ends_live, between]
}

/// The rows of the matrix in the documentation.
fn rows_of_matrix() -> String {
    let cell = |database: &Option<(&str, [Outcome; 2])>| match database {
        None => "—".to_owned(),
        Some((_, [live, between])) if live == between => live.word().to_owned(),
        Some((_, [live, between])) => format!("{} live, {} between", live.word(), between.word()),
    };
    let mut rows = String::new();
    for act in &ACTS {
        writeln!(rows, "| {} | {} | {} |", act.what, cell(&act.sqlite), cell(&act.postgres)).unwrap();
    }
    rows
}

#[test]
fn the_documentation_has_the_matrix() {
    let documented = include_str!("../../../../../../docs/tables.md");
    let rows = rows_of_matrix();
    assert!(documented.contains(&rows), "docs/tables.md should have these rows:\n{rows}");
}

const TENS: &str = "CREATE TABLE tens (n integer);
    INSERT INTO tens VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14);";

#[test]
fn sqlite_under_administration() {
    for act in &ACTS {
        let Some((sql, expected)) = act.sqlite else { continue };
        let place = TestDatabase::new("CREATE TABLE pages (id PRIMARY KEY, body, version, gone)");
        place.run(TENS);
        place.run(ROWS);
        let table = DatabaseTable { deleted: Some("gone".to_owned()), page: 100, ..place.table() };
        let mut run = |statements: &str| place.run(statements);
        assert_eq!(tried(&mut Tried { run: &mut run, table }, sql), expected, "{}", act.what);
    }
}

/// A view whose rows depend on the clock: at a moment, the old row 1 is marked as deleted, 2 comes, and 3
/// and the newest one go.
fn due_view(now: &str) -> String {
    let is_due = format!("{now} >= (SELECT at FROM moment)");
    format!(
        "CREATE TABLE moment AS SELECT {now} AS at;
         CREATE VIEW due AS SELECT id, body, version,
            CASE WHEN id = 'old1' AND {is_due} THEN '1' ELSE gone END AS gone FROM pages
            WHERE (id <> 'old2' OR {is_due}) AND (id NOT IN ('old3', 'd', 'x') OR NOT {is_due});"
    )
}

fn rows_of_a_view_come_and_go(run: &mut impl FnMut(&str), table: &DatabaseTable, moment: &str) {
    let due = DatabaseTable {
        relation: Relation::Table("due".to_owned()),
        fields: Vec::new(),
        page: 3,
        ..table.clone()
    };
    run(moment);
    let mut live = TriedRun::new(due.clone(), 0, None);
    live.turn().unwrap_or_else(|_| panic!("the first round failed"));
    let there = |one: &TriedRun| ["old1", "old2", "old3", "d"].map(|id| one.found.contains_key(id));
    assert_eq!(there(&live), [true, false, true, true]);
    // Another run begins when all has happened, and knows nothing of what was there before.
    let (begin, past) = (live.bench.next, live.log.up_to(Epoch::MAX).unwrap());
    while there(&live) != [false, true, false, false] {
        live.turn().unwrap_or_else(|_| panic!("a round failed"));
    }
    assert_eq!(live.found, fresh(&due));
    let past = TableLook { greatest: 0, ..past };
    let mut next = TriedRun::new(due.clone(), begin, Some(past));
    next.turn().unwrap_or_else(|_| panic!("a round failed"));
    assert_eq!(next.found, fresh(&due), "it begins with all rows");
}

#[test]
fn rows_that_become_due_are_read() {
    let place = TestDatabase::new("CREATE TABLE pages (id PRIMARY KEY, body, version, gone)");
    place.run(TENS);
    place.run(ROWS);
    place.run(&due_view("strftime('%Y-%m-%d %H:%M:%f', 'now')"));
    let table = DatabaseTable { deleted: Some("gone".to_owned()), ..place.table() };
    let moment = "DELETE FROM moment; \
        INSERT INTO moment SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', '+0.5 seconds')";
    rows_of_a_view_come_and_go(&mut |sql: &str| place.run(sql), &table, moment);
}
