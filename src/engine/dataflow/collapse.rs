//! Collapse: the index holds distinct sketches, not documents. m copies of a page cost m memberships and one
//! set of postings; the pairs of the copies with other pages are made from the members.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use crate::dataflow::operator::epochs::Stash;
use crate::dataflow::operator::{Deltas, Operator};
use crate::dataflow::output::EpochReport;
use crate::dataflow::sketches::members::SketchMembers;
use crate::dataflow::sketches::membership::{Membership, SketchMembership};
use crate::dataflow::sketches::parcels::{Parcel, Parcels};
use crate::dataflow::sketches::store::{MemberChange, Sketches, StarChange};
use crate::dataflow::stages::Stages;
use crate::dataflow::watches::{WatchMatcher, WatchUpdate};
use dupflow_core::block::index::SketchHead;
use dupflow_core::doc::DocId;
use dupflow_core::hash::{self, SketchId};
use dupflow_core::pair::{Cause, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::Epoch;
use dupflow_run::metrics::Counter;

/// Memberships whose sketches are prefetched together.
const PREFETCHED: usize = 32;

/// The outputs of [`collapse`].
pub(in crate::dataflow) struct CollapseOutputs<'scope> {
    /// Changes of blocks: sketches that enter or leave them.
    pub(in crate::dataflow) postings: Stream<'scope, Epoch, Vec<Parcel>>,
    /// One record for each epoch in which members of the sketches change.
    pub(in crate::dataflow) changed: Stream<'scope, Epoch, Vec<MembersChanged>>,
    /// Pairs of documents of one sketch.
    pub(in crate::dataflow) copies: Deltas<'scope, DocPair>,
    /// Causes: documents that begin or stop representing their copies. Notices, if there is a watch list.
    pub(in crate::dataflow) reports: Stream<'scope, Epoch, Vec<EpochReport>>,
}

/// The sketches of this worker hold changes of members, those of this record's epoch.
#[derive(Clone, Copy, Debug)]
pub(in crate::dataflow) struct MembersChanged;

/// Stores the sketches with their members, partitioned by sketch id, and shares them with `verify` and
/// `pairs`. Compares them with the watches, if there is a list.
pub(in crate::dataflow) fn collapse<'scope>(
    memberships: Stream<'scope, Epoch, Vec<Membership>>,
    watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    stages: &Stages,
) -> (Rc<RefCell<Sketches>>, CollapseOutputs<'scope>) {
    let (worker, peers) = (memberships.scope().index(), memberships.scope().peers());
    let sketches = Rc::new(RefCell::new(Sketches::for_run(stages, worker, peers)));
    let shared = Rc::clone(&sketches);
    let stages = stages.clone();
    let pairs_copies = stages.filter.pairs_copies();

    let mut parcels = Parcels::new(peers, stages.observers.sketches.workers(worker, peers));
    let mut words = Vec::new();
    let mut operator = Operator::new("Collapse", memberships.scope());
    let mut input = operator.input(memberships, Exchange::new(|m: &Membership| m.low));
    let mut watches = watches.map(|updates| {
        let updates = operator.input(updates, Exchange::new(|update: &WatchUpdate| update.to));
        (updates, WatchMatcher::new(&stages))
    });
    let (mut postings, postings_stream) = operator.output();
    let (mut changed, changed_stream) = operator.output();
    let (mut copies, copies_stream) = operator.output();
    let (mut reports, reports_stream) = operator.output();

    let mut stash = Stash::<Membership>::new();
    operator.build(move |frontiers| {
        input.for_each_time(|time, data| stash.keep(&time, 4, data));
        if let Some((updates, watching)) = &mut watches {
            updates.for_each_time(|time, data| {
                stash.keep::<Membership>(&time, 4, std::iter::empty());
                watching.receive(*time.time(), data.flat_map(|d| d.drain(..)));
            });
        }
        while let Some((capabilities, changes)) = stash.next_closed(frontiers) {
            let epoch = *capabilities[0].time();
            let (mut postings, mut copies) = (postings.at(&capabilities), copies.at(&capabilities));
            let mut keys = Vec::new();
            let mut applied = AppliedChanges::default();
            let mut sketches = sketches.borrow_mut();
            sketches.fetch_halves(changes.iter().map(|change| change.low));
            // Before any change: a document that leaves is a member still.
            let mut changes: Vec<_> = changes.into_iter().map(|m| (sketch_of(&m, &sketches), m)).collect();
            changes.sort_unstable_by(leaving_first);
            let lows: Vec<u64> = changes.iter().map(|(id, _)| id.low()).collect();
            let (mut done, mut prefetched) = (0, 0);
            for group in changes.chunk_by_mut(|(a, _), (b, _)| a == b) {
                if done >= prefetched {
                    prefetched = lows.len().min(done + PREFETCHED);
                    sketches.prefetch(lows[done..prefetched].iter().copied());
                }
                done += group.len();
                let id = group[0].0;
                let body = group.last_mut().and_then(|(_, m)| m.joins.as_mut()).map(|(_, body)| &mut **body);
                let (place, members, sketch) = sketches.members(id, body, &mut words);
                let before = members.len();
                let pairs_copies = pairs_copies && !stages.scheme.pairs.is_of_reference(sketch.words);
                let pair = |pair, diff| copies.give((copy(pair), epoch, diff));
                applied.apply(members, group, epoch, stages.expand_limit, pairs_copies.then_some(pair));
                let after = members.len();
                let is_new_star = before <= stages.expand_limit && after > stages.expand_limit;
                let is_new_star = is_new_star && stages.scheme.units.is_none();
                stages.observers.metrics.add(Counter::Starred, u64::from(is_new_star));
                let diff = i8::from(after > 0) - i8::from(before > 0);
                if diff != 0 {
                    stages.blocking.keys(sketch, &mut keys);
                }
                if let Some((_, watching)) = &mut watches {
                    watching.members_changed(id, (diff > 0).then_some((sketch, &keys[..])), group, diff < 0);
                }
                if diff == 0 {
                    continue;
                }
                let (realm, enters) = (stages.blocking.realm(sketch), stages.blocking.enters(sketch));
                let head = SketchHead { id, word: sketch.words[0], realm };
                parcels.add(head, place, diff, enters, keys.drain(..), |parcel| postings.give(parcel));
                if diff > 0 {
                    stages.observers.metrics.add(Counter::SketchesBorn, 1);
                } else {
                    stages.observers.metrics.add(Counter::SketchesDied, 1);
                    sketches.dies(id, place, epoch);
                }
            }
            parcels.flush(|parcel| postings.give(parcel));
            let AppliedChanges { members, stars, causes } = applied;
            sketches.keep_changes(epoch, members, stars);
            changed.at(&capabilities).give(MembersChanged);
            let mut reports = reports.at(&capabilities);
            if !causes.is_empty() {
                reports.give(EpochReport::Causes(causes));
            }
            if let Some((_, watching)) = &mut watches {
                let notices = watching.close(epoch, &mut sketches);
                if !notices.is_empty() {
                    reports.give(EpochReport::Notices(notices));
                }
            }
        }
    });
    let collapsed = CollapseOutputs {
        postings: postings_stream,
        changed: changed_stream,
        copies: copies_stream,
        reports: reports_stream,
    };
    (shared, collapsed)
}

