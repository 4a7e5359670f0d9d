//! Derives decisions from the changes of documents, the upserts and the deltas of each epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::memberships::Memberships;
use super::record::{Decision, DecisionMode, LastDecisions, Repetition};
use crate::mark::Mark;
use dupflow_core::cluster::{Age, Clusters};
use dupflow_core::doc::{DocChange, DocId, Facts, Position, UpsertedDoc};
use dupflow_core::hash;
use dupflow_core::pair::{Delta, Similarity};
use dupflow_core::run::metrics::{Counter, Metrics};

/// The corpus as decisions need it: the live documents, their pairs and their clusters.
///
/// The calls are those of [`Sink`](crate::sinks::Sink), in its order. Memory: about 100 bytes for each live
/// document, and for each pair about 100 at each of its documents.
#[derive(Debug)]
pub(crate) struct DecisionBook {
    mode: DecisionMode,
    clusters: Clusters,
    metrics: Arc<Metrics>,
    alive: BTreeMap<DocId, Facts>,
    neighbours: BTreeMap<DocId, BTreeMap<DocId, Similarity>>,
    memberships: Memberships,
    /// What the open epoch does to documents.
    open: OpenDocuments,
    /// Under [`DecisionMode::Current`], a hash of the content of each document's last record, except of
    /// documents without pairs.
    written: BTreeMap<DocId, ContentHash>,
    /// Present while an output is corrected: its records.
    correcting: Option<LastDecisions>,
    is_live: bool,
}

/// What an epoch does to documents, before its deltas.
#[derive(Debug, Default)]
struct OpenDocuments {
    upserts: Vec<UpsertedDoc>,
    /// Documents that are not alive any more.
    ended: Vec<DocId>,
    /// Documents in no cluster, or in a giant, whose facts have changed.
    changed: Vec<DocId>,
}

/// 128 bits of the content of a record.
type ContentHash = [u64; 2];

impl DecisionBook {
    /// `clusters` must be empty.
    pub(crate) fn new(mode: DecisionMode, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self {
            mode,
            clusters,
            metrics,
            alive: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            memberships: Memberships::default(),
            open: OpenDocuments::default(),
            written: BTreeMap::new(),
            correcting: None,
            is_live: false,
        }
    }

    pub(crate) fn mode(&self) -> DecisionMode {
        self.mode
    }

    /// Begins a correction of an output that holds these records. [`Self::advance`] returns nothing until
    /// [`Self::corrections`] has.
    pub(crate) fn correct(&mut self, written: LastDecisions) {
        self.correcting = Some(written);
    }

    /// Applies an epoch's changes of documents.
    pub(crate) fn documents(&mut self, changes: &[DocChange]) {
        for DocChange { id, now, .. } in changes {
            let Some(facts) = now else {
                self.alive.remove(id);
                self.open.ended.extend(Some(id.clone()).filter(|_| self.is_live));
                continue;
            };
            self.alive.insert(id.clone(), *facts);
            if !self.memberships.set_age(id, Age::new(*facts)) {
                self.open.changed.extend(Some(id.clone()).filter(|_| self.is_live));
            }
        }
    }

    /// Receives the upserts of an epoch.
    pub(crate) fn upserts(&mut self, upserts: &[UpsertedDoc]) {
        self.open.upserts.extend_from_slice(upserts);
    }

    /// Applies deltas that the output already holds.
    pub(crate) fn restored(&mut self, deltas: &[Delta]) {
        self.apply(deltas);
        self.settle();
    }

    /// The run is live: the output holds, or has just been corrected to, what the corpus gives.
    pub(crate) fn live(&mut self) {
        self.correcting = None;
        self.settle();
        if self.mode == DecisionMode::Current {
            let paired: Vec<DocId> = self.neighbours.keys().cloned().collect();
            self.written =
                paired.into_iter().map(|id| (id.clone(), content(&self.repetition(&id)))).collect();
        }
        self.is_live = true;
    }

