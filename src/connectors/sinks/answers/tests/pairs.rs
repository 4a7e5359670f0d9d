//! Deltas and final pairs as lines.

use super::super::PairLines;
use super::*;
use crate::sinks::{CsvRows, MemorySink, Sink};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Pair, Similarity};
use dupflow_core::time::Progress;

fn pair(a: &str, b: &str, similarity: f64) -> DocPair {
    let id = |id| DocId::new(id).unwrap();
    let evidence = Evidence { blocks: 3, look: 2, components: 128 };
    DocPair { pair: Pair::new(id(a), id(b)).unwrap(), similarity: Similarity::clamped(similarity), evidence }
}

const SHARES: PairStyle = PairStyle { shares: true, sides: false };

fn at(epoch: u64) -> Progress {
    Progress { epoch, ..Progress::default() }
}

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn golden_deltas() {
    let mut out = Vec::new();
    let mut sink = DeltaLines::new(&mut out, None);
    sink.epoch(&at(7), &[Delta::by_block(pair("b", "a", 0.912109375), 1)], &[]).unwrap();
    sink.epoch(
        &at(8),
        &[Delta::by_block(pair("a", "b", 0.912109375), -1), Delta::by_block(pair("a", "b", 1.0), 1)],
        &[],
    )
    .unwrap();
    sink.finish().unwrap();
    let expected = r#"{"epoch":7,"diff":1,"a":"a","b":"b","similarity":0.912109375}
{"epoch":8,"diff":-1,"a":"a","b":"b","similarity":0.912109375}
{"epoch":8,"diff":1,"a":"a","b":"b","similarity":1.0}
"#;
    assert_eq!(text(out), expected);
}

#[test]
fn ids_and_similarities_read_back() {
    for similarity in [0.1 + 0.2, 1.0 / 3.0, 0.0, f64::MIN_POSITIVE, 1.0] {
        let mut out = Vec::new();
        let written = pair("q\"\\\n\0", "é\u{7f}😀", similarity);
        DeltaLines::new(&mut out, None).epoch(&at(1), &[Delta::by_block(written.clone(), 1)], &[]).unwrap();
        assert_eq!(out.iter().filter(|&&b| b == b'\n').count(), 1);
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["a"], written.pair.lo().as_str());
        assert_eq!(read["b"], written.pair.hi().as_str());
        assert_eq!(read["similarity"].as_f64().map(f64::to_bits), Some(similarity.to_bits()));
    }
}

#[test]
fn evidence_is_after_the_similarity() {
    let mut out = Vec::new();
    let mut sink = DeltaLines::new(&mut out, Some(Box::new(|pair| pair.similarity.get() / 10.0)));
    sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap();
    drop(sink);
    let expected = concat!(
        r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.5,"#,
        r#""blocks":3,"look":2,"components":128,"standard_error":0.05}"#,
    );
    assert_eq!(text(out).trim_end(), expected);
}

#[test]
fn a_cause_is_the_last_field_and_ignored_on_reading() {
    for cause in Cause::ALL {
        let mut out = Vec::new();
        let delta = Delta { cause, ..Delta::by_block(pair("a", "b", 0.5), 1) };
        let deltas = PairDeltas::new(Some(Box::new(|_| 0.25))).with_causes(true);
        let mut sink = RowSink::with_rows(Box::new(deltas), JsonLines(&mut out));
        sink.epoch(&at(7), std::slice::from_ref(&delta), &[]).unwrap();
        let line = String::from_utf8(out).unwrap();
        let end = format!(",\"standard_error\":0.25,\"cause\":\"{}\"}}\n", cause.name());
        assert!(line.ends_with(&end), "{line}");
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.name(), "one spelling everywhere");
        let read = read_delta(line.trim_end()).unwrap();
        assert_eq!((read.pair, read.diff, read.has_sides), (delta.pair, Some(1), false));
    }
}

/// A pair of containment has both shares, as numbers that are read back; a copy has them too.
#[test]
fn golden_shares() {
    let contained = DocPair { similarity: Similarity::of_shares([0.75, 0.125]), ..pair("a", "b", 1.0) };
    let copies = pair("c", "d", 1.0);
    let mut out = Vec::new();
    let mut sink =
        RowSink::with_rows(Box::new(PairDeltas::new(None).with_style(SHARES)), JsonLines(&mut out));
    let deltas = [&contained, &copies].map(|found| Delta::by_block(found.clone(), 1));
    sink.epoch(&at(7), &deltas, &[]).unwrap();
    let lines = text(out);
    let expected = r#"{"epoch":7,"diff":1,"a":"a","b":"b","similarity":0.75,"in_a":0.125,"in_b":0.75}
{"epoch":7,"diff":1,"a":"c","b":"d","similarity":1.0,"in_a":1.0,"in_b":1.0}
"#;
    assert_eq!(lines, expected);
    let read: Vec<_> = lines.lines().map(|line| read_delta(line).unwrap().pair.similarity).collect();
    assert_eq!(read, [contained.similarity, Similarity::ONE]);
    // A change of one share alone is a change.
    let mut pairs = BTreeSet::new();
    apply(lines.lines().next().unwrap(), &mut pairs).unwrap();
    let other = lines.lines().next().unwrap().replace("\"in_a\":0.125", "\"in_a\":0.25");
    assert!(apply(&other.replace("\"diff\":1", "\"diff\":-1"), &mut pairs).is_err());
    let mut csv = Vec::new();
    let rows = CsvRows::new(&mut csv, pairs::columns(SHARES, false));
    let mut listed = PairLines::with_rows(rows, None).with_style(SHARES);
    listed.restored(&[Delta::by_block(contained.clone(), 1)]);
    listed.finish().unwrap();
    drop(listed);
    assert_eq!(text(csv), "a,b,similarity,in_a,in_b\na,b,0.75,0.125,0.75\n");
}

