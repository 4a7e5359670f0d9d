//! Rows as JSON Lines: one object a line.

use std::io::{self, BufRead, Write};

use serde::Serialize;

use super::cluster_json::{write_change, write_cluster, write_id};
use super::format::RowFormat;
use super::pair_json::{write_delta, write_pair};
use super::row::{OutputRow, RowWriter};
use crate::mark::{Mark, Standing};
use crate::sinks::destination::Destination;
use dupflow_core::detect::RejectedPair;
use dupflow_core::filter::Rejection;

pub(super) const FORMAT: RowFormat = RowFormat {
    name: "jsonl",
    help: "JSON Lines",
    has_columns: false,
    is_of_end: false,
    holds_provenance: true,
    feature: None,
    open: Some(|out, _| Ok(Box::new(JsonLines(out)))),
};

/// Writes rows as JSON Lines.
#[derive(Debug)]
pub struct JsonLines<W>(pub W);

impl<W: Destination> RowWriter for JsonLines<W> {
    fn row(&mut self, row: &OutputRow<'_>) -> io::Result<()> {
        let Self(out) = self;
        match *row {
            OutputRow::Delta { epoch, delta, style, evidence, causes, times } => {
                write_delta(out, epoch, delta, style, evidence, causes, times)?;
            }
            OutputRow::Pair { pair, style, evidence } => {
                out.write_all(b"{")?;
                write_pair(out, pair, style, evidence, None, None)?;
            }
            OutputRow::ClusterChange { epoch, change, times } => write_change(out, epoch, change, times)?,
            OutputRow::Provenance { line, .. } => out.write_all(line.as_bytes())?,
            OutputRow::Cluster { cluster, members } => {
                out.write_all(b"{\"cluster\":")?;
                write_id(out, cluster)?;
                let mut before: &[u8] = b",\"members\":[";
                for member in members {
                    out.write_all(std::mem::replace(&mut before, b","))?;
                    write_id(out, member)?;
                }
                out.write_all(b"]}")?;
            }
            OutputRow::Giant { report } => {
                out.write_all(b"{")?;
                write_cluster(out, report, None)?;
            }
            OutputRow::Kept { id } => {
                out.write_all(b"{\"id\":")?;
                serde_json::to_writer(&mut *out, id)?;
                out.write_all(b"}")?;
            }
            OutputRow::Rejected { rejected, threshold } => write_rejected(out, rejected, threshold)?,
            OutputRow::Record(record) => record.write(out)?,
            OutputRow::Item { found } => serde_json::to_writer(&mut *out, found)?,
            OutputRow::RemovedUnit { removed } => serde_json::to_writer(&mut *out, removed)?,
            OutputRow::Removed { id, kept, cluster, old } => {
                for (before, document) in [("{\"id\":", id), (",\"kept\":", kept), (",\"cluster\":", cluster)]
                {
                    out.write_all(before.as_bytes())?;
                    serde_json::to_writer(&mut *out, document)?;
                }
                if let Some(old) = old {
                    write!(out, ",\"old\":{old}")?;
                }
                out.write_all(b"}")?;
            }
        }
        out.write_all(b"\n")
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.0.take_over()
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        self.0.lines()
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.0.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A candidate that is rejected, as one object.
fn write_rejected(out: &mut impl Write, rejected: &RejectedPair, threshold: f64) -> io::Result<()> {
    #[derive(Serialize)]
    struct RejectedLine<'a> {
        a: &'a str,
        b: &'a str,
        by: &'static str,
        look: u16,
        components: u32,
        agree: Option<u32>,
        needed: Option<u32>,
        similarity: f64,
        threshold: f64,
        blocks: u16,
        pairs: u64,
    }
    let RejectedPair { pair, pairs, blocks, rejection } = rejected;
    let Rejection { by, look, components, agreeing, similarity } = *rejection;
    let line = RejectedLine {
        a: pair.lo().as_str(),
        b: pair.hi().as_str(),
        by: by.name(),
        look,
        components,
        agree: agreeing.map(|agreeing| agreeing.found),
        needed: agreeing.map(|agreeing| agreeing.needed),
        similarity: similarity.get(),
        threshold,
        blocks: *blocks,
        pairs: *pairs,
    };
    Ok(serde_json::to_writer(out, &line)?)
}
