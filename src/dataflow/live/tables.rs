//! Tables: when the next one is due.

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use crate::dataflow::Stages;
use crate::dataflow::epochs::by_epoch;
use crate::doc::Position;
use crate::metrics::Counter;
use crate::text::Growth;
use crate::time::Epoch;

/// One document with terms more or fewer, by an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) position: Position,
    pub(super) diff: i8,
}

/// In this epoch a table is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Decree {
    /// The worker that is told.
    to: u64,
    /// The last event of the table's corpus.
    pub(super) position: Position,
    /// Documents with terms in it.
    pub(super) documents: u64,
}

/// Follows the number of documents, event by event, on one worker, and tells all workers of the last table of each epoch.
pub(super) fn tables<'scope>(
    counts: Stream<'scope, Epoch, Vec<Count>>,
    growth: Growth,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Decree>> {
    let metrics = std::sync::Arc::clone(&stages.metrics);
    let peers = counts.scope().peers() as u64;
    let (mut alive, mut in_force) = (0_u64, 0);
    by_epoch(counts, Exchange::new(|_: &Count| 0), "Tables", move |_, mut changes, emit| {
        changes.sort_unstable_by_key(|change| change.position);
        let (mut made, mut last) = (0, None);
        for Count { position, diff } in changes {
            alive = alive.checked_add_signed(diff.into()).expect("no more documents go than came");
            if growth.is_due(in_force, alive) {
                in_force = alive;
                last = Some(position);
                made += 1;
            }
        }
        metrics.add(Counter::IdfTables, made);
        if let Some(position) = last {
            (0..peers).for_each(|to| emit(Decree { to, position, documents: in_force }));
        }
    })
}

impl Decree {
    /// The worker that is told.
    pub(super) fn to(&self) -> u64 {
        self.to
    }
}
