//! The answer "rejected:N": a sample of the candidates that the filter rejects, with why.

use std::io;

use serde::Serialize;

use super::answer::{Answer, Subject, Written};
use crate::sinks::rows::{ColumnType, EachCells, OutputCell, OutputRow, whole};
use dupflow_core::detect::RejectedPair;
use dupflow_core::filter::{Agreeing, Rejection};

pub(super) const ANSWER: Answer = Answer {
    name: "rejected",
    help: "At the end of the input, N of the candidates that the filter rejects",
    written: Written::Survey,
    columns: |_| COLUMNS.to_vec(),
    sized: Some("rejected:N"),
    about: Subject::Candidates,
    adds_up: None,
    takes_units: false,
};

const COLUMNS: [(&str, ColumnType); 11] = [
    ("a", ColumnType::Text),
    ("b", ColumnType::Text),
    ("by", ColumnType::Text),
    ("look", ColumnType::Integer),
    ("components", ColumnType::Integer),
    ("agree", ColumnType::OptionalInteger),
    ("needed", ColumnType::OptionalInteger),
    ("similarity", ColumnType::Float),
    ("threshold", ColumnType::Float),
    ("blocks", ColumnType::Integer),
    ("pairs", ColumnType::Integer),
];

/// A candidate that the filter has rejected.
#[derive(Debug, Serialize)]
pub struct RejectedRow<'a> {
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

impl<'a> RejectedRow<'a> {
    /// `threshold`: the least similarity of an accepted pair, inclusive.
    pub fn new(rejected: &'a RejectedPair, threshold: f64) -> Self {
        let RejectedPair { pair, pairs, blocks, rejection } = rejected;
        let Rejection { by, look, components, agreeing, similarity } = *rejection;
        let (agree, needed) = agreeing.map(|Agreeing { found, needed }| (found, needed)).unzip();
        Self {
            a: pair.lo().as_str(),
            b: pair.hi().as_str(),
            by: by.name(),
            look,
            components,
            agree,
            needed,
            similarity: similarity.get(),
            threshold,
            blocks: *blocks,
            pairs: *pairs,
        }
    }
}

impl OutputRow for RejectedRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let maybe = |number: Option<u32>| number.map_or(OutputCell::Missing, whole);
        each(&[
            OutputCell::Text(self.a),
            OutputCell::Text(self.b),
            OutputCell::Text(self.by),
            whole(self.look),
            whole(self.components),
            maybe(self.agree),
            maybe(self.needed),
            OutputCell::Float(self.similarity),
            OutputCell::Float(self.threshold),
            whole(self.blocks),
            whole(self.pairs),
        ])
    }
}
