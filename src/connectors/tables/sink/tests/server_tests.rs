//! The tables on a PostgreSQL server of the tests' own.

use super::*;
use crate::tables::test_server;
use dupflow_run::metrics::Metrics;

/// A server for a test; `None` if there is none.
fn server_for(test: &str) -> Option<test_server::Server> {
    test_server::Server::start().inspect_err(|why| test_server::skipped(test, why)).ok()
}

#[test]
fn postgres_under_administration() {
    let Some(server) = server_for("postgres_under_administration") else { return };
    let mut owner = server.client();
    owner.batch_execute("CREATE ROLE writer LOGIN; GRANT CREATE ON DATABASE postgres TO writer").unwrap();
    let url = server.url().replace("//postgres@", "//writer@");
    let restart = || {
        server.kill();
        server.restart();
    };
    let server = &server;
    administration::all_cells(&|n| {
        // A connection is kept while its transaction is open.
        let mut held = None;
        administration::Bench {
            address: Address::Postgres(crate::credential::Credential::new(url.clone())),
            schema: format!("cell {n}"),
            database: 0,
            admin: Box::new(move |sql| {
                let mut client = held.take().unwrap_or_else(|| server.client());
                client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                held = Some(client).filter(|_| sql.starts_with("BEGIN") && !sql.ends_with("COMMIT"));
            }),
            number: Box::new(|sql| server.client().query_one(sql, &[]).unwrap().get(0)),
            restart: &restart,
        }
    });
}

#[test]
fn postgres_meets_the_contract() {
    let Some(server) = server_for("postgres_meets_the_contract") else { return };
    let url = crate::credential::Credential::new(server.url());
    // Not ended with the connections of runs.
    let reader = || {
        let url = format!("{}?application_name=reader", server.url());
        let url = crate::credential::Credential::new(url);
        crate::tables::database::postgres::connect(&url, Duration::from_secs(5)).unwrap()
    };
    let mut read = reader();
    meets_the_contract(&|run| output(Address::Postgres(url.clone()), run));
    let mut column =
        |sql: &str| -> Vec<String> { read.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect() };
    let views = "\"results of\".\"near \"\"";
    assert_eq!(column(&format!("SELECT id FROM {views}kept\" ORDER BY id")), ["\u{1a}0", "p"]);
    assert_eq!(column(&format!("SELECT id || ' for ' || kept FROM {views}removed\"")), ["q for p"]);
    let sums =
        format!("SELECT a || '+' || b FROM {views}deltas\" GROUP BY a, b, similarity HAVING sum(diff) = 1");
    assert_eq!(column(&sums), ["p+q"], "deltas add up to the pairs");
    assert_eq!(
        column(&format!(
            "SELECT DISTINCT pg_typeof(ts)::text || ' ' || ts FROM {views}documents\" WHERE ts IS NOT NULL"
        )),
        ["timestamp with time zone 1970-01-01 00:00:00.5+00"]
    );
    assert_eq!(
        column(&format!("SELECT (now() - at < interval '1 hour')::text FROM {views}pairs\"")),
        ["true"],
        "a row says when it was written"
    );

    // Tables of layout 1 are migrated; their contents stay the same.
    let before = output(Address::Postgres(url.clone()), "x").store.documents().unwrap();
    let mut change_back = reader();
    change_back
        .batch_execute(&format!(
            "ALTER TABLE {views}pairs\" DROP COLUMN at; ALTER TABLE {views}deltas\" DROP COLUMN at;
             ALTER TABLE {views}progress\" DROP COLUMN at, DROP COLUMN layout, DROP COLUMN counts,
                DROP COLUMN writer;
             ALTER TABLE {views}documents\" ALTER COLUMN ts TYPE float8 USING extract(epoch FROM ts)::float8;"
        ))
        .unwrap();
    let mut later = output(Address::Postgres(url.clone()), "later");
    assert!(matches!(later.take_over().unwrap(), Standing::At(_)));
    assert_eq!(later.store.documents().unwrap(), before);
    assert!(before.values().all(|facts| facts.ts == Some(0.5)));
    later.restored(&[delta("p", "q", 0.5, 1)]);
    step(&mut later, 9, &[change("r", Some(1))], &mut [delta("q", "r", 0.8, 1)]).unwrap();
    change_back.batch_execute(&format!("UPDATE {views}progress\" SET layout = 3")).unwrap();
    let message = output(Address::Postgres(url.clone()), "last").take_over().unwrap_err().to_string();
    assert!(message.contains("layout 3") && message.contains("sink.prefix"), "{message}");
    missing_rights_are_named(&server, &mut change_back);
    change_back.batch_execute("DROP SCHEMA \"results of\" CASCADE").unwrap();
    keeps_rows(&|run| output(Address::Postgres(url.clone()), run));
    // An earlier version wrote U+0000 into rows, of which no function of the server reads JSON then.
    let ours = "\"results of\".\"near \"\"ours\"";
    column(&format!("UPDATE {ours} SET row = replace(row, '\\u001a0', '\\u0000') RETURNING row"));
    let mut again = output(Address::Postgres(url.clone()), "again");
    again.take_over().unwrap();
    again.side_rows("ours", &mut |_| ()).unwrap();
    let values = column(&format!("SELECT row::json ->> 'value' FROM {ours}"));
    assert!(values.contains(&"a'\u{1a}0".to_owned()), "{values:?}");
    drop(again);
    keeps_shares(&|run, shares| output_with(Address::Postgres(url.clone()), run, "shares_", shares));
    let mut other = reader();
    notices_foreign_rows(&|run| output(Address::Postgres(url.clone()), run), &mut |table, sql| {
        let schema = "\"results of\".";
        other.batch_execute(&sql.replace("TABLE", &format!("{schema}\"near \"\"{table}\""))).unwrap();
    });
    // How a connection is noted does not depend on the settings of its role.
    let of_german =
        crate::credential::Credential::new(format!("{}?options=-cDateStyle=German", server.url()));
    let open = |run: &str| {
        let url = if run == "second" { &of_german } else { &url };
        let place =
            TableOutput { patience: Duration::from_secs(1), ..place(Address::Postgres(url.clone()), "one_") };
        let place = TableOutput { run: run.to_owned(), ..place };
        TableSink::new(&place, None, ClusterKind::Components, BookMetrics::new(&Arc::new(Metrics::new(0))))
    };
    let mut another = reader();
    another.batch_execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'").unwrap();
    has_one_run(&open, &mut || {
        let sql = "UPDATE plain.one_progress SET writer =
            (SELECT pid || ' ' || backend_start FROM pg_stat_get_activity(pg_backend_pid()))";
        another.execute(sql, &[]).unwrap()
    });
    super::super::decisions_tests::decisions_are_kept(&Address::Postgres(url));
    match server.pooler() {
        Err(why) => test_server::skipped("postgres_meets_the_contract behind a pooler", &why),
        Ok(pooler) => {
            let before = pooler.changed_settings();
            let url = crate::credential::Credential::new(pooler.url.clone());
            let mut sink = output_with(Address::Postgres(url), "r", "pooled_", false);
            sink.take_over().unwrap();
            step(&mut sink, 1, &[change("p", Some(1))], &mut [delta("p", "q", 0.5, 1)]).unwrap();
            assert_eq!(documents(&mut sink), [("p".to_owned(), 1)]);
            assert_eq!(pooler.changed_settings(), before);
        }
    }
}

