//! A run whose events are pushed and whose deltas are collected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::connectors::intake::{Batch, EpochLimits};
use dupflow::connectors::state::StoredState;
use dupflow::core::doc::fields::FieldRules;
use dupflow::core::run::metrics::{Counter, Metrics};
use dupflow::core::run::origins::Origins;
use dupflow::core::run::query::QueryQueue;
use dupflow::core::run::status::Status;
use dupflow::core::time::Epoch;
use dupflow::pipeline::{self, RunError, RunJob, Running, Stopper};
use pyo3::prelude::*;

use crate::errors;
use crate::feed::{Feed, epoch_records};
use crate::forks::CountedRun;
use crate::inbox::{Inbox, Left, PushedEvents};
use crate::results::{Collected, CollectingSink, Over};
use crate::wait::{Call, SLICE};

/// What decides how a session runs, besides its plan.
pub(crate) struct SessionSettings {
    pub(crate) workers: usize,
    /// Whether pairs carry their evidence.
    pub(crate) evidence: bool,
    /// Whether similarities are wanted; without them the cheapest filter with the same pairs is used.
    pub(crate) similarities: bool,
    pub(crate) fields: FieldRules,
    pub(crate) state: Option<StoredState>,
}

/// A run in progress.
pub(crate) struct Session {
    inbox: Arc<Inbox>,
    pub(crate) collected: Arc<Collected>,
    /// `None` once it has ended.
    running: Option<Running>,
    _counted: CountedRun,
    stopper: Stopper,
    status: Arc<Status>,
    pub(crate) metrics: Arc<Metrics>,
    /// Where the documents of the reference end, if there is one.
    origins: Option<Arc<Origins>>,
    pub(crate) queries: Arc<QueryQueue>,
    has_state: bool,
    pub(crate) feed: Feed,
    /// Batches for which there was no room before a call was interrupted.
    unpushed: VecDeque<Batch>,
    /// The failure, once a call has met it.
    failed: Option<PyErr>,
}

impl Session {
    /// Starts a run, and waits until it is live.
    ///
    /// # Errors
    /// If it cannot start; what interrupts the call.
    pub(crate) fn start(call: &Call<'_, '_>, plan: &Plan, settings: SessionSettings) -> PyResult<Self> {
        let SessionSettings { workers, evidence, similarities, fields, state } = settings;
        let (inbox, collected) = (Arc::<Inbox>::default(), Arc::<Collected>::default());
        let limits = EpochLimits { records: Some(epoch_records()), ..EpochLimits::default() };
        let has_reference = plan.scheme.pairs.has_reference();
        let origins = has_reference.then(|| Arc::new(Origins::default().with_reference()));
        let source = PushedEvents { inbox: Arc::clone(&inbox), limits, origins: origins.clone() };
        let mut job = RunJob::new(plan, workers, Box::new(source), Box::new(CollectingSink::new(&collected)));
        job.stages.evidence = evidence;
        job.stages.fields = fields;
        if !similarities {
            job.stages.filter = plan.membership_filter();
        }
        let has_state = state.is_some();
        if has_state {
            job.stages.observers.queries = Arc::new(QueryQueue::before_live());
        }
        job.continuity.state = state.map(|state| (state, Duration::ZERO));
        let status = Arc::clone(&job.status);
        let metrics = Arc::clone(&job.stages.observers.metrics);
        let queries = Arc::clone(&job.stages.observers.queries);
        let counted = CountedRun::begin()?;
        let started = call.py.detach(|| pipeline::start(job));
        let running = started.map_err(|error| errors::of_run(call.py, &error))?;
        let stopper = running.stopper();
        let feed = Feed::new(inbox.first());
        let running = Some(running);
        let mut session = Self {
            inbox,
            collected,
            running,
            _counted: counted,
            stopper,
            status,
            metrics,
            origins,
            queries,
            has_state,
            feed,
            unpushed: VecDeque::new(),
            failed: None,
        };
        match session.live(call) {
            Ok(Ok(())) => Ok(session),
            Ok(Err(Over)) => Err(session.failure(call.py)),
            Err(interrupted) => {
                session.abandon(call.py);
                Err(interrupted)
            }
        }
    }

    /// Waits until the run is live; the documents that it restores count as rows.
    fn live(&self, call: &Call<'_, '_>) -> PyResult<Result<(), Over>> {
        let (collected, mut restored) = (Arc::clone(&self.collected), 0);
        loop {
            match call.py.detach(|| collected.live(SLICE)) {
                Ok(false) => {}
                live => return Ok(live.map(drop)),
            }
            let so_far = self.metrics.get(Counter::Restored);
            call.count(so_far - restored);
            restored = so_far;
            call.look()?;
        }
    }

