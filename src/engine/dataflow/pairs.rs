//! Pairs: accepted pairs of sketches become pairs of documents.
//!
//! With A the accepted pairs (x, y) of sketches, x < y, and M(s) the visible members of a sketch s, the pairs
//! of documents are D = A ⋈ M(x) ⋈ M(y). They are computed in two steps, each where the members are:
//!
//! ```text
//! accepted ─▶ Pairs by x: P = A ⋈ M(x) ─▶ Pairs by y: D = P ⋈ M(y) ─▶ output
//! ```
//!
//! The first step holds A by x, the second P by y; the members of both are read from the [`Sketches`]. Each
//! step handles an epoch once it is closed. From the state before an epoch to the state after it (A', M'), a
//! join changes by
//!
//! ```text
//! A' ⋈ M' - A ⋈ M = A ⋈ (M' - M) + (A' - A) ⋈ M'
//! ```
//!
//! so each step joins the changes of members with the old pairs, then the changes of pairs with the new
//! members. The new members are read as of the epoch.
//!
//! A pair of sketches is accepted once for every live block that they share and that passes the filter. It is
//! in A while that count is above 0.
//!
//! Time is totally ordered here, so differential's arrangements (a time in each record, merging, and a second
//! copy of the members) are not needed.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};

use super::acceptance::{Acceptance, Accepted};
use super::operator::epochs::Stash;
use super::operator::{Deltas, Operator};
use crate::dataflow::collapse::MembersChanged;
use crate::dataflow::sketches::small_map::SmallMap;
use crate::dataflow::sketches::store::Sketches;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::Slab;
use dupflow_core::pair::DocPair;
use dupflow_core::time::Epoch;

/// A change of P: a document of x is paired with y, or no longer is. The similarity is that of x and y.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HalfPair {
    y: SketchId,
    document: DocId,
    accepted: Accepted,
    diff: isize,
}

/// Turns accepted pairs of sketches into pairs of documents. `changed` has a record for each epoch in which
/// members have changed.
pub(super) fn expand<'scope>(
    acceptances: Stream<'scope, Epoch, Vec<Acceptance>>,
    changed: &Stream<'scope, Epoch, Vec<MembersChanged>>,
    sketches: Rc<RefCell<Sketches>>,
) -> Deltas<'scope, DocPair> {
    let members_of_x = Rc::clone(&sketches);
    let mut accepted_of = Partners::<SketchId, (Accepted, isize)>::default();
    let by_x = Exchange::new(|a: &Acceptance| a.pair.lo().low());
    let half_pairs = step("Pairs by x", acceptances, by_x, changed, move |epoch, mut changes, emit| {
        let mut members = members_of_x.borrow_mut();
        for change in members.changes(epoch) {
            for (y, (accepted, _)) in accepted_of.partners(change.sketch) {
                let (document, diff) = (change.document.clone(), isize::from(change.diff));
                emit(HalfPair { y: *y, document, accepted: *accepted, diff });
            }
        }
        changes.sort_unstable_by_key(|change| change.pair);
        members.fetch(changes.iter().map(|change| *change.pair.lo()));
        let mut documents = Vec::new();
        for of_x in changes.chunk_by(|a, b| a.pair.lo() == b.pair.lo()) {
            let x = *of_x[0].pair.lo();
            members.visible_at(x, epoch, &mut documents);
            accepted_of.change(x, |partners| {
                for Acceptance { pair, accepted, diff } in of_x {
                    let y = *pair.hi();
                    let before = partners.get(&y).map_or(0, |(_, blocks)| *blocks);
                    let after = before + diff;
                    assert!(after >= 0, "{x} and {y} share fewer live blocks than none");
                    if after > 0 {
                        partners.insert(y, (*accepted, after));
                    } else {
                        partners.remove(&y);
                    }
                    let change = isize::from(after > 0) - isize::from(before > 0);
                    if change != 0 {
                        documents.iter().for_each(|document| {
                            let document = (*document).clone();
                            emit(HalfPair { y, document, accepted: *accepted, diff: change });
                        });
                    }
                }
            });
        }
    });

    let mut half_pairs_of = Partners::<DocId, Accepted>::default();
    let by_y = Exchange::new(|p: &HalfPair| p.y.low());
    step("Pairs by y", half_pairs, by_y, changed, move |epoch, changes, emit| {
        // A document has one sketch at a time, so it is never paired with itself in the accumulated result.
        // Changes of one epoch in which it moves from y to x cancel out, and may be skipped.
        let mut emit = |a: &DocId, b: &DocId, Accepted { similarity, evidence }: Accepted, diff| {
            if let Some(pair) = DocPair::new(a.clone(), b.clone(), similarity, evidence) {
                emit((pair, epoch, diff));
            }
        };
        let mut members = sketches.borrow_mut();
        for change in members.changes(epoch) {
            for (document, accepted) in half_pairs_of.partners(change.sketch) {
                emit(document, &change.document, *accepted, isize::from(change.diff));
            }
        }
        let mut changes: Vec<_> =
            changes.into_iter().map(|p| ((p.y, p.document, p.accepted), p.diff)).collect();
        consolidate(&mut changes);
        members.fetch(changes.iter().map(|((y, ..), _)| *y));
        let mut documents = Vec::new();
        for of_y in changes.chunk_by_mut(|((y, ..), _), ((y2, ..), _)| y == y2) {
            let y = of_y[0].0.0;
            members.visible_at(y, epoch, &mut documents);
            for ((_, document, accepted), diff) in &*of_y {
                documents.iter().for_each(|other| emit(document, other, *accepted, *diff));
            }
            // Retractions first: a document that changes its sketch is removed before it is added.
            of_y.sort_unstable_by_key(|(_, diff)| *diff);
            half_pairs_of.change(y, |partners| {
                for ((_, document, accepted), diff) in of_y {
                    let is_change = if *diff > 0 {
                        partners.insert(document.clone(), *accepted).is_none()
                    } else {
                        partners.remove(document).is_some()
                    };
                    assert!(
                        is_change && diff.abs() == 1,
                        "{document:?} is paired with {y} once or not at all"
                    );
                }
            });
        }
        drop(documents);
        members.forget(epoch);
    })
}

