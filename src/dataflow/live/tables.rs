//! Tables: whether the end of an epoch makes the next one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use crate::dataflow::epochs::by_epoch;
use crate::metrics::{Counter, Metrics};
use crate::text::Growth;
use crate::time::Epoch;

/// The corpus at the end of this epoch makes a table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TableDue {
    /// The worker that is told.
    pub(super) to: u64,
    /// From 1.
    pub(super) number: u64,
    /// Documents with terms, of all workers.
    pub(super) documents: u64,
}

/// Adds up the documents with terms, on one worker, and tells all workers of each epoch whose end makes a table. `changes` are how
/// many more there are at the end of an epoch than before.
pub(super) fn tables<'scope>(
    changes: Stream<'scope, Epoch, Vec<i64>>,
    growth: Growth,
    metrics: &Arc<Metrics>,
) -> Stream<'scope, Epoch, Vec<TableDue>> {
    let metrics = Arc::clone(metrics);
    let peers = changes.scope().peers() as u64;
    let (mut documents, mut in_force, mut number) = (0_u64, 0, 0);
    by_epoch(changes, Exchange::new(|_: &i64| 0), "Tables", move |_, changes, emit| {
        let change = changes.iter().sum();
        documents = documents.checked_add_signed(change).expect("no more documents go than came");
        if growth.is_due(in_force, documents) {
            (in_force, number) = (documents, number + 1);
            metrics.add(Counter::IdfTables, 1);
            (0..peers).for_each(|to| emit(TableDue { to, number, documents }));
        }
    })
}