    /// Applies the deltas of one epoch. Returns the records to write, sorted by id.
    pub(crate) fn advance(&mut self, deltas: &[Delta]) -> Vec<Decision> {
        let moved = self.apply(deltas);
        if self.correcting.is_some() {
            self.settle();
            return Vec::new();
        }
        let mut decisions = BTreeMap::new();
        for UpsertedDoc { id, position } in std::mem::take(&mut self.open.upserts) {
            let decision = self.decision(&id, Some(position));
            self.count(&decision);
            decisions.insert(id, decision);
        }
        if self.mode == DecisionMode::Current {
            self.add_changed(moved, deltas, &mut decisions);
        }
        self.settle();
        decisions.into_values().collect()
    }

    /// Further records to write with this commit, sorted by id: the correction of the output, once `mark`
    /// says that all pairs have been passed.
    pub(crate) fn corrections(&mut self, mark: &Mark) -> Vec<Decision> {
        if mark.in_correction {
            return Vec::new();
        }
        let Some(LastDecisions(mut written)) = self.correcting.take() else { return Vec::new() };
        let mut corrections = Vec::new();
        let alive: Vec<_> = self.alive.iter().map(|(id, facts)| (id.clone(), facts.position)).collect();
        for (id, position) in alive {
            let last = written.remove(&id);
            let is_decided = last.as_ref().is_some_and(|last| last.position == Some(position));
            if is_decided && self.mode == DecisionMode::First {
                continue;
            }
            let decision = self.decision(&id, Some(position));
            corrections.extend(Some(decision).filter(|decision| last.as_ref() != Some(decision)));
        }
        if self.mode == DecisionMode::Current {
            let gone = written.into_values().filter(|last| last.repetition.is_some());
            corrections.extend(gone.map(|last| Decision { position: None, repetition: None, ..last }));
            corrections.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        }
        self.metrics.add(Counter::DecisionsChanged, corrections.len() as u64);
        corrections
    }

    /// Applies deltas to the pairs and clusters. Returns the documents that have moved between clusters.
    fn apply(&mut self, deltas: &[Delta]) -> Vec<DocId> {
        for Delta { pair, diff, .. } in deltas {
            let (lo, hi, of_both) = (pair.pair.lo(), pair.pair.hi(), pair.similarity);
            for (from, to, similarity) in [(lo, hi, of_both), (hi, lo, of_both.flipped())] {
                if *diff > 0 {
                    let others = self.neighbours.entry(from.clone()).or_default();
                    others.insert(to.clone(), similarity);
                } else if let Some(others) = self.neighbours.get_mut(from) {
                    others.remove(to);
                    if others.is_empty() {
                        self.neighbours.remove(from);
                    }
                }
            }
        }
        let reports = self.clusters.advance(deltas);
        let Self { memberships, alive, .. } = self;
        // Every document in a pair is alive.
        let age = |id: &DocId| Age::new(alive.get(id).copied().unwrap_or(UNKNOWN));
        memberships.apply(&reports, age);
        let members = reports.into_iter().filter(|(report, _)| !report.subject().0);
        members.map(|(report, _)| report.subject().1.clone()).collect()
    }

