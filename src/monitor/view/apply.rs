//! The thread of the view: applies the changes of the output, one after another.

use std::sync::atomic::Ordering;

use super::feed::ViewChange;
use super::history::{EndedPair, HistoryChanges, ViewWork};
use super::pairs::Since;
use super::{DeltaPiece, View, ViewState, ViewTotals};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, EpochSeconds, EpochTimes, unix_seconds};

impl View {
    /// Applies changes until the feeder is dropped; then stores what is left of the history.
    pub(super) fn apply_all(&self, mut work: ViewWork) {
        let apply = std::panic::AssertUnwindSafe(|| {
            while let Some(change) = self.feed.next() {
                self.apply(change, &mut work);
                self.feed.done();
            }
            self.finish_history(&mut work);
        });
        if std::panic::catch_unwind(apply).is_err() {
            self.broken.store(true, Ordering::Relaxed);
            tracing::error!("the view has failed: pairs and clusters are not told any more; the run goes on");
        }
        self.feed.give_up();
    }

    /// Applies one change.
    fn apply(&self, change: ViewChange, work: &mut ViewWork) {
        let gate = self.gate.blocking_write();
        match change {
            ViewChange::Begins { epoch } => self.apply_begin(epoch),
            ViewChange::Restored(deltas) => {
                let past = self.past.load(Ordering::Relaxed);
                self.advance(past, EpochSeconds::NONE, &deltas, work);
                self.apply_restored(&deltas, work.since_before(past));
            }
            ViewChange::Committed { epoch, times, deltas } => {
                self.settle(work);
                // A commit of side outputs alone has the number of the last epoch, and changes no pair.
                if epoch > self.epoch() || !deltas.is_empty() {
                    self.apply_committed(epoch, times, &deltas, work);
                }
            }
            ViewChange::Live { epoch } => {
                self.settle(work);
                self.apply_live(epoch);
            }
        }
        self.add_up();
        drop(gate);
        self.store_history(work);
    }

    /// Applies a durable epoch.
    fn apply_committed(&self, epoch: Epoch, times: EpochTimes, deltas: &[Delta], work: &mut ViewWork) {
        let mut changes = work.changes();
        self.void_deltas(epoch, &mut changes);
        let reports = self.advance(epoch, times.into(), deltas, work);
        self.apply_epoch(epoch, times, deltas, &mut changes);
        changes.clusters(&reports, &self.clusters.lock());
        self.keep_history(epoch, changes, work);
    }

    /// Updates the totals.
    pub(super) fn add_up(&self) {
        let (clusters, giants) = self.clusters(|history| (history.len(), history.giants()));
        let state = self.state.lock();
        let (epoch, pairs, by_similarity) = (state.epoch, state.pairs.len(), state.pairs.by_similarity());
        drop(state);
        *self.sums.lock() = ViewTotals { epoch, pairs, by_similarity, clusters, giants };
    }

    /// Sets the output's last epoch before the run.
    pub(crate) fn apply_begin(&self, epoch: Epoch) {
        self.past.store(epoch, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.epoch = epoch;
        state.ring.begin_after(epoch);
    }

    /// Applies deltas that the output held before the run.
    pub(crate) fn apply_restored(&self, deltas: &[Delta], since: Since) {
        for piece in deltas.chunks(self.piece).filter(|_| self.contents.are_pairs()) {
            let mut state = self.state.lock();
            for delta in piece {
                state.pairs.apply(delta, since);
            }
        }
    }

    /// The run is live; `epoch` is the output's last epoch.
    pub(crate) fn apply_live(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        state.epoch = state.epoch.max(epoch);
        drop(state);
        self.is_filled.store(true, Ordering::Release);
    }

    /// Advances the clusters; returns the changes of their reports.
    pub(super) fn advance(
        &self,
        epoch: Epoch,
        times: EpochSeconds,
        deltas: &[Delta],
        work: &mut ViewWork,
    ) -> Vec<(ClusterReport, isize)> {
        if !self.contents.are_pairs() || deltas.is_empty() {
            return Vec::new();
        }
        let reports = work.clusters.advance(deltas);
        self.clusters.lock().advance(epoch, times, &reports);
        reports
    }

    /// Drops all deltas before an epoch with a number that the output had already: corrections may have that
    /// of its last epoch, and an id does not say whether its reader has them.
    fn void_deltas(&self, epoch: Epoch, changes: &mut HistoryChanges) {
        let mut state = self.state.lock();
        if epoch > state.epoch {
            return;
        }
        state.ring.clear().iter().for_each(|dropped| changes.end_piece(dropped));
        state.ring.begin_after(epoch.saturating_sub(1));
        drop(state);
        let mut history = self.history.lock();
        history.meta.runs = vec![self.run.to_string()];
        changes.meta(&history.meta);
    }

    /// Applies an epoch in pieces of at most `piece` deltas, each with its rendered frame.
    pub(crate) fn apply_epoch(
        &self,
        epoch: Epoch,
        times: EpochTimes,
        deltas: &[Delta],
        changes: &mut HistoryChanges,
    ) {
        let committed = if times.committed > 0.0 { times.committed } else { unix_seconds() };
        let times = EpochTimes { committed, ..times };
        let since = Since::exactly(epoch, times.into());
        for piece in DeltaPiece::of_epoch(self.frame_rules(), epoch, times, deltas, self.piece) {
            let mut state = self.state.lock();
            for delta in piece.deltas.iter().filter(|_| self.contents.are_pairs()) {
                state.apply(delta, since, changes);
            }
            state.is_within = !piece.is_last;
            if piece.is_last {
                state.epoch = epoch;
            }
            changes.piece(&piece);
            state.ring.push(piece).iter().for_each(|dropped| changes.end_piece(dropped));
            let end = state.ring.end();
            drop(state);
            self.applied.send_replace(end.piece);
        }
    }
}

impl ViewState {
    /// Applies a delta of the epoch of `since`, and records it.
    pub(super) fn apply(&mut self, delta: &Delta, since: Since, changes: &mut HistoryChanges) {
        let pair = &delta.pair.pair;
        let was = self.pairs.apply(delta, since);
        if delta.diff > 0 {
            let was_ended = self.ended.remove(pair);
            changes.pair(pair, delta.pair.similarity, since, delta.cause, was_ended);
        } else if let Some(was) = was {
            let ended = EndedPair { was, ended: since, cause: delta.cause };
            changes.end_pair(pair, &ended);
            self.ended.put(pair.clone(), ended).iter().for_each(|beyond| changes.forget_pair(beyond));
        }
    }
}
