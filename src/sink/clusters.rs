//! Clusters as JSON Lines.
//!
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}              ClusterDeltaLines: every change of a membership,
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}     and of a giant, whose members are not told
//! {"cluster":"…","members":["…","…"]}                            ClusterLines: what is left at the end
//! {"cluster":"…","size":123456,"giant":true}
//! ```
//!
//! In an epoch come members by (document, diff), then giants by (cluster, diff); epochs ascend. At the end come clusters by id,
//! each with its members in order, then giants by id. Order is that of bytes. What clusters and giants are:
//! [`crate::cluster`].

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use super::{Destination, Sink};
use crate::cluster::{Clusters, Report};
use crate::doc::{DocId, Letter};
use crate::mark::{Mark, Standing};
use crate::metrics::{Counter, Metrics};
use crate::pair::DocPair;
use crate::time::Progress;

/// Writes every change of clusters, epoch by epoch; flushes at each commit, so that a reader sees whole epochs.
#[derive(Debug)]
pub struct ClusterDeltaLines<W> {
    out: W,
    clusters: Clusters,
    metrics: Arc<Metrics>,
}

impl<W: Write> ClusterDeltaLines<W> {
    /// Writes to `out`, which should be buffered; `clusters` begins empty.
    pub fn new(out: W, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, clusters, metrics }
    }
}

impl<W: Destination> Sink for ClusterDeltaLines<W> {
    fn take_over(&mut self) -> io::Result<Standing> {
        self.out.take_over()
    }

    fn restored(&mut self, deltas: &[(DocPair, isize)]) {
        count(&self.clusters.advance(deltas), &self.metrics);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[(DocPair, isize)], _: &[Letter]) -> io::Result<()> {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        let epoch = progress.epoch;
        for (report, diff) in &changes {
            write!(self.out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
            match report {
                Report::Member { cluster, document } => {
                    self.out.write_all(b"\"document\":")?;
                    write_id(&mut self.out, document)?;
                    self.out.write_all(b",\"cluster\":")?;
                    write_id(&mut self.out, cluster)?;
                    self.out.write_all(b"}\n")?;
                }
                Report::Giant { cluster, size } => write_giant(&mut self.out, cluster, *size)?,
            }
        }
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.out.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Holds the clusters that the changes accumulate to, and writes them at the end, sorted.
#[derive(Debug)]
pub struct ClusterLines<W> {
    out: W,
    clusters: Clusters,
    metrics: Arc<Metrics>,
    alive: BTreeSet<Report>,
}

impl<W: Write> ClusterLines<W> {
    /// As [`ClusterDeltaLines::new`].
    pub fn new(out: W, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { out, clusters, metrics, alive: BTreeSet::new() }
    }
}

impl<W: Write> Sink for ClusterLines<W> {
    fn restored(&mut self, deltas: &[(DocPair, isize)]) {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        for (report, diff) in changes {
            let changed = if diff > 0 { self.alive.insert(report) } else { self.alive.remove(&report) };
            debug_assert!(changed, "every report accumulates to 0 or 1");
        }
    }

    fn epoch(&mut self, _: &Progress, deltas: &[(DocPair, isize)], _: &[Letter]) -> io::Result<()> {
        self.restored(deltas);
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut reports = self.alive.iter().peekable();
        while let Some(report) = reports.next() {
            self.out.write_all(b"{")?;
            match report {
                Report::Giant { cluster, size } => write_giant(&mut self.out, cluster, *size)?,
                Report::Member { cluster, document } => {
                    self.out.write_all(b"\"cluster\":")?;
                    write_id(&mut self.out, cluster)?;
                    self.out.write_all(b",\"members\":[")?;
                    write_id(&mut self.out, document)?;
                    let is_here =
                        |next: &&Report| matches!(next, Report::Member { cluster: c, .. } if c == cluster);
                    while let Some(Report::Member { document: next, .. }) = reports.next_if(is_here) {
                        self.out.write_all(b",")?;
                        write_id(&mut self.out, next)?;
                    }
                    self.out.write_all(b"]}\n")?;
                }
            }
        }
        self.out.flush()
    }
}

/// From the key `cluster` to the end of the line.
fn write_giant(out: &mut impl Write, cluster: &DocId, size: usize) -> io::Result<()> {
    out.write_all(b"\"cluster\":")?;
    write_id(out, cluster)?;
    writeln!(out, ",\"size\":{size},\"giant\":true}}")
}

fn write_id(out: &mut impl Write, id: &DocId) -> io::Result<()> {
    Ok(serde_json::to_writer(out, id.as_str())?)
}

/// Counts the clusters that come and go, by their ids; one of another size or with other members stays.
fn count(changes: &[(Report, isize)], metrics: &Metrics) {
    // A cluster is there for as long as the document that names it is in it.
    let is_founder =
        |report: &Report| matches!(report, Report::Member { cluster, document } if cluster == document);
    for (_, diff) in changes.iter().filter(|(report, _)| is_founder(report)) {
        metrics.add(if *diff > 0 { Counter::ClustersFormed } else { Counter::ClustersDissolved }, 1);
    }
    let is_same_giant = |a: &Report, b: &Report| matches!((a, b), (Report::Giant { cluster: a, .. }, Report::Giant { cluster: b, .. }) if a == b);
    for same in changes.chunk_by(|(a, _), (b, _)| is_same_giant(a, b)) {
        match same {
            [(Report::Giant { .. }, 1..)] => metrics.add(Counter::GiantsFormed, 1),
            [(Report::Giant { .. }, _)] => metrics.add(Counter::GiantsDissolved, 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterKind;
    use crate::pair::{Evidence, Pair, Similarity};

    /// One epoch for each list of pairs, `+ab` for a pair that comes.
    const HISTORY: [&str; 4] = ["+ab +bc +xy", "+cd", "+de", "-bc +\"z"];

    fn write(mut sink: impl Sink) {
        for (epoch, changes) in (1..).zip(HISTORY) {
            let change = |typed: &str| {
                let end = |at| DocId::new(&typed[at..=at]).unwrap();
                let pair = Pair::new(end(1), end(2)).unwrap();
                let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
                (similar, if typed.starts_with('+') { 1 } else { -1 })
            };
            let mut deltas: Vec<_> = changes.split(' ').map(change).collect();
            deltas.sort_unstable();
            sink.epoch(&Progress { epoch, ..Progress::default() }, &deltas, &[]).unwrap();
        }
        sink.finish().unwrap();
    }

    /// Of more than three documents are giants.
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
    fn deltas_are_written_to_the_letter() {
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
        // Formed: a, x; a again, c and the quote. Dissolved: a.
        assert_eq!(counts, [5, 1, 1, 1]);
    }

    #[test]
    fn clusters_are_those_left_at_the_end_in_order() {
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
    fn giants_come_last() {
        let (text, _) = written(|out, clusters, metrics| {
            let mut sink = ClusterLines::new(out, clusters, metrics);
            let pairs = ["ab", "bc", "cd", "xy"].map(|ends| {
                let end = |at| DocId::new(&ends[at..=at]).unwrap();
                let pair = Pair::new(end(0), end(1)).unwrap();
                (DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }, 1)
            });
            sink.epoch(&Progress::default(), &pairs, &[]).unwrap();
            sink.finish().unwrap();
        });
        assert_eq!(
            text,
            "{\"cluster\":\"x\",\"members\":[\"x\",\"y\"]}\n{\"cluster\":\"a\",\"size\":4,\"giant\":true}\n"
        );
    }
}
