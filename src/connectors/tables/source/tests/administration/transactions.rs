//! Transactions that are open while rows are read, servers that crash, and standbys.

use super::postgres::{Scene, goes_on};
use super::*;
use crate::tables::test_server;

/// A transaction that was open before the run, and one that ends long after others have written on; live,
/// and over two runs.
pub(super) fn late_commits_are_read(scene: &mut Scene) {
    let (server, table) = (&scene.server, &scene.table);
    let table = &DatabaseTable { page: 1, ..table.clone() };
    let [mut first, mut late, mut other] = [server.client(), server.client(), server.client()];
    first.batch_execute("BEGIN; INSERT INTO pages (id, body, version) VALUES ('before', 'x', 5)").unwrap();
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

/// While a transaction is open anywhere, rows are added below the rounds, with an order that a program made.
pub(super) fn rows_below_a_round_are_refused(scene: &mut Scene) {
    let (server, table) = (&scene.server, &scene.table);
    let overlap = RoundOverlap { time: Duration::ZERO, number: 0 };
    let mut live = TriedRun::new(DatabaseTable { overlap, ..table.clone() }, 0, None);
    goes_on(&mut live);
    let [mut open, mut other] = [server.client(), server.client()];
    let put =
        |version: u32| format!("INSERT INTO pages (id, body, version) VALUES ('n{version}', 'x', {version})");
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
pub(super) fn a_crash_is_no_regression(scene: &mut Scene) {
    let (server, table) = (&scene.server, &scene.table);
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
    primary.client().batch_execute("INSERT INTO pages (id, body, version) VALUES ('p', 'x', 205)").unwrap();
    live.turn().unwrap_or_else(|_| panic!("the first round failed"));
    let mut next = TriedRun::new(here.clone(), live.bench.next, live.log.up_to(Epoch::MAX));
    let Err(RoundEnd::Away(why)) = next.turn() else { panic!("it is not waited for") };
    assert!(why.to_string().contains("its position in the log (LSN) has decreased"), "{why}");
    standby.client().batch_execute("SELECT pg_wal_replay_resume()").unwrap();
    standby.catch_up(primary);
    goes_on(&mut next);
}

/// On a hot standby the open transactions are not named; when it is promoted, it has another timeline.
pub(super) fn a_standby_is_read(scene: &mut Scene) {
    let (primary, table) = (&scene.server, &scene.table);
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
