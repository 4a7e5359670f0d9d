//! The live units, and which of them are removed.
//!
//! In: changes of units and of their pairs. Out: of each cluster of units all but one. The rule of the keep
//! list selects it; of equals it is the one of the smallest document, by bytes, and there the first.

use std::collections::BTreeMap;

use crate::sinks::keep_list::{ListCounts, ListCountsSlot};
use crate::sinks::rows::{RemovedUnit, UnitName};
use dupflow_core::cluster::{Clusters, KeepFacts, KeepRule};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::units::UnitFacts;
use dupflow_core::doc::{DocChange, DocId};
use dupflow_core::pair::{Delta, Pair, Similarity};

/// The live units and their clusters.
pub(crate) struct RepeatedUnits {
    clusters: Clusters,
    keep: KeepRule,
    /// The place of the rule's field among those that documents hold.
    field: Option<usize>,
    alive: BTreeMap<DocId, (KeepFacts, UnitFacts)>,
    pairs: BTreeMap<Pair<DocId>, Similarity>,
    /// The live documents, with the numbers of their records.
    records: BTreeMap<DocId, u64>,
    counts: ListCountsSlot,
}

impl RepeatedUnits {
    /// No units. `clusters` must be empty; its limit has no effect.
    pub(crate) fn new(clusters: Clusters, keep: KeepRule, held: &FieldRules) -> Self {
        let field = keep.field().and_then(|name| held.place(name));
        Self {
            clusters,
            keep,
            field,
            alive: BTreeMap::new(),
            pairs: BTreeMap::new(),
            records: BTreeMap::new(),
            counts: ListCountsSlot::default(),
        }
    }

    /// The same, which leaves its counts there.
    pub(crate) fn with_counts(self, counts: ListCountsSlot) -> Self {
        Self { counts, ..self }
    }

    /// Takes the changes of documents and units of an epoch.
    pub(crate) fn change(&mut self, changes: &[DocChange]) {
        for DocChange { id, now, fields, unit, .. } in changes {
            let (facts, unit) = match (now, unit) {
                (Some(facts), Some(unit)) => (*facts, *unit),
                (None, Some(_)) => {
                    self.alive.remove(id);
                    continue;
                }
                (Some(facts), None) => {
                    self.records.insert(id.clone(), facts.position.offset);
                    continue;
                }
                (None, None) => {
                    self.records.remove(id);
                    continue;
                }
            };
            let rank = self.field.map_or(0, |place| self.keep.rank(fields.get(place)));
            self.alive.insert(id.clone(), (KeepFacts { facts, rank }, unit));
        }
    }

    /// Takes the changes of pairs of an epoch.
    pub(crate) fn follow(&mut self, deltas: &[Delta]) {
        self.clusters.follow(deltas);
        for Delta { pair: found, diff, .. } in deltas {
            if *diff > 0 {
                self.pairs.insert(found.pair.clone(), found.similarity);
            } else {
                self.pairs.remove(&found.pair);
            }
        }
    }

    /// The live documents, with the numbers of their records.
    pub(crate) fn records(&self) -> &BTreeMap<DocId, u64> {
        &self.records
    }

    /// Calls `each` with the units to remove, by document and place.
    ///
    /// # Errors
    /// The first error of `each`.
    pub(crate) fn removed<E>(
        &mut self,
        each: impl FnMut(&RemovedUnit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = self.clusters.all();
        // Of copies one is in the pairs with others: the similarity is that of the sketches.
        let of_sketches = |(pair, similarity): (&Pair<DocId>, &Similarity)| {
            let [a, b] = [pair.lo(), pair.hi()].map(|id| self.alive.get(id).map(|(_, unit)| unit.sketch));
            [((a, b), similarity.get()), ((b, a), similarity.get())]
        };
        let similarities: BTreeMap<_, f64> = self.pairs.iter().flat_map(of_sketches).collect();
        // Of copies that a rule forbids to be pairs of each other, one alone is in the pairs with others.
        // What is a pair with it is one with each of them, so they are of its cluster.
        let mut of_sketch = BTreeMap::new();
        let mut clusters = Vec::new();
        for cluster in all.chunk_by(|(a, _), (b, _)| a == b) {
            // Every unit in a pair is alive.
            let sketches = cluster.iter().filter_map(|(_, id)| Some(self.alive.get(id)?.1.sketch));
            of_sketch.extend(sketches.map(|sketch| (sketch, clusters.len())));
            clusters.push(Vec::new());
        }
        for (id, (facts, unit)) in &self.alive {
            if let Some(at) = of_sketch.get(&unit.sketch) {
                clusters[*at].push((self.keep.precedence(*facts), id.document_of_unit(), unit));
            }
        }
        let mut removed = Vec::new();
        for cluster in &clusters {
            let members = || cluster.iter().copied();
            let order = |(first, document, unit): &(_, _, &UnitFacts)| (*first, *document, unit.span.place);
            let Some((_, of, kept)) = members().min_by_key(order) else { continue };
            let others = members().filter(|(_, document, unit)| (*document, unit.span) != (of, kept.span));
            removed.extend(others.map(|(_, document, unit)| RemovedUnit {
                document,
                unit: unit.span.place,
                from: unit.span.from,
                to: unit.span.to,
                of: UnitName { document: of, unit: kept.span.place },
                similarity: match unit.sketch == kept.sketch {
                    true => Some(Similarity::ONE.get()),
                    false => similarities.get(&(Some(unit.sketch), Some(kept.sketch))).copied(),
                },
            }));
        }
        removed.sort_unstable_by_key(|row| (row.document, row.unit));
        let bytes: u64 = removed.iter().map(|row| row.to - row.from).sum();
        tracing::info!(units = self.alive.len(), removed = removed.len(), bytes, rule = %self.keep, "listed");
        *self.counts.lock() = Some(ListCounts {
            of: "units",
            kept: (self.alive.len() - removed.len()) as u64,
            removed: removed.len() as u64,
            removed_bytes: Some(bytes),
            rule: self.keep.to_string(),
        });
        removed.iter().try_for_each(each)
    }
}
