//! Changes of clusters and final clusters as lines.

use super::super::{ClusterLines, RowSink};
use super::*;
use crate::sinks::rows::JsonLines;
use crate::sinks::{Destination, Sink};
use dupflow_core::cluster::ClusterKind;
use dupflow_core::pair::{Evidence, Pair, Similarity};
use dupflow_core::time::Progress;
use dupflow_run::metrics::Counter;

/// Changes as JSON Lines.
fn change_lines<W: Destination>(
    out: W,
    clusters: Clusters,
    metrics: Arc<Metrics>,
) -> RowSink<Box<ClusterDeltas>, JsonLines<W>> {
    RowSink::with_rows(Box::new(ClusterDeltas::new(clusters, metrics)), JsonLines(out))
}

/// Deltas of four epochs: `+ab` inserts the pair of a and b, `-ab` removes it.
const HISTORY: [&str; 4] = ["+ab +bc +xy", "+cd", "+de", "-bc +\"z"];

fn write(mut sink: impl Sink) {
    for (epoch, changes) in (1..).zip(HISTORY) {
        let change = |typed: &str| {
            let end = |at| DocId::new(&typed[at..=at]).unwrap();
            let pair = Pair::new(end(1), end(2)).unwrap();
            let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
            Delta::by_block(similar, if typed.starts_with('+') { 1 } else { -1 })
        };
        let mut deltas: Vec<_> = changes.split(' ').map(change).collect();
        deltas.sort_unstable();
        sink.epoch(&Progress { epoch, ..Progress::default() }, &deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
}

/// Clusters of more than three documents are giants here.
fn written(sink: impl FnOnce(&mut Vec<u8>, Clusters, Arc<Metrics>)) -> (String, [u64; 4]) {
    let (mut out, metrics) = (Vec::new(), Arc::new(Metrics::new(0)));
    sink(&mut out, Clusters::new(ClusterKind::Components, 3), Arc::clone(&metrics));
    let counters = [
        Counter::ClustersFormed,
        Counter::ClustersDissolved,
        Counter::GiantsFormed,
        Counter::GiantsDissolved,
    ];
    (String::from_utf8(out).unwrap(), counters.map(|counter| metrics.get(counter)))
}

#[test]
fn golden_cluster_deltas() {
    let (text, counts) = written(|out, clusters, metrics| write(change_lines(out, clusters, metrics)));
    let expected = r#"{"epoch":1,"diff":1,"document":"a","cluster":"a"}
{"epoch":1,"diff":1,"document":"b","cluster":"a"}
{"epoch":1,"diff":1,"document":"c","cluster":"a"}
{"epoch":1,"diff":1,"document":"x","cluster":"x"}
{"epoch":1,"diff":1,"document":"y","cluster":"x"}
{"epoch":2,"diff":-1,"document":"a","cluster":"a"}
{"epoch":2,"diff":-1,"document":"b","cluster":"a"}
{"epoch":2,"diff":-1,"document":"c","cluster":"a"}
{"epoch":2,"diff":1,"cluster":"a","size":4,"giant":true}
{"epoch":3,"diff":-1,"cluster":"a","size":4,"giant":true}
{"epoch":3,"diff":1,"cluster":"a","size":5,"giant":true}
{"epoch":4,"diff":1,"document":"\"","cluster":"\""}
{"epoch":4,"diff":1,"document":"a","cluster":"a"}
{"epoch":4,"diff":1,"document":"b","cluster":"a"}
{"epoch":4,"diff":1,"document":"c","cluster":"c"}
{"epoch":4,"diff":1,"document":"d","cluster":"c"}
{"epoch":4,"diff":1,"document":"e","cluster":"c"}
{"epoch":4,"diff":1,"document":"z","cluster":"\""}
{"epoch":4,"diff":-1,"cluster":"a","size":5,"giant":true}
"#;
    assert_eq!(text, expected);
    // Formed: a, x, a again, c and the quote. Dissolved: a.
    assert_eq!(counts, [5, 1, 1, 1]);
}

#[test]
fn final_clusters_are_sorted() {
    let (text, counts) =
        written(|out, clusters, metrics| write(ClusterLines::with_rows(JsonLines(out), clusters, metrics)));
    let expected = r#"{"cluster":"\"","members":["\"","z"]}
{"cluster":"a","members":["a","b"]}
{"cluster":"c","members":["c","d","e"]}
{"cluster":"x","members":["x","y"]}
"#;
    assert_eq!((text.as_str(), counts), (expected, [5, 1, 1, 1]));
}

#[test]
fn giants_are_last() {
    let (text, _) = written(|out, clusters, metrics| {
        let mut sink = ClusterLines::with_rows(JsonLines(out), clusters, metrics);
        let pairs = ["ab", "bc", "cd", "xy"].map(|ends| {
            let end = |at| DocId::new(&ends[at..=at]).unwrap();
            let pair = Pair::new(end(0), end(1)).unwrap();
            let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
            Delta::by_block(similar, 1)
        });
        sink.epoch(&Progress::default(), &pairs, &[]).unwrap();
        sink.finish().unwrap();
    });
    assert_eq!(
        text,
        "{\"cluster\":\"x\",\"members\":[\"x\",\"y\"]}\n{\"cluster\":\"a\",\"size\":4,\"giant\":true}\n"
    );
}

/// Corrects an output that was written from other pairs and with another cluster limit. A run that ends
/// during the correction changes nothing; the next one completes it in one commit.
#[test]
fn an_output_is_corrected_in_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clusters.jsonl");
    let open = |limit| {
        let clusters = Clusters::new(ClusterKind::Components, limit);
        let file = crate::sinks::MarkedFile::open(&path).unwrap();
        let mut sink = change_lines(file, clusters, Arc::new(Metrics::new(0)));
        sink.take_over().unwrap();
        sink
    };
    let deltas = |typed: &str| {
        let delta = |ends: &str| {
            let end = |at| DocId::new(&ends[at..=at]).unwrap();
            let pair = Pair::new(end(0), end(1)).unwrap();
            let evidence = Evidence::default();
            Delta::by_block(DocPair { pair, similarity: Similarity::ONE, evidence }, 1)
        };
        typed.split(' ').map(delta).collect::<Vec<_>>()
    };
    let mark = |epoch, in_correction| Mark {
        run: "r".to_owned(),
        progress: Progress { epoch, ..Progress::default() },
        start: dupflow_core::time::Offsets::new(),
        pipeline: String::new(),
        in_correction,
        letters: None,
        ..Mark::default()
    };
    let step = |sink: &mut RowSink<_, _>, epoch, typed: &str, in_correction| {
        sink.epoch(&Progress { epoch, ..Progress::default() }, &deltas(typed), &[]).unwrap();
        sink.commit(&mark(epoch, in_correction)).unwrap();
        std::fs::read_to_string(&path).unwrap().lines().count()
    };
    let mut first = open(100);
    assert_eq!(step(&mut first, 1, "ab bc xy pq", false), 7);
    drop(first);
    // Another limit and other pairs.
    for (in_correction, lines) in [(true, 7), (false, 15)] {
        let mut second = open(3);
        assert!(second.pairs().unwrap().is_empty());
        second.restored(&[]);
        assert_eq!(step(&mut second, 1, "ab bc", true), 7, "nothing is written before all pairs are passed");
        assert_eq!(step(&mut second, 1, "cd xz", in_correction), lines);
    }
    let mut third = open(3);
    third.restored(&deltas("ab bc cd xz"));
    assert_eq!(step(&mut third, 2, "xy", false), 16, "after that, changes are written");
    drop(third);
    let mut sum = ReportSums::default();
    std::fs::read_to_string(&path).unwrap().lines().for_each(|line| sum.add(line.as_bytes()).unwrap());
    let id = |name: &str| DocId::new(name).unwrap();
    let member = |document| ClusterReport::Member { cluster: id("x"), document: id(document) };
    let expected =
        [member("x"), member("y"), member("z"), ClusterReport::Giant { cluster: id("a"), size: 4 }];
    assert_eq!(sum.reports().unwrap(), expected.into());
}

/// Keys and values of these changes.
fn records(form: RecordForm, epoch: Epoch, changes: &[ReportChange]) -> Vec<(String, Option<String>)> {
    let answer = ClusterDeltas::new(Clusters::new(ClusterKind::Components, 3), Arc::new(Metrics::new(0)));
    let mut records = Vec::new();
    let mut each = |key: RecordKey<'_>, row: Option<&dyn OutputRow>| {
        let RecordKey::Document(key) = key else { panic!("{key:?}") };
        let value = row.map(|row| {
            let mut value = Vec::new();
            row.write(&mut value).unwrap();
            String::from_utf8(value).unwrap()
        });
        records.push((key.to_string(), value));
        Ok(())
    };
    answer.pass(form, epoch, changes, &mut each).unwrap();
    records
}

