//! Fuzz targets: arbitrary bytes in, and the properties that must hold.
//!
//! Each target reads its bytes as a part of the program that receives them from outside. It must not panic
//! and must not take more time or memory than its input justifies; its result must be consistent and
//! reproducible.

use std::collections::BTreeMap;
use std::path::Path;

use dupflow::config::{Deployment, Plan};
use dupflow::connectors::formats::BadRecord;
use dupflow::connectors::formats::feed::{FieldNames, Parser};
use dupflow::connectors::formats::{
    FileFormat, InputLayout, KeyedRecord, KeyedRecords, RecordShape, ValueFormat,
};
use dupflow::connectors::inputs::{Input, for_each_event};
use dupflow::connectors::intake::{BadRecords, Batch, Decoder, OnError, Payload, SourceError};
use dupflow::connectors::state::{MemoryStore, StatePosition, Store, StoredState, verify};
use dupflow::core::doc::changes::Changes;
use dupflow::core::doc::fields::FieldRules;
use dupflow::core::doc::{DocEvent, Position};
use dupflow::core::html;
use dupflow::core::text::TextRules;

/// The names of all targets.
pub(crate) const ALL: [&str; 13] = [
    "record",
    "lines",
    "csv",
    "tsv",
    "warc",
    "parquet",
    "detect",
    "value",
    "html",
    "article",
    "pipeline",
    "deployment",
    "state",
];

/// Runs a target on these bytes.
///
/// # Panics
/// If a property does not hold.
pub(crate) fn run(target: &str, bytes: &[u8]) {
    match target {
        "record" => record(bytes),
        "lines" => file("jsonl", bytes),
        "csv" => file("csv", bytes),
        "tsv" => file("tsv", bytes),
        "warc" => file("warc", bytes),
        "parquet" => file("parquet", bytes),
        "detect" => {
            // The last byte, since the first bytes decide the format.
            let name = usize::from(bytes.last().copied().unwrap_or(0)) % NAMES.len();
            file_named(NAMES[name], None, bytes);
        }
        "value" => value(bytes),
        "html" => page(bytes),
        "article" => article(bytes),
        "pipeline" => pipeline(bytes),
        "deployment" => deployment(bytes),
        "state" => state(bytes),
        other => panic!("no target {other:?}"),
    }
}

/// File names that determine a format, and some that do not.
const NAMES: [&str; 8] = ["input", "a.csv", "a.tsv.gz", "a.txt", "a.md", "日本.html", "a.json", "a.warc.zst"];

/// A line of a feed, with several choices of field names and ids.
fn record(bytes: &[u8]) {
    let names = [
        FieldNames::default(),
        FieldNames { id: "doc".into(), text: "body".into(), whole_ids: true, ..FieldNames::default() },
    ];
    for called in names {
        let text = called.text.clone();
        let mut parser = Parser::with_names(called, &vec!["title".to_owned()].into(), &FieldRules::default());
        let first = parser.parse(bytes).map(|record| format!("{record:?}"));
        let again = parser.parse(bytes).map(|record| format!("{record:?}"));
        assert_eq!(first, again, "what one line leaves behind must not show in the next");
        // With a leading null field the library parses the line, since only string fields are parsed by hand.
        let Some(fields) = bytes.strip_prefix(b"{") else { continue };
        if fields.starts_with(b"\"") {
            let by_library = [format!("{{{:?}:null,", text).as_bytes(), fields].concat();
            let expected = parser.parse(&by_library).map(|record| format!("{record:?}"));
            let first =
                first.map_err(|bad| if bad == BadRecord::MissingText { BadRecord::BadText } else { bad });
            assert_eq!(first, expected, "a line is read alike by hand and by a library");
        }
    }
}

/// What is read from a file: events by position, and the counts of bad and skipped records by reason.
type Read = (Vec<(u64, String, Option<String>)>, BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>);

fn read(name: &str, format: Option<FileFormat>, layout: InputLayout, bytes: &[u8]) -> Read {
    let bad = BadRecords::new(OnError::Count, None);
    let input = Input::of_bytes(name, bytes.to_vec(), InputLayout { format, ..layout });
    let mut events = Vec::new();
    let each = |position: Position, event: DocEvent<'_>| {
        events.push((position.offset, event.id.to_string(), event.text.map(Into::into)));
    };
    match for_each_event(vec![input], &vec!["title".to_owned()].into(), &bad, each) {
        // A file of another format is rejected as a whole.
        Ok(()) | Err(SourceError::Inputs(_)) => {}
        Err(error) => panic!("bad records end nothing: {error}"),
    }
    (events, bad.counts(), bad.skipped())
}

fn file(format: &str, bytes: &[u8]) {
    file_named("input", FileFormat::named(format), bytes);
}

