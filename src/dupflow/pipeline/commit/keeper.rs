//! The keeper: writes document changes to the state, on its own thread, after they are durable in the output.
//!
//! The committer hands over the changes of durable and of repeated epochs, and normally does not wait for the
//! state. It waits in two cases: for a table of document frequencies, which must be stored before the commit
//! that names it, and while [`BEHIND_BYTES`] or more wait. Waiting changes are published together, at most as
//! often as the deployment says, and at the end of the run.
//!
//! If the location is full or cannot be reached, the keeper retries. Nothing is lost meanwhile: a restart
//! reads the input again from the position of the state.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::pipeline::error::RunError;
use dupflow_connectors::failpoint;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::run::status::Status;
use dupflow_core::text::{IdfTable, TextRules};
use dupflow_engine::dataflow::Stages;

/// Bytes of waiting changes from which on the committer waits.
const BEHIND_BYTES: usize = 256 << 20;

/// First pause before a retry; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// See the [module](self).
pub(in crate::pipeline) struct Keeper {
    shared: Arc<KeeperShared>,
    thread: JoinHandle<()>,
}

struct KeeperShared {
    state: Mutex<StoredState>,
    pending: Mutex<PendingChanges>,
    /// Signalled when changes arrive, when they have been published, and at the end.
    changed: Condvar,
    tables: Arc<Mutex<BTreeMap<u64, Arc<IdfTable>>>>,
    rules: TextRules,
    scheme: Vec<u8>,
    /// Whether the state has a complete record of deleted ids.
    ended: bool,
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    every: Duration,
}

#[derive(Default)]
struct PendingChanges {
    /// The mark that the waiting changes lead to.
    mark: Option<Mark>,
    changes: Vec<Changes>,
    bytes: usize,
    end: KeeperEnd,
    error: Option<RunError>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum KeeperEnd {
    #[default]
    No,
    /// Waiting changes are still published.
    Finish,
    /// Waiting changes are discarded.
    Cancel,
}

/// Cancels the keeper of a failed run.
#[derive(Clone)]
pub(in crate::pipeline) struct KeeperStop(Arc<KeeperShared>);

impl Keeper {
    /// Starts the keeper; it publishes at most once per `every`. `ended` says whether the state has a
    /// complete record of deleted ids, which states of older versions lack. `fail` receives the error if the
    /// keeper cannot continue.
    pub(in crate::pipeline) fn start(
        state: StoredState,
        every: Duration,
        stages: &Stages,
        ended: bool,
        status: Arc<Status>,
        fail: impl Fn(RunError) + Send + 'static,
    ) -> Result<Self, RunError> {
        let shared = Arc::new(KeeperShared {
            state: Mutex::new(state),
            pending: Mutex::default(),
            changed: Condvar::new(),
            tables: Arc::clone(&stages.observers.tables),
            rules: stages.scheme.text.clone(),
            scheme: stages.stored_description().encode(),
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
                pending.end = KeeperEnd::Cancel;
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

    /// A handle that cancels the keeper.
    pub(in crate::pipeline) fn stop(&self) -> KeeperStop {
        KeeperStop(Arc::clone(&self.shared))
    }

    /// Adds changes that lead to `mark`. Waits while too many bytes wait.
    pub(in crate::pipeline) fn keep(&self, mark: &Mark, changes: impl IntoIterator<Item = Changes>) {
        let full =
            |pending: &mut PendingChanges| pending.bytes >= BEHIND_BYTES && pending.end == KeeperEnd::No;
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

    /// Stores a table of document frequencies, before a commit names it.
    pub(in crate::pipeline) fn put_table(&self, fingerprint: u64) -> Result<(), RunError> {
        let Some(table) = self.shared.tables.lock().remove(&fingerprint) else { return Ok(()) };
        let mut bytes = Vec::new();
        table.write(&self.shared.rules, &mut bytes).map_err(RunError::Sink)?;
        self.shared.persist(|state| state.put_table(fingerprint, &bytes))
    }

    /// Publishes the waiting changes, and ends.
    pub(in crate::pipeline) fn finish(self) -> Result<(), RunError> {
        self.shared.end(KeeperEnd::Finish);
        // `start` stores a panic of the thread as an error, so this result needs no check.
        drop(self.thread.join());
        self.shared.pending.lock().error.take().map_or(Ok(()), Err)
    }
}

impl KeeperStop {
    /// Ends the keeper without publishing.
    pub(in crate::pipeline) fn cancel(&self) {
        self.0.end(KeeperEnd::Cancel);
    }
}

impl KeeperShared {
    fn end(&self, end: KeeperEnd) {
        let mut pending = self.pending.lock();
        if pending.end != KeeperEnd::Cancel {
            pending.end = end;
        }
        drop(pending);
        self.changed.notify_all();
    }

    /// Publishes changes until the end.
    fn publish_all(&self) -> Result<(), RunError> {
        loop {
            let idle = |pending: &mut PendingChanges| pending.end == KeeperEnd::No && pending.mark.is_none();
            let mut pending = self.pending.lock();
            self.changed.wait_while(&mut pending, idle);
            // More changes may arrive until the interval has passed.
            let early =
                |more: &mut PendingChanges| more.end == KeeperEnd::No && more.bytes < BEHIND_BYTES / 2;
            self.changed.wait_while_for(&mut pending, early, self.every);
            if pending.end == KeeperEnd::Cancel {
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

    /// Retries an operation on the state until it succeeds or fails for good.
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
            tracing::warn!(%error, pause_ms = pause.as_millis(), "the state cannot be written; it is tried \
                again");
            let waits = |pending: &mut PendingChanges| pending.end == KeeperEnd::No;
            let mut pending = self.pending.lock();
            self.changed.wait_while_for(&mut pending, waits, pause);
            if pending.end != KeeperEnd::No {
                return Err(error.into());
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}