#[test]
fn clusters_are_keyed_by_document_and_giant() {
    let id = |name: &str| DocId::new(name).unwrap();
    let member = |document, cluster| ClusterReport::Member { cluster: id(cluster), document: id(document) };
    let giant = |size| ClusterReport::Giant { cluster: id("a"), size };
    // x leaves, y joins, z changes its cluster, and a giant shrinks below the limit.
    let changes = [
        (member("a", "a"), 1),
        (member("x\0", "x"), -1),
        (member("y", "c"), 1),
        (member("z", "c"), 1),
        (member("z", "x"), -1),
        (giant(4), -1),
    ];
    let line = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
    let as_changes = [
        line("z", r#"{"epoch":7,"diff":-1,"document":"z","cluster":"x"}"#),
        line("a", r#"{"epoch":7,"diff":-1,"cluster":"a","size":4,"giant":true}"#),
    ];
    assert_eq!(records(RecordForm::Deltas, 7, &changes[4..]), as_changes);
    let as_memberships = [
        line("a", r#"{"epoch":7,"document":"a","cluster":"a"}"#),
        ("x\0".to_owned(), None),
        line("y", r#"{"epoch":7,"document":"y","cluster":"c"}"#),
        line("z", r#"{"epoch":7,"document":"z","cluster":"c"}"#),
    ];
    assert_eq!(records(RecordForm::Present, 7, &changes), as_memberships);
    let of_giant = [(member("a", "a"), -1), (giant(4), -1), (giant(5), 1)];
    let present = line("a", r#"{"epoch":8,"cluster":"a","size":5,"giant":true}"#);
    assert_eq!(records(RecordForm::Present, 8, &of_giant), [present]);
}