/// A file: reading twice gives the same, positions ascend, and each record has one position.
fn file_named(name: &str, format: Option<FileFormat>, bytes: &[u8]) {
    let nested = InputLayout { id: "meta.id".into(), text: "meta.text".into(), ..InputLayout::default() };
    for layout in [InputLayout::default(), nested] {
        let found = read(name, format, layout.clone(), bytes);
        let (events, bad, skipped) = &found;
        assert!(events.is_sorted_by(|a, b| a.0 < b.0), "one record has one position");
        let told: u64 = bad.values().chain(skipped.values()).sum();
        let last = events.last().map_or(0, |event| event.0 + 1);
        assert!(last <= told + events.len() as u64, "a position that is no event was told: {bad:?}");
        assert_eq!(found, read(name, format, layout, bytes), "the same bytes are the same records");
    }
}

/// A record of a topic, in every shape.
fn value(bytes: &[u8]) {
    let (key, value) = bytes.split_at(bytes.len().min(usize::from(bytes.first().copied().unwrap_or(0) % 8)));
    for format in
        [ValueFormat::Auto, ValueFormat::Text, ValueFormat::Json, ValueFormat::Debezium, ValueFormat::Row]
    {
        for id in [None, Some(vec!["meta".to_owned(), "id".to_owned()])] {
            let shape =
                RecordShape { format, id, headers: vec!["title".to_owned()], ..RecordShape::default() };
            let mut records = KeyedRecords::with_shape(shape.into());
            records.push(KeyedRecord { offset: 3, ts: None, key: Some(key), value: Some(value) });
            records.push_header(0, key);
            let payload = Payload::Records(records);
            let batch = Batch {
                input: "topic".into(),
                partition: 0,
                records: 1,
                next: 4,
                payload,
                letters: Vec::new(),
                seen: None,
            };
            let bad = BadRecords::new(OnError::Count, None);
            let mut events = 0;
            let count = |_: Position, _: DocEvent<'_>| events += 1;
            Decoder::new(&vec!["title".to_owned()].into())
                .decode(&batch, &bad, &mut Vec::new(), count)
                .expect("counted");
            assert_eq!(events + bad.counts().values().sum::<u64>(), 1);
        }
    }
}

/// A web page.
fn page(bytes: &[u8]) {
    let marked = html::with_doctype(bytes, None);
    assert!(html::is_page(&marked));
    let mut extractor = html::Extractor::default();
    let text = extractor.text(&marked).to_owned();
    assert!(text.len() <= 4 * marked.len() + 16, "a text is not longer than its page");
    assert_eq!(text, html::Extractor::default().text(&marked), "the same page says the same");
    drop(html::page(bytes));
}

/// The article of a web page.
#[cfg(feature = "article")]
fn article(bytes: &[u8]) {
    let page = html::decode(bytes, None);
    let whole = html::Extractor::default().text(&page).len();
    let mut finder = html::ArticleFinder::default();
    let text = finder.text(&page).to_owned();
    assert!(text.len() <= whole, "an article is not longer than its page");
    assert_eq!(text, finder.text(&page), "the same page says the same");
}

#[cfg(not(feature = "article"))]
fn article(_: &[u8]) {}

/// A pipeline file.
fn pipeline(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A file that names other files would read them.
    if text.contains('/') || text.contains("idf") || text.contains("stop_words") {
        return;
    }
    match Plan::parse("fuzzed", &text, Path::new("/nowhere"), &[]) {
        Ok(plan) => assert_eq!(plan.description().encode(), plan.description().encode()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A deployment file.
fn deployment(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.contains("_file") || text.contains("files_from") {
        return;
    }
    let variable = |name: &str| (name == "SET").then(|| "7".to_owned());
    if let Err(error) = Deployment::parse("fuzzed", &text, &variable) {
        assert!(!error.to_string().is_empty());
    }
}

/// One file of a state is overwritten by the bytes: the damage is detected, or the file was not needed.
fn state(bytes: &[u8]) {
    let memory = MemoryStore::default();
    {
        let mut state = StoredState::open(Box::new(memory.clone())).expect("an empty place");
        let mut changes = Changes::default();
        changes.put(b"a", b"one");
        changes.put("日本".as_bytes(), b"two");
        changes.end(b"gone");
        let scheme = TextRules::default().description().encode();
        let saved = StatePosition { scheme, ..StatePosition::default() };
        state.publish(&saved, &[changes]).expect("memory takes it");
    }
    let names = memory.list().expect("memory lists");
    let which = usize::from(bytes.first().copied().unwrap_or(0)) % names.len();
    memory.put(&names[which], bytes.get(1..).unwrap_or_default()).expect("memory takes it");
    drop(verify(Box::new(memory.clone())));
    let Ok(mut state) = StoredState::open(Box::new(memory)) else { return };
    if let Ok(Some(snapshot)) = state.latest(u64::MAX) {
        drop(snapshot.read(1 << 16, |_| Ok::<(), dupflow::connectors::state::StateError>(())));
    }
}
