//! Changes of clusters for an output: derived from pair deltas, written as JSON lines, read back.
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}                  a change of a membership,
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}      a change of a giant
//! ```
//!
//! **Correcting an output.** The output holds reports of clusters and no pairs. `pairs` therefore returns an
//! empty set, and the caller passes every pair of the corpus as a correction, in several commits. Until the
//! last of these commits only marks are written, with `in_correction` set. The last one writes the difference
//! between the reports in the output and those of all pairs, in one commit. A run that ends earlier has
//! written no report, and the next run repeats the correction.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use serde::Deserialize;

use crate::mark::Mark;
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Delta;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::time::Epoch;

/// A report with its diff, 1 or -1.
pub(super) type ReportChange = (ClusterReport, isize);

/// Derives changes of clusters from pair deltas.
#[derive(Debug)]
pub(super) struct ClusterChanges {
    clusters: Clusters,
    metrics: Arc<Metrics>,
    correcting: Option<Correction>,
}

/// State of a correction.
#[derive(Debug)]
struct Correction {
    /// Reports in the output.
    there: BTreeSet<ClusterReport>,
    /// Reports that follow from the pairs passed so far.
    here: BTreeSet<ClusterReport>,
}

impl ClusterChanges {
    /// `clusters` must be empty.
    pub(super) fn new(clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { clusters, metrics, correcting: None }
    }

    /// Begins a correction of an output that holds the reports `there`. [`Self::advance`] returns no changes
    /// until [`Self::corrections`] has returned them.
    pub(super) fn correct(&mut self, there: BTreeSet<ClusterReport>) {
        self.correcting = Some(Correction { there, here: BTreeSet::new() });
    }

    /// Applies the deltas of one epoch. Returns the changes to write, in order.
    pub(super) fn advance(&mut self, deltas: &[Delta]) -> Vec<ReportChange> {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        let Some(Correction { here, .. }) = &mut self.correcting else { return changes };
        for (report, diff) in changes {
            let follows = if diff > 0 { here.insert(report) } else { here.remove(&report) };
            debug_assert!(follows, "every report accumulates to 0 or 1");
        }
        Vec::new()
    }

    /// Further changes to write with this commit, in order: the correction of the output, once `mark` says
    /// that all pairs have been passed.
    pub(super) fn corrections(&mut self, mark: &Mark) -> Vec<ReportChange> {
        if mark.in_correction {
            return Vec::new();
        }
        let Some(Correction { there, here }) = self.correcting.take() else { return Vec::new() };
        let goes = there.difference(&here).map(|report| (report.clone(), -1));
        let mut changes: Vec<_> =
            goes.chain(here.difference(&there).map(|report| (report.clone(), 1))).collect();
        changes.sort_unstable_by(|(a, x), (b, y)| a.subject().cmp(&b.subject()).then(x.cmp(y)));
        changes
    }
}

/// Writes a change without a line break.
pub(super) fn write_change(
    out: &mut impl Write,
    epoch: Epoch,
    (report, diff): &ReportChange,
) -> io::Result<()> {
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    if let ClusterReport::Member { document, .. } = report {
        out.write_all(b"\"document\":")?;
        write_id(out, document)?;
        out.write_all(b",")?;
    }
    write_cluster(out, report)
}

/// Writes from the key `cluster` to the end of the object.
pub(super) fn write_cluster(out: &mut impl Write, report: &ClusterReport) -> io::Result<()> {
    out.write_all(b"\"cluster\":")?;
    match report {
        ClusterReport::Member { cluster, .. } => write_id(out, cluster)?,
        ClusterReport::Giant { cluster, size } => {
            write_id(out, cluster)?;
            write!(out, ",\"size\":{size},\"giant\":true")?;
        }
    }
    out.write_all(b"}")
}

pub(super) fn write_id(out: &mut impl Write, id: &DocId) -> io::Result<()> {
    Ok(serde_json::to_writer(out, id.as_str())?)
}

/// A line of either kind as read back: a change, or the present state of a document or a giant.
#[derive(Deserialize)]
struct ClusterLine {
    diff: Option<i8>,
    document: Option<DocId>,
    cluster: DocId,
    size: Option<usize>,
    #[serde(default)]
    giant: bool,
}

/// Parses a line written by [`write_change`].
///
/// # Errors
/// If the line is no change of a cluster.
pub(super) fn read_change(line: &[u8]) -> io::Result<(ClusterReport, i8)> {
    let report = |ClusterLine { diff, document, cluster, size, giant }| {
        let report = match (document, size) {
            (Some(document), None) if !giant => ClusterReport::Member { cluster, document },
            (None, Some(size)) if giant => ClusterReport::Giant { cluster, size },
            _ => return None,
        };
        Some((report, diff.filter(|diff| matches!(diff, 1 | -1))?))
    };
    let found = serde_json::from_slice(line).ok().and_then(report);
    found.ok_or_else(|| invalid_data("a line of the output is no change of a cluster", line))
}

/// Parses a record of the upsert envelope: the present cluster of the document `key`, or the present size of
/// the giant `key`.
///
/// # Errors
/// If the record is neither.
#[cfg(any(feature = "kafka", test))]
pub(super) fn read_present(key: &[u8], value: &[u8]) -> io::Result<ClusterReport> {
    let id = std::str::from_utf8(key).ok().and_then(DocId::new);
    let report = |(document, line): (DocId, ClusterLine)| match line {
        ClusterLine { diff: None, document: None, cluster, size: None, giant: false } => {
            Some(ClusterReport::Member { cluster, document })
        }
        ClusterLine { diff: None, document: None, cluster, size: Some(size), giant: true }
            if cluster == document =>
        {
            Some(ClusterReport::Giant { cluster, size })
        }
        _ => None,
    };
    let found = id.zip(serde_json::from_slice(value).ok()).and_then(report);
    found.ok_or_else(|| invalid_data("a record of the output tells of no cluster", value))
}

