//! What a monitor tells of: a run, as the parts of it that may be asked.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::View;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::Evidence;
use dupflow_core::run::metrics::Metrics;
use dupflow_core::run::query::QueryQueue;
use dupflow_core::run::status::Status;
use dupflow_core::time::Clock;

/// A run, as whoever starts it hands it over. All but the first three may be absent: what depends on them is
/// answered with 501.
pub struct Subject {
    /// Its counters.
    pub metrics: Arc<Metrics>,
    /// Where it stands.
    pub status: Arc<Status>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// What its output holds; in the process that writes it.
    pub view: Option<Arc<View>>,
    /// Who takes questions to the workers.
    pub queries: Option<Arc<QueryQueue>>,
    /// Where texts are read again.
    pub texts: Option<Arc<dyn Texts>>,
    /// What two texts have in common.
    pub compare: Option<Compare>,
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The settings of the run, secrets masked.
    pub config: Value,
    /// How many blocks are hot; and the largest of them, the largest first, so many at most.
    pub hot_blocks: Box<dyn Fn(usize) -> (usize, Vec<Hot>) + Send + Sync>,
    /// Distinct sketches that the blocks of the run are planned for, of all its processes.
    pub planned: Option<u64>,
}

/// The standard error of a similarity, by its evidence.
pub type ErrorOf = Box<dyn Fn(f64, &Evidence) -> f64 + Send + Sync>;

/// What is told of a pipeline, and what its evidence means.
pub struct Pipeline {
    /// What `/pipeline` answers.
    pub told: Value,
    /// Blocks that a sketch is in, and components that it has.
    pub of: (usize, usize),
    /// The threshold, inclusive.
    pub threshold: f64,
    /// The standard error of a pair's similarity; 0 of one that is no estimate.
    pub standard_error: ErrorOf,
}

/// A hot block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Its band or table, from 0.
    pub table: u16,
    /// Its hash.
    pub hash: u32,
    /// Distinct sketches in it.
    pub sketches: usize,
    /// A document in it, if one is known.
    pub document: Option<DocId>,
    /// Another one, with another sketch.
    pub beside: Option<DocId>,
}

/// Reads the texts of documents again, where their source still has them. A call may take long.
pub trait Texts: Send + Sync {
    /// The text of a document at its position, and whether it is cut.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn text(&self, id: &DocId, position: Position) -> Result<(String, bool), NoText>;
}

/// Why there is no text, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoText {
    /// The source has it no more.
    Gone(String),
    /// The source cannot give texts.
    Unsupported(String),
    /// It cannot be read at this moment.
    Failed(String),
}

/// Finds what two texts have in common.
pub type Compare = Arc<dyn Fn(&str, &str) -> Compared + Send + Sync>;

/// Two texts, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The pieces of the first text, in order: each with the number of the common passage that it is, if it
    /// is one.
    pub a: Vec<(String, Option<usize>)>,
    /// Those of the second one.
    pub b: Vec<(String, Option<usize>)>,
    /// The share of the tokens of each that is in common passages.
    pub shared: (f64, f64),
    /// The similarity of the texts themselves, if they have one.
    pub exact: Option<f64>,
}

impl Subject {
    /// Of the sketches that blocks are planned for, the share of this process.
    pub(super) fn planned_here(&self) -> Option<u64> {
        self.planned.map(|planned| planned.div_ceil(self.status.process().1 as u64))
    }

    /// A run of which no more is known than its numbers.
    pub fn new(metrics: Arc<Metrics>, status: Arc<Status>, clock: Arc<dyn Clock>) -> Self {
        let told = Value::Object(serde_json::Map::new());
        let standard_error = Box::new(|_: f64, _: &Evidence| 0.0);
        Self {
            metrics,
            status,
            clock,
            view: None,
            queries: None,
            texts: None,
            compare: None,
            pipeline: Pipeline { told: told.clone(), of: (0, 0), threshold: 0.0, standard_error },
            config: told,
            hot_blocks: Box::new(|_| (0, Vec::new())),
            planned: None,
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("status", &self.status).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("of", &self.of).finish_non_exhaustive()
    }
}
