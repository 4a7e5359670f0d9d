//! Compares the stored history with what the output holds, once, before the first live epoch of a run.

use std::sync::atomic::Ordering;

use super::records::{HistoryRecord, decode};
use super::{EndedPair, HistoryChanges, HistoryGap, HistoryMeta, RUNS, ViewWork, now};
use crate::cluster_history::{ClusterRecord, EndedCluster};
use crate::view::pairs::{PairDetails, Since};
use crate::view::{DeltaPiece, KnownPair, View};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair};
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::{Epoch, EpochSeconds, EpochTimes};

/// The records of a stored history, except those of pairs that are live.
#[derive(Default)]
struct FoundHistory {
    /// Pairs that are not in the output any more, or with another similarity.
    gone: Vec<(Pair<DocId>, PairDetails)>,
    ended_pairs: Vec<(Pair<DocId>, EndedPair)>,
    clusters: Vec<(DocId, ClusterRecord)>,
    ended_clusters: Vec<(DocId, EndedCluster)>,
    pieces: Vec<DeltaPiece>,
    meta: Option<HistoryMeta>,
}

/// What the history lacks: the deltas that lead to the output, their epoch, and when that was found.
#[derive(Clone, Copy)]
struct FoundGap<'g> {
    net: &'g [Delta],
    past: Epoch,
    times: EpochSeconds,
}

impl View {
    /// Reads the history, if there is one, and adds what leads to the pairs of the output. Only the first
    /// call counts.
    pub(in crate::view) fn settle(&self, work: &mut ViewWork) {
        if std::mem::replace(&mut work.is_settled, true) {
            return;
        }
        let past = self.past.load(Ordering::Relaxed);
        let (begins_at, _) = now();
        let runs = vec![self.run.to_string()];
        self.history.lock().meta = HistoryMeta { begins: past, begins_at, gaps: Vec::new(), runs };
        let Some(kept) = &mut work.kept else { return };
        let mut found = FoundHistory::default();
        let read = kept.store.read(past, &mut |key, value| {
            let record = decode(&self.run, key, value);
            found
                .add(record.ok_or_else(|| format!("no record: {:?}", key.escape_ascii().to_string()))?, self);
            Ok(())
        });
        let mut changes = work.changes();
        match read {
            Err(why) => {
                self.state.lock().pairs.settle(past);
                // What is stored stays as it is.
                self.fail_history(why, work);
                return;
            }
            Ok(None) => self.begin_history(past, &mut changes),
            Ok(Some(through)) => self.continue_history(found, through, past, work, &mut changes),
        }
        self.keep_history(past, changes, work);
    }

    /// The history begins with what the output holds.
    fn begin_history(&self, past: Epoch, changes: &mut HistoryChanges) {
        for pair in self.state.lock().pairs.settle(past) {
            let (details, pair) = (pair.held, Pair::new(pair.a, pair.b).expect("two documents"));
            changes.pair(&pair, details.similarity, details.age(), details.cause, false);
        }
        let clusters = self.clusters.lock();
        clusters.names().for_each(|name| changes.cluster(name, &clusters));
        drop(clusters);
        changes.meta(&self.history.lock().meta);
        tracing::info!(epoch = past, "no history is stored: it begins here");
    }

    /// Goes on with a history that is stored up to `through`, where the output is at `past`.
    fn continue_history(
        &self,
        found: FoundHistory,
        through: Epoch,
        past: Epoch,
        work: &mut ViewWork,
        changes: &mut HistoryChanges,
    ) {
        let mut state = self.state.lock();
        let net = net_deltas(state.pairs.settle(past), &found.gone);
        let mut ended_pairs = found.ended_pairs;
        ended_pairs.sort_unstable_by(|(a, x), (b, y)| (x.ended.epoch, a).cmp(&(y.ended.epoch, b)));
        for (pair, ended) in ended_pairs {
            state.ended.put(pair, ended).iter().for_each(|beyond| changes.forget_pair(beyond));
        }
        drop(state);
        let (found_at, found_times) = now();
        let mut meta = found.meta.unwrap_or_else(|| self.history.lock().meta.clone());
        let gap = FoundGap { net: &net, past, times: found_times };
        self.continue_clusters(found.clusters, found.ended_clusters, gap, work, changes);
        let is_whole = through == past && net.is_empty();
        if !is_whole {
            self.apply_gap(gap, &found.gone, changes);
            meta.gaps.push(HistoryGap { after: through, through: past, found_at });
            tracing::warn!(
                after = through,
                through = past,
                deltas = net.len(),
                "the history lacks these epochs: the difference is noted as one epoch"
            );
        }
        if through == past && !is_whole {
            // An id of the last epoch does not say whether its reader has the difference.
            meta.runs.clear();
        }
        let beyond = (meta.runs.len() + 1).saturating_sub(RUNS);
        meta.runs.drain(..beyond);
        meta.runs.push(self.run.to_string());
        changes.meta(&meta);
        self.history.lock().meta = meta;
        self.continue_deltas(found.pieces, &net, through, past, changes);
    }