    /// Adds the records of documents without an upsert in the epoch whose content has changed, and of those
    /// that have ended.
    fn add_changed(
        &mut self,
        moved: Vec<DocId>,
        deltas: &[Delta],
        decisions: &mut BTreeMap<DocId, Decision>,
    ) {
        let mut changed = self.memberships.changed();
        for id in moved {
            // A document that no star has taken has no report of its own when its component becomes a giant.
            let others = self.neighbours.get(&id).into_iter().flat_map(BTreeMap::keys);
            changed.extend(others.filter(|other| self.memberships.cluster(other).is_none()).cloned());
            changed.insert(id);
        }
        let ends = deltas.iter().flat_map(|delta| [delta.pair.pair.lo(), delta.pair.pair.hi()]);
        changed.extend(ends.cloned());
        for id in &self.open.changed {
            // In a giant the age of a document decides only for the documents that it is in a pair with.
            changed.extend(self.neighbours.get(id).into_iter().flat_map(BTreeMap::keys).cloned());
        }
        for decision in decisions.values() {
            remember(&mut self.written, decision);
        }
        let mut more = 0;
        for id in changed {
            let Some(Facts { position, .. }) = self.alive.get(&id).copied() else { continue };
            if decisions.contains_key(&id) {
                continue;
            }
            let decision = self.decision(&id, Some(position));
            if remember(&mut self.written, &decision) {
                more += 1;
                decisions.insert(id, decision);
            }
        }
        for id in std::mem::take(&mut self.open.ended) {
            self.written.remove(&id);
            decisions.entry(id.clone()).or_insert_with(|| {
                more += 1;
                Decision { id, position: None, repetition: None }
            });
        }
        self.metrics.add(Counter::DecisionsChanged, more);
    }

    /// Ends the epoch.
    fn settle(&mut self) {
        self.open = OpenDocuments::default();
        self.memberships.settle();
    }

    /// The decision of a document at this moment.
    fn decision(&mut self, id: &DocId, position: Option<Position>) -> Decision {
        let repetition = self.alive.contains_key(id).then(|| self.repetition(id));
        Decision { id: id.clone(), position, repetition }
    }

    /// What a live document repeats.
    fn repetition(&mut self, id: &DocId) -> Repetition {
        let Some(others) = self.neighbours.get(id) else { return Repetition::default() };
        let mut repeats: Vec<_> = others.iter().map(|(other, similarity)| (*similarity, other)).collect();
        repeats.sort_by(|(s, a), (t, b)| t.cmp(s).then_with(|| a.cmp(b)));
        repeats.truncate(Repetition::MOST);
        let repeats = repeats.into_iter().map(|(similarity, other)| (other.clone(), similarity)).collect();
        let pairs = others.len();
        if let Some((cluster, oldest)) = self.memberships.cluster(id) {
            let (cluster, of) = (Some(cluster.clone()), Some(oldest.clone()));
            return Repetition { of, cluster, is_giant: false, repeats, pairs };
        }
        let is_giant = self.clusters.is_in_giant(id);
        let age = |near: &DocId| Age::new(self.alive.get(near).copied().unwrap_or(UNKNOWN));
        let near = std::iter::once(id).chain(others.keys());
        let oldest = near.min_by_key(|near| (age(near), *near));
        Repetition { of: oldest.cloned().filter(|_| is_giant), cluster: None, is_giant, repeats, pairs }
    }

    /// Counts the decision of an upsert.
    fn count(&self, decision: &Decision) {
        self.metrics.add(Counter::Decisions, 1);
        match &decision.repetition {
            None => self.metrics.add(Counter::DecidedEnded, 1),
            Some(repetition) if repetition.pairs == 0 => self.metrics.add(Counter::DecidedUnique, 1),
            Some(_) => self.metrics.add(Counter::DecidedCopies, u64::from(decision.is_copy())),
        }
    }
}

/// The facts of a document that is not known.
const UNKNOWN: Facts = Facts { ts: None, bytes: 0, position: Position { partition: 0, offset: 0 } };

/// Stores the content of a record as the last one of its document. Returns whether it has changed.
fn remember(written: &mut BTreeMap<DocId, ContentHash>, decision: &Decision) -> bool {
    match decision.repetition.as_ref().filter(|repetition| **repetition != Repetition::default()) {
        Some(repetition) => {
            let now = content(repetition);
            written.insert(decision.id.clone(), now) != Some(now)
        }
        None => written.remove(&decision.id).is_some(),
    }
}

/// A hash of the content of a record.
fn content(repetition: &Repetition) -> ContentHash {
    let mut bytes = Vec::new();
    repetition.write(&mut bytes).expect("memory takes every byte");
    [hash::bytes(0, &bytes), hash::bytes(1, &bytes)]
}
