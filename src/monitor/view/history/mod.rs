//! The stored history of a view: since when pairs and clusters are, what became of those that ended, and the
//! last deltas, so that a restart continues with them.
//!
//! ```text
//!  epoch ──▶ view ── HistoryChanges ──▶ HistoryStore ── after the commit ──▶ segments of the state
//!  start ──▶ pairs of the output ◀── settle ── records, at or behind the output
//! ```
//!
//! The history is a report of the past and no input of anything: what is live is what the output holds, and
//! the records only say since when. [`View::settle`] compares the two once, before the first live epoch:
//!
//! - A record of a live pair with its similarity is that pair's past.
//! - What differs happened in epochs that the output holds and the history does not: the program was killed
//!   between a commit and the publish of its history, or ran without one. The difference is applied as one
//!   epoch, the last one of the output. Its causes are `correction`, its pairs are known to be there *by* it,
//!   and the gap is on record.
//! - Without any record the history begins there.
//!
//! Runs that lead to the present one are on record too: an id of an event names a run and an epoch.
//!
//! So the deltas that are held lead to what the output holds, with or without a gap.

mod ended;
mod records;
mod settle;

#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::View;
use super::pairs::Since;
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::{Epoch, EpochSeconds, unix_seconds};

pub(crate) use ended::{EndedPair, EndedPairs};
pub(crate) use records::HistoryChanges;

/// Receives a record: its key and its value.
pub type EachRecord<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), String> + 'a;

/// Stores the history between runs: opaque records with a key and a value.
pub trait HistoryStore: Send {
    /// Passes every record of the newest publish at or before epoch `at_most` to `each`, and returns its
    /// epoch; `None` if there is none. The next publish extends it.
    ///
    /// # Errors
    /// If it cannot be read, or `each` fails.
    fn read(&mut self, at_most: Epoch, each: &mut EachRecord<'_>) -> Result<Option<Epoch>, String>;

    /// Takes the changes of one epoch. They are published together or not at all, at once or later. It may
    /// wait; pages can be read meanwhile.
    ///
    /// # Errors
    /// If nothing can be stored any more.
    fn keep(&mut self, epoch: Epoch, changes: Changes) -> Result<(), String>;

    /// Publishes what has been taken, and waits for it.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn finish(&mut self) -> Result<(), String>;
}

/// Where the history is stored, and for how long.
pub struct KeptHistory {
    /// The store.
    pub store: Box<dyn HistoryStore>,
    /// How long ended pairs and clusters and the deltas are kept, from their commits. Records of live pairs
    /// and clusters are kept while these live.
    pub age: Duration,
}

impl std::fmt::Debug for KeptHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptHistory").field("age", &self.age).finish_non_exhaustive()
    }
}

/// Runs whose ids of events are known, at most.
const RUNS: usize = 1000;

/// What is known of the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryInfo {
    pub(crate) meta: HistoryMeta,
    /// How long it is kept; `None` if it is in memory only.
    pub(crate) age: Option<Duration>,
    /// Why it is not stored any more.
    pub(crate) failure: Option<String>,
}

/// Where the history begins, and its gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HistoryMeta {
    /// Earlier changes than those of the next epoch are not known.
    pub(crate) begins: Epoch,
    /// In unix seconds.
    pub(crate) begins_at: f64,
    /// In ascending order.
    pub(crate) gaps: Vec<HistoryGap>,
    /// The last [`RUNS`] runs whose epochs lead to the present ones: their ids of events are known.
    pub(crate) runs: Vec<String>,
}

/// Epochs that the output holds and the history does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct HistoryGap {
    /// The last epoch before the gap.
    pub(crate) after: u64,
    /// The last epoch of the gap.
    pub(crate) through: u64,
    /// When the gap was found, in unix seconds.
    pub(crate) found_at: f64,
}

/// What only the thread of the view uses.
#[derive(Debug)]
pub(super) struct ViewWork {
    pub(super) clusters: Clusters,
    kept: Option<KeptHistory>,
    is_settled: bool,
    /// Changes that the store does not have yet.
    unstored: Vec<(Epoch, Changes)>,
}

impl ViewWork {
    pub(super) fn new(clusters: Clusters, kept: Option<KeptHistory>) -> Self {
        Self { clusters, kept, is_settled: false, unstored: Vec::new() }
    }

    /// Since when a pair is that the output held before the run, at this epoch.
    pub(super) fn since_before(&self, past: Epoch) -> Since {
        if self.kept.is_some() { Since::unread() } else { Since::by(past) }
    }

    /// The changes of an epoch, before the first one.
    pub(super) fn changes(&self) -> HistoryChanges {
        HistoryChanges::new(self.kept.is_some())
    }
}

impl View {
    /// Drops what is too old, and collects the changes of an epoch for [`Self::store_history`].
    pub(super) fn keep_history(&self, epoch: Epoch, mut changes: HistoryChanges, work: &mut ViewWork) {
        let age = work.kept.as_ref().map(|kept| kept.age.as_secs_f64());
        let before = age.map_or(0.0, |age| (unix_seconds() - age).max(0.0));
        self.drop_history(before, &mut changes);
        work.unstored.extend(changes.into_changes().map(|changes| (epoch, changes)));
    }

    /// Hands the collected changes to the store, which may wait.
    pub(super) fn store_history(&self, work: &mut ViewWork) {
        for (epoch, changes) in std::mem::take(&mut work.unstored) {
            let Some(kept) = &mut work.kept else { return };
            if let Err(why) = kept.store.keep(epoch, changes) {
                self.fail_history(why, work);
            }
        }
    }

    /// Drops what ended before this time, in unix seconds.
    fn drop_history(&self, before: f64, changes: &mut HistoryChanges) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time after 1970")]
        let seconds = before as u64;
        let clusters = self.clusters.lock().drop_ended(seconds);
        clusters.iter().for_each(|name| changes.forget_cluster(name));
        let mut state = self.state.lock();
        let ended = state.ended.drop_before(seconds, |end| end.ended.times);
        ended.iter().for_each(|pair| changes.forget_pair(pair));
        state.ring.drop_before(before).iter().for_each(|piece| changes.end_piece(piece));
        drop(state);
        let mut info = self.history.lock();
        if info.meta.gaps.first().is_some_and(|gap| gap.found_at < before) {
            info.meta.gaps.retain(|gap| gap.found_at >= before);
            changes.meta(&info.meta);
        }
    }

    /// Stores what is left, at the end.
    pub(super) fn finish_history(&self, work: &mut ViewWork) {
        let finished = work.kept.as_mut().map_or(Ok(()), |kept| kept.store.finish());
        if let Err(why) = finished {
            self.fail_history(why, work);
        }
    }

    /// The history is not stored from now on.
    fn fail_history(&self, why: String, work: &mut ViewWork) {
        tracing::error!(why, "the history is not stored any more; the run goes on");
        self.history.lock().failure = Some(why);
        work.kept = None;
    }
}

/// The time of day in unix seconds, and the same as the time of a commit.
fn now() -> (f64, EpochSeconds) {
    let now = unix_seconds();
    (now, dupflow_core::time::EpochTimes { event: None, committed: now }.into())
}
