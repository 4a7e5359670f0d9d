//! A worker's two ends: events from the queue, closed epochs to the committer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::committer::Commits;
use super::failure::Failure;
use super::lock;
use crate::dataflow::{Cancellation, Emit, Intake, Pull, Stages, Workers};
use crate::doc::{DocEvent, Position};
use crate::pair::DocPair;
use crate::source::{BadRecords, Batch, Decoder, Queue, Taken};
use crate::time::{Clock, Epoch, Progress};

/// What the workers of a run share.
pub(super) struct Shared {
    pub(super) queue: Arc<Queue>,
    pub(super) commits: Arc<Commits>,
    pub(super) failure: Failure,
    pub(super) bad: Arc<BadRecords>,
    pub(super) clock: Arc<dyn Clock>,
    /// When the first events of an epoch were taken, until it is durable.
    pub(super) begun: Mutex<BTreeMap<Epoch, Duration>>,
}

/// Starts the worker threads.
pub(super) fn start(
    stages: &Stages,
    first: Epoch,
    workers: usize,
    cancellation: &Arc<Cancellation>,
    shared: &Arc<Shared>,
) -> Result<Workers, String> {
    let (shared, fields) = (Arc::clone(shared), stages.scheme.text.field_names());
    Workers::start(stages, first, workers, cancellation, move |_| {
        let decoder = Decoder::new(&fields);
        let events = Events { shared: Arc::clone(&shared), decoder, batch: None };
        (Box::new(events), Box::new(ToCommitter(Arc::clone(&shared.commits))))
    })
}

/// This worker's events, from the queue.
struct Events {
    shared: Arc<Shared>,
    decoder: Decoder,
    batch: Option<Batch>,
}

impl Intake for Events {
    fn pull(&mut self, limit: Epoch) -> Pull {
        match self.shared.queue.take(self.shared.commits.admits(limit)) {
            Taken::Done => Pull::Done,
            Taken::Nothing { low } => Pull::Idle(low),
            Taken::Batch(epoch, batch) => {
                lock(&self.shared.begun).entry(epoch).or_insert_with(|| self.shared.clock.now());
                self.batch = Some(batch);
                Pull::Batch(epoch)
            }
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(Position, DocEvent<'_>)) -> Position {
        let batch = self.batch.take().expect("a batch is pulled before it is read");
        let end = batch.end();
        if let Err(error) = self.decoder.decode(&batch, &self.shared.bad, each) {
            self.shared.failure.fail(error.into());
        }
        self.shared.queue.give_back(batch);
        end
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.shared.queue.register(wake);
    }
}

/// Closed epochs, to the committer.
struct ToCommitter(Arc<Commits>);

impl Emit for ToCommitter {
    fn closed(&mut self, progress: Progress, deltas: Vec<(DocPair, isize)>) {
        self.0.close(progress, deltas);
    }

    fn ended(&mut self) {
        self.0.end();
    }
}
