//! The publisher: publishes changes to a stored state, on a thread of its own.
//!
//! Changes that wait are published together, at most once per interval, and at the end. If the location is
//! full or cannot be reached, the publisher tries again, and [`Publisher::keep`] waits once
//! [`PublisherSettings::behind_bytes`] wait. A run that fails ends both ([`PublisherStop`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::error::{RunError, chain};
use dupflow_connectors::failpoint;
use dupflow_connectors::state::{StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Epoch;
use dupflow_run::metrics::{Counter, Metrics};

/// First pause before a retry; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How a publisher works.
pub struct PublisherSettings {
    /// What is published, for the log; the failpoint after a publish has this name too.
    pub what: &'static str,
    /// The shortest time between two publishes.
    pub every: Duration,
    /// Bytes of waiting changes from which on [`Publisher::keep`] waits.
    pub behind_bytes: usize,
    /// Counts failures that are tried again.
    pub failures: Counter,
    /// The counters of the run.
    pub metrics: Arc<Metrics>,
    /// Called after each publish.
    pub published: Box<dyn Fn(Published) + Send + Sync>,
}

/// One publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The epoch that is stored now.
    pub epoch: Epoch,
    /// Bytes of the changes.
    pub changes: u64,
    /// Bytes of the whole state.
    pub stored: u64,
    /// Number of the spans of inputs that are stored.
    pub inputs: u64,
}

/// A thread that publishes changes of a stored state, and what it is sent.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<PublisherShared>,
    thread: Option<JoinHandle<()>>,
}

/// Ends the waits of a publisher whose run has failed. It does not hold the state, which is free once the
/// publisher was dropped.
#[derive(Clone, Debug)]
pub struct PublisherStop(Weak<PublisherShared>);

struct PublisherShared {
    state: Mutex<StoredState>,
    pending: Mutex<PendingChanges>,
    /// Signalled when changes arrive, when they have been taken, and at the ends.
    changed: Condvar,
    settings: PublisherSettings,
}