    /// Restores the clusters as of the history, then applies what differs.
    fn continue_clusters(
        &self,
        found: Vec<(DocId, ClusterRecord)>,
        ended: Vec<(DocId, EndedCluster)>,
        FoundGap { net, past, times }: FoundGap<'_>,
        work: &mut ViewWork,
        changes: &mut HistoryChanges,
    ) {
        let mut back: Vec<Delta> =
            net.iter().map(|delta| Delta { diff: -delta.diff, ..delta.clone() }).collect();
        back.sort_unstable_by(|a, b| (&a.pair.pair, a.diff).cmp(&(&b.pair.pair, b.diff)));
        self.advance(past, EpochSeconds::NONE, &back, work);
        let mut history = self.clusters.lock();
        for (name, record) in found {
            if !history.restore(&name, record) {
                tracing::warn!(
                    cluster = name.as_str(),
                    "the history has a cluster that is not in the output"
                );
            }
        }
        ended.iter().filter(|(name, _)| history.cluster(name).is_some()).for_each(|(name, _)| {
            // It has been born again since.
            changes.forget_cluster(name);
        });
        history.restore_ended(ended);
        drop(history);
        let reports = self.advance(past, EpochSeconds::NONE, net, work);
        let mut clusters = self.clusters.lock();
        // What ended in a gap leaves by the age of the gap.
        clusters.date_ended(past, times);
        changes.clusters(&reports, &clusters);
    }

    /// Records pairs that have ended, and those that were added, by this epoch and this time.
    fn apply_gap(
        &self,
        FoundGap { net, past, times }: FoundGap<'_>,
        gone: &[(Pair<DocId>, PairDetails)],
        changes: &mut HistoryChanges,
    ) {
        let since = Since::by(past);
        let mut state = self.state.lock();
        for (pair, was) in gone {
            let ended = EndedPair { was: *was, ended: Since { times, ..since }, cause: Cause::Correction };
            changes.end_pair(pair, &ended);
            state.ended.put(pair.clone(), ended).iter().for_each(|beyond| changes.forget_pair(beyond));
        }
        for delta in net.iter().filter(|delta| delta.diff > 0) {
            let (pair, similarity) = (&delta.pair.pair, delta.pair.similarity);
            let was_ended = state.ended.remove(pair);
            let known = PairDetails::new(similarity, since, Cause::Correction);
            state.pairs.restore(pair.lo(), pair.hi(), known);
            changes.pair(pair, similarity, since, Cause::Correction, was_ended);
        }
    }

    /// Holds the stored deltas again, and after them those of a gap.
    fn continue_deltas(
        &self,
        mut pieces: Vec<DeltaPiece>,
        net: &[Delta],
        through: Epoch,
        past: Epoch,
        changes: &mut HistoryChanges,
    ) {
        pieces.sort_unstable_by_key(|piece| (piece.epoch, piece.index));
        if through == past && !net.is_empty() {
            pieces.drain(..).for_each(|piece| changes.end_piece(&piece));
        }
        let mut state = self.state.lock();
        let is_first = pieces.is_empty();
        if through < past {
            let (committed, _) = now();
            let times = EpochTimes { event: None, committed };
            let gap: Vec<_> =
                DeltaPiece::of_epoch(self.frame_rules(), past, times, net, self.piece).collect();
            gap.iter().for_each(|piece| changes.piece(piece));
            pieces.extend(gap);
        }
        // Before the first stored piece there may have been a gap.
        state.ring.begins_after = is_first.then_some(through);
        for piece in pieces {
            state.ring.push(piece).iter().for_each(|dropped| changes.end_piece(dropped));
        }
    }
}

impl FoundHistory {
    fn add(&mut self, record: HistoryRecord, view: &View) {
        match record {
            HistoryRecord::Pair(pair, known) => {
                if !view.state.lock().pairs.restore(pair.lo(), pair.hi(), known) {
                    self.gone.push((pair, known));
                }
            }
            HistoryRecord::EndedPair(pair, ended) => self.ended_pairs.push((pair, ended)),
            HistoryRecord::Cluster(name, record) => self.clusters.push((name, record)),
            HistoryRecord::EndedCluster(name, ended) => self.ended_clusters.push((name, ended)),
            HistoryRecord::Piece(piece) => self.pieces.push(piece),
            HistoryRecord::Meta(meta) => self.meta = Some(meta),
        }
    }
}

/// What leads from the pairs of the history to those of the output, sorted by pair.
fn net_deltas(new: Vec<KnownPair>, gone: &[(Pair<DocId>, PairDetails)]) -> Vec<Delta> {
    let as_row = |pair, similarity| DocPair { pair, similarity, evidence: Evidence::default() };
    let mut pairs = Reconcile::default();
    for KnownPair { a, b, held } in new {
        pairs.given(as_row(Pair::new(a, b).expect("two documents"), held.similarity), 1);
    }
    gone.iter().for_each(|(ends, was)| pairs.held(as_row(ends.clone(), was.similarity), 1));
    let net = pairs.changes(|a, b| a.pair.cmp(&b.pair)).into_iter();
    net.map(|(pair, diff)| Delta { pair, diff, cause: Cause::Correction }).collect()
}
