//! A PostgreSQL server under administration: the matrix, paths, views and policies.

use super::*;
use super::{transactions, values};
use crate::tables::test_server;

/// What makes the table anew, for each act.
const ANEW: &str = "ROLLBACK; DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS web CASCADE; \
    DROP SCHEMA IF EXISTS elsewhere CASCADE; CREATE SCHEMA public; ALTER ROLE reader RESET ALL; \
    CREATE TABLE pages (id text PRIMARY KEY, body text, version bigint, gone text, \
    at timestamptz DEFAULT '2026-01-31 12:00:00+00', score float8 DEFAULT 0.1); \
    GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; ";

/// A server with the table, which is made anew for each part.
pub(super) struct Scene {
    pub(super) server: test_server::Server,
    client: ::postgres::Client,
    pub(super) table: DatabaseTable,
}

impl Scene {
    fn new(server: test_server::Server) -> Self {
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
        let mut scene = Self { client: server.client(), server, table };
        scene.run("CREATE ROLE reader LOGIN");
        scene
    }

    /// Each statement by itself: some cannot be part of a transaction.
    pub(super) fn run(&mut self, statements: &str) {
        for one in statements.split(';').filter(|one| !one.trim().is_empty()) {
            self.client.batch_execute(one).unwrap_or_else(|why| panic!("{one}: {why}"));
        }
    }

    fn begin(&mut self) {
        self.run(&format!("{ANEW} {TENS} {ROWS}"));
    }
}

/// What is tried besides the matrix; the crash is last, since it ends the connection of the scene.
const PARTS: [fn(&mut Scene); 15] = [
    transactions::late_commits_are_read,
    transactions::rows_below_a_round_are_refused,
    transactions::a_standby_is_read,
    a_pooler_is_left_as_it_was,
    rows_that_become_due_are_read,
    paths_and_queries_are_read_as_written,
    foreign_children_are_read,
    values::ids_of_every_type,
    values::times_of_every_type,
    values::encodings_are_told,
    a_view_is_known_by_all_its_definitions,
    a_timeout_that_is_too_short_ends_a_run,
    values::deletions_of_every_type,
    a_policy_that_is_meant_is_read,
    transactions::a_crash_is_no_regression,
];

#[test]
fn postgres_under_administration() {
    let server = match test_server::Server::start() {
        Ok(server) => server,
        Err(why) => return test_server::skipped("postgres_under_administration", &why),
    };
    let mut scene = Scene::new(server);
    for act in &ACTS {
        let Some((sql, expected)) = act.postgres else { continue };
        scene.begin();
        let table = scene.table.clone();
        let mut run = |statements: &str| scene.run(statements);
        assert_eq!(tried(&mut Tried { run: &mut run, table }, sql), expected, "{}", act.what);
    }
    for part in PARTS {
        scene.begin();
        part(&mut scene);
    }
}

fn a_policy_that_is_meant_is_read(scene: &mut Scene) {
    scene.run("ALTER TABLE pages ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON pages USING (version > 100)");
    let meant = DatabaseTable { row_security: true, ..scene.table.clone() };
    assert_eq!(fresh(&meant).into_keys().collect::<Vec<_>>(), ["b", "d"]);
}

/// A connection that other programs are given after it was read has its settings.
fn a_pooler_is_left_as_it_was(scene: &mut Scene) {
    let (server, table) = (&scene.server, &scene.table);
    let pooler = match server.pooler() {
        Ok(pooler) => pooler,
        Err(why) => return test_server::skipped("a_pooler_is_left_as_it_was", &why),
    };
    let before = pooler.changed_settings();
    let address = Address::Postgres(crate::credential::Credential::new(pooler.url.clone()));
    let mut live = TriedRun::new(DatabaseTable { address, ..table.clone() }, 0, None);
    goes_on(&mut live);
    assert_eq!((pooler.changed_settings(), &live.found), (before, &fresh(table)));
    server.client().batch_execute("INSERT INTO pages (id, body, version) VALUES ('n', 'x', 300)").unwrap();
    goes_on(&mut live);
    assert_eq!(live.found, fresh(table));
}