#[derive(Default)]
struct PendingChanges {
    /// What the waiting changes lead to, and the last epoch of the run that they include.
    position: Option<(StatePosition, Epoch)>,
    changes: Vec<Changes>,
    /// Bytes of these, and of those that other processes store with them.
    bytes: usize,
    end: PublisherEnd,
    /// Why nothing more is published.
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum PublisherEnd {
    #[default]
    No,
    /// Nothing waits and nothing is tried again. More changes may arrive.
    Hurry,
    /// Waiting changes are still published, nothing is tried again.
    Finish,
    /// Waiting changes are discarded.
    Cancel,
}

impl Publisher {
    /// Starts the thread. `fail` receives the error if it cannot continue.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        state: StoredState,
        settings: PublisherSettings,
        fail: impl FnOnce(RunError) + Send + 'static,
    ) -> std::io::Result<Self> {
        let what = settings.what;
        let (state, pending, changed) = (Mutex::new(state), Mutex::default(), Condvar::new());
        let shared = Arc::new(PublisherShared { state, pending, changed, settings });
        let own = Arc::clone(&shared);
        let work = move || {
            let panicked = || RunError::Worker(format!("the thread of the {what} panicked"));
            let published = catch_unwind(AssertUnwindSafe(|| own.publish_all()));
            if let Err(error) = published.unwrap_or_else(|_| Err(panicked())) {
                own.pending.lock().error = Some(chain(&error));
                own.end(PublisherEnd::Cancel);
                fail(error);
            }
        };
        let thread = thread::Builder::new().name(what.to_owned()).spawn(work)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A handle that ends its waits.
    pub fn stop(&self) -> PublisherStop {
        PublisherStop(Arc::downgrade(&self.shared))
    }

    /// Reads or changes the state, between two publishes.
    pub fn with_state<T>(&self, work: impl FnOnce(&mut StoredState) -> T) -> T {
        work(&mut self.shared.state.lock())
    }

    /// Takes changes that lead to `position`, of a state that no other process writes. Waits while too many
    /// bytes wait.
    ///
    /// # Errors
    /// Why nothing more is published.
    pub fn keep(
        &self,
        position: StatePosition,
        changes: impl IntoIterator<Item = Changes>,
    ) -> Result<(), String> {
        self.keep_through(position, Epoch::MAX, 0, changes)
    }

    /// [`keep`](Self::keep) with those that other processes store themselves: of the epochs of the run
    /// through this one, inclusive, of which `elsewhere` bytes are new.
    ///
    /// # Errors
    /// Why nothing more is published.
    pub fn keep_through(
        &self,
        position: StatePosition,
        through: Epoch,
        elsewhere: u64,
        changes: impl IntoIterator<Item = Changes>,
    ) -> Result<(), String> {
        let shared = &self.shared;
        let full = |pending: &mut PendingChanges| {
            pending.bytes >= shared.settings.behind_bytes && pending.end == PublisherEnd::No
        };
        let mut pending = shared.pending.lock();
        shared.changed.wait_while(&mut pending, full);
        if let Some(error) = &pending.error {
            return Err(error.clone());
        }
        pending.position = Some((position, through));
        pending.bytes += usize::try_from(elsewhere).unwrap_or(usize::MAX);
        for change in changes {
            pending.bytes += change.len_bytes();
            pending.changes.push(change);
        }
        drop(pending);
        shared.changed.notify_all();
        Ok(())
    }

    /// Retries an operation on the state until it succeeds or fails for good.
    ///
    /// # Errors
    /// The last error.
    pub fn persist(
        &self,
        work: impl FnMut(&mut StoredState) -> Result<(), StateError>,
    ) -> Result<(), RunError> {
        self.shared.persist(work)
    }

    /// Publishes the waiting changes, and ends.
    ///
    /// # Errors
    /// Why they cannot be published.
    pub fn finish(&mut self) -> Result<(), String> {
        self.shared.end(PublisherEnd::Finish);
        // A panic of the thread is among its errors.
        drop(self.thread.take().map(JoinHandle::join));
        self.shared.pending.lock().error.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Publisher {
    /// Without [`Self::finish`] waiting changes are discarded. Afterwards the location is free.
    fn drop(&mut self) {
        self.shared.end(PublisherEnd::Cancel);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl PublisherStop {
    /// From now on nothing waits for the location: what cannot be published at once is given up.
    pub fn hurry(&self) {
        self.end(PublisherEnd::Hurry);
    }

    /// Ends the publisher without publishing.
    pub fn cancel(&self) {
        self.end(PublisherEnd::Cancel);
    }

    fn end(&self, end: PublisherEnd) {
        self.0.upgrade().iter().for_each(|shared| shared.end(end));
    }
}

impl PublisherShared {
    fn end(&self, end: PublisherEnd) {
        let mut pending = self.pending.lock();
        pending.end = pending.end.max(end);
        drop(pending);
        self.changed.notify_all();
    }

    /// Publishes changes until the end.
    fn publish_all(&self) -> Result<(), RunError> {
        let settings = &self.settings;
        loop {
            let idle = |pending: &mut PendingChanges| {
                pending.end <= PublisherEnd::Hurry && pending.position.is_none()
            };
            // More changes may arrive until the interval has passed.
            let early = |more: &mut PendingChanges| {
                more.end == PublisherEnd::No && more.bytes < settings.behind_bytes / 2
            };
            let mut pending = self.pending.lock();
            self.changed.wait_while(&mut pending, idle);
            self.changed.wait_while_for(&mut pending, early, settings.every);
            if pending.end == PublisherEnd::Cancel {
                return Ok(());
            }
            let Some((position, through)) = pending.position.take() else { return Ok(()) };
            let changes = std::mem::take(&mut pending.changes);
            let bytes = std::mem::take(&mut pending.bytes);
            drop(pending);
            self.changed.notify_all();
            self.persist(|state| state.publish_through(&position, &changes, through))?;
            failpoint::reach(settings.what);
            let state = self.state.lock();
            let (stored, inputs) = (state.stored_bytes(), state.stored_inputs());
            drop(state);
            let epoch = position.epoch();
            (settings.published)(Published { epoch, changes: bytes as u64, stored, inputs });
        }
    }

    fn persist(
        &self,
        mut work: impl FnMut(&mut StoredState) -> Result<(), StateError>,
    ) -> Result<(), RunError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match work(&mut self.state.lock()) {
                Ok(()) => return Ok(()),
                Err(error @ StateError::Io { .. }) => error,
                Err(error) => return Err(error.into()),
            };
            self.settings.metrics.add(self.settings.failures, 1);
            let (what, pause_ms) = (self.settings.what, pause.as_millis());
            tracing::warn!(
                error = chain(&error),
                pause_ms,
                "the {what} cannot be written; it is tried again"
            );
            let waits = |pending: &mut PendingChanges| pending.end == PublisherEnd::No;
            let mut pending = self.pending.lock();
            self.changed.wait_while_for(&mut pending, waits, pause);
            if pending.end != PublisherEnd::No {
                return Err(error.into());
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

impl std::fmt::Debug for PublisherSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublisherSettings").field("what", &self.what).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PublisherShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use dupflow_connectors::mark::Mark;
    use dupflow_connectors::state::{self, MemoryStore};
    use dupflow_core::time::Progress;

    fn position(epoch: Epoch) -> StatePosition {
        let mark = Mark { progress: Progress { epoch, ..Progress::default() }, ..Mark::default() };
        StatePosition { mark, ended: false, scheme: Vec::new() }
    }

    fn changes(key: &str) -> Changes {
        let mut changes = Changes::default();
        changes.put_with(key.as_bytes(), |out| out.extend_from_slice(b"value"));
        changes
    }

    /// A publisher that waits from one byte on; its errors, and the epochs that it publishes.
    fn publisher(state: StoredState) -> (Publisher, Receiver<RunError>, Receiver<Epoch>) {
        let ((failed, errors), (publishes, published)) = (channel(), channel());
        let settings = PublisherSettings {
            what: "history",
            every: Duration::ZERO,
            behind_bytes: 1,
            failures: Counter::HistoryFailures,
            metrics: Arc::new(Metrics::new(0)),
            // The test may have ended.
            published: Box::new(move |publish| publishes.send(publish.epoch).unwrap_or(())),
        };
        let fail = move |error| failed.send(error).unwrap_or(());
        (Publisher::start(state, settings, fail).unwrap(), errors, published)
    }

    /// A state whose location cannot be written any more.
    fn unwritable(folder: &tempfile::TempDir) -> StoredState {
        let path = folder.path().join("state");
        let state = StoredState::open(state::at(path.to_str().unwrap()).unwrap()).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "no folder").unwrap();
        state
    }

    #[test]
    fn a_failed_run_does_not_wait_for_a_location_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut publisher, errors, _) = publisher(unwritable(&folder));
        let stop = publisher.stop();
        let metrics = Arc::clone(&publisher.shared.settings.metrics);
        let (ended, end) = channel();
        let keeps = thread::spawn(move || {
            // The first ones are taken by the thread, the next ones fill the queue, and then it waits.
            let kept = (1..=3).try_for_each(|epoch| publisher.keep(position(epoch), [changes("key")]));
            ended.send((kept, publisher.finish())).unwrap();
        });
        while metrics.get(Counter::HistoryFailures) == 0 {
            thread::park_timeout(Duration::from_millis(1));
        }
        assert!(end.try_recv().is_err(), "it tries again, and the view waits");
        stop.hurry();
        let (kept, finished) = end.recv().unwrap();
        assert!(kept.is_ok() || kept == finished, "{kept:?}");
        assert!(finished.unwrap_err().contains("state"));
        assert!(matches!(errors.recv(), Ok(RunError::State(_))));
        keeps.join().unwrap();
    }

    #[test]
    fn a_failed_run_publishes_what_it_can() {
        let store = MemoryStore::default();
        let (mut publisher, errors, published) =
            publisher(StoredState::open(Box::new(store.clone())).unwrap());
        publisher.keep(position(1), [changes("a")]).unwrap();
        publisher.stop().hurry();
        publisher.keep(position(2), [changes("b")]).unwrap();
        publisher.finish().unwrap();
        drop(publisher);
        assert_eq!((published.iter().last(), errors.iter().count()), (Some(2), 0));
        let mut state = StoredState::open(Box::new(store)).unwrap();
        assert_eq!(state.latest(Epoch::MAX).unwrap().unwrap().saved().epoch(), 2);
    }

    #[test]
    fn a_cancelled_one_publishes_nothing_more() {
        let (mut publisher, errors, published) =
            publisher(StoredState::open(Box::new(MemoryStore::default())).unwrap());
        publisher.stop().cancel();
        publisher.keep(position(1), [changes("a")]).unwrap();
        publisher.finish().unwrap();
        drop(publisher);
        assert_eq!((published.iter().count(), errors.iter().count()), (0, 0));
    }
}
