//! A run in progress, from its start to its end, and the handle that stops it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::process_group::PeerProcesses;
use super::worker::RunShared;
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::{Demands, Latencies, Measures, Summary};
use dupflow_connectors::sinks::Publication;
use dupflow_core::run::status::Phase;
use dupflow_core::run::watch::HookState;
use dupflow_engine::dataflow::{Stages, Workers};

/// A run in progress.
#[must_use = "a run is waited for when it is joined"]
pub struct Running {
    pub(super) stages: Stages,
    pub(super) shared: Arc<RunShared>,
    pub(super) workers: Workers,
    pub(super) threads: usize,
    /// Returns how long epochs took; `None` if the committer could not start or is in another process.
    pub(super) committer: Option<JoinHandle<Latencies>>,
    pub(super) peers: Option<Arc<PeerProcesses>>,
    pub(super) demands: Demands,
    pub(super) publication: Option<Publication>,
    /// The readers, and the threads that wake the queue.
    pub(super) helpers: Vec<JoinHandle<()>>,
    /// Ends the deliveries of the web hook, if there is one.
    pub(super) deliveries: Option<EndDeliveries>,
}

/// Ends the deliveries of a web hook, and returns what is known of them.
pub(super) type EndDeliveries = Box<dyn FnOnce() -> HookState + Send>;

/// Ends a run before its input does.
#[derive(Clone)]
pub struct Stopper(Arc<RunShared>, Option<Arc<PeerProcesses>>);

impl Running {
    /// A handle that ends the run before its input does.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared), self.peers.clone())
    }

    /// Waits for the end of the run. After a stop or a failure it does not wait for a reader that is blocked
    /// on its input: that reader ends with its next record, or with the process.
    ///
    /// # Errors
    /// The first failure.
    pub fn join(self) -> Result<Summary, RunError> {
        let Self {
            stages,
            shared,
            workers,
            threads,
            committer,
            peers,
            demands,
            publication,
            deliveries,
            helpers: _,
        } = self;
        if let Err(error) = workers.join() {
            shared.failure.fail(RunError::Worker(error));
        }
        // The workers have answered or refused all open queries.
        stages.observers.queries.close();
        let latencies = committer.and_then(|thread| thread.join().ok()).unwrap_or_default();
        if let Some(end) = deliveries {
            let HookState { delivered, refused, undelivered, .. } = end();
            tracing::info!(delivered, refused, undelivered, "the web hook has ended");
        }
        let mut measures = Measures::collect(&stages, &shared.bad, latencies);
        if let Some(peers) = &peers
            && !shared.failure.has_failed()
        {
            let theirs = peers.finish(&measures).unwrap_or_default();
            theirs.iter().for_each(|theirs| measures += theirs);
        }
        let outcome = shared.failure.outcome();
        if let Some(peers) = &peers {
            peers.end();
        }
        outcome?;
        // Process 0 has the counts of all processes.
        let unmet = if shared.process.0 == 0 {
            demands.unmet(&measures, stages.observers.origins.as_deref())
        } else {
            Vec::new()
        };
        if unmet.is_empty()
            && let Some(publication) = &publication
        {
            match publication.publish() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                published => published.map_err(RunError::Sink)?,
            }
        }
        Ok(Summary { unmet, ..Summary::new(&measures, &stages, threads, shared.clock.now()) })
    }
}

impl Running {
    /// As [`Self::join`], and waits for the readers too: for sources whose readers never wait for an input
    /// after the end of the run.
    ///
    /// # Errors
    /// The first failure.
    pub fn join_all(mut self) -> Result<Summary, RunError> {
        let helpers = std::mem::take(&mut self.helpers);
        let ended = self.join();
        // A panic has failed the run.
        helpers.into_iter().for_each(|helper| drop(helper.join()));
        ended
    }
}

impl Stopper {
    /// Stops reading. Open epochs are finished and written, the last one with the records read so far. Then
    /// the run ends as at the end of its input.
    pub fn stop(&self) {
        self.0.status.enter(Phase::Stopping);
        self.0.queue.stop();
        if let Some(peers) = &self.1 {
            peers.stop();
        }
    }

    /// Ends the run as a failure does: open epochs do not close, and closed ones that wait are not written.
    /// [`Running::join`] returns [`RunError::Abandoned`], unless the run has failed before.
    pub fn abandon(&self) {
        self.0.failure.fail(RunError::Abandoned);
    }

    /// Whether the run has failed or was abandoned.
    pub fn has_failed(&self) -> bool {
        self.0.failure.has_failed()
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}
