//! Everything that a run needs.

use std::io::{self, BufWriter};
use std::num::NonZeroU64;
use std::sync::Arc;

use super::process_group::ProcessGroup;
use crate::pipeline::commit::{FollowedSink, Follower};
use crate::pipeline::continuity::Continuity;
use crate::pipeline::outcome::{Demands, EndOutput};
use dupflow_connectors::intake::{BadRecords, Source};
use dupflow_connectors::sinks::{DeltaLines, Sink};
use dupflow_core::time::{Clock, Epoch};
use dupflow_engine::dataflow::Stages;
use dupflow_run::posted::DocumentReceiver;
use dupflow_run::status::Status;

/// Everything that a run needs.
pub struct RunJob {
    /// The stages of the dataflow.
    pub stages: Stages,
    /// The input.
    pub source: Box<dyn Source>,
    /// The number of the first epoch, 1 or more.
    pub first_epoch: Epoch,
    /// Counts and keeps bad records.
    pub bad: Arc<BadRecords>,
    /// Takes the documents of clients, if they are the input.
    pub receiver: Option<Arc<dyn DocumentReceiver>>,
    /// The output of the deltas.
    pub sink: Box<dyn Sink + Send>,
    /// Conditions that the run must meet after all input is read.
    pub demands: Demands,
    /// What is written once the conditions are met; `None` if the output is written epoch by epoch.
    pub publication: Option<EndOutput>,
    /// What the run needs to continue after an earlier one.
    pub continuity: Continuity,
    /// Worker threads of this process, at least 1.
    pub workers: usize,
    /// Number of records after which the run ends, or a few more; `None` = at the end of the input.
    pub most_records: Option<NonZeroU64>,
    /// The connections to the other processes of the run, if it has several.
    pub processes: Option<ProcessGroup>,
    /// The state of the run, for the monitor.
    pub status: Arc<Status>,
    /// The clock of the run; it starts with the run.
    pub clock: Arc<dyn Clock>,
}

impl RunJob {
    /// Reports each commit to a follower after it is durable; the pairs that the output held before are
    /// reported first.
    pub fn follow(&mut self, follower: impl Follower + 'static) {
        let sink = std::mem::replace(&mut self.sink, nowhere());
        self.sink = Box::new(FollowedSink::new(sink, Box::new(follower)));
    }
}

impl std::fmt::Debug for RunJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunJob")
            .field("stages", &self.stages)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A sink that discards everything: for processes other than 0, and for runs that only answer queries.
pub fn nowhere() -> Box<dyn Sink + Send> {
    Box::new(DeltaLines::new(BufWriter::new(io::sink()), None))
}
