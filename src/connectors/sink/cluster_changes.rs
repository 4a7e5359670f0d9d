//! The changes of clusters that an output takes: found from those of pairs, written as lines, read back.
//!
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}                  a change of a membership,
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}      and of a giant, whose members are not told
//! ```
//!
//! **Correcting an output.** It holds reports and no pairs. So it is told to hold no pair, and the pairs of
//! the corpus come as corrections, in pieces. Until the last of them nothing is written but marks, which say
//! that there are more; then the difference between the reports in the output and those of all pairs is, in
//! one commit. A run that ends before has written nothing, and does all of it again.

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

/// A change of a report, 1 or -1.
pub(super) type Change = (ClusterReport, isize);

/// Clusters that follow the pairs.
#[derive(Debug)]
pub(super) struct ClusterChanges {
    clusters: Clusters,
    metrics: Arc<Metrics>,
    correcting: Option<Correcting>,
}

/// An output that is to be corrected.
#[derive(Debug)]
struct Correcting {
    /// The reports in the output.
    there: BTreeSet<ClusterReport>,
    /// Those of the pairs that have come so far.
    here: BTreeSet<ClusterReport>,
}

impl ClusterChanges {
    /// Of clusters that begin empty.
    pub(super) fn new(clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { clusters, metrics, correcting: None }
    }

    /// The output holds these reports, and is to be corrected: up to the commit that ends this, nothing is to
    /// be written.
    pub(super) fn correct(&mut self, there: BTreeSet<ClusterReport>) {
        self.correcting = Some(Correcting { there, here: BTreeSet::new() });
    }

    /// Takes an epoch; what is to be written of it, in order.
    pub(super) fn advance(&mut self, deltas: &[Delta]) -> Vec<Change> {
        let changes = self.clusters.advance(deltas);
        count(&changes, &self.metrics);
        let Some(Correcting { here, .. }) = &mut self.correcting else { return changes };
        for (report, diff) in changes {
            let follows = if diff > 0 { here.insert(report) } else { here.remove(&report) };
            debug_assert!(follows, "every report accumulates to 0 or 1");
        }
        Vec::new()
    }

    /// What is to be written in a commit besides, in order: what corrects the output, once all pairs have
    /// come.
    pub(super) fn corrections(&mut self, mark: &Mark) -> Vec<Change> {
        if mark.in_correction {
            return Vec::new();
        }
        let Some(Correcting { there, here }) = self.correcting.take() else { return Vec::new() };
        let goes = there.difference(&here).map(|report| (report.clone(), -1));
        let mut changes: Vec<_> =
            goes.chain(here.difference(&there).map(|report| (report.clone(), 1))).collect();
        changes.sort_unstable_by(|(a, x), (b, y)| a.subject().cmp(&b.subject()).then(x.cmp(y)));
        changes
    }
}

/// Writes a change, without the end of a line.
pub(super) fn write_change(out: &mut impl Write, epoch: Epoch, (report, diff): &Change) -> io::Result<()> {
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    if let ClusterReport::Member { document, .. } = report {
        out.write_all(b"\"document\":")?;
        write_id(out, document)?;
        out.write_all(b",")?;
    }
    write_cluster(out, report)
}

/// From the key `cluster` to the end of the object.
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

/// A change, or what a document or a giant is now, as it is read back.
#[derive(Deserialize)]
struct Line {
    diff: Option<i8>,
    document: Option<DocId>,
    cluster: DocId,
    size: Option<usize>,
    #[serde(default)]
    giant: bool,
}

/// A change as it was written.
///
/// # Errors
/// If it is none.
pub(super) fn read_change(line: &[u8]) -> io::Result<(ClusterReport, i8)> {
    let report = |Line { diff, document, cluster, size, giant }| {
        let report = match (document, size) {
            (Some(document), None) if !giant => ClusterReport::Member { cluster, document },
            (None, Some(size)) if giant => ClusterReport::Giant { cluster, size },
            _ => return None,
        };
        Some((report, diff.filter(|diff| matches!(diff, 1 | -1))?))
    };
    let found = serde_json::from_slice(line).ok().and_then(report);
    found.ok_or_else(|| wrong("a line of the output is no change of a cluster", line))
}

/// What the document or the giant of a key is now, as it was written under the key.
///
/// # Errors
/// If it is nothing of that.
#[cfg(any(feature = "kafka", test))]
pub(super) fn read_now(key: &[u8], value: &[u8]) -> io::Result<ClusterReport> {
    let id = std::str::from_utf8(key).ok().and_then(DocId::new);
    let report = |(document, line): (DocId, Line)| match line {
        Line { diff: None, document: None, cluster, size: None, giant: false } => {
            Some(ClusterReport::Member { cluster, document })
        }
        Line { diff: None, document: None, cluster, size: Some(size), giant: true }
            if cluster == document =>
        {
            Some(ClusterReport::Giant { cluster, size })
        }
        _ => None,
    };
    let found = id.zip(serde_json::from_slice(value).ok()).and_then(report);
    found.ok_or_else(|| wrong("a record of the output tells of no cluster", value))
}

/// Reports that were written, added up.
#[derive(Debug, Default)]
pub(super) struct Sum(BTreeMap<ClusterReport, i64>);

impl Sum {
    /// Adds a change as it was written; they may come in any order.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let (report, diff) = read_change(line)?;
        let count = self.0.entry(report);
        *count.or_default() += i64::from(diff);
        Ok(())
    }

    /// The reports that the output holds.
    ///
    /// # Errors
    /// If they do not add up to reports.
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

fn wrong(what: &str, line: &[u8]) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {}", String::from_utf8_lossy(line)))
}

/// Counts the clusters that come and go, by their ids; one of another size or with other members stays.
pub(super) fn count(changes: &[Change], metrics: &Metrics) {
    // A cluster is there for as long as the document that names it is in it.
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

    fn written(change: &Change) -> Vec<u8> {
        let mut out = Vec::new();
        write_change(&mut out, 7, change).unwrap();
        out
    }

    #[test]
    fn changes_come_back_as_they_were_written() {
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
                assert_eq!(read_now(key.as_bytes(), &now).unwrap(), report);
                assert!(read_now(b"", &now).is_err() && read_now(b"\xff", &now).is_err());
            }
        }
        for wrong in [
            r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.5}"#,
            r#"{"epoch":1,"document":"a","cluster":"b"}"#,
            r#"{"epoch":1,"diff":2,"document":"a","cluster":"b"}"#,
            r#"{"epoch":1,"diff":1,"document":"a","cluster":"b","size":3}"#,
            r#"{"epoch":1,"diff":1,"cluster":"b","size":3}"#,
            "",
            "{",
        ] {
            let error = read_change(wrong.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(&format!("is no change of a cluster: {wrong}")), "{error}");
            assert!(read_now(b"x", wrong.as_bytes()).is_err());
        }
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let change = |diff| (ClusterReport::Member { cluster: id("a"), document: id("b") }, diff);
        let sum = |diffs: &[isize]| {
            let mut sum = Sum::default();
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
