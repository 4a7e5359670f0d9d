//! Databases in a deployment file: accepted values and reported problems.

use std::time::Duration;

use super::{parse, problems};
use crate::config::{DatabaseSource, TablesPlace};
use dupflow_connectors::intake::EpochLimits;
use dupflow_connectors::tables::database::Address;
use dupflow_connectors::tables::{DatabaseTable, Regression, Relation, RoundOverlap};

const SQLITE: &str = "source.kind = \"sqlite\"\nsource.path = \"in.db\"\nsource.table \
    = \"pages\"\nsource.order = \"n\"\n\
                      sink.kind = \"sqlite\"\nsink.path = \"out.db\"\n";

#[test]
fn every_key_is_taken() {
    let text = r#"
        [source]
        kind = "postgres"
        url = "postgres://me:${PASSWORD}@host/web"
        query = "SELECT * FROM pages"
        id = "page"
        text = "body"
        order = "changed"
        deleted = "gone"
        ts = "seen"
        fields = ["title"]
        page = 7
        poll = "50ms"
        overlap = "5s"
        follow = false
        regression = "read_again"
        row_security = true
        [commit]
        records = 9
        [sink]
        kind = "postgres"
        url = "host=there user=me password=${PASSWORD}"
        schema = "near"
        prefix = "x_"
        emit = "deltas"
        [[output]]
        kind = "postgres"
        url = "postgres://me:${PASSWORD}@other/web"
        prefix = "y_"
    "#;
    let found = parse(text).unwrap();
    let shown = format!("{found:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("${PASSWORD}"), "{shown}");
    let DatabaseSource(table) = found.source.as_a().unwrap();
    let Address::Postgres(url) = &table.address else { panic!("of a server") };
    assert_eq!(url.reveal(), "postgres://me:hunter2@host/web");
    let expected = DatabaseTable {
        address: table.address.clone(),
        relation: Relation::Query("SELECT * FROM pages".to_owned()),
        id: "page".to_owned(),
        text: "body".to_owned(),
        order: "changed".to_owned(),
        deleted: Some("gone".to_owned()),
        ts: Some("seen".to_owned()),
        fields: vec!["title".to_owned()],
        page: 7,
        poll: Duration::from_millis(50),
        overlap: RoundOverlap { time: Duration::from_secs(5), number: 1000 },
        follow: false,
        patience: Duration::from_secs(30),
        limits: EpochLimits::default(),
        is_here: true,
        regression: Regression::ReadAgain,
        row_security: true,
    };
    assert_eq!(*table, expected);
    assert_eq!((found.commit.records, found.output.answer.name), (Some(9), "deltas"));
    let Some(TablesPlace { schema, prefix, .. }) = found.output.place.as_a() else {
        panic!("tables are written")
    };
    assert_eq!((&**schema, &**prefix), ("near", "x_"));
    assert!(found.shown["output.1.url"] == "***" && found.others.len() == 1);
}

#[test]
fn defaults() {
    let found = parse(SQLITE).unwrap();
    let DatabaseSource(table) = found.source.as_a().unwrap();
    assert_eq!((&*table.id, &*table.text, table.page, table.follow), ("id", "text", 1000, true));
    assert_eq!(
        (table.poll, table.overlap),
        (Duration::from_secs(1), RoundOverlap { time: Duration::from_secs(60), number: 1000 })
    );
    assert_eq!(found.output.answer.name, "pairs", "every change is kept only if that is asked for");
    assert_eq!(found.output_file(), Some(std::path::Path::new("out.db")));
    let overlapping = parse(&format!("{SQLITE}source.overlap = 5")).unwrap();
    let DatabaseSource(other) = overlapping.source.as_a().unwrap();
    assert_eq!(other.overlap, RoundOverlap { time: Duration::ZERO, number: 5 });
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "source.kind = \"sqlite\"\nsource.table = \"a\"\nsource.query = \"b\"\nsource.url \
        = \"x\"\nsource.topic = \"t\"\n\
                source.page = 0\nsource.overlap = \"2d\"\nsink.kind = \"sqlite\"\nsink.schema \
                = \"s\"\nsink.topic = \"t\"\nsink.emit = \"clusters\"";
    let reported = problems(text);
    for expected in [
        "source.path: found nothing, expected the path of a database",
        "source.order: found nothing, expected the name of a column that grows: updated_at, or a serial \
        number",
        "sink.path: found nothing, expected a path; \"-\" is standard output",
        "source.query: source.table and source.query are both set",
        "source.url: has no effect with source.kind = \"sqlite\"",
        "source.topic: has no effect with source.kind = \"sqlite\"",
        "source.page: found 0, expected a whole number from 1 to 100000",
        "source.overlap: found \"2d\", expected a time from \"1ms\" to \"86400s\", or a whole number from 0 \
        to 2^53",
        "sink.schema: has no effect with sink.kind = \"sqlite\"",
        "sink.topic: has no effect with sink.kind = \"sqlite\"",
    ] {
        assert!(reported.contains(&expected.to_owned()), "{expected} in {reported:?}");
    }
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("sink.emit: a database keeps pairs, clusters and documents")),
        "{reported:?}"
    );
    assert_eq!(reported.len(), 11, "{reported:?}");
}

