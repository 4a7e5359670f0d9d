//! The workers' ends: events from the queue, deltas to the sink.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{RunError, lock};
use crate::dataflow::{Emit, Intake, Pull, Stages, Workers};
use crate::doc::{DocEvent, Position};
use crate::pair::DocPair;
use crate::sink::Sink;
use crate::source::{self, BadRecords, Batch, Decoder, Queue, SourceError};
use crate::time::{Clock, Epoch};

/// What the workers of a run share.
pub(super) struct Shared {
    queue: Arc<Queue>,
    bad: Arc<BadRecords>,
    clock: Arc<dyn Clock>,
    sink: Mutex<Option<Box<dyn Sink + Send>>>,
    failure: Mutex<Option<RunError>>,
    /// When the first events of an open epoch were pulled.
    begun: Mutex<BTreeMap<Epoch, Duration>>,
    /// How long each closed epoch took from there to its deltas in the sink.
    latencies: Mutex<Vec<Duration>>,
}

impl Shared {
    pub(super) fn new(
        queue: Arc<Queue>,
        bad: Arc<BadRecords>,
        clock: Arc<dyn Clock>,
        sink: Box<dyn Sink + Send>,
    ) -> Self {
        let sink = Mutex::new(Some(sink));
        Self {
            queue,
            bad,
            clock,
            sink,
            failure: Mutex::default(),
            begun: Mutex::default(),
            latencies: Mutex::default(),
        }
    }

    /// Ends the run with an error, unless it already has one.
    fn fail(&self, error: RunError) {
        lock(&self.failure).get_or_insert(error);
        self.queue.close();
    }

    /// Whether the run went well; an output that nobody reads is no failure.
    pub(super) fn outcome(&self) -> Result<(), RunError> {
        match lock(&self.failure).take() {
            Some(RunError::Sink(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(super) fn latencies(&self) -> Vec<Duration> {
        std::mem::take(&mut lock(&self.latencies))
    }
}

/// Starts the worker threads.
pub(super) fn start(stages: &Stages, workers: usize, shared: &Arc<Shared>) -> Result<Workers, String> {
    let (shared, fields) = (Arc::clone(shared), stages.scheme.text.field_names());
    Workers::start(stages, workers, move |worker| {
        let events = Events { shared: Arc::clone(&shared), decoder: Decoder::new(&fields), batch: None };
        let deltas = Deltas { shared: Arc::clone(&shared), sink: None, worker };
        (Box::new(events), Box::new(deltas))
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
        match self.shared.queue.pull(limit) {
            source::Pull::Done => Pull::Done,
            source::Pull::Idle { low } => Pull::Idle(low),
            source::Pull::Batch(batch) => {
                let epoch = batch.epoch;
                lock(&self.shared.begun).entry(epoch).or_insert_with(|| self.shared.clock.now());
                self.batch = Some(batch);
                Pull::Batch(epoch)
            }
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(Position, DocEvent<'_>)) {
        let Some(batch) = self.batch.take() else { return };
        if let Err(error) = self.decoder.decode(&batch, &self.shared.bad, each) {
            self.shared.fail(SourceError::into(error));
        }
        self.shared.queue.give_back(batch);
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.shared.queue.register(wake);
    }
}

/// The sink, on the worker that has it.
struct Deltas {
    shared: Arc<Shared>,
    sink: Option<Box<dyn Sink + Send>>,
    worker: usize,
}

impl Deltas {
    /// Uses the sink until anything fails: an epoch that was not read to its end must not be written.
    fn write(&mut self, write: impl FnOnce(&mut dyn Sink) -> io::Result<()>) {
        if self.shared.bad.failed() || lock(&self.shared.failure).is_some() {
            return;
        }
        if self.sink.is_none() {
            self.sink = lock(&self.shared.sink).take();
        }
        if let Some(Err(error)) = self.sink.as_deref_mut().map(|sink| write(sink)) {
            self.shared.fail(RunError::Sink(error));
            self.sink = None;
        }
    }
}

impl Emit for Deltas {
    fn deltas(&mut self, epoch: Epoch, deltas: &[(DocPair, isize)]) {
        self.write(|sink| sink.epoch(epoch, deltas));
    }

    fn closed(&mut self, open: Option<Epoch>) {
        if self.worker != 0 {
            return;
        }
        let mut begun = lock(&self.shared.begun);
        let still_open = open.map(|open| begun.split_off(&open)).unwrap_or_default();
        let closed = std::mem::replace(&mut *begun, still_open);
        drop(begun);
        let now = self.shared.clock.now();
        lock(&self.shared.latencies).extend(closed.into_values().map(|start| now.saturating_sub(start)));
        if open.is_none() {
            self.write(|sink| sink.finish());
        }
    }
}
