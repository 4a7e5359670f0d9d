//! Values of columns of every type, and of databases of other encodings.

use super::postgres::{Scene, goes_on};
use super::*;

/// Ids that are equal as their type compares them, at the ends of pages.
pub(super) fn ids_of_every_type(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run(
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
        scene.run(&format!(
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
pub(super) fn times_of_every_type(scene: &mut Scene) {
    let table = &scene.table.clone();
    for (declared, sound, bad) in [
        ("text", "'12.5'", "'2026-01-01'"),
        ("varchar(9)", "' 1e3 '", "''"),
        ("numeric", "12.5", "'1e400'"),
        ("float8", "12.5", "'NaN'"),
        ("bigint", "12", "9223372036854775807"),
        ("timestamptz", "'2026-01-01'", "'infinity'"),
        ("date", "'2026-01-01'", "'-infinity'"),
    ] {
        scene.run(&format!(
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

/// Values of rows that are alive, and of deleted ones.
pub(super) fn deletions_of_every_type(scene: &mut Scene) {
    let table = &scene.table.clone();
    scene.run("CREATE TYPE answer AS ENUM ('no', 'yes'); CREATE DOMAIN flag AS smallint DEFAULT 0");
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
        scene.run(&format!("{column}; {rows}"));
        assert_eq!(fresh(table).into_keys().collect::<Vec<_>>(), ["alive", "default"], "{declared}");
    }
}

/// A database whose bytes may be anything, and one whose encoding has few characters.
pub(super) fn encodings_are_told(scene: &mut Scene) {
    let table = &scene.table.clone();
    assert!(!table.examine().unwrap().contains("encoding"));
    for (encoding, told) in
        [("SQL_ASCII", "a text that is not UTF-8 is a bad record"), ("LATIN1", "the server converts")]
    {
        scene.run(&format!(
            "DROP DATABASE IF EXISTS other WITH (FORCE); \
             CREATE DATABASE other ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
        ));
        let url = scene.server.url().replace("/postgres", "/other");
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
    scene.run("DROP DATABASE other WITH (FORCE)");
}
