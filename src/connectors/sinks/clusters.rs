//! Sinks of clusters: every change, or the final clusters.
//!
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}              ClusterDeltaLines: a change of a membership
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}  ClusterDeltaLines: a change of a giant
//! {"cluster":"…","members":["…","…"]}                            ClusterLines: a final cluster
//! {"cluster":"…","size":123456,"giant":true}                     ClusterLines: a final giant
//! ```
//!
//! Order, by bytes:
//!
//! - `ClusterDeltaLines`: epochs ascend. Within an epoch, members by (document, diff), then giants by
//!   (cluster, diff).
//! - `ClusterLines`: clusters by id, each with its members in order, then giants by id.
//!
//! Clusters and giants are defined in [`dupflow_core::cluster`].

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::sync::Arc;

use super::book::{Book, count};
use super::contract::{EndList, Sink};
use super::destination::Destination;
use super::rows::cluster_json::{ReportChange, ReportSums};
use super::rows::{JsonLines, OutputRow, RowWriter};
use crate::mark::{Mark, Standing};
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::Letter;
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};
use dupflow_run::metrics::Metrics;

/// Writes every change of clusters, epoch by epoch. Flushes at each commit, so that a reader sees whole
/// epochs.
#[derive(Debug)]
pub struct ClusterDeltaLines<R> {
    out: R,
    book: Book,
    /// The times of the next epoch, if changes have them.
    times: Option<EpochTimes>,
}

impl<W: Destination> ClusterDeltaLines<JsonLines<W>> {
    /// Writes JSON Lines to `out`, which should be buffered. `clusters` must be empty.
    pub fn new(out: W, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self::with_rows(JsonLines(out), clusters, metrics)
    }
}

impl<R: RowWriter> ClusterDeltaLines<R> {
    /// As `new`, for any row format.
    pub fn with_rows(out: R, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, book: Book::new(clusters).with_clusters(metrics), times: None }
    }

    /// Sets whether each change has the times of its epoch.
    #[must_use]
    pub fn with_times(self, times: bool) -> Self {
        Self { times: times.then(EpochTimes::default), ..self }
    }

    fn write(&mut self, epoch: Epoch, changes: &[ReportChange]) -> io::Result<()> {
        let times = self.times;
        changes.iter().try_for_each(|change| self.out.row(&OutputRow::ClusterChange { epoch, change, times }))
    }
}

impl<R: RowWriter> Sink for ClusterDeltaLines<R> {
    fn take_over(&mut self) -> io::Result<Standing> {
        self.out.take_over()
    }

    /// Always empty: the output holds reports of clusters. They are read here and corrected once all pairs
    /// are known.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let mut sum = ReportSums::default();
        for line in self.out.lines()?.lines() {
            sum.add(line?.as_bytes())?;
        }
        self.book.correct_clusters(sum.reports()?);
        Ok(BTreeSet::new())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn times(&mut self, times: EpochTimes) {
        self.times = self.times.map(|_| times);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let answers = self.book.advance(deltas);
        self.write(progress.epoch, &answers.clusters)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let answers = self.book.corrections(mark);
        self.write(mark.progress.epoch, &answers.clusters)?;
        self.out.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.finish()
    }
}

/// Keeps the clusters that the changes accumulate to, and writes them at the end, sorted.
#[derive(Debug)]
pub struct ClusterLines<R> {
    out: R,
    clusters: Clusters,
    metrics: Arc<Metrics>,
    alive: BTreeSet<ClusterReport>,
}

impl<W: Destination> ClusterLines<JsonLines<W>> {
    /// As [`ClusterDeltaLines::new`].
    pub fn new(out: W, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self::with_rows(JsonLines(out), clusters, metrics)
    }
}

impl<R: RowWriter> ClusterLines<R> {
    /// As [`ClusterDeltaLines::with_rows`].
    pub fn with_rows(out: R, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, clusters, metrics, alive: BTreeSet::new() }
    }
}

impl<R: RowWriter> EndList for ClusterLines<R> {
    fn follow(&mut self, deltas: &[Delta]) {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        for (report, diff) in changes {
            let changed = if diff > 0 { self.alive.insert(report) } else { self.alive.remove(&report) };
            debug_assert!(changed, "every report accumulates to 0 or 1");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut reports = self.alive.iter().peekable();
        while let Some(report) = reports.next() {
            let ClusterReport::Member { cluster, document } = report else {
                self.out.row(&OutputRow::Giant { report })?;
                continue;
            };
            let mut members = vec![document];
            let is_here = |next: &&ClusterReport| match next {
                ClusterReport::Member { cluster: other, .. } => other == cluster,
                ClusterReport::Giant { .. } => false,
            };
            while let Some(ClusterReport::Member { document: next, .. }) = reports.next_if(is_here) {
                members.push(next);
            }
            self.out.row(&OutputRow::Cluster { cluster, members: &members })?;
        }
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::cluster::ClusterKind;
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::{DocPair, Evidence, Pair, Similarity};
    use dupflow_run::metrics::Counter;

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
        let (text, counts) =
            written(|out, clusters, metrics| write(ClusterDeltaLines::new(out, clusters, metrics)));
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
            written(|out, clusters, metrics| write(ClusterLines::new(out, clusters, metrics)));
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
            let mut sink = ClusterLines::new(out, clusters, metrics);
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
            let mut sink = ClusterDeltaLines::new(file, clusters, Arc::new(Metrics::new(0)));
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
        let step = |sink: &mut ClusterDeltaLines<_>, epoch, typed: &str, in_correction| {
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
            assert_eq!(
                step(&mut second, 1, "ab bc", true),
                7,
                "nothing is written before all pairs are passed"
            );
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
}
