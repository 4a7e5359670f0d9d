//! A run in progress, from its start to its end, and the handle that stops it.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::process_group::PeerProcesses;
use super::threads::Written;
use super::worker::RunShared;
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::{Demands, EndCounts, EndOutput, Measures, ResumedAt, Summary, WatchCounts};
use dupflow_connectors::watch::{NoticeBoard, WatchList};
use dupflow_engine::dataflow::{Stages, Workers};
use dupflow_run::status::Phase;
use dupflow_run::watch::{HookState, WatchBook};

/// A run in progress.
#[must_use = "a run is waited for when it is joined"]
pub struct Running {
    pub(super) stages: Stages,
    pub(super) shared: Arc<RunShared>,
    pub(super) workers: Workers,
    pub(super) threads: usize,
    /// Returns how long epochs took, and which outputs are behind; `None` if the committer could not start
    /// or is in another process.
    pub(super) committer: Option<JoinHandle<Written>>,
    pub(super) peers: Option<Arc<PeerProcesses>>,
    pub(super) demands: Demands,
    /// What is written once the run has ended, each with the name of its output, if there are several.
    pub(super) ends: Vec<(Option<String>, EndOutput)>,
    /// Where a replay continues, if an earlier process began it.
    pub(super) resumed: Option<ResumedAt>,
    /// The readers, and the threads that wake the queue.
    pub(super) helpers: Vec<JoinHandle<()>>,
    /// The watch list, if there is one.
    pub(super) list: Option<Arc<WatchList>>,
    /// What the web hook delivers, if there is one.
    pub(super) deliveries: Option<Arc<NoticeBoard>>,
}

/// Ends a run before its input does.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<RunShared>,
    peers: Option<Arc<PeerProcesses>>,
    deliveries: Option<Arc<NoticeBoard>>,
}

impl Running {
    /// A handle that ends the run before its input does.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: Arc::clone(&self.shared),
            peers: self.peers.clone(),
            deliveries: self.deliveries.clone(),
        }
    }

    /// Waits for the end of the run. After a stop or a failure it does not wait for a reader that is blocked
    /// on its input: that reader ends with its next record, or with the process.
    ///
    /// # Errors
    /// The first failure.
    pub fn join(self) -> Result<Summary, RunError> {
        let (deliveries, list) = (self.deliveries.clone(), self.list.clone());
        let result = self.finish();
        // Last of all: the other processes and the output do not wait for the receiver.
        if let Some(board) = deliveries {
            let HookState { delivered, refused, undelivered, failure, .. } = board.end_deliveries();
            if refused + undelivered > 0 || failure.is_some() {
                let why = failure.unwrap_or_default();
                tracing::warn!(
                    delivered,
                    refused,
                    undelivered,
                    why,
                    "the web hook has not delivered all notices; the next run goes on there"
                );
            } else {
                tracing::info!(delivered, "the web hook has delivered all notices");
            }
        }
        let watches = list.map(|list| WatchCounts::from(list.state()));
        result.map(|summary| Summary { watches, ..summary })
    }

    /// Everything but the deliveries of the web hook.
    fn finish(self) -> Result<Summary, RunError> {
        let Self { stages, shared, workers, threads, committer, peers, demands, ends, resumed, .. } = self;
        if let Err(error) = workers.join() {
            shared.failure.fail(error.into());
        }
        // The workers have answered or refused all open queries.
        stages.observers.queries.close();
        let Written { latencies, behind } =
            committer.and_then(|thread| thread.join().ok()).unwrap_or_default();

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
        let unmet = if shared.process.index == 0 {
            demands.warn(&measures);
            let unmet = demands.unmet(&measures, stages.observers.origins.as_deref());
            unmet.into_iter().chain(ends.iter().filter_map(|(_, end)| end.unmet())).collect()
        } else {
            Vec::new()
        };
        let write = |(name, end): (Option<String>, EndOutput)| {
            end.write(&stages, threads, name.is_none()).map_err(|error| match name {
                None => RunError::Sink(error),
                Some(name) => RunError::Output { name, error: Box::new(RunError::Sink(error)) },
            })
        };
        // One that fails leaves the others whole.
        let names: Vec<_> = ends.iter().map(|(name, _)| name.clone()).collect();
        let written: Vec<_> = ends.into_iter().filter(|_| unmet.is_empty()).map(write).collect();
        say_which_are_whole(&names, &written);
        let written = written.into_iter().collect::<Result<Vec<_>, _>>()?;
        let EndCounts { rejected, copied, items, listed } =
            written.into_iter().reduce(EndCounts::or).unwrap_or_default();
        Ok(Summary {
            // What is written at the end is whole without them.
            unmet: unmet.into_iter().chain(behind).collect(),
            resumed,
            rejected,
            copied,
            items,
            listed,
            ..Summary::new(&measures, &stages, threads, shared.clock.now())
        })
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
        self.shared.status.enter(Phase::Stopping);
        self.shared.queue.stop();
        if let Some(peers) = &self.peers {
            peers.stop();
        }
        if let Some(board) = &self.deliveries {
            board.stop_deliveries();
        }
    }

    /// Ends the run as a failure does: open epochs do not close, and closed ones that wait are not written.
    /// [`Running::join`] returns [`RunError::Abandoned`], unless the run has failed before.
    pub fn abandon(&self) {
        self.shared.failure.fail(RunError::Abandoned);
    }

    /// Whether the run has failed or was abandoned.
    pub fn has_failed(&self) -> bool {
        self.shared.failure.has_failed()
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

/// Says which outputs have the result and which have not, if only some have it.
fn say_which_are_whole(names: &[Option<String>], written: &[Result<EndCounts, RunError>]) {
    let those = |whole: bool| {
        let of = names.iter().zip(written).filter(|(_, written)| written.is_ok() == whole);
        of.map(|(name, _)| name.as_deref().unwrap_or("the first output")).collect::<Vec<_>>().join(", ")
    };
    let (whole, failed) = (those(true), those(false));
    if !whole.is_empty() && !failed.is_empty() {
        tracing::warn!(%whole, %failed, "some outputs have the result, others have not");
    }
}
