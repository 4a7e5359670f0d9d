//! What administrators do to a table beside a run, and between two runs: the run is exact, waits, or
//! ends with what to do. The matrix is the one of `docs/tables.md`.

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
    let documented = include_str!("../../../../../docs/tables.md");
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
    // Another run begins when all has happened; of what has gone before, it knows nothing.
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

#[cfg(feature = "postgres")]
mod postgres {
    use super::*;
    use crate::tables::test_server;

    /// What makes the table anew, for each act.
    const ANEW: &str = "ROLLBACK; DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS web CASCADE; \
        DROP SCHEMA IF EXISTS elsewhere CASCADE; CREATE SCHEMA public; ALTER ROLE reader RESET ALL; \
        CREATE TABLE pages (id text PRIMARY KEY, body text, version bigint, gone text, \
        at timestamptz DEFAULT '2026-01-31 12:00:00+00', score float8 DEFAULT 0.1); \
        GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; ";

    #[test]
    fn postgres_under_administration() {
        let server = match test_server::Server::start() {
            Ok(server) => server,
            Err(why) => return test_server::skipped("postgres_under_administration", &why),
        };
        let mut client = server.client();
        // Each statement by itself: some cannot be part of a transaction.
        let mut run = |statements: &str| {
            let each = |one: &str| client.batch_execute(one).unwrap_or_else(|why| panic!("{one}: {why}"));
            statements.split(';').filter(|one| !one.trim().is_empty()).for_each(each);
        };
        run("CREATE ROLE reader LOGIN");
        let url = server.url().replace("//postgres@", "//reader@");
        let table = DatabaseTable {
            address: Address::Postgres(crate::credential::Credential::new(url)),
            relation: Relation::Table("pages".to_owned()),
            id: "id".to_owned(),
            text: "body".to_owned(),
            order: "version".to_owned(),
            deleted: Some("gone".to_owned()),
            ts: None,
            fields: vec!["at".to_owned(), "score".to_owned()],
            page: 100,
            poll: Duration::from_millis(1),
            overlap: RoundOverlap { time: Duration::from_secs(60), number: 10 },
            follow: false,
            patience: Duration::from_secs(5),
            limits: EpochLimits::default(),
            is_here: true,
            regression: Regression::Refuse,
            row_security: false,
        };
        for act in &ACTS {
            let Some((sql, expected)) = act.postgres else { continue };
            run(&format!("{ANEW} {TENS} {ROWS}"));
            let table = table.clone();
            assert_eq!(tried(&mut Tried { run: &mut run, table }, sql), expected, "{}", act.what);
        }
        run(&format!("{ANEW} {TENS} {ROWS}"));
        late_commits_are_read(&server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        rows_below_a_round_are_refused(&server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        a_standby_is_read(&server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        a_pooler_is_left_as_it_was(&server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        rows_that_become_due_are_read(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        paths_and_queries_are_read_as_written(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        foreign_children_are_read(&mut run, &server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        ids_of_every_type(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        times_of_every_type(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        encodings_are_told(&mut run, &server, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        a_view_is_known_by_all_its_definitions(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        a_timeout_that_is_too_short_ends_a_run(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        deletions_of_every_type(&mut run, &table);
        run(&format!("{ANEW} {TENS} {ROWS}"));
        run("ALTER TABLE pages ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON pages USING (version > 100)");
        let meant = DatabaseTable { row_security: true, ..table.clone() };
        assert_eq!(fresh(&meant).into_keys().collect::<Vec<_>>(), ["b", "d"], "a policy that is meant");
        run(&format!("{ANEW} {TENS} {ROWS}"));
        a_crash_is_no_regression(&server, &table);
    }

    /// A connection that other programs are given after it was read has its settings.
    fn a_pooler_is_left_as_it_was(server: &test_server::Server, table: &DatabaseTable) {
        let pooler = match server.pooler() {
            Ok(pooler) => pooler,
            Err(why) => return test_server::skipped("a_pooler_is_left_as_it_was", &why),
        };
        let before = pooler.changed_settings();
        let address = Address::Postgres(crate::credential::Credential::new(pooler.url.clone()));
        let mut live = TriedRun::new(DatabaseTable { address, ..table.clone() }, 0, None);
        goes_on(&mut live);
        assert_eq!((pooler.changed_settings(), &live.found), (before, &fresh(table)));
        server
            .client()
            .batch_execute("INSERT INTO pages (id, body, version) VALUES ('n', 'x', 300)")
            .unwrap();
        goes_on(&mut live);
        assert_eq!(live.found, fresh(table));
    }

    /// Rows of a view, and of a table with a policy, are read when they are due, although nothing is written
    /// then.
    fn rows_that_become_due_are_read(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        run(&due_view("clock_timestamp()"));
        run("GRANT SELECT ON due TO reader; GRANT SELECT ON moment TO reader");
        let moment = "DELETE FROM moment; INSERT INTO moment SELECT clock_timestamp() + interval '1 second'";
        rows_of_a_view_come_and_go(run, table, moment);
        run("ALTER TABLE pages ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY p ON pages USING (version > 100 OR id = 'old3' OR \
                (id = 'old2') = (clock_timestamp() >= (SELECT at FROM moment)))");
        let meant = DatabaseTable { row_security: true, fields: Vec::new(), ..table.clone() };
        run(moment);
        let mut live = TriedRun::new(meant.clone(), 0, None);
        goes_on(&mut live);
        assert!(live.found.contains_key("old1") && !live.found.contains_key("old2"), "{:?}", live.found);
        while live.found.contains_key("old1") {
            goes_on(&mut live);
        }
        assert_eq!(live.found, fresh(&meant));
        assert_eq!(live.found.into_keys().collect::<Vec<_>>(), ["b", "d", "old2", "old3"]);
    }

    /// The table at an address with more settings.
    fn with_options(table: &DatabaseTable, options: &str) -> DatabaseTable {
        let Address::Postgres(url) = &table.address else { panic!("another database") };
        let url = format!("{}?options={options}", url.reveal());
        let address = Address::Postgres(crate::credential::Credential::new(url));
        DatabaseTable { address, ..table.clone() }
    }

    /// A search path whose text is no SQL, and a query that ends with a comment.
    fn paths_and_queries_are_read_as_written(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        run("DROP SCHEMA IF EXISTS \"my-schema\" CASCADE; CREATE SCHEMA \"my-schema\"; \
             CREATE TABLE \"my-schema\".pages AS SELECT * FROM pages WHERE version > 200; \
             GRANT USAGE ON SCHEMA \"my-schema\" TO reader; \
             GRANT SELECT ON \"my-schema\".pages TO reader");
        let there = with_options(table, "-c%20search_path=my-schema");
        assert_eq!(fresh(&there).into_keys().collect::<Vec<_>>(), ["d"]);
        assert_eq!(fresh(&with_options(table, "-c%20search_path=public")), fresh(table));
        let query = "SELECT * FROM pages -- all of them".to_owned();
        assert_eq!(fresh(&DatabaseTable { relation: Relation::Query(query), ..table.clone() }), fresh(table));
    }

    /// The child of a child of a table, whose rows are in another database.
    fn foreign_children_are_read(
        run: &mut impl FnMut(&str),
        server: &test_server::Server,
        table: &DatabaseTable,
    ) {
        run("DROP DATABASE IF EXISTS far; CREATE DATABASE far");
        let far = |sql: &str| {
            let url = server.url().replace("/postgres", "/far").replace("//far@", "//postgres@");
            ::postgres::Client::connect(&url, ::postgres::NoTls).unwrap().batch_execute(sql).unwrap();
        };
        far("CREATE TABLE pages (id text, body text, version bigint)");
        let port = server.url().rsplit([':', '/']).nth(1).unwrap().to_owned();
        run(&format!(
            "CREATE EXTENSION postgres_fdw; \
             CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw \
                OPTIONS (host '127.0.0.1', port '{port}', dbname 'far'); \
             CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'postgres'); \
             CREATE TABLE above (id text, body text, version bigint); \
             CREATE TABLE between () INHERITS (above); \
             CREATE FOREIGN TABLE below () INHERITS (between) SERVER there OPTIONS (table_name 'pages')"
        ));
        let above = DatabaseTable {
            address: Address::Postgres(crate::credential::Credential::new(server.url())),
            relation: Relation::Table("above".to_owned()),
            deleted: None,
            fields: Vec::new(),
            ..table.clone()
        };
        let mut live = TriedRun::new(above, 0, None);
        goes_on(&mut live);
        far("INSERT INTO pages VALUES ('far', 'x', 3)");
        for _ in 0..200 {
            goes_on(&mut live);
        }
        assert_eq!(live.found.into_keys().collect::<Vec<_>>(), ["far"]);
        run("DROP EXTENSION postgres_fdw CASCADE; DROP DATABASE far WITH (FORCE)");
    }

    /// Ids that are equal as their type compares them, at the ends of pages.
    fn ids_of_every_type(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        run(
            "CREATE EXTENSION citext; CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', \
             deterministic = false)",
        );
        for (declared, ids) in [
            ("text", ["A", "a", "b"]),
            ("citext", ["A", "a", "b"]),
            ("text COLLATE no_case", ["A", "a", "b"]),
            ("varchar(9) COLLATE no_case", ["A", "a", "b"]),
            ("char(4)", ["A", "a", "a b"]),
            ("numeric", ["1", "1.0", "1.00"]),
            ("float8", ["-0", "0", "1"]),
            ("interval", ["1 day", "1 mon", "24:00:00"]),
            ("jsonb", ["1", "1.0", "2"]),
            ("bigint", ["1", "2", "3"]),
        ] {
            let values: Vec<String> = ids.iter().map(|id| format!("('{id}', 'of {id}', 5)")).collect();
            let values = values.join(", ");
            run(&format!(
                "DROP TABLE pages; CREATE TABLE pages (id {declared}, body text, version bigint); \
                 INSERT INTO pages VALUES {values}; GRANT SELECT ON pages TO reader"
            ));
            let query = Relation::Query("SELECT * FROM pages".to_owned());
            for relation in [table.relation.clone(), query] {
                let table =
                    DatabaseTable { relation, deleted: None, fields: Vec::new(), page: 1, ..table.clone() };
                let found = fresh(&table);
                assert_eq!(found.keys().collect::<Vec<_>>(), ids.each_ref(), "{declared}");
                let mut rows = table.reach().unwrap();
                for (id, text) in found {
                    let row = rows.row(&id).unwrap().unwrap();
                    assert_eq!(row.text, Some(text.into_bytes()), "{declared}");
                }
            }
        }
    }

    /// Values of a time that is read, and of one that makes its row a bad record.
    fn times_of_every_type(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        for (declared, sound, bad) in [
            ("text", "'12.5'", "'2026-01-01'"),
            ("varchar(9)", "' 1e3 '", "''"),
            ("numeric", "12.5", "'1e400'"),
            ("float8", "12.5", "'NaN'"),
            ("bigint", "12", "9223372036854775807"),
            ("timestamptz", "'2026-01-01'", "'infinity'"),
            ("date", "'2026-01-01'", "'-infinity'"),
        ] {
            run(&format!(
                "ALTER TABLE pages DROP score; ALTER TABLE pages ADD score {declared}; TRUNCATE pages; \
                 INSERT INTO pages (id, body, version, score) VALUES ('none', 'x', 1, NULL), \
                 ('sound', 'x', 2, {sound}), ('bad', 'x', 3, {bad})"
            ));
            let ts = Some("score".to_owned());
            let mut live = TriedRun::new(DatabaseTable { ts, fields: Vec::new(), ..table.clone() }, 0, None);
            goes_on(&mut live);
            assert_eq!(live.found.keys().collect::<Vec<_>>(), ["none", "sound"], "{declared}");
            assert_eq!(live.bench.bad.counts(), BTreeMap::from([("bad_ts", 1)]), "{declared}");
        }
    }

    /// A database whose bytes may be anything, and one whose encoding has few characters.
    fn encodings_are_told(run: &mut impl FnMut(&str), server: &test_server::Server, table: &DatabaseTable) {
        assert!(!table.examine().unwrap().contains("encoding"));
        for (encoding, told) in
            [("SQL_ASCII", "a text that is not UTF-8 is a bad record"), ("LATIN1", "the server converts")]
        {
            run(&format!(
                "DROP DATABASE IF EXISTS other WITH (FORCE); \
                 CREATE DATABASE other ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
            ));
            let url = server.url().replace("/postgres", "/other");
            let url = url.replace("//other@", "//postgres@");
            let mut client = ::postgres::Client::connect(&url, ::postgres::NoTls).unwrap();
            client
                .batch_execute(
                    "CREATE TABLE pages (id text, body text, version bigint);
                     INSERT INTO pages VALUES ('a', 'x', 1), ('b', convert_from('\\x636166e9', \
                     getdatabaseencoding()), 2), (convert_from('\\xe9', getdatabaseencoding()), 'x', 2), \
                     ('c', 'x', 3)",
                )
                .unwrap();
            let there = DatabaseTable {
                address: Address::Postgres(crate::credential::Credential::new(url)),
                deleted: None,
                fields: Vec::new(),
                page: 1,
                ..table.clone()
            };
            let message = there.examine().unwrap();
            assert!(message.contains(encoding) && message.contains(told), "{message}");
            let mut live = TriedRun::new(there, 0, None);
            goes_on(&mut live);
            let bad: u64 = live.bench.bad.counts().values().sum();
            match encoding {
                "LATIN1" => assert_eq!((live.found["b"].as_str(), live.found["é"].as_str()), ("café", "x")),
                _ => assert_eq!((live.found.len(), bad), (2, 2), "{:?}", live.found),
            }
        }
        run("DROP DATABASE other WITH (FORCE)");
    }

    /// A view that reads a view: another search path of the role, the same definition again, and another one.
    fn a_view_is_known_by_all_its_definitions(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        let inner = "CREATE OR REPLACE VIEW web.inner_view AS SELECT id, body, version, gone FROM web.pages";
        run("CREATE SCHEMA web; GRANT USAGE ON SCHEMA web TO reader; ALTER TABLE pages SET SCHEMA web");
        run(inner);
        run("CREATE VIEW web.outer_view AS SELECT * FROM web.inner_view WHERE version > 3; \
             GRANT SELECT ON web.outer_view TO reader");
        let outer = DatabaseTable {
            relation: Relation::Table("web.outer_view".to_owned()),
            fields: Vec::new(),
            ..table.clone()
        };
        let mut live = TriedRun::new(outer.clone(), 0, None);
        goes_on(&mut live);
        let (begin, past) = (live.bench.next, live.log.up_to(Epoch::MAX));
        run("ALTER ROLE reader SET search_path = web, public");
        run(&format!("/* again */   {inner}"));
        let mut next = TriedRun::new(outer.clone(), begin, past.clone());
        goes_on(&mut next);
        run(&format!("{inner} WHERE version <> 5"));
        let mut last = TriedRun::new(outer, begin, past);
        let RoundEnd::Failed(why) = last.turn().unwrap_err() else { panic!("it goes on") };
        assert!(why.to_string().contains("its definition (with views) is"), "{why}");
    }

    /// A page takes longer than the role may take, each time.
    fn a_timeout_that_is_too_short_ends_a_run(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        run("CREATE FUNCTION slow(text) RETURNS text LANGUAGE sql VOLATILE AS \
             'SELECT $1 FROM pg_sleep(1)'");
        let query = Relation::Query("SELECT id, slow(body) AS body, version FROM pages".to_owned());
        let table = DatabaseTable { relation: query, deleted: None, fields: Vec::new(), ..table.clone() };
        let table = with_options(&table, "-c%20statement_timeout=100ms");
        let bench = ReaderBench::new(table, 0);
        let reader = TableReader { reading: bench.reading, backlog: Arc::default() };
        let clock = dupflow_core::time::SystemClock::start();
        let why = { reader }.read(&bench.queue, &bench.bad, &clock).unwrap_err().to_string();
        assert!(why.contains("(57014), 10 times in a row: statement_timeout is too short"), "{why}");
    }

    /// Values of rows that are alive, and of deleted ones.
    fn deletions_of_every_type(run: &mut impl FnMut(&str), table: &DatabaseTable) {
        run("CREATE TYPE answer AS ENUM ('no', 'yes'); CREATE DOMAIN flag AS smallint DEFAULT 0");
        for (declared, alive, deleted) in [
            ("boolean", "false", "true"),
            ("smallint", "0", "1"),
            ("bigint", "0", "-1"),
            ("numeric(4,2)", "0", "0.01"),
            ("real", "'-0'", "0.5"),
            ("double precision", "0", "'NaN'"),
            ("text", "'0'", "'1'"),
            ("varchar(5)", "'false'", "'true'"),
            ("char(4)", "''", "'x'"),
            ("\"char\"", "'n'", "'y'"),
            ("bit(1)", "B'0'", "B'1'"),
            ("answer", "'no'", "'yes'"),
            ("flag", "0", "1"),
            ("jsonb", "'false'", "'true'"),
            ("timestamptz", "'infinity'", "now()"),
            ("date", "NULL", "'2026-01-01'"),
            ("money", "0", "'0.01'"),
            ("interval", "'0'", "'1 mon'"),
            ("bytea", "''", "'\\x01'"),
            ("bytea", "'\\x00'", "'\\xff'"),
            ("bytea", "'0'", "'1'"),
        ] {
            let column = format!("ALTER TABLE pages DROP gone; ALTER TABLE pages ADD gone {declared}");
            let rows = format!(
                "TRUNCATE pages; INSERT INTO pages (id, body, version, gone) VALUES ('alive', 'x', 1, \
                 {alive}), ('default', 'x', 2, NULL), ('deleted', 'x', 3, {deleted})"
            );
            run(&format!("{column}; {rows}"));
            assert_eq!(fresh(table).into_keys().collect::<Vec<_>>(), ["alive", "default"], "{declared}");
        }
    }

    /// A round that does not end the run.
    fn goes_on(run: &mut TriedRun) {
        match run.turn() {
            Ok(()) => (),
            Err(RoundEnd::Failed(why)) => panic!("{why}"),
            Err(RoundEnd::Away(why)) => panic!("{why}"),
            Err(RoundEnd::Closed) => panic!("closed"),
        }
    }

    /// A transaction that was open before the run, and one that ends long after others have written on; live,
    /// and over two runs.
    fn late_commits_are_read(server: &test_server::Server, table: &DatabaseTable) {
        let table = &DatabaseTable { page: 1, ..table.clone() };
        let [mut first, mut late, mut other] = [server.client(), server.client(), server.client()];
        first
            .batch_execute("BEGIN; INSERT INTO pages (id, body, version) VALUES ('before', 'x', 5)")
            .unwrap();
        let mut live = TriedRun::new(table.clone(), 0, None);
        live.turn().unwrap_or_else(|_| panic!("the first round failed"));
        late.batch_execute("BEGIN; INSERT INTO pages (id, body, version) VALUES ('late', 'x', 210)").unwrap();
        let mut write_on = |version: u32| {
            let sql = format!("INSERT INTO pages (id, body, version) VALUES ('n{version}', 'x', {version})");
            other.batch_execute(&sql).unwrap();
        };
        for version in [300, 400, 500] {
            write_on(version);
            goes_on(&mut live);
            assert!(live.found.contains_key(&format!("n{version}")));
        }
        first.batch_execute("COMMIT").unwrap();
        goes_on(&mut live);
        assert!(live.found.contains_key("before"));
        write_on(600);
        goes_on(&mut live);
        assert!(!live.found.contains_key("late"));
        // The next run begins while it is open, and another one after it has ended.
        let past = live.log.up_to(Epoch::MAX);
        late.batch_execute("COMMIT").unwrap();
        let mut next = TriedRun::new(table.clone(), live.bench.next, past);
        goes_on(&mut next);
        assert!(next.found.contains_key("late"));
        goes_on(&mut live);
        assert_eq!(live.found, fresh(table));
        // The pages of the round that began below have been counted.
        write_on(700);
        goes_on(&mut next);
        goes_on(&mut live);
        assert_eq!(live.found, fresh(table));
    }

    /// While a transaction is open anywhere, rows come below the rounds, with an order that a program made.
    fn rows_below_a_round_are_refused(server: &test_server::Server, table: &DatabaseTable) {
        let overlap = RoundOverlap { time: Duration::ZERO, number: 0 };
        let mut live = TriedRun::new(DatabaseTable { overlap, ..table.clone() }, 0, None);
        goes_on(&mut live);
        let [mut open, mut other] = [server.client(), server.client()];
        let put = |version: u32| {
            format!("INSERT INTO pages (id, body, version) VALUES ('n{version}', 'x', {version})")
        };
        open.batch_execute("BEGIN; CREATE TEMP TABLE t (n integer)").unwrap();
        goes_on(&mut live);
        other.batch_execute(&put(300)).unwrap();
        goes_on(&mut live);
        assert_eq!(live.found, fresh(table));
        // Rows that are removed meanwhile do not hide others.
        other.batch_execute("DELETE FROM pages WHERE id = 'x'").unwrap();
        goes_on(&mut live);
        other.batch_execute(&put(250)).unwrap();
        let RoundEnd::Failed(why) = live.turn().unwrap_err() else { panic!("it waits") };
        assert!(why.to_string().contains("1 row has come where all rows had been read"), "{why}");
    }

    /// A server that crashes gives the numbers of transactions again of which nothing was written.
    fn a_crash_is_no_regression(server: &test_server::Server, table: &DatabaseTable) {
        let number = "SELECT txid_current()";
        let mut open = [server.client(), server.client()];
        let [numbered, _] = open.each_mut().map(|one| one.query_one(number, &[]).unwrap().get::<_, i64>(0));
        let mut live = TriedRun::new(table.clone(), 0, None);
        live.turn().unwrap_or_else(|_| panic!("the first round failed"));
        server.kill();
        server.restart();
        // Unless the server has noted the present number meanwhile, as it does every few seconds.
        let written = "INSERT INTO pages (id, body, version) VALUES ('n', 'x', 300) RETURNING txid_current()";
        assert!(server.client().query_one(written, &[]).unwrap().get::<_, i64>(0) >= numbered);
        assert!(matches!(live.turn(), Err(RoundEnd::Away(_))), "the connection was lost");
        goes_on(&mut live);
        assert_eq!(live.found, fresh(table));
    }

    /// A standby that has not replayed what was read is waited for.
    fn a_standby_is_waited_for(
        primary: &test_server::Server,
        standby: &test_server::Server,
        [there, here]: [&DatabaseTable; 2],
    ) {
        standby.client().batch_execute("SELECT pg_wal_replay_pause()").unwrap();
        let mut live = TriedRun::new(there.clone(), 0, None);
        primary
            .client()
            .batch_execute("INSERT INTO pages (id, body, version) VALUES ('p', 'x', 205)")
            .unwrap();
        live.turn().unwrap_or_else(|_| panic!("the first round failed"));
        let mut next = TriedRun::new(here.clone(), live.bench.next, live.log.up_to(Epoch::MAX));
        let Err(RoundEnd::Away(why)) = next.turn() else { panic!("it is not waited for") };
        assert!(why.to_string().contains("its position in the log (LSN) has decreased"), "{why}");
        standby.client().batch_execute("SELECT pg_wal_replay_resume()").unwrap();
        standby.catch_up(primary);
        goes_on(&mut next);
    }

    /// On a hot standby the open transactions are not named; when it is promoted, it has another timeline.
    fn a_standby_is_read(primary: &test_server::Server, table: &DatabaseTable) {
        let standby = match primary.standby() {
            Ok(standby) => standby,
            Err(why) => return test_server::skipped("a_standby_is_read", &why),
        };
        let url = standby.url().replace("//postgres@", "//reader@");
        let address = Address::Postgres(crate::credential::Credential::new(url));
        let of_primary = table;
        let table = DatabaseTable { address, ..table.clone() };
        a_standby_is_waited_for(primary, &standby, [of_primary, &table]);
        let mut live = TriedRun::new(table.clone(), 0, None);
        live.turn().unwrap_or_else(|_| panic!("the first round failed"));
        let [mut first, mut late, mut other] = [primary.client(), primary.client(), primary.client()];
        first.batch_execute("BEGIN; INSERT INTO tens VALUES (100)").unwrap();
        late.batch_execute("BEGIN; INSERT INTO pages (id, body, version) VALUES ('late', 'x', 210)").unwrap();
        other.batch_execute("INSERT INTO pages (id, body, version) VALUES ('n', 'x', 300)").unwrap();
        standby.catch_up(primary);
        goes_on(&mut live);
        assert!(live.found.contains_key("n"));
        late.batch_execute("COMMIT").unwrap();
        standby.catch_up(primary);
        goes_on(&mut live);
        assert!(live.found.contains_key("late"), "an older transaction is still open");
        assert_eq!(live.found, fresh(&table));
        standby.client().batch_execute("SELECT pg_promote()").unwrap();
        standby.client().batch_execute("INSERT INTO tens VALUES (101)").unwrap();
        let RoundEnd::Failed(why) = live.turn().unwrap_err() else { panic!("it goes on") };
        assert!(why.to_string().contains("its timeline is 2, and was 1 when it was read"), "{why}");
    }
}