/// Sum of the diffs of written changes, by report.
#[derive(Debug, Default)]
pub(super) struct ReportSums(BTreeMap<ClusterReport, i64>);

impl ReportSums {
    /// Adds a line written by [`write_change`]. The order of calls does not matter.
    ///
    /// # Errors
    /// If the line is no change of a cluster.
    pub(super) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let (report, diff) = read_change(line)?;
        let count = self.0.entry(report);
        *count.or_default() += i64::from(diff);
        Ok(())
    }

    /// The reports with sum 1.
    ///
    /// # Errors
    /// If a sum is neither 0 nor 1.
    pub(super) fn reports(mut self) -> io::Result<BTreeSet<ClusterReport>> {
        self.0.retain(|_, count| *count != 0);
        match self.0.iter().find(|(_, count)| **count != 1) {
            Some((report, count)) => {
                let (_, subject) = report.subject();
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the changes of \"{subject}\" in the output add up to {count}: some have expired, or were not written here"
                    ),
                ))
            }
            None => Ok(self.0.into_keys().collect()),
        }
    }
}

fn invalid_data(what: &str, line: &[u8]) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {}", String::from_utf8_lossy(line)))
}

/// Counts clusters formed and dissolved, by id. A cluster that only changes its size or members is not
/// counted.
pub(super) fn count(changes: &[ReportChange], metrics: &Metrics) {
    // A cluster exists exactly while the document that names it is a member.
    let is_founder = |report: &ClusterReport| matches!(report, ClusterReport::Member { cluster, document } if cluster == document);
    for (_, diff) in changes.iter().filter(|(report, _)| is_founder(report)) {
        metrics.add(if *diff > 0 { Counter::ClustersFormed } else { Counter::ClustersDissolved }, 1);
    }
    let is_same_giant = |a: &ClusterReport, b: &ClusterReport| matches!((a, b), (ClusterReport::Giant { cluster: a, .. }, ClusterReport::Giant { cluster: b, .. }) if a == b);
    for same in changes.chunk_by(|(a, _), (b, _)| is_same_giant(a, b)) {
        match same {
            [(ClusterReport::Giant { .. }, 1..)] => metrics.add(Counter::GiantsFormed, 1),
            [(ClusterReport::Giant { .. }, _)] => metrics.add(Counter::GiantsDissolved, 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    fn written(change: &ReportChange) -> Vec<u8> {
        let mut out = Vec::new();
        write_change(&mut out, 7, change).unwrap();
        out
    }

    #[test]
    fn changes_are_read_back_unchanged() {
        for (cluster, document) in [("a", "b"), ("你\u{0}", "\"\u{202e}\n"), (&*"ก".repeat(341), "😀")] {
            let member = ClusterReport::Member { cluster: id(cluster), document: id(document) };
            let giant = ClusterReport::Giant { cluster: id(cluster), size: 10_001 };
            for (report, key) in [(member, document), (giant, cluster)] {
                for diff in [1, -1_i8] {
                    let line = written(&(report.clone(), diff.into()));
                    assert_eq!(read_change(&line).unwrap(), (report.clone(), diff));
                }
                let mut now = b"{\"epoch\":7,".to_vec();
                write_cluster(&mut now, &report).unwrap();
                assert_eq!(read_present(key.as_bytes(), &now).unwrap(), report);
                assert!(read_present(b"", &now).is_err() && read_present(b"\xff", &now).is_err());
            }
        }
        for line in [
            r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.5}"#,
            r#"{"epoch":1,"document":"a","cluster":"b"}"#,
            r#"{"epoch":1,"diff":2,"document":"a","cluster":"b"}"#,
            r#"{"epoch":1,"diff":1,"document":"a","cluster":"b","size":3}"#,
            r#"{"epoch":1,"diff":1,"cluster":"b","size":3}"#,
            "",
            "{",
        ] {
            let error = read_change(line.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(&format!("is no change of a cluster: {line}")), "{error}");
            assert!(read_present(b"x", line.as_bytes()).is_err());
        }
    }

    #[test]
    fn sums_other_than_0_and_1_are_rejected() {
        let change = |diff| (ClusterReport::Member { cluster: id("a"), document: id("b") }, diff);
        let sum = |diffs: &[isize]| {
            let mut sum = ReportSums::default();
            diffs.iter().for_each(|diff| sum.add(&written(&change(*diff))).unwrap());
            sum.reports().map_err(|error| error.to_string())
        };
        assert_eq!(sum(&[1, -1, 1]), Ok(BTreeSet::from([change(1).0])));
        assert_eq!(sum(&[1, -1]), Ok(BTreeSet::new()));
        assert_eq!(sum(&[-1, 1]), Ok(BTreeSet::new()), "partitions may be read in any order");
        for (diffs, to) in [(&[1, 1][..], 2), (&[-1], -1)] {
            let error = sum(diffs).unwrap_err();
            assert!(error.contains(&format!("\"b\" in the output add up to {to}")), "{error}");
        }
    }
}
