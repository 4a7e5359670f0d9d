//! Tables: decides whether the end of an epoch makes the next table.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use crate::dataflow::operator::epochs::by_epoch;
use crate::dataflow::stages::Stages;
use dupflow_core::text::Growth;
use dupflow_core::time::Epoch;
use dupflow_run::metrics::Counter;

/// The corpus at the end of this epoch makes a table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TableDue {
    /// The worker that receives this record.
    pub(super) to: u64,
    /// The number of the table, from 1.
    pub(super) number: u64,
    /// Documents with terms, of all workers.
    pub(super) documents: u64,
}

/// Adds up the documents with terms, on one worker, and sends a record to all workers for each epoch whose
/// end makes a table. `changes` are the changes of the number of documents in an epoch.
pub(super) fn tables<'scope>(
    changes: Stream<'scope, Epoch, Vec<i64>>,
    growth: Growth,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<TableDue>> {
    let (metrics, live) = (Arc::clone(&stages.observers.metrics), Arc::clone(&stages.start.live));
    let peers = changes.scope().peers() as u64;
    let past = stages.start.past.table;
    let (mut in_force, mut number) = past.map_or((0, 0), |table| (table.documents, table.number));
    let mut documents = 0_u64;
    by_epoch(changes, Exchange::new(|_: &i64| 0), "Tables", move |epoch, changes, emit| {
        let change = changes.iter().sum();
        documents = documents.checked_add_signed(change).expect("no more documents go than came");
        // In earlier epochs an earlier run has decided, if its table is there.
        if (live.holds(epoch) || past.is_none()) && growth.is_due(in_force, documents) {
            (in_force, number) = (documents, number + 1);
            metrics.add(Counter::IdfTables, 1);
            (0..peers).for_each(|to| emit(TableDue { to, number, documents }));
        }
    })
}
