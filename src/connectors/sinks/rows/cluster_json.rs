//! Changes of clusters as JSON: writing, reading back, and adding up.
//!
//! ```text
//! {"epoch":7,"diff":1,"document":"…","cluster":"…"}                  a change of a membership
//! {"epoch":7,"diff":1,"cluster":"…","size":123456,"giant":true}      a change of a giant
//! {"epoch":7,"document":"…","cluster":"…"}                           the present cluster of a document
//! {"epoch":7,"cluster":"…","size":123456,"giant":true}               the present size of a giant
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Deserialize;

use super::pair_json::write_times;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::DocId;
use dupflow_core::time::{Epoch, EpochTimes};

/// A report with its diff, 1 or -1.
pub(crate) type ReportChange = (ClusterReport, isize);

/// Writes a change without a line break.
pub(crate) fn write_change(
    out: &mut impl Write,
    epoch: Epoch,
    report: &ClusterReport,
    diff: isize,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    write_report(out, report, times)
}

/// Writes the present state of a document or a giant without a line break.
pub(crate) fn write_present(
    out: &mut impl Write,
    epoch: Epoch,
    report: &ClusterReport,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    write!(out, "{{\"epoch\":{epoch},")?;
    write_report(out, report, times)
}

/// Writes from the key `document`, or `cluster` of a giant, to the end of the object.
fn write_report(out: &mut impl Write, report: &ClusterReport, times: Option<EpochTimes>) -> io::Result<()> {
    if let ClusterReport::Member { document, .. } = report {
        out.write_all(b"\"document\":")?;
        write_id(out, document)?;
        out.write_all(b",")?;
    }
    write_cluster(out, report, times)
}

/// Writes from the key `cluster` to the end of the object.
pub(crate) fn write_cluster(
    out: &mut impl Write,
    report: &ClusterReport,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    out.write_all(b"\"cluster\":")?;
    match report {
        ClusterReport::Member { cluster, .. } => write_id(out, cluster)?,
        ClusterReport::Giant { cluster, size } => {
            write_id(out, cluster)?;
            write!(out, ",\"size\":{size},\"giant\":true")?;
        }
    }
    write_times(out, times)?;
    out.write_all(b"}")
}

pub(crate) fn write_id(out: &mut impl Write, id: &DocId) -> io::Result<()> {
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
pub(crate) fn read_change(line: &[u8]) -> io::Result<(ClusterReport, i8)> {
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
/// the giant `key`. Records of earlier versions name the document in the key only.
///
/// # Errors
/// If the record is neither.
pub(crate) fn read_present(key: &[u8], value: &[u8]) -> io::Result<ClusterReport> {
    let id = std::str::from_utf8(key).ok().and_then(DocId::new);
    let report = |(document, line): (DocId, ClusterLine)| match line {
        ClusterLine { diff: None, document: named, cluster, size: None, giant: false }
            if named.as_ref().is_none_or(|named| *named == document) =>
        {
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
pub(crate) struct ReportSums(BTreeMap<ClusterReport, i64>);

impl ReportSums {
    /// Adds a line written by [`write_change`]. The order of calls does not matter.
    ///
    /// # Errors
    /// If the line is no change of a cluster.
    pub(crate) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let (report, diff) = read_change(line)?;
        let count = self.0.entry(report);
        *count.or_default() += i64::from(diff);
        Ok(())
    }

    /// The reports with sum 1.
    ///
    /// # Errors
    /// If a sum is neither 0 nor 1.
    pub(crate) fn reports(mut self) -> io::Result<BTreeSet<ClusterReport>> {
        self.0.retain(|_, count| *count != 0);
        match self.0.iter().find(|(_, count)| **count != 1) {
            Some((report, count)) => {
                let (_, subject) = report.subject();
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the changes of \"{subject}\" in the output add up to {count}: some have expired, or \
                         were not written here"
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    fn written((report, diff): &ReportChange) -> Vec<u8> {
        let mut out = Vec::new();
        write_change(&mut out, 7, report, *diff, None).unwrap();
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
                let mut now = Vec::new();
                write_present(&mut now, 7, &report, None).unwrap();
                assert_eq!(read_present(key.as_bytes(), &now).unwrap(), report);
                for other in [&b""[..], b"\xff", b"another"] {
                    assert!(read_present(other, &now).is_err());
                }
                // As earlier versions wrote it.
                let mut without_document = b"{\"epoch\":7,".to_vec();
                write_cluster(&mut without_document, &report, None).unwrap();
                assert_eq!(read_present(key.as_bytes(), &without_document).unwrap(), report);
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
