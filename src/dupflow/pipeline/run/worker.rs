//! The two ends of a worker: takes events from the queue, and hands closed epochs to the committer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::failure::RunFailure;
use super::memory_watch::MemoryWatch;
use crate::pipeline::commit::Commits;
use crate::pipeline::error::RunError;
use dupflow_connectors::intake::{BadRecords, Batch, Decoder, Dequeued, Payload, Queue};
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::time::{Clock, Epoch, LiveFrom, RetentionTime, UnixTime};
use dupflow_engine::dataflow::{
    self, BatchRecord, Cancellation, ClosedEpoch, Emit, Intake, PeerSockets, Pull, Stages, Workers,
};
use dupflow_run::metrics::Metrics;
use dupflow_run::status::{Phase, Status};

/// Which process of a run this one is.
#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) struct OwnProcess {
    /// From 0. Process 0 has the output.
    pub(in crate::pipeline) index: usize,
    /// The number of processes.
    pub(in crate::pipeline) count: usize,
}

/// Shared by all threads of a run.
pub(in crate::pipeline) struct RunShared {
    pub(in crate::pipeline) queue: Arc<Queue>,
    pub(in crate::pipeline) commits: Arc<Commits>,
    pub(in crate::pipeline) failure: RunFailure,
    pub(in crate::pipeline) bad: Arc<BadRecords>,
    pub(in crate::pipeline) clock: Arc<dyn Clock>,
    pub(in crate::pipeline) status: Arc<Status>,
    pub(in crate::pipeline) process: OwnProcess,
    /// The memory budget of this process.
    pub(in crate::pipeline) memory: MemoryWatch,
    pub(in crate::pipeline) metrics: Arc<Metrics>,
    /// The first live epoch.
    pub(in crate::pipeline) live: Arc<LiveFrom>,
    /// For each epoch that is not durable, when its first events were taken.
    pub(in crate::pipeline) begun: Mutex<BTreeMap<Epoch, Duration>>,
}

impl RunShared {
    /// All epochs up to this one are closed, so the run may be live.
    pub(in crate::pipeline) fn precedes_live(&self, epoch: Epoch) {
        if self.live.holds(epoch + 1) {
            self.status.enter(Phase::Live);
        }
    }
}

/// Starts the worker threads.
pub(in crate::pipeline) fn start(
    stages: &Stages,
    first: Epoch,
    workers: usize,
    data: Option<PeerSockets>,
    cancellation: &Arc<Cancellation>,
    shared: &Arc<RunShared>,
) -> Result<Workers, String> {
    let (shared, fields) = (Arc::clone(shared), stages.scheme.text.columns());
    let own = stages.fields.clone();
    // One worker of one process attaches the clock time, so that all workers see the same.
    let attaches_time = shared.process.index == 0 && stages.retention.follows(RetentionClock::Wall);
    // Only topics have ids that move between partitions, and records that may be replaced.
    let keeps_last = stages.ids_move;
    let first_here = shared.process.index * workers;
    let parts = move |index: usize| -> (Box<dyn Intake>, Box<dyn Emit>) {
        let decoder = Decoder::with_own(&fields, &own);
        let worker = index - first_here;
        let shared = Arc::clone(&shared);
        let events = WorkerIntake {
            shared: Arc::clone(&shared),
            worker,
            decoder,
            batch: None,
            attaches_time,
            keeps_last,
        };
        (Box::new(events), Box::new(ToCommitter(shared)))
    };
    match data {
        None => Workers::start(stages, first, workers, cancellation, parts),
        Some(data) => Workers::start_with(data, stages, first, workers, cancellation, parts),
    }
}

/// The events of one worker, from the queue.
struct WorkerIntake {
    shared: Arc<RunShared>,
    /// The number of this worker in its process, from 0.
    worker: usize,
    decoder: Decoder,
    batch: Option<Batch>,
    /// Whether this worker attaches the time at which batches are read.
    attaches_time: bool,
    /// Whether the last record of each partition is remembered.
    keeps_last: bool,
}

impl Intake for WorkerIntake {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let now = self.shared.clock.now();
        self.shared.status.stepped(self.worker, now);
        self.shared.memory.look(now, &self.shared.metrics);
        match self.shared.queue.take(self.shared.commits.admits(limit)) {
            Dequeued::Done => {
                self.shared.status.ended(self.worker);
                Pull::Done
            }
            Dequeued::Nothing { low } => Pull::Idle(low),
            Dequeued::Batch(epoch, batch) => {
                // Other processes commit nothing, so nothing would remove entries there.
                if self.shared.process.index == 0 {
                    self.shared.begun.lock().entry(epoch).or_insert(now);
                    self.shared.status.begun(epoch, now);
                }
                self.batch = Some(batch);
                Pull::Batch(epoch)
            }
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> dataflow::BatchEnd {
        let batch = self.batch.take().expect("a batch is pulled before it is read");
        let (end, last) = (batch.end(), batch.last_record().filter(|_| self.keeps_last));
        let seen = batch.seen.map(|hash| (self.shared.process.index, hash));
        let mut letters = Vec::new();
        if let Payload::Kept(documents) = &batch.payload {
            let alive = documents.iter().filter_map(|(id, value)| Some((id, value?)));
            alive.for_each(|(id, value)| each(BatchRecord::Restored(id, value)));
        }
        if let Payload::Watched(changes) = &batch.payload {
            changes.iter().for_each(|change| each(BatchRecord::Watched(change)));
        }
        let mut newest = None;
        let decoded = self.decoder.decode(&batch, &self.shared.bad, &mut letters, |position, event| {
            newest = newest.max(event.ts.and_then(UnixTime::new));
            each(BatchRecord::Event(position, event));
        });
        if let Err(error) = decoded {
            self.shared.failure.fail(error.into());
        }
        newest.into_iter().for_each(|newest| self.shared.status.reading().event(newest));
        self.shared.queue.give_back(batch);
        let at = self.attaches_time.then(|| self.shared.clock.unix());
        dataflow::BatchEnd { end, last, letters, seen, at }
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.shared.queue.register(wake);
    }
}

/// Hands closed epochs to the committer.
struct ToCommitter(Arc<RunShared>);

impl Emit for ToCommitter {
    fn closed(&mut self, epoch: ClosedEpoch) {
        let seen = &epoch.seen;
        let alike = seen.values().zip(seen.values().skip(1)).all(|(a, b)| a == b);
        if !seen.is_empty() && (!alike || seen.len() < self.0.process.count) {
            let epoch = epoch.progress.epoch;
            let what =
                format!("the processes have read different inputs: epoch {epoch} is not the same for all");
            self.0.failure.fail(RunError::Process(what));
        } else {
            self.0.precedes_live(epoch.progress.epoch);
            self.0.status.closed(epoch.progress.epoch);
            if let Some(RetentionTime::Event(at) | RetentionTime::Wall(at)) = epoch.progress.clock {
                self.0.status.set_retention_clock(at.seconds());
            }
            self.0.commits.close(epoch);
        }
    }

    fn ended(&mut self) {
        self.0.commits.end();
    }
}