#[test]
fn addresses_are_never_printed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "postgres://me:hunter2@host/web\n").unwrap();
    let path = file.path().to_str().unwrap();
    let sink = |keys: &str| format!("source.inputs = [\"-\"]\nsink.kind = \"postgres\"\n{keys}");
    assert!(parse(&sink(&format!("sink.url_file = {path:?}"))).is_ok());
    let both = problems(&sink(&format!("sink.url_file = {path:?}\nsink.url = \"host=hunter2\"")));
    assert_eq!(both, ["sink.url_file: sink.url and sink.url_file are both set"]);
    let wrong = problems(&sink("sink.url = \"hunter2\""));
    assert_eq!(
        wrong,
        ["sink.url: expected an address of a server, as in \"postgres://user@host:5432/database\""]
    );
    let lines = problems("source.inputs = [\"-\"]\nsink.url = \"hunter2\"\nsource.order = \"n\"");
    assert_eq!(
        lines,
        [
            "sink.url: has no effect with sink.kind = \"lines\"",
            "source.order: has no effect with source.kind = \"files\""
        ]
    );
}

#[test]
fn keys_of_files_have_no_effect_beside_tables() {
    let reported = problems(&format!(
        "{SQLITE}source.format = \"json\"\nsource.text_path = \"a\"\nsource.id_path = \"b\"\nsink.format \
        = \"csv\""
    ));
    let of = |key: &str, kind: &str| format!("{key}: has no effect with {kind} = \"sqlite\"");
    let expected = [
        of("source.format", "source.kind"),
        of("source.text_path", "source.kind"),
        of("source.id_path", "source.kind"),
        of("sink.format", "sink.kind"),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn names_that_sqlite_reserves_are_refused() {
    for prefix in ["sqlite_", "SQLite_x"] {
        let reported = problems(&format!("{SQLITE}sink.prefix = \"{prefix}\""));
        assert_eq!(reported, ["sink.prefix: SQLite keeps names that begin with \"sqlite_\" to itself"]);
    }
    assert!(parse(&format!("{SQLITE}sink.prefix = \"sqlite\"")).is_ok());
    let reported = problems(&SQLITE.replace("out.db", ":memory:"));
    assert_eq!(reported, ["sink.path: tables in memory are gone with the run: name a file"]);
}

/// A run that reads a table reads back what the previous run has written.
#[test]
fn changes_of_a_table_are_not_written_as_csv() {
    let source = SQLITE.split("sink").next().unwrap();
    for (sink, key) in [
        ("sink.path = \"out.csv\"", Some("sink.path")),
        ("sink.path = \"out\"\nsink.format = \"csv\"\nsink.emit = \"cluster-deltas\"", Some("sink.format")),
        ("sink.path = \"out.csv\"\nsink.emit = \"pairs\"", None),
        ("sink.path = \"-\"\nsink.format = \"csv\"", None),
        ("sink.path = \"out.csv\"\nsink.format = \"jsonl\"", None),
    ] {
        match (key, parse(&format!("{source}{sink}"))) {
            (None, found) => assert!(found.is_ok(), "{sink}: {found:?}"),
            (Some(key), reported) => {
                let reported = reported.unwrap_err();
                assert!(
                    reported.contains(&format!("{key}: a table cannot be read again as it was")),
                    "{reported}"
                );
            }
        }
    }
}
