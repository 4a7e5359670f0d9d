//! Changes of the list, as they travel.

use serde::{Deserialize, Serialize};

use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::text::Terms;

/// A change of the list, sent to one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct WatchUpdate {
    /// The index of that worker.
    pub(in crate::dataflow) to: u64,
    /// See [`WatchChange::number`](dupflow_run::watch::WatchChange::number).
    pub(in crate::dataflow) number: u64,
    pub(in crate::dataflow) watch: DocId,
    pub(in crate::dataflow) content: WatchContent,
}

/// What a watch is compared by from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) enum WatchContent {
    /// Nothing: it has ended, or has no token.
    Nothing,
    /// This sketch.
    Sketch(SketchId, Box<Sketch>),
    /// These terms, to be weighted by the table in force.
    Terms(Box<Terms>),
}
