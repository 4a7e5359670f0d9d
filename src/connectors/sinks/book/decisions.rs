//! Derives decisions from the changes of documents, the upserts and the deltas of each epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::memberships::Memberships;
use super::record::{Decision, DecisionMode, LastDecisions, Repetition};
use crate::sinks::rows::cluster_json::ReportChange;
use dupflow_core::cluster::{Age, Clusters};
use dupflow_core::doc::{DocChange, DocId, Facts, Position, UpsertedDoc};
use dupflow_core::hash;
use dupflow_core::pair::Delta;
use dupflow_core::reconcile::Reconcile;
use dupflow_run::metrics::{Counter, Metrics};

/// The corpus as decisions need it beside its pairs: the live documents and their clusters. Memory: about 100
/// bytes for each live document.
#[derive(Debug)]
pub(super) struct Decisions {
    mode: DecisionMode,
    metrics: Arc<Metrics>,
    alive: BTreeMap<DocId, Facts>,
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

impl Decisions {
    pub(super) fn new(mode: DecisionMode, metrics: Arc<Metrics>) -> Self {
        Self {
            mode,
            metrics,
            alive: BTreeMap::new(),
            memberships: Memberships::default(),
            open: OpenDocuments::default(),
            written: BTreeMap::new(),
            correcting: None,
            is_live: false,
        }
    }

    pub(super) fn mode(&self) -> DecisionMode {
        self.mode
    }

    /// Begins a correction of an output that holds these records. [`Self::advance`] returns nothing until
    /// [`Self::corrections`] has.
    pub(super) fn correct(&mut self, written: LastDecisions) {
        self.correcting = Some(written);
    }

    /// Applies an epoch's changes of documents.
    pub(super) fn documents(&mut self, changes: &[DocChange]) {
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
        if !self.is_live {
            self.memberships.settle();
        }
    }

    /// Receives the upserts of an epoch.
    pub(super) fn upserts(&mut self, upserts: &[UpsertedDoc]) {
        self.open.upserts.extend_from_slice(upserts);
    }

    /// Applies changes of clusters that follow from what the output already holds.
    pub(super) fn restored(&mut self, reports: &[ReportChange]) {
        self.apply(reports);
        self.settle();
    }

    /// The run is live: the output holds, or has just been corrected to, what the corpus gives.
    pub(super) fn live(&mut self, pairs: &mut Clusters) {
        self.correcting = None;
        self.settle();
        if self.mode == DecisionMode::Current {
            let paired = pairs.documents().into_iter();
            self.written = paired
                .map(|id| {
                    let now = content(&self.repetition(&id, pairs));
                    (id, now)
                })
                .collect();
        }
        self.is_live = true;
    }

    /// Takes the deltas of one epoch, after which the pairs are `pairs`, and the changes of clusters that
    /// follow. Returns the records to write, sorted by id.
    pub(super) fn advance(
        &mut self,
        pairs: &mut Clusters,
        reports: &[ReportChange],
        deltas: &[Delta],
    ) -> Vec<Decision> {
        let moved = self.apply(reports);
        if self.correcting.is_some() {
            self.settle();
            return Vec::new();
        }
        let mut decisions = BTreeMap::new();
        for UpsertedDoc { id, position, .. } in std::mem::take(&mut self.open.upserts) {
            let decision = self.decision(&id, Some(position), pairs);
            self.count(&decision);
            decisions.insert(id, decision);
        }
        if self.mode == DecisionMode::Current {
            self.add_changed(moved, pairs, deltas, &mut decisions);
        }
        self.settle();
        decisions.into_values().collect()
    }

    /// The correction of the output, sorted by id; all pairs have been passed.
    pub(super) fn corrections(&mut self, pairs: &mut Clusters) -> Vec<Decision> {
        let Some(LastDecisions(mut written)) = self.correcting.take() else { return Vec::new() };
        let mut records = Reconcile::default();
        let alive: Vec<_> = self.alive.iter().map(|(id, facts)| (id.clone(), Some(facts.position))).collect();
        for (id, position) in alive {
            let last = written.remove(&id);
            if self.mode == DecisionMode::First && last.as_ref().is_some_and(|last| last.position == position)
            {
                continue;
            }
            records.given(self.decision(&id, position, pairs), 1);
            last.into_iter().for_each(|last| records.held(last, 1));
        }
        let ends = |last: &Decision| self.mode == DecisionMode::Current && last.repetition.is_some();
        written.into_values().filter(ends).for_each(|last| records.held(last, 1));
        let ended = |id| Decision { id, position: None, repetition: None };
        let corrections: Vec<_> = (records.rows(|record| record.id.clone()).into_iter())
            .map(|(id, now)| now.unwrap_or_else(|| ended(id)))
            .collect();
        self.metrics.add(Counter::DecisionsChanged, corrections.len() as u64);
        corrections
    }

