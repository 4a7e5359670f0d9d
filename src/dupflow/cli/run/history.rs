//! The history of a run in its state: a folder `history` beside the documents, with the same files and the
//! same promises.
//!
//! The view hands over the changes of epochs that are durable in the output. They are published on a thread
//! of their own, as often as the documents; the changes of one epoch are published together. If the location
//! cannot be written, the thread tries again, and the view waits once [`BEHIND_BYTES`] have gathered.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::config::StateConfig;
use dupflow_connectors::failpoint;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{self, StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::run::status::Status;
use dupflow_core::time::{Epoch, Progress};
use dupflow_monitor::{EachRecord, HistoryStore};

/// Bytes of waiting changes from which on the view waits.
const BEHIND_BYTES: usize = 64 << 20;

/// Bytes of records that are read at once.
const SLICE_BYTES: usize = 1 << 20;

/// Pause before a retry.
const PAUSE: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(super) struct StoredHistory {
    shared: Arc<HistoryShared>,
    thread: Option<JoinHandle<()>>,
}

struct HistoryShared {
    state: Mutex<StoredState>,
    pending: Mutex<PendingHistory>,
    /// Signalled when changes arrive, when they have been published, and at the end.
    changed: Condvar,
    /// The mark of every publish, except its epoch.
    run: String,
    scheme: Vec<u8>,
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    every: Duration,
}

#[derive(Default)]
struct PendingHistory {
    epoch: Epoch,
    changes: Vec<Changes>,
    bytes: usize,
    is_ended: bool,
    /// Why nothing more is published.
    error: Option<String>,
}

/// The location of the history in that of the state.
pub(super) fn location(state: &StateConfig) -> String {
    format!("{}/history", state.location.trim_end_matches('/'))
}

impl StoredHistory {
    /// Opens the history of a state, and takes it over.
    pub(super) fn open(
        config: &StateConfig,
        run: String,
        scheme: Vec<u8>,
        metrics: Arc<Metrics>,
        status: Arc<Status>,
    ) -> anyhow::Result<Self> {
        let state = StoredState::open(state::at(&location(config))?)?;
        let shared = Arc::new(HistoryShared {
            state: Mutex::new(state),
            pending: Mutex::default(),
            changed: Condvar::new(),
            run,
            scheme,
            metrics,
            status,
            every: config.commit_every,
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("history".to_owned()).spawn(move || own.publish_all())?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl HistoryStore for StoredHistory {
    fn read(&mut self, at_most: Epoch, each: &mut EachRecord<'_>) -> Result<Option<Epoch>, String> {
        let described = |error: StateError| chain(&error);
        let Some(snapshot) = self.shared.state.lock().latest(at_most).map_err(described)? else {
            return Ok(None);
        };
        let read = snapshot.read(SLICE_BYTES, |slice| {
            let mut records = slice.iter().filter_map(|(key, value)| Some((key, value?)));
            records.try_for_each(|(key, value)| each(key, value)).map_err(HistoryError::Record)
        });
        read.map_err(|error| match error {
            HistoryError::State(error) => described(error),
            HistoryError::Record(why) => why,
        })?;
        let epoch = snapshot.saved().epoch();
        self.shared.status.set_history(epoch, self.shared.state.lock().stored_bytes());
        Ok(Some(epoch))
    }

    fn keep(&mut self, epoch: Epoch, changes: Changes) -> Result<(), String> {
        let full = |pending: &mut PendingHistory| pending.bytes >= BEHIND_BYTES && pending.error.is_none();
        let mut pending = self.shared.pending.lock();
        self.shared.changed.wait_while(&mut pending, full);
        if let Some(error) = &pending.error {
            return Err(error.clone());
        }
        pending.epoch = epoch;
        pending.bytes += changes.len_bytes();
        pending.changes.push(changes);
        drop(pending);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.shared.pending.lock().is_ended = true;
        self.shared.changed.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            return Err("the thread of the history panicked".to_owned());
        }
        self.shared.pending.lock().error.clone().map_or(Ok(()), Err)
    }
}

impl HistoryShared {
    /// Publishes changes until the end, or until nothing can be published any more.
    fn publish_all(&self) {
        loop {
            let idle = |pending: &mut PendingHistory| !pending.is_ended && pending.changes.is_empty();
            let early = |more: &mut PendingHistory| !more.is_ended && more.bytes < BEHIND_BYTES / 2;
            let mut pending = self.pending.lock();
            self.changed.wait_while(&mut pending, idle);
            self.changed.wait_while_for(&mut pending, early, self.every);
            let (epoch, changes) = (pending.epoch, std::mem::take(&mut pending.changes));
            pending.bytes = 0;
            drop(pending);
            if changes.is_empty() {
                return;
            }
            self.changed.notify_all();
            if let Err(error) = self.publish(epoch, &changes) {
                self.pending.lock().error = Some(chain(&error));
                self.changed.notify_all();
                return;
            }
        }
    }

    /// Publishes changes; tries again while the location cannot be written, up to the end of the run.
    fn publish(&self, epoch: Epoch, changes: &[Changes]) -> Result<(), StateError> {
        let progress = Progress { epoch, ..Progress::default() };
        let mark = Mark { run: self.run.clone(), progress, ..Mark::default() };
        let saved = StatePosition { mark, ended: false, scheme: self.scheme.clone() };
        loop {
            let error = match self.state.lock().publish(&saved, changes) {
                Ok(()) => break,
                Err(error @ StateError::Io { .. }) => error,
                Err(error) => return Err(error),
            };
            self.metrics.add(Counter::HistoryFailures, 1);
            tracing::warn!(error = chain(&error), "the history cannot be written; it is tried again");
            let waits = |pending: &mut PendingHistory| !pending.is_ended;
            let mut pending = self.pending.lock();
            self.changed.wait_while_for(&mut pending, waits, PAUSE);
            if pending.is_ended {
                return Err(error);
            }
        }
        failpoint::reach("history");
        self.status.set_history(epoch, self.state.lock().stored_bytes());
        Ok(())
    }
}

/// Why the history is not read.
enum HistoryError {
    State(StateError),
    Record(String),
}

impl From<StateError> for HistoryError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}