/// Ids of both sides are written as they were read, and are apart when they are read back.
#[test]
fn golden_sides() {
    let id = |id: &str| DocId::new(id).unwrap();
    let of = |a: DocId, b: &str| DocPair {
        pair: Pair::new(a, id(b).beside_reference()).unwrap(),
        ..pair("a", "b", 0.5)
    };
    let found = [of(id("x").in_reference(), "y"), of(id("x").in_reference(), "\0x"), of(id("x"), "y")];
    let style = PairStyle { shares: false, sides: true };
    let deltas = found.clone().map(|found| Delta::by_block(found, 1));
    let mut out = Vec::new();
    let written = || Box::new(PairDeltas::new(None).with_style(style).with_causes(true));
    let mut sink = RowSink::with_rows(written(), JsonLines(&mut out));
    sink.epoch(&at(7), &deltas, &[]).unwrap();
    let lines = text(out);
    let expected = r#"{"epoch":7,"diff":1,"a":"x","b":"y","similarity":0.5,"old":true,"cause":"C"}
{"epoch":7,"diff":1,"a":"x","b":"\u0000x","similarity":0.5,"old":true,"cause":"C"}
{"epoch":7,"diff":1,"a":"x","b":"y","similarity":0.5,"old":false,"cause":"C"}
"#;
    assert_eq!(lines, expected.replace("\"C\"", "\"block-revived\""));
    let mut pairs = BTreeSet::new();
    for line in lines.lines() {
        assert!(apply(line, &mut pairs).unwrap(), "it says the side");
    }
    let bare = |one: &DocPair| one.pair.clone();
    assert_eq!(pairs.iter().map(bare).collect::<BTreeSet<_>>(), found.iter().map(bare).collect());
    let mut csv = Vec::new();
    let mut table = RowSink::with_rows(written(), CsvRows::new(&mut csv, columns(style, false, true, false)));
    table.epoch(&at(7), &deltas[..1], &[]).unwrap();
    table.finish().unwrap();
    drop(table);
    assert_eq!(text(csv), "epoch,diff,a,b,similarity,old,cause\n7,1,x,y,0.5,true,block-revived\n");
}

#[test]
fn final_pairs_are_sorted() {
    let mut out = Vec::new();
    let mut sink = PairLines::with_rows(JsonLines(&mut out), None);
    sink.epoch(
        &at(1),
        &[Delta::by_block(pair("b", "c", 0.5), 1), Delta::by_block(pair("x", "y", 0.5), 1)],
        &[],
    )
    .unwrap();
    sink.epoch(
        &at(2),
        &[
            Delta::by_block(pair("a", "z", 0.25), 1),
            Delta::by_block(pair("b", "c", 0.5), -1),
            Delta::by_block(pair("b", "c", 1.0), 1),
        ],
        &[],
    )
    .unwrap();
    sink.epoch(&at(4), &[Delta::by_block(pair("x", "y", 0.5), -1)], &[]).unwrap();
    sink.finish().unwrap();
    drop(sink);
    let expected =
        "{\"a\":\"a\",\"b\":\"z\",\"similarity\":0.25}\n{\"a\":\"b\",\"b\":\"c\",\"similarity\":1.0}\n";
    assert_eq!(text(out), expected);
}

#[test]
fn errors_of_the_destination_are_returned() {
    let mut full = [0; 10];
    let mut sink = DeltaLines::new(&mut full[..], None);
    assert_eq!(
        sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap_err().kind(),
        io::ErrorKind::WriteZero
    );
}

#[test]
fn memory_accumulates() {
    let mut sink = MemorySink::default();
    sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap();
    sink.epoch(
        &at(3),
        &[Delta::by_block(pair("a", "b", 0.5), -1), Delta::by_block(pair("a", "b", 0.75), 1)],
        &[],
    )
    .unwrap();
    sink.finish().unwrap();
    let values =
        |epoch| sink.accumulated(epoch).into_iter().map(|((_, s), n)| (s.get(), n)).collect::<Vec<_>>();
    assert_eq!((values(0), values(2), values(3)), (vec![], vec![(0.5, 1)], vec![(0.75, 1)]));
    assert!(sink.finished);
}