/// Rows of a view, and of a table with a policy, are read when they are due, although nothing is written
/// then.
fn rows_that_become_due_are_read(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run(&due_view("clock_timestamp()"));
    scene.run("GRANT SELECT ON due TO reader; GRANT SELECT ON moment TO reader");
    let moment = "DELETE FROM moment; INSERT INTO moment SELECT clock_timestamp() + interval '1 second'";
    rows_of_a_view_come_and_go(&mut |sql: &str| scene.run(sql), table, moment);
    scene.run(
        "ALTER TABLE pages ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY p ON pages USING (version > 100 OR id = 'old3' OR \
            (id = 'old2') = (clock_timestamp() >= (SELECT at FROM moment)))",
    );
    let meant = DatabaseTable { row_security: true, fields: Vec::new(), ..table.clone() };
    scene.run(moment);
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
fn paths_and_queries_are_read_as_written(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run(
        "DROP SCHEMA IF EXISTS \"my-schema\" CASCADE; CREATE SCHEMA \"my-schema\"; \
         CREATE TABLE \"my-schema\".pages AS SELECT * FROM pages WHERE version > 200; \
         GRANT USAGE ON SCHEMA \"my-schema\" TO reader; \
         GRANT SELECT ON \"my-schema\".pages TO reader",
    );
    let there = with_options(table, "-c%20search_path=my-schema");
    assert_eq!(fresh(&there).into_keys().collect::<Vec<_>>(), ["d"]);
    assert_eq!(fresh(&with_options(table, "-c%20search_path=public")), fresh(table));
    let query = "SELECT * FROM pages -- all of them".to_owned();
    assert_eq!(fresh(&DatabaseTable { relation: Relation::Query(query), ..table.clone() }), fresh(table));
}

/// The child of a child of a table, whose rows are in another database.
fn foreign_children_are_read(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run("DROP DATABASE IF EXISTS far; CREATE DATABASE far");
    let address = scene.server.url();
    let far = |sql: &str| {
        let url = address.replace("/postgres", "/far").replace("//far@", "//postgres@");
        ::postgres::Client::connect(&url, ::postgres::NoTls).unwrap().batch_execute(sql).unwrap();
    };
    far("CREATE TABLE pages (id text, body text, version bigint)");
    let port = address.rsplit([':', '/']).nth(1).unwrap().to_owned();
    scene.run(&format!(
        "CREATE EXTENSION postgres_fdw; \
         CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw \
            OPTIONS (host '127.0.0.1', port '{port}', dbname 'far'); \
         CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'postgres'); \
         CREATE TABLE above (id text, body text, version bigint); \
         CREATE TABLE between () INHERITS (above); \
         CREATE FOREIGN TABLE below () INHERITS (between) SERVER there OPTIONS (table_name 'pages')"
    ));
    let above = DatabaseTable {
        address: Address::Postgres(crate::credential::Credential::new(address.clone())),
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
    scene.run("DROP EXTENSION postgres_fdw CASCADE; DROP DATABASE far WITH (FORCE)");
}

/// A view that reads a view: another search path of the role, the same definition again, and another one.
fn a_view_is_known_by_all_its_definitions(scene: &mut Scene) {
    let table = &scene.table.clone();
    let inner = "CREATE OR REPLACE VIEW web.inner_view AS SELECT id, body, version, gone FROM web.pages";
    scene.run("CREATE SCHEMA web; GRANT USAGE ON SCHEMA web TO reader; ALTER TABLE pages SET SCHEMA web");
    scene.run(inner);
    scene.run(
        "CREATE VIEW web.outer_view AS SELECT * FROM web.inner_view WHERE version > 3; \
         GRANT SELECT ON web.outer_view TO reader",
    );
    let outer = DatabaseTable {
        relation: Relation::Table("web.outer_view".to_owned()),
        fields: Vec::new(),
        ..table.clone()
    };
    let mut live = TriedRun::new(outer.clone(), 0, None);
    goes_on(&mut live);
    let (begin, past) = (live.bench.next, live.log.up_to(Epoch::MAX));
    scene.run("ALTER ROLE reader SET search_path = web, public");
    scene.run(&format!("/* again */   {inner}"));
    let mut next = TriedRun::new(outer.clone(), begin, past.clone());
    goes_on(&mut next);
    scene.run(&format!("{inner} WHERE version <> 5"));
    let mut last = TriedRun::new(outer, begin, past);
    let RoundEnd::Failed(why) = last.turn().unwrap_err() else { panic!("it goes on") };
    assert!(why.to_string().contains("its definition (with views) is"), "{why}");
}

/// A page takes longer than the role may take, each time.
fn a_timeout_that_is_too_short_ends_a_run(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run(
        "CREATE FUNCTION slow(text) RETURNS text LANGUAGE sql VOLATILE AS \
         'SELECT $1 FROM pg_sleep(1)'",
    );
    let query = Relation::Query("SELECT id, slow(body) AS body, version FROM pages".to_owned());
    let table = DatabaseTable { relation: query, deleted: None, fields: Vec::new(), ..table.clone() };
    let table = with_options(&table, "-c%20statement_timeout=100ms");
    let bench = ReaderBench::new(table, 0);
    let reader = TableReader { reading: bench.reading, backlog: Arc::default() };
    let clock = dupflow_core::time::SystemClock::start();
    let why = { reader }.read(&bench.queue, &bench.bad, &clock).unwrap_err().to_string();
    assert!(why.contains("(57014), 10 times in a row: statement_timeout is too short"), "{why}");
}

/// A round that does not end the run.
pub(super) fn goes_on(run: &mut TriedRun) {
    match run.turn() {
        Ok(()) => (),
        Err(RoundEnd::Failed(why)) => panic!("{why}"),
        Err(RoundEnd::Away(why)) => panic!("{why}"),
        Err(RoundEnd::Closed) => panic!("closed"),
    }
}
