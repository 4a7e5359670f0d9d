//! Blocks: sketches that share a block become candidates. Blocks are partitioned by key; each worker keeps its own in a
//! [`BlockIndex`].

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::Stages;
use super::epochs::by_epoch;
use super::parcels::Parcel;
use crate::block::index::BlockIndex;
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::pair::Pair;
use crate::time::Epoch;

/// A candidate pair: two sketches that meet in this many more blocks, or fewer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub(super) pair: Pair<SketchId>,
    pub(super) diff: isize,
}

/// Keeps the blocks and tells what becomes a candidate or ceases to be one.
pub(super) fn blocks<'scope>(
    postings: Stream<'scope, Epoch, Vec<Parcel>>,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Candidate>> {
    let mut index = BlockIndex::new(stages.blocking.tables(), stages.blocking.rule());
    let stages = stages.clone();

    by_epoch(postings, Exchange::new(|p: &Parcel| p.to), "Blocks", move |_, parcels, emit| {
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
            let mut hot_blocks = stages.hot_blocks();
            changed.for_each(|(key, hot)| match hot {
                Some(block) => drop(hot_blocks.insert(key, block)),
                None => drop(hot_blocks.remove(&key)),
            });
        }
        stages.metrics.add(Counter::Candidates, candidates);
        stages.metrics.add(Counter::RejectedAtFirstWord, rejected);
    })
}
