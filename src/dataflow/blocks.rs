//! Blocks: sketches that share a live block meet. Blocks are partitioned by key; each worker keeps its own in a
//! [`BlockIndex`].

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::Stages;
use super::epochs::by_epoch;
use crate::block::BlockKey;
use crate::block::index::{BlockIndex, Posting};
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::pair::Pair;
use crate::time::Epoch;

/// Two sketches share this many more live blocks, or fewer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Meetings {
    pub(super) pair: Pair<SketchId>,
    pub(super) diff: isize,
}

/// Keeps the blocks and tells who meets.
pub(super) fn blocks<'scope>(
    postings: Stream<'scope, Epoch, Vec<Posting>>,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Meetings>> {
    let mut index = BlockIndex::new(stages.blocking.tables(), stages.blocking.cap());
    let stages = stages.clone();
    // The tables of the index read the low bits of a block's hash.
    let owner = |key: BlockKey| u64::from(key.hash >> 16) + u64::from(key.table);

    by_epoch(
        postings,
        Exchange::new(move |p: &Posting| owner(p.key)),
        "Blocks",
        move |_, mut postings, emit| {
            let (mut candidates, mut rejected) = (0, 0);
            let mut met = Vec::new();
            let worth = |x, y, diff| {
                let worth = stages.filter.first_word(x, y);
                if diff > 0 {
                    candidates += 1;
                    rejected += u64::from(!worth);
                }
                worth
            };
            index.apply(&mut postings, worth, |pair, diff| met.push((pair, isize::from(diff))));
            // Two sketches meet once for each block that they share, most often in the same epoch.
            consolidate(&mut met);
            met.into_iter().for_each(|(pair, diff)| emit(Meetings { pair, diff }));

            let mut deaths = index.deaths().peekable();
            if deaths.peek().is_some() {
                let mut dead_blocks = stages.dead_blocks();
                deaths.for_each(|(key, death)| match death {
                    Some(block) => drop(dead_blocks.insert(key, block)),
                    None => drop(dead_blocks.remove(&key)),
                });
            }
            stages.metrics.add(Counter::Candidates, candidates);
            stages.metrics.add(Counter::RejectedAtFirstWord, rejected);
        },
    )
}
