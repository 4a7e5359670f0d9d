//! Pairs: accepted pairs of sketches become pairs of documents.
//!
//! With A the accepted pairs (x, y) of sketches, x < y, and M the members that stand for a sketch, the pairs
//! of documents are D = A ⋈ M(x) ⋈ M(y). It is made in two steps, each where the members are:
//!
//! ```text
//! accepted ─▶ Pairs by x: P = A ⋈ M(x) ─▶ Pairs by y: D = P ⋈ M(y) ─▶ output
//! ```
//!
//! The first step holds A by x, the second P by y; the members of both are read from the [`Sketches`]. Each
//! handles an epoch once it is closed. From the state before to the state after it, a join changes by A' ⋈ M'
//! - A ⋈ M = A ⋈ (M' - M) + (A' - A) ⋈ M': what changed of the members meets the pairs of before, then what
//! changed of the pairs meets the members of after, which are read as of the epoch.
//!
//! A pair is accepted once for every live block that its sketches share and that survives; it is in A while
//! that count is above 0.
//!
//! Time is totally ordered here, so differential's arrangements (a time in each record, their merging, and
//! the members held a second time) are not needed.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::collapse::MembersChanged;
use super::epochs::Stash;
use super::sketches::Sketches;
use super::small_map::SmallMap;
use super::{Accepted, Deltas};
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::memory::Slab;
use dupflow_core::pair::{DocPair, Pair};
use dupflow_core::time::Epoch;

/// An accepted pair of sketches shares so many more live blocks, or fewer; at most one for each pair and
/// epoch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Acceptance {
    pub(super) pair: Pair<SketchId>,
    pub(super) accepted: Accepted,
    pub(super) diff: isize,
}

/// A document of x is paired with y, or no longer is: a change of P.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HalfPair {
    y: SketchId,
    document: DocId,
    accepted: Accepted,
    diff: isize,
}

/// Turns accepted pairs of sketches into pairs of documents. `changed` tells in which epochs members have
/// changed.
pub(super) fn expand<'scope>(
    acceptances: Stream<'scope, Epoch, Vec<Acceptance>>,
    changed: &Stream<'scope, Epoch, Vec<MembersChanged>>,
    sketches: Rc<RefCell<Sketches>>,
) -> Deltas<'scope, DocPair> {
    let members_of_x = Rc::clone(&sketches);
    let mut accepted_of = Partners::<SketchId, (Accepted, isize)>::default();
    let by_x = Exchange::new(|a: &Acceptance| a.pair.lo().low());
    let half_pairs = step("Pairs by x", acceptances, by_x, changed, move |epoch, mut changes, emit| {
        let members = members_of_x.borrow();
        for change in members.changes(epoch) {
            for (y, (accepted, _)) in accepted_of.of(change.sketch) {
                let (document, diff) = (change.document.clone(), isize::from(change.diff));
                emit(HalfPair { y: *y, document, accepted: *accepted, diff });
            }
        }
        changes.sort_unstable_by_key(|change| change.pair);
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
        // A document has one sketch at a time, so it never meets itself in what is accumulated; changes of
        // one epoch in which it goes from y to x cancel, and may be left out.
        let mut emit = |a: &DocId, b: &DocId, Accepted { similarity, evidence }: Accepted, diff| {
            if let Some(pair) = Pair::new(a.clone(), b.clone()) {
                emit((DocPair { pair, similarity, evidence }, epoch, diff));
            }
        };
        let members = sketches.borrow();
        for change in members.changes(epoch) {
            for (document, accepted) in half_pairs_of.of(change.sketch) {
                emit(document, &change.document, *accepted, isize::from(change.diff));
            }
        }
        let mut changes: Vec<_> =
            changes.into_iter().map(|p| ((p.y, p.document, p.accepted), p.diff)).collect();
        consolidate(&mut changes);
        let mut documents = Vec::new();
        for of_y in changes.chunk_by_mut(|((y, ..), _), ((y2, ..), _)| y == y2) {
            let y = of_y[0].0.0;
            members.visible_at(y, epoch, &mut documents);
            for ((_, document, accepted), diff) in &*of_y {
                documents.iter().for_each(|other| emit(document, other, *accepted, *diff));
            }
            // A document that changes its sketch goes before it comes.
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
        drop(members);
        sketches.borrow_mut().forget(epoch);
    })
}

/// What each sketch of this worker is paired with.
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

    /// What a sketch is paired with.
    fn of(&self, id: SketchId) -> impl Iterator<Item = (&K, &V)> {
        let found = self.find(id).and_then(|place| self.by_sketch.get(place));
        found.into_iter().flat_map(|(_, partners)| partners.iter())
    }

    /// Changes what a sketch is paired with.
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

/// An operator that handles the changes of each epoch in which there are any, or members have changed on this
/// worker.
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
    let mut builder = OperatorBuilder::new(name.to_owned(), changes.scope());
    let mut changes = builder.new_input(changes, pact);
    let mut changed = builder.new_input(changed.clone(), Pipeline);
    let (output, stream) = builder.new_output();
    let mut output = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(output);
    builder.build(move |_| {
        let mut stash = Stash::<D>::new();
        move |frontiers| {
            changes.for_each_time(|time, data| stash.keep(&time, 1, data));
            changed.for_each_time(|time, _| stash.keep::<D>(&time, 1, std::iter::empty()));
            while let Some((capabilities, records)) = stash.next_closed(frontiers) {
                let mut output = output.activate();
                let mut session = output.session(&capabilities[0]);
                logic(*capabilities[0].time(), records, &mut |record| session.give(record));
            }
        }
    });
    stream
}
