//! The history of a run in its state: a folder `history` beside the documents, with the same files and the
//! same promises.
//!
//! The view hands over the changes of epochs that are durable in the output. They are published on a thread
//! of their own, as often as the documents; the changes of one epoch are published together. If the location
//! cannot be written, the thread tries again, and the view waits once [`BEHIND_BYTES`] have gathered. A run
//! that has failed tries once.

use std::sync::Arc;

use crate::config::StateConfig;
use crate::pipeline::{Published, Publisher, PublisherSettings, PublisherStop, chain};
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{self, StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::{Epoch, Progress};
use dupflow_monitor::{EachRecord, HistoryStore};
use dupflow_run::metrics::{Counter, Metrics};
use dupflow_run::status::Status;

/// Bytes of waiting changes from which on the view waits.
const BEHIND_BYTES: usize = 64 << 20;

/// Bytes of records that are read at once.
const SLICE_BYTES: usize = 1 << 20;

/// See the [module](self).
pub(super) struct StoredHistory {
    publisher: Publisher,
    /// The mark of every publish, except its epoch.
    run: String,
    scheme: Vec<u8>,
    status: Arc<Status>,
}

/// The location of the history in that of the state.
pub(super) fn location(state: &StateConfig) -> String {
    format!("{}/history", state.location.trim_end_matches('/'))
}

impl StoredHistory {
    /// Opens the history of a state. It is taken over when it is read: then the run has taken the output.
    pub(super) fn open(
        config: &StateConfig,
        run: String,
        scheme: Vec<u8>,
        metrics: Arc<Metrics>,
        status: Arc<Status>,
    ) -> anyhow::Result<Self> {
        let state = StoredState::inspect(state::at(&location(config))?)?;
        let shown = Arc::clone(&status);
        let settings = PublisherSettings {
            what: "history",
            every: config.commit_every,
            behind_bytes: BEHIND_BYTES,
            failures: Counter::HistoryFailures,
            metrics,
            published: Box::new(move |Published { epoch, stored, .. }| shown.set_history(epoch, stored)),
        };
        // The view logs the failure.
        let publisher = Publisher::start(state, settings, drop)?;
        Ok(Self { publisher, run, scheme, status })
    }

    /// Ends its waits if the run fails.
    pub(super) fn stop(&self) -> PublisherStop {
        self.publisher.stop()
    }
}

impl HistoryStore for StoredHistory {
    fn read(&mut self, at_most: Epoch, each: &mut EachRecord<'_>) -> Result<Option<Epoch>, String> {
        let described = |error: StateError| chain(&error);
        let taken = |state: &mut StoredState| state.claim_as_found().and_then(|()| state.latest(at_most));
        let latest = self.publisher.with_state(taken).map_err(described)?;
        let Some(snapshot) = latest else { return Ok(None) };
        let read = snapshot.read(SLICE_BYTES, |slice| {
            let mut records = slice.iter().filter_map(|(key, value)| Some((key, value?)));
            records.try_for_each(|(key, value)| each(key, value)).map_err(HistoryError::Record)
        });
        read.map_err(|error| match error {
            HistoryError::State(error) => described(error),
            HistoryError::Record(why) => why,
        })?;
        let epoch = snapshot.saved().epoch();
        self.status.set_history(epoch, self.publisher.with_state(|state| state.stored_bytes()));
        Ok(Some(epoch))
    }

    fn keep(&mut self, epoch: Epoch, changes: Changes) -> Result<(), String> {
        let progress = Progress { epoch, ..Progress::default() };
        let mark = Mark { run: self.run.clone(), progress, ..Mark::default() };
        self.publisher.keep(StatePosition { mark, ended: false, scheme: self.scheme.clone() }, [changes])
    }

    fn finish(&mut self) -> Result<(), String> {
        self.publisher.finish()
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
