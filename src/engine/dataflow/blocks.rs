//! Blocks: sketches that share a block become candidates. Blocks are partitioned by key; each worker keeps
//! its own in a [`BlockIndex`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::Stages;
use super::epochs::Stash;
use super::parcels::Parcel;
use super::visitors::{Call, Guest, Note, Said};
use dupflow_core::block::index::BlockIndex;
use dupflow_core::filter::PairFilter;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Pair;
use dupflow_core::run::metrics::Counter;
use dupflow_core::time::Epoch;

/// A candidate pair: two sketches that meet in this many more blocks, or fewer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub(super) pair: Pair<SketchId>,
    pub(super) diff: isize,
}

/// What the blocks say.
pub(super) struct Met<'scope> {
    /// Who is a candidate from an epoch on, or no longer.
    pub(super) candidates: Stream<'scope, Epoch, Vec<Candidate>>,
    /// Visitors, on their way to whom they would meet.
    pub(super) calls: Stream<'scope, Epoch, Vec<Call>>,
    pub(super) notes: Stream<'scope, Epoch, Vec<Note>>,
}

/// Keeps the blocks, tells what becomes a candidate or ceases to be one, and shows visitors who is there.
pub(super) fn blocks<'scope>(
    postings: Stream<'scope, Epoch, Vec<Parcel>>,
    guests: Stream<'scope, Epoch, Vec<Guest>>,
    stages: &Stages,
) -> Met<'scope> {
    let scope = postings.scope();
    let (worker, peers) = (scope.index() as u64, scope.peers() as u64);
    let mut index = BlockIndex::for_blocking(&*stages.blocking);
    let stages = stages.clone();

    let mut builder = OperatorBuilder::new("Blocks".to_owned(), scope);
    let mut postings = builder.new_input(postings, Exchange::new(|p: &Parcel| p.to));
    let mut guests = builder.new_input(guests, Exchange::new(|g: &Guest| g.to));
    let (candidates, candidates_stream) = builder.new_output();
    let (calls, calls_stream) = builder.new_output();
    let (notes, notes_stream) = builder.new_output();
    let mut candidates = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(candidates);
    let mut calls = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(calls);
    let mut notes = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(notes);
    builder.build(move |_| {
        let mut stash = Stash::<Parcel>::new();
        let mut visiting = Stash::<Guest>::new();
        move |frontiers| {
            postings.for_each_time(|time, data| stash.keep(&time, 1, data));
            guests.for_each_time(|time, data| visiting.keep(&time, 3, data));
            loop {
                // Before an epoch is applied, those are let in who come at its time: they find what the one
                // before has left.
                while let Some((capabilities, present)) = visiting.next_begun(&frontiers[..1], &stash) {
                    let (mut calls, mut notes) = (calls.activate(), notes.activate());
                    let (mut calls, mut notes) =
                        (calls.session(&capabilities[1]), notes.session(&capabilities[2]));
                    for guest in present {
                        let name = guest.presence.name;
                        let sent = show(&index, &*stages.filter, guest, worker, peers);
                        notes.give(Note { name, said: Said::Sent(sent.len()) });
                        calls.give_iterator(sent.into_iter());
                    }
                }
                let Some((capabilities, parcels)) = stash.next_closed(frontiers) else { break };
                let mut candidates = candidates.activate();
                let mut candidates = candidates.session(&capabilities[0]);
                apply(&mut index, parcels, &stages, |candidate| candidates.give(candidate));
            }
        }
    });
    Met { candidates: candidates_stream, calls: calls_stream, notes: notes_stream }
}

/// Applies an epoch.
fn apply(index: &mut BlockIndex, parcels: Vec<Parcel>, stages: &Stages, mut emit: impl FnMut(Candidate)) {
    let (mut candidates, mut rejected) = (0, 0);
    let worth = |x, y, diff| {
        let worth = stages.filter.first_word(x, y);
        if diff > 0 {
            candidates += 1;
            rejected += u64::from(!worth);
        }
        worth
    };
    let sent = parcels.into_iter().map(|parcel| parcel.postings);
    index.apply(sent, worth, |pair, diff| emit(Candidate { pair, diff }));

    let mut changed = index.hot_blocks().peekable();
    if changed.peek().is_some() {
        let (mut heated, mut cooled) = (0, 0);
        let mut hot_blocks = stages.hot_blocks.lock();
        changed.for_each(|(key, hot)| match hot {
            Some(block) => heated += u64::from(hot_blocks.put(key, block)),
            None => cooled += u64::from(hot_blocks.remove(&key)),
        });
        drop(hot_blocks);
        stages.metrics.add(Counter::Heated, heated);
        stages.metrics.add(Counter::Cooled, cooled);
    }
    stages.metrics.add(Counter::Candidates, candidates);
    stages.metrics.add(Counter::RejectedAtFirstWord, rejected);
}

/// Shows a visitor the blocks of this worker: where it has to go from here.
fn show(index: &BlockIndex, filter: &dyn PairFilter, guest: Guest, worker: u64, peers: u64) -> Vec<Call> {
    let Guest { presence, keys, .. } = guest;
    let owner = |id: SketchId| id.low() % peers;
    let mut by_owner: BTreeMap<u64, Vec<SketchId>> = BTreeMap::new();
    let mut add = |id: SketchId| by_owner.entry(owner(id)).or_default().push(id);
    if owner(presence.id) == worker {
        add(presence.id);
    }
    let worth = |a, b| filter.first_word(a, b);
    index.visit(&keys, presence.id, presence.sketch.words[0], worth, add);
    let call = |(to, partners)| Call { to, presence: presence.clone(), partners };
    by_owner.into_iter().map(call).collect()
}