    /// Pushes a batch, and waits for room.
    ///
    /// # Errors
    /// The failure of the run; what interrupts the call.
    pub(crate) fn push(&mut self, call: &Call<'_, '_>, batch: Batch) -> PyResult<()> {
        self.unpushed.push_back(batch);
        self.push_waiting(call)?;
        call.look()
    }

    /// Pushes the batches for which there was no room, in order.
    fn push_waiting(&mut self, call: &Call<'_, '_>) -> PyResult<()> {
        let inbox = Arc::clone(&self.inbox);
        while let Some(batch) = self.unpushed.pop_front() {
            let mut batch = Some(batch);
            let pushed = call.until(|time| match inbox.push(&mut batch, time) {
                Ok(()) => batch.is_none().then_some(Ok(())),
                Err(left) => Some(Err(left)),
            });
            // After an interruption the next call pushes it.
            batch.into_iter().for_each(|batch| self.unpushed.push_front(batch));
            pushed?.map_err(|Left| self.failure(call.py))?;
        }
        Ok(())
    }

    /// Pushes what was not pushed yet.
    fn push_all(&mut self, call: &Call<'_, '_>) -> PyResult<()> {
        self.unpushed.extend(self.feed.take());
        self.push_waiting(call)
    }

    /// Pushes what the feed has: the documents of the reference, if there is one. Those that are fed from now
    /// on are compared with them.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn end_reference(&mut self, call: &Call<'_, '_>) -> PyResult<()> {
        let rest = self.feed.take();
        self.origins.iter().for_each(|origins| origins.end_reference(self.feed.position()));
        rest.map_or(Ok(()), |batch| self.push(call, batch))
    }

    /// Pushes what the feed has, ends the epoch, and waits until it is durable. Returns it.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn flush(&mut self, call: &Call<'_, '_>) -> PyResult<Epoch> {
        self.push_all(call)?;
        let (inbox, number) = (Arc::clone(&self.inbox), self.inbox.cut());
        self.feed.cut();
        let ended = call.until(|time| inbox.ended(number, time).transpose())?;
        let epoch = ended.map_err(|Left| self.failure(call.py))?;
        let collected = Arc::clone(&self.collected);
        let durable = call.until(|time| match collected.durable(epoch, time) {
            Ok(durable) => durable.then_some(Ok(())),
            Err(over) => Some(Err(over)),
        })?;
        durable.map_err(|Over| self.failure(call.py))?;
        if self.has_state {
            self.stored(call, epoch)?;
        }
        Ok(epoch)
    }

    /// Waits until the state has an epoch.
    fn stored(&mut self, call: &Call<'_, '_>, epoch: Epoch) -> PyResult<()> {
        let (status, collected) = (Arc::clone(&self.status), Arc::clone(&self.collected));
        // The keeper reports to the status alone; it takes some milliseconds.
        let stored = call.until(|_| {
            if status.state().0 >= epoch {
                return Some(Ok(()));
            }
            collected.over(Duration::from_millis(1)).then_some(Err(Over))
        })?;
        stored.map_err(|Over| self.failure(call.py))
    }

    /// Finishes what was pushed, and ends.
    ///
    /// # Errors
    /// The failure of the run; what interrupts the call.
    pub(crate) fn finish(&mut self, call: &Call<'_, '_>) -> PyResult<()> {
        self.push_all(call)?;
        self.inbox.close();
        let collected = Arc::clone(&self.collected);
        call.until(|time| collected.over(time).then_some(()))?;
        self.join(call.py).map_err(|error| errors::of_run(call.py, &error))
    }

    /// What ends the run from any thread: calls in progress then fail.
    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Ends without finishing anything, and waits for the threads.
    pub(crate) fn abandon(&mut self, py: Python<'_>) {
        self.stopper.abandon();
        // Whoever abandons a run does not ask how it ended.
        drop(self.join(py));
    }

    /// The failure that has ended the run; the same again in every later call.
    fn failure(&mut self, py: Python<'_>) -> PyErr {
        if self.failed.is_none() {
            let error = self.join(py).err();
            let error = error.unwrap_or_else(|| RunError::Worker("the run has ended".to_owned()));
            self.failed = Some(errors::of_run(py, &error));
        }
        self.failed.as_ref().expect("it was set").clone_ref(py)
    }

    /// Whether the run can be used.
    ///
    /// # Errors
    /// The failure that has ended it.
    pub(crate) fn check(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.failed.is_some() || self.stopper.has_failed() { Err(self.failure(py)) } else { Ok(()) }
    }

    fn join(&mut self, py: Python<'_>) -> Result<(), RunError> {
        self.inbox.close();
        match self.running.take() {
            Some(running) => py.detach(|| running.join_all()).map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.stopper.abandon();
            self.inbox.close();
            // Its threads hold nothing of Python, so they end while this one has the GIL.
            drop(running.join_all());
        }
    }
}
