//! Collapse: what is indexed is the distinct sketch, not the document. m copies of a page cost m memberships and one set
//! of postings; their pairs with other pages come from the members.
//!
//! A group of more than `expand_limit` copies is a star: its pairs are those with its smallest member, which also stands
//! for the whole group in pairs with other sketches. That is a function of the group's present members, so crossing the
//! limit either way retracts one form and emits the other.

use std::cell::RefCell;
use std::rc::Rc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::epochs::Stash;
use super::parcels::{Parcel, Parcels};
use super::sketches::{Members, Sketches, pair_of};
use super::upsert::Membership;
use super::{Deltas, Stages};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::pair::{DocPair, Evidence, Pair, Similarity};
use crate::time::Epoch;

/// What the memberships of an epoch come to.
pub(super) struct Collapsed<'scope> {
    /// Blocks that sketches come into or leave.
    pub(super) postings: Stream<'scope, Epoch, Vec<Parcel>>,
    /// The documents that stand for a sketch.
    pub(super) members: Deltas<'scope, (SketchId, DocId)>,
    /// Pairs of documents of one sketch.
    pub(super) copies: Deltas<'scope, DocPair>,
}

/// Keeps the sketches with their members, partitioned by sketch id, and shares the sketches with `verify`.
pub(super) fn collapse<'scope>(
    memberships: Stream<'scope, Epoch, Vec<Membership>>,
    stages: &Stages,
) -> (Rc<RefCell<Sketches>>, Collapsed<'scope>) {
    let sketches = Rc::new(RefCell::new(Sketches::new(stages.scheme.words())));
    let shared = Rc::clone(&sketches);
    let stages = stages.clone();

    let mut parcels = Parcels::new(memberships.scope().peers());
    let mut builder = OperatorBuilder::new("Collapse".to_owned(), memberships.scope());
    let mut input = builder.new_input(memberships, Exchange::new(|m: &Membership| m.sketch.low()));
    let (postings, postings_stream) = builder.new_output();
    let (members, members_stream) = builder.new_output();
    let (copies, copies_stream) = builder.new_output();
    let mut postings = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(postings);
    let mut members = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(members);
    let mut copies = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(copies);

    builder.build(move |_| {
        let mut stash = Stash::<Membership>::new();
        move |frontiers| {
            input.for_each_time(|time, data| stash.keep(&time, 3, data));
            while let Some((capabilities, mut changes)) = stash.next_closed(frontiers) {
                let epoch = *capabilities[0].time();
                let (mut postings, mut members, mut copies) =
                    (postings.activate(), members.activate(), copies.activate());
                let mut postings = postings.session(&capabilities[0]);
                let mut members = members.session(&capabilities[1]);
                let mut copies = copies.session(&capabilities[2]);
                let mut keys = Vec::new();
                let mut sketches = sketches.borrow_mut();

                changes.sort_unstable_by(|a, b| {
                    (a.sketch, a.joins.is_some(), &a.document).cmp(&(
                        b.sketch,
                        b.joins.is_some(),
                        &b.document,
                    ))
                });
                for group in changes.chunk_by_mut(|a, b| a.sketch == b.sketch) {
                    let id = group[0].sketch;
                    let leaving = group.partition_point(|m| m.joins.is_none());
                    let body = group.last_mut().and_then(|m| m.joins.as_deref_mut());
                    let (of_sketch, sketch) = sketches.members(id, body);
                    let before = of_sketch.len();
                    let (leave, join) = group.split_at(leaving);
                    let mut change = Change { members: of_sketch, epoch, limit: stages.expand_limit };
                    change.apply(
                        leave.iter().map(|m| &m.document),
                        join.iter().map(|m| &m.document),
                        |document, diff| members.give(((id, document), epoch, diff)),
                        |pair, diff| copies.give((copy(pair), epoch, diff)),
                    );
                    let after = change.members.len();
                    stages.metrics.add(
                        Counter::Starred,
                        u64::from(before <= stages.expand_limit && after > stages.expand_limit),
                    );
                    let diff = i8::from(after > 0) - i8::from(before > 0);
                    if diff != 0 {
                        stages.blocking.keys(sketch, &mut keys);
                        parcels
                            .add(id, sketch.words[0], diff, keys.drain(..), |parcel| postings.give(parcel));
                    }
                    match diff {
                        1 => stages.metrics.add(Counter::SketchesBorn, 1),
                        -1 => {
                            stages.metrics.add(Counter::SketchesDied, 1);
                            sketches.dies(id, epoch);
                        }
                        _ => {}
                    }
                }
                parcels.flush(|parcel| postings.give(parcel));
            }
        }
    });
    (shared, Collapsed { postings: postings_stream, members: members_stream, copies: copies_stream })
}

/// One epoch's change of a sketch's members.
struct Change<'a> {
    members: &'a mut Members,
    epoch: Epoch,
    limit: usize,
}

impl Change<'_> {
    /// Lets documents leave and join; tells what changes of the visible members and of the pairs of copies.
    fn apply<'d>(
        &mut self,
        leave: impl ExactSizeIterator<Item = &'d DocId> + Clone,
        join: impl ExactSizeIterator<Item = &'d DocId> + Clone,
        mut member: impl FnMut(DocId, isize),
        mut pair: impl FnMut(Pair<DocId>, isize),
    ) {
        let before = self.members.len();
        let after = before + join.len() - leave.len();
        if before.max(after) <= self.limit {
            for document in leave {
                self.members.remove(document, self.epoch);
                member(document.clone(), -1);
                self.members.copies_with(document, |p| pair(p, -1));
            }
            for document in join {
                self.members.copies_with(document, |p| pair(p, 1));
                member(document.clone(), 1);
                self.members.insert(document.clone());
            }
            return;
        }
        let before_first = self.members.first().cloned();
        let stays = |first: &DocId| {
            before.min(after) > self.limit
                && leave.clone().all(|d| d != first)
                && join.clone().all(|d| d > first)
        };
        match before_first.filter(stays) {
            // A star before and after, about the same centre: its edges change one by one.
            Some(centre) => {
                for document in leave {
                    self.members.remove(document, self.epoch);
                    pair(pair_of(&centre, document), -1);
                }
                for document in join {
                    pair(pair_of(&centre, document), 1);
                    self.members.insert(document.clone());
                }
            }
            None => {
                self.members.visible(self.limit).for_each(|d| member(d.clone(), -1));
                self.members.copies(self.limit, |p| pair(p, -1));
                leave.for_each(|d| self.members.remove(d, self.epoch));
                join.for_each(|d| self.members.insert(d.clone()));
                self.members.visible(self.limit).for_each(|d| member(d.clone(), 1));
                self.members.copies(self.limit, |p| pair(p, 1));
            }
        }
    }
}

/// Two documents of one sketch: alike in everything that is compared.
fn copy(pair: Pair<DocId>) -> DocPair {
    DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }
}
