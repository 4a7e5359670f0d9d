//! The run as the monitor sees it: its counters, status, view, queries and texts.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::View;
#[cfg(doc)]
use dupflow_core::block::HotBlocks;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::Evidence;
use dupflow_core::time::Clock;
use dupflow_run::metrics::Metrics;
use dupflow_run::posted::DocumentReceiver;
use dupflow_run::query::QueryQueue;
use dupflow_run::status::Status;
use dupflow_run::view_tables::ViewTables;
use dupflow_run::watch::WatchBook;

/// A run. All fields except the first three may be absent; requests that need an absent one are answered with
/// 501.
pub struct MonitoredRun {
    /// The run's counters.
    pub metrics: Arc<Metrics>,
    /// Phase, epochs, lags and other states of the process.
    pub status: Arc<Status>,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// The contents of the output; only in the process that writes it.
    pub view: Option<Arc<View>>,
    /// Sends queries to the workers; only in the process that writes the output.
    pub queries: Option<Arc<QueryQueue>>,
    /// The watch list; only in the process that writes the output.
    pub watch: Option<Arc<dyn WatchBook>>,
    /// Takes documents, if that is the source of the run; only in the process that writes the output.
    pub receiver: Option<Arc<dyn DocumentReceiver>>,
    /// Reads texts again from their source.
    pub texts: Option<Arc<dyn TextReader>>,
    /// Finds the passages that two texts share.
    pub compare: Option<Compare>,
    /// The pipeline's description.
    pub pipeline: Pipeline,
    /// The settings of the run, with secrets masked.
    pub config: Value,
    /// Returns the number of hot blocks and the [largest](HotBlocks::SHOWN) of them, largest first.
    pub hot_blocks: Box<dyn Fn() -> (usize, Vec<HotBlockInfo>) + Send + Sync>,
    /// The rows of the views, if the run keeps any; only in the process that writes the output.
    pub views: Option<Arc<ViewTables>>,
    /// The number of distinct sketches for which the run's blocks are planned, over all its processes.
    pub planned: Option<u64>,
    /// The memory budget of this process in bytes, if it has one.
    pub memory_budget: Option<u64>,
    /// Stored bytes of the inputs that have been read, and of all inputs if that is known.
    pub input_bytes: Option<InputBytes>,
}

/// Returns the stored bytes that have been read, and those of all inputs if that is known.
pub type InputBytes = Box<dyn Fn() -> (u64, Option<u64>) + Send + Sync>;

/// The standard error of a similarity, given its evidence.
pub type ErrorOf = Box<dyn Fn(f64, &Evidence) -> f64 + Send + Sync>;

/// The description of a pipeline, and how to read its evidence.
pub struct Pipeline {
    /// The answer of `/pipeline`.
    pub description: Value,
    /// Number of blocks of a sketch.
    pub blocks: usize,
    /// Number of components of a sketch.
    pub components: usize,
    /// The similarity threshold, inclusive.
    pub threshold: f64,
    /// Whether a pair has two shares, which its rows have beside its similarity.
    pub shares: bool,
    /// Whether there is a reference: ids then have sides.
    pub has_reference: bool,
    /// The standard error of a pair's similarity; 0 for an exact one.
    pub standard_error: ErrorOf,
}

/// A hot block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotBlockInfo {
    /// Its band or table, from 0.
    pub table: u16,
    /// Its hash.
    pub hash: u64,
    /// Distinct sketches in it.
    pub sketches: usize,
    /// A document of the block, if one is known.
    pub document: Option<DocId>,
    /// A second document, with a different sketch.
    pub beside: Option<DocId>,
}

/// Reads texts of documents again from their source, as long as it has them. A call may take seconds.
pub trait TextReader: Send + Sync {
    /// The text of a document at its position.
    ///
    /// # Errors
    /// Why the text is not available.
    fn text(&self, id: &DocId, position: Position) -> Result<ReadText, TextUnavailable>;

    /// The text as its record holds it, of which the run has made the document's sketch: markup stays, and
    /// further fields follow, each after a [`FIELD_SEPARATOR`](dupflow_core::doc::FIELD_SEPARATOR).
    ///
    /// # Errors
    /// As [`Self::text`].
    fn record_text(&self, id: &DocId, position: Position) -> Result<ReadText, TextUnavailable>;
}

/// A text that was read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadText {
    /// The text, or its beginning.
    pub text: String,
    /// Whether the text was truncated.
    pub truncated: bool,
    /// Where it stands, in the words of its source, such as `feed.jsonl:12`.
    pub place: Option<String>,
}

/// Why a text is not available, with one line of explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextUnavailable {
    /// The source no longer has it.
    Gone(String),
    /// The source does not support reading texts again.
    Unsupported(String),
    /// The read failed; a later one may succeed.
    Failed(String),
}

/// Compares two texts.
pub type Compare = Arc<dyn Fn(&str, &str) -> ComparedTexts + Send + Sync>;

/// Two texts, split into common and other passages.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedTexts {
    /// The pieces of the first text, in order, each with the number of its common passage, if it is one.
    pub a: Vec<(String, Option<usize>)>,
    /// The same of the second text.
    pub b: Vec<(String, Option<usize>)>,
    /// The fraction of the tokens of each text that is in common passages.
    pub shared: (f64, f64),
    /// The exact similarity of the texts, if they have one.
    pub exact: Option<f64>,
}

impl MonitoredRun {
    /// This process's share of the sketches for which the blocks are planned.
    pub(super) fn planned_here(&self) -> Option<u64> {
        self.planned.map(|planned| planned.div_ceil(self.status.process().1 as u64))
    }

    /// A run with counters, status and clock only.
    pub fn new(metrics: Arc<Metrics>, status: Arc<Status>, clock: Arc<dyn Clock>) -> Self {
        let empty = Value::Object(serde_json::Map::new());
        let standard_error = Box::new(|_: f64, _: &Evidence| 0.0);
        Self {
            metrics,
            status,
            clock,
            view: None,
            queries: None,
            watch: None,
            receiver: None,
            texts: None,
            compare: None,
            pipeline: Pipeline {
                description: empty.clone(),
                blocks: 0,
                components: 0,
                threshold: 0.0,
                shares: false,
                has_reference: false,
                standard_error,
            },
            config: empty,
            hot_blocks: Box::new(|| (0, Vec::new())),
            views: None,
            planned: None,
            memory_budget: None,
            input_bytes: None,
        }
    }
}

impl fmt::Debug for MonitoredRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitoredRun").field("status", &self.status).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("threshold", &self.threshold).finish_non_exhaustive()
    }
}