    /// Applies changes of clusters. Returns the documents that have moved between them.
    fn apply(&mut self, reports: &[ReportChange]) -> Vec<DocId> {
        let Self { memberships, alive, .. } = self;
        // Every document in a pair is alive, but of the pairs of an output that is corrected, until it is.
        let age = |id: &DocId| Age::new(alive.get(id).copied().unwrap_or(UNKNOWN));
        memberships.apply(reports, age);
        let members = reports.iter().filter(|(report, _)| !report.subject().0);
        members.map(|(report, _)| report.subject().1.clone()).collect()
    }

    /// Adds the records of documents without an upsert in the epoch whose content has changed, and of those
    /// that have ended.
    fn add_changed(
        &mut self,
        moved: Vec<DocId>,
        pairs: &mut Clusters,
        deltas: &[Delta],
        decisions: &mut BTreeMap<DocId, Decision>,
    ) {
        let mut changed = self.memberships.changed();
        for id in moved {
            // A document that no star has taken has no report of its own when its component becomes a giant.
            let others = pairs.neighbours(&id).map(|(other, _)| other);
            changed.extend(others.filter(|other| self.memberships.cluster(other).is_none()).cloned());
            changed.insert(id);
        }
        let ends = deltas.iter().flat_map(|delta| [delta.pair.pair.lo(), delta.pair.pair.hi()]);
        changed.extend(ends.cloned());
        for id in &self.open.changed {
            // In a giant the age of a document decides only for the documents that it is in a pair with.
            changed.extend(pairs.neighbours(id).map(|(other, _)| other.clone()));
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
            let decision = self.decision(&id, Some(position), pairs);
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

    pub(super) fn facts(&self, id: &DocId) -> Option<Facts> {
        self.alive.get(id).copied()
    }

    /// The decision of a live document.
    pub(super) fn present(&self, id: &DocId, pairs: &mut Clusters) -> Option<Decision> {
        let Facts { position, .. } = self.alive.get(id)?;
        Some(self.decision(id, Some(*position), pairs))
    }

    /// The decision of a document at this moment.
    fn decision(&self, id: &DocId, position: Option<Position>, pairs: &mut Clusters) -> Decision {
        let repetition = self.alive.contains_key(id).then(|| self.repetition(id, pairs));
        Decision { id: id.clone(), position, repetition }
    }

    /// What a live document repeats.
    fn repetition(&self, id: &DocId, pairs: &mut Clusters) -> Repetition {
        let mut repeats: Vec<_> =
            pairs.neighbours(id).map(|(other, similarity)| (similarity, other)).collect();
        if repeats.is_empty() {
            return Repetition::default();
        }
        let number = repeats.len();
        repeats.sort_by(|(s, a), (t, b)| t.cmp(s).then_with(|| a.cmp(b)));
        repeats.truncate(Repetition::MOST);
        let repeats = repeats.into_iter().map(|(similarity, other)| (other.clone(), similarity)).collect();
        if let Some((cluster, oldest)) = self.memberships.cluster(id) {
            let (cluster, of) = (Some(cluster.clone()), Some(oldest.clone()));
            return Repetition { of, cluster, is_giant: false, repeats, pairs: number };
        }
        let is_giant = pairs.is_in_giant(id);
        let age = |near: &DocId| Age::new(self.alive.get(near).copied().unwrap_or(UNKNOWN));
        let near = pairs.neighbours(id).map(|(other, _)| other).chain([id]).filter(|_| is_giant);
        let of = near.min_by_key(|near| (age(near), *near)).cloned();
        Repetition { of, cluster: None, is_giant, repeats, pairs: number }
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