/// By sketch of this worker, its partners.
struct Partners<K, V> {
    by_sketch: Slab<(SketchId, SmallMap<K, V>)>,
}

impl<K, V> Default for Partners<K, V> {
    fn default() -> Self {
        Self { by_sketch: Slab::default() }
    }
}

impl<K: Ord, V> Partners<K, V> {
    fn find(&self, id: SketchId) -> Option<u32> {
        self.by_sketch.find(id.low(), |(other, _)| *other == id)
    }

    /// The partners of a sketch.
    fn partners(&self, id: SketchId) -> impl Iterator<Item = (&K, &V)> {
        let found = self.find(id).and_then(|place| self.by_sketch.get(place));
        found.into_iter().flat_map(|(_, partners)| partners.iter())
    }

    /// Changes the partners of a sketch.
    fn change(&mut self, id: SketchId, change: impl FnOnce(&mut SmallMap<K, V>)) {
        let place = self.find(id);
        if let Some(place) = place
            && let Some((_, partners)) = self.by_sketch.get_mut(place)
        {
            change(partners);
            if partners.len() == 0 {
                self.by_sketch.remove(id.low(), place);
            }
        } else {
            let mut partners = SmallMap::default();
            change(&mut partners);
            if partners.len() > 0 {
                self.by_sketch.insert(id.low(), (id, partners));
            }
        }
    }
}

/// An operator that comparisons `logic` for each epoch in which `changes` has records or members of this
/// worker have changed.
fn step<'scope, D, D2>(
    name: &str,
    changes: Stream<'scope, Epoch, Vec<D>>,
    pact: Exchange<D, impl FnMut(&D) -> u64 + 'static>,
    changed: &Stream<'scope, Epoch, Vec<MembersChanged>>,
    mut logic: impl FnMut(Epoch, Vec<D>, &mut dyn FnMut(D2)) + 'static,
) -> Stream<'scope, Epoch, Vec<D2>>
where
    D: Clone + Send + Serialize + for<'de> Deserialize<'de> + 'static,
    D2: Clone + 'static,
{
    let mut operator = Operator::new(name, changes.scope());
    let mut changes = operator.input(changes, pact);
    let mut changed = operator.input(changed.clone(), Pipeline);
    let (mut output, stream) = operator.output();
    let mut stash = Stash::<D>::new();
    operator.build(move |frontiers| {
        changes.for_each_time(|time, data| stash.keep(&time, 1, data));
        changed.for_each_time(|time, _| stash.keep::<D>(&time, 1, std::iter::empty()));
        while let Some((capabilities, records)) = stash.next_closed(frontiers) {
            let mut output = output.at(&capabilities);
            logic(*capabilities[0].time(), records, &mut |record| output.give(record));
        }
    });
    stream
}
