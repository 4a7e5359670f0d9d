//! The keeper: writes document changes to the state, on its own thread, after they are durable in the output.
//!
//! The committer hands over the changes of durable and of repeated epochs, and normally does not wait for the
//! state. It waits in two cases: for a table of document frequencies, which must be stored before the commit
//! that names it, and while [`BEHIND_BYTES`] or more wait. A [publisher](crate::pipeline::publisher) does the
//! rest.
//!
//! If the location is full or cannot be reached, nothing is lost: a restart reads the input again from the
//! position of the state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::pipeline::error::RunError;
use crate::pipeline::publisher::{Published, Publisher, PublisherSettings, PublisherStop};
use dupflow_connectors::intake::InputLog;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{StatePosition, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::text::{IdfTable, TextRules};
use dupflow_core::time::Epoch;
use dupflow_engine::dataflow::Stages;
use dupflow_run::metrics::Counter;
use dupflow_run::status::Status;

/// Bytes of waiting changes from which on the committer waits.
const BEHIND_BYTES: usize = 256 << 20;

/// See the [module](self).
pub(in crate::pipeline) struct Keeper {
    publisher: Publisher,
    tables: Arc<Mutex<BTreeMap<u64, Arc<IdfTable>>>>,
    rules: TextRules,
    scheme: Vec<u8>,
    status: Arc<Status>,
    /// Whether the state has a complete record of deleted ids.
    ended: bool,
}

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
        reading: Option<Arc<InputLog>>,
        fail: impl FnOnce(RunError) + Send + 'static,
    ) -> Result<Self, RunError> {
        let metrics = Arc::clone(&stages.observers.metrics);
        let counters = Arc::clone(&metrics);
        let shown = Arc::clone(&status);
        let settings = PublisherSettings {
            what: "state",
            every,
            behind_bytes: BEHIND_BYTES,
            failures: Counter::StateFailures,
            metrics,
            published: Box::new(move |Published { epoch, changes, stored, inputs }| {
                tracing::debug!(epoch, changes, stored, "the state is stored");
                shown.set_state(epoch, stored);
                reading.iter().for_each(|list| list.stored(inputs));
                counters.add(Counter::StateCommits, 1);
                counters.add(Counter::StateBytes, changes);
            }),
        };
        let publisher = Publisher::start(state, settings, fail);
        Ok(Self {
            publisher: publisher.map_err(|error| RunError::Worker(format!("the keeper: {error}")))?,
            tables: Arc::clone(&stages.observers.tables),
            rules: stages.scheme.text.clone(),
            scheme: stages.stored_description().encode(),
            status,
            ended,
        })
    }

    /// A handle that cancels the keeper.
    pub(in crate::pipeline) fn stop(&self) -> PublisherStop {
        self.publisher.stop()
    }

    /// The epoch of the stored state; `None` before the first publish.
    pub(in crate::pipeline) fn stored(&self) -> Option<Epoch> {
        Some(self.status.state().0).filter(|epoch| *epoch > 0)
    }

    /// Adds changes that lead to `mark`: these, and those of other processes of the epochs through this one
    /// of the run, inclusive, of which `elsewhere` bytes are new. Waits while too many bytes wait.
    pub(in crate::pipeline) fn keep(
        &self,
        mark: &Mark,
        through: Epoch,
        elsewhere: u64,
        changes: impl IntoIterator<Item = Changes>,
    ) {
        let (mark, scheme) = (mark.clone(), self.scheme.clone());
        let position = StatePosition { mark, ended: self.ended, scheme };
        let kept = self.publisher.keep_through(position, through, elsewhere, changes);
        // A failure of the publisher fails the run.
        kept.unwrap_or(());
    }

    /// Stores a table of document frequencies, before a commit names it.
    pub(in crate::pipeline) fn put_table(&self, fingerprint: u64) -> Result<(), RunError> {
        let Some(table) = self.tables.lock().remove(&fingerprint) else { return Ok(()) };
        let mut bytes = Vec::new();
        table.write(&self.rules, &mut bytes).map_err(RunError::Sink)?;
        self.publisher.persist(|state| state.put_table(fingerprint, &bytes))
    }

    /// Publishes the waiting changes, and ends.
    pub(in crate::pipeline) fn finish(mut self) {
        // A failure of the publisher has failed the run.
        self.publisher.finish().unwrap_or(());
    }
}
