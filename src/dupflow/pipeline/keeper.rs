//! The keeper: what changes of the documents to the state, on a thread of its own, behind what is durable.
//!
//! The committer hands over the changes of epochs once they are durable, or have been before, and does not
//! wait for the state; but for tables of document frequencies, which have to be stored before the commit that
//! names them, and when [`BEHIND_BYTES`] wait. What waits is published together, at most so often as the
//! deployment says, and at the end of the run.
//!
//! A place that is full or cannot be reached is tried again: nothing is lost meanwhile, since the input is
//! read again from where the state ends.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::RunError;
use dupflow_connectors::failpoint;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::run::status::Status;
use dupflow_core::text::{IdfTable, TextRules};
use dupflow_engine::dataflow::Stages;

/// Bytes of changes that may wait, exclusive; then the committer does.
const BEHIND_BYTES: usize = 256 << 20;

/// The first pause after something could not be stored, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// See the [module](self).
pub(super) struct Keeper {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    state: Mutex<StoredState>,
    pending: Mutex<Pending>,
    /// Signalled when something waits, or no longer does, or the end has come.
    changed: Condvar,
    tables: Arc<Mutex<BTreeMap<u64, Arc<IdfTable>>>>,
    rules: TextRules,
    scheme: Vec<u8>,
    /// Whether the state has all that is remembered of ended documents.
    ended: bool,
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    every: Duration,
}

#[derive(Default)]
struct Pending {
    /// What the changes lead to.
    mark: Option<Mark>,
    changes: Vec<Changes>,
    bytes: usize,
    end: End,
    error: Option<RunError>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum End {
    #[default]
    No,
    /// What waits is still published.
    Finish,
    /// It is not.
    Cancel,
}

/// Ends a keeper whose run has failed.
#[derive(Clone)]
pub(super) struct KeeperStop(Arc<Shared>);

impl Keeper {
    /// Starts the thread; it publishes no more often than `every`. `ended` says whether the state has what is
    /// remembered of ended documents: not where it goes on from one that has not. `fail` is told when it
    /// cannot go on.
    pub(super) fn start(
        state: StoredState,
        every: Duration,
        stages: &Stages,
        ended: bool,
        status: Arc<Status>,
        fail: impl Fn(RunError) + Send + 'static,
    ) -> Result<Self, RunError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            pending: Mutex::default(),
            changed: Condvar::new(),
            tables: Arc::clone(&stages.observers.tables),
            rules: stages.scheme.text.clone(),
            scheme: stages.scheme.description().encode(),
            ended,
            metrics: Arc::clone(&stages.observers.metrics),
            status,
            every,
        });
        let own = Arc::clone(&shared);
        let work = move || {
            let panicked = || RunError::Worker("the keeper panicked".to_owned());
            let published = catch_unwind(AssertUnwindSafe(|| own.publish_all()));
            if let Err(error) = published.unwrap_or_else(|_| Err(panicked())) {
                let mut pending = own.pending.lock();
                pending.end = End::Cancel;
                pending.changes.clear();
                pending.bytes = 0;
                drop(pending);
                own.changed.notify_all();
                fail(error);
            }
        };
        let spawned = thread::Builder::new().name("keeper".to_owned()).spawn(work);
        let thread = spawned.map_err(|error| RunError::Worker(format!("the keeper: {error}")))?;
        Ok(Self { shared, thread })
    }

    /// What ends it.
    pub(super) fn stop(&self) -> KeeperStop {
        KeeperStop(Arc::clone(&self.shared))
    }

    /// Takes changes that lead to a mark. Waits while too much waits.
    pub(super) fn keep(&self, mark: &Mark, changes: impl IntoIterator<Item = Changes>) {
        let full = |pending: &mut Pending| pending.bytes >= BEHIND_BYTES && pending.end == End::No;
        let mut pending = self.shared.pending.lock();
        self.shared.changed.wait_while(&mut pending, full);
        pending.mark = Some(mark.clone());
        for change in changes {
            pending.bytes += change.len_bytes();
            pending.changes.push(change);
        }
        drop(pending);
        self.shared.changed.notify_all();
    }

    /// Stores a table that has been made, before a commit names it.
    pub(super) fn put_table(&self, fingerprint: u64) -> Result<(), RunError> {
        let Some(table) = self.shared.tables.lock().remove(&fingerprint) else { return Ok(()) };
        let mut bytes = Vec::new();
        table.write(&self.shared.rules, &mut bytes).map_err(RunError::Sink)?;
        self.shared.persist(|state| state.put_table(fingerprint, &bytes))
    }

    /// Publishes what waits, and ends.
    pub(super) fn finish(self) -> Result<(), RunError> {
        self.shared.end(End::Finish);
        // It ends with what `start` makes of a panic.
        drop(self.thread.join());
        self.shared.pending.lock().error.take().map_or(Ok(()), Err)
    }
}

impl KeeperStop {
    /// Ends it where it is.
    pub(super) fn cancel(&self) {
        self.0.end(End::Cancel);
    }
}

impl Shared {
    fn end(&self, end: End) {
        let mut pending = self.pending.lock();
        if pending.end != End::Cancel {
            pending.end = end;
        }
        drop(pending);
        self.changed.notify_all();
    }

    /// Publishes what comes, until the end.
    fn publish_all(&self) -> Result<(), RunError> {
        loop {
            let idle = |pending: &mut Pending| pending.end == End::No && pending.mark.is_none();
            let mut pending = self.pending.lock();
            self.changed.wait_while(&mut pending, idle);
            // More may come until the time is up.
            let early = |more: &mut Pending| more.end == End::No && more.bytes < BEHIND_BYTES / 2;
            self.changed.wait_while_for(&mut pending, early, self.every);
            if pending.end == End::Cancel {
                return Ok(());
            }
            let Some(mark) = pending.mark.take() else { return Ok(()) };
            let changes = std::mem::take(&mut pending.changes);
            pending.bytes = 0;
            drop(pending);
            self.changed.notify_all();
            let saved = StatePosition { mark, ended: self.ended, scheme: self.scheme.clone() };
            self.persist(|state| state.publish(&saved, &changes))?;
            failpoint::reach("state");
            self.status.set_state(saved.epoch(), self.state.lock().stored_bytes());
            self.metrics.add(Counter::StateCommits, 1);
            self.metrics.add(Counter::StateBytes, changes.iter().map(|part| part.len_bytes() as u64).sum());
        }
    }

    /// Does something to the state until it succeeds, or until there is no hope.
    fn persist(
        &self,
        mut what: impl FnMut(&mut StoredState) -> Result<(), StateError>,
    ) -> Result<(), RunError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match what(&mut self.state.lock()) {
                Ok(()) => return Ok(()),
                Err(error @ StateError::Io { .. }) => error,
                Err(error) => return Err(error.into()),
            };
            self.metrics.add(Counter::StateFailures, 1);
            tracing::warn!(%error, pause_ms = pause.as_millis(), "the state cannot be written; it is tried again");
            let waits = |pending: &mut Pending| pending.end == End::No;
            let mut pending = self.pending.lock();
            self.changed.wait_while_for(&mut pending, waits, pause);
            if pending.end != End::No {
                return Err(error.into());
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}