/// The sketch that a document joins or leaves.
fn sketch_of(membership: &Membership, sketches: &Sketches) -> SketchId {
    match &membership.joins {
        Some((id, _)) => *id,
        None => sketches.with_member(membership.low, &membership.document),
    }
}

/// By sketch; of one sketch, the documents that leave before those that join; then by document.
fn leaving_first((x, a): &SketchMembership, (y, b): &SketchMembership) -> Ordering {
    (x, a.joins.is_some(), &a.document).cmp(&(y, b.joins.is_some(), &b.document))
}

/// What an epoch has changed of the sketches' members.
#[derive(Default)]
struct AppliedChanges {
    members: Vec<MemberChange>,
    stars: Vec<StarChange>,
    /// By the hash of a document's id.
    causes: Vec<(u64, Cause)>,
}

impl AppliedChanges {
    /// Applies the changes of one sketch, those that leave first. `copies` receives the changes of pairs of
    /// copies, if they are pairs.
    fn apply(
        &mut self,
        members: &mut SketchMembers,
        changes: &[SketchMembership],
        epoch: Epoch,
        expand_limit: usize,
        copies: Option<impl FnMut(Pair<DocId>, isize)>,
    ) {
        let sketch = changes[0].0;
        let (leave, join) = changes.split_at(changes.partition_point(|(_, m)| m.joins.is_none()));
        let (before, first_change) = (members.len(), self.members.len());
        let member_changes = &mut self.members;
        members.change(
            leave.iter().map(|(_, m)| &m.document),
            join.iter().map(|(_, m)| &m.document),
            epoch,
            expand_limit,
            |document, diff| member_changes.push(MemberChange { sketch, document: document.clone(), diff }),
            copies,
        );
        if before.max(members.len()) > expand_limit {
            regrouped(&self.members[first_change..], &mut self.causes);
            let ids = |of: &[SketchMembership]| of.iter().map(|(_, m)| m.document.clone()).collect();
            let (left, joined) = (ids(leave), ids(join));
            self.stars.push(StarChange { sketch, before, left, joined });
        }
    }
}

/// Adds a cause for each document of a group whose visibility changes, from the changes of the group's
/// members. Documents that leave or join have a cause of their own, which takes precedence.
fn regrouped(changes: &[MemberChange], causes: &mut Vec<(u64, Cause)>) {
    let mut changes: Vec<_> =
        changes.iter().map(|change| (&change.document, isize::from(change.diff))).collect();
    consolidate(&mut changes);
    causes.extend(changes.into_iter().map(|(id, _)| (hash::bytes(0, id.as_bytes()), Cause::Regrouped)));
}

/// Two documents of one sketch: equal in everything that is compared.
fn copy(pair: Pair<DocId>) -> DocPair {
    DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }
}
