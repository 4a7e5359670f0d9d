//! Collapse: what is indexed is the distinct sketch, not the document. m copies of a page cost m memberships
//! and one set of postings; their pairs with other pages come from the members.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::epochs::Stash;
use super::output::Reached;
use super::parcels::{Parcel, Parcels};
use super::sketches::{MemberChange, Sketches, StarChange};
use super::upsert::Membership;
use super::{Deltas, Stages};
use dupflow_core::doc::DocId;
use dupflow_core::hash;
use dupflow_core::pair::{Cause, DocPair, Evidence, Pair, Similarity};
use dupflow_core::run::metrics::Counter;
use dupflow_core::time::Epoch;

/// What the memberships of an epoch come to.
pub(super) struct Collapsed<'scope> {
    /// Blocks that sketches come into or leave.
    pub(super) postings: Stream<'scope, Epoch, Vec<Parcel>>,
    /// Of which epochs there are changes of members among the sketches.
    pub(super) changed: Stream<'scope, Epoch, Vec<MembersChanged>>,
    /// Pairs of documents of one sketch.
    pub(super) copies: Deltas<'scope, DocPair>,
    /// Which documents begin or cease to stand for their copies.
    pub(super) reached: Stream<'scope, Epoch, Vec<Reached>>,
}

/// The sketches of this worker have kept changes of members, those of this record's epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct MembersChanged;

/// Keeps the sketches with their members, partitioned by sketch id, and shares them with `verify` and
/// `pairs`.
pub(super) fn collapse<'scope>(
    memberships: Stream<'scope, Epoch, Vec<Membership>>,
    stages: &Stages,
) -> (Rc<RefCell<Sketches>>, Collapsed<'scope>) {
    let scheme = &stages.scheme;
    let sketches = Rc::new(RefCell::new(Sketches::new(scheme.words(), scheme.exact, stages.expand_limit)));
    let shared = Rc::clone(&sketches);
    let stages = stages.clone();

    let mut parcels = Parcels::new(memberships.scope().peers());
    let mut builder = OperatorBuilder::new("Collapse".to_owned(), memberships.scope());
    let mut input = builder.new_input(memberships, Exchange::new(|m: &Membership| m.sketch.low()));
    let (postings, postings_stream) = builder.new_output();
    let (changed, changed_stream) = builder.new_output();
    let (copies, copies_stream) = builder.new_output();
    let (reached, reached_stream) = builder.new_output();
    let mut postings = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(postings);
    let mut changed = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(changed);
    let mut copies = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(copies);
    let mut reached = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(reached);

    builder.build(move |_| {
        let mut stash = Stash::<Membership>::new();
        move |frontiers| {
            input.for_each_time(|time, data| stash.keep(&time, 4, data));
            while let Some((capabilities, mut changes)) = stash.next_closed(frontiers) {
                let epoch = *capabilities[0].time();
                let (mut postings, mut changed, mut copies) =
                    (postings.activate(), changed.activate(), copies.activate());
                let mut postings = postings.session(&capabilities[0]);
                let mut copies = copies.session(&capabilities[2]);
                let mut keys = Vec::new();
                let mut member_changes = Vec::with_capacity(changes.len());
                let (mut stars, mut causes) = (Vec::new(), Vec::new());
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
                    let (members, sketch) = sketches.members(id, body);
                    let before = members.len();
                    let (leave, join) = group.split_at(leaving);
                    let first_change = member_changes.len();
                    members.change(
                        leave.iter().map(|m| &m.document),
                        join.iter().map(|m| &m.document),
                        epoch,
                        stages.expand_limit,
                        |document, diff| {
                            member_changes.push(MemberChange {
                                sketch: id,
                                document: document.clone(),
                                diff,
                            });
                        },
                        |pair, diff| copies.give((copy(pair), epoch, diff)),
                    );
                    let after = members.len();
                    if before.max(after) > stages.expand_limit {
                        regrouped(&member_changes[first_change..], &mut causes);
                        let ids = |of: &[Membership]| of.iter().map(|m| m.document.clone()).collect();
                        let (left, joined) = (ids(leave), ids(join));
                        stars.push(StarChange { sketch: id, before, left, joined });
                    }
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
                sketches.keep_changes(epoch, member_changes, stars);
                changed.session(&capabilities[1]).give(MembersChanged);
                if !causes.is_empty() {
                    reached.activate().session(&capabilities[3]).give(Reached::Causes(causes));
                }
            }
        }
    });
    let collapsed = Collapsed {
        postings: postings_stream,
        changed: changed_stream,
        copies: copies_stream,
        reached: reached_stream,
    };
    (shared, collapsed)
}

/// Notes the documents of a group that stand for it and did not, or did and do not, by what was told of its
/// members. Those that leave or join have a cause of their own, which is before this one.
fn regrouped(changes: &[MemberChange], causes: &mut Vec<(u64, Cause)>) {
    let mut changes: Vec<_> =
        changes.iter().map(|change| (&change.document, isize::from(change.diff))).collect();
    consolidate(&mut changes);
    causes.extend(changes.into_iter().map(|(id, _)| (hash::bytes(0, id.as_bytes()), Cause::Regrouped)));
}

/// Two documents of one sketch: alike in everything that is compared.
fn copy(pair: Pair<DocId>) -> DocPair {
    DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }
}