/// An id that the encoding of the database has not: the check and the message say what to do.
#[test]
fn another_encoding_is_told() {
    let Some(server) = server_for("another_encoding_is_told") else { return };
    let create = "CREATE DATABASE other ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'";
    server.client().batch_execute(create).unwrap();
    let url = server.url().replace("/postgres", "/other").replace("//other@", "//postgres@");
    let url = crate::credential::Credential::new(url);
    let checked = place(Address::Postgres(url.clone()), "a_").examine(&[]).unwrap();
    assert!(checked.contains("the encoding of the database is LATIN1"), "{checked}");
    let mut sink = output_with(Address::Postgres(url), "r", "a_", false);
    sink.take_over().unwrap();
    step(&mut sink, 1, &[change("é", Some(1))], &mut []).unwrap();
    let message = step(&mut sink, 2, &[change("文", Some(1))], &mut []).unwrap_err().to_string();
    assert!(message.contains("use a database whose encoding is UTF8"), "{message}");
    assert!(!message.contains("Undo what refuses it"), "{message}");
}

/// While a run is connected to a server, another one is refused.
fn has_one_run(open: &dyn Fn(&str) -> TableSink, written_by_another: &mut dyn FnMut() -> u64) {
    let mut first = open("first");
    first.take_over().unwrap();
    step(&mut first, 1, &[], &mut []).unwrap();
    let message = open("second").take_over().unwrap_err().to_string();
    assert!(message.contains("another run (first) writes to the tables"), "{message}");
    assert!(message.contains("SELECT pg_terminate_backend("), "{message}");
    step(&mut first, 2, &[], &mut []).unwrap();
    // As behind a pooler, where the last commit had another connection than the end of the run has.
    assert_eq!(written_by_another(), 1);
    drop(first);
    assert!(matches!(open("second").take_over().unwrap(), Standing::At(_)));
}

/// `examine` names the rights that a role lacks before a run needs them.
fn missing_rights_are_named(server: &test_server::Server, owner: &mut ::postgres::Client) {
    owner
        .batch_execute(
            "CREATE ROLE reader LOGIN; CREATE SCHEMA theirs; CREATE SCHEMA own AUTHORIZATION reader;
             GRANT USAGE ON SCHEMA \"results of\" TO reader",
        )
        .unwrap();
    let examine_with = |schema: &str, user: &str, sides: usize| {
        let url = server.url().replace("//postgres@", &format!("//{user}@"));
        let url = crate::credential::Credential::new(url);
        let place = TableOutput { schema: schema.to_owned(), ..place(Address::Postgres(url), "near \"") };
        place.examine(&["ours", "pairs"][..sides]).map_err(|failure| failure.to_string())
    };
    let examine = |schema: &str, user: &str| examine_with(schema, user, 0);
    assert!(examine("own", "reader").unwrap().ends_with("schema \"own\": the first run makes its tables"));
    assert!(examine("results of", "postgres").unwrap().ends_with("schema \"results of\""));
    assert!(examine("new", "postgres").unwrap().ends_with(": missing, the first run makes it"));
    for (schema, expected) in [
        ("new", "GRANT CREATE ON DATABASE"),
        ("theirs", "GRANT CREATE ON SCHEMA \"theirs\" TO \"reader\""),
        ("results of", "GRANT SELECT, INSERT, UPDATE, DELETE ON \"results of\""),
    ] {
        let message = examine(schema, "reader").unwrap_err();
        assert!(message.contains(expected), "{schema}: {message}");
    }
    // Tables of side outputs: one is missing, one is something else.
    assert!(examine_with("results of", "postgres", 1).is_ok());
    let message = examine_with("results of", "postgres", 2).unwrap_err();
    assert!(message.contains("has not the columns of rows") && message.contains("pairs"), "{message}");
    owner
        .batch_execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"results of\" TO reader",
        )
        .unwrap();
    assert!(examine("results of", "reader").is_ok());
    let refused = examine_with("results of", "reader", 1).unwrap_err();
    assert!(refused.contains("GRANT CREATE ON SCHEMA"), "{refused}");
}
