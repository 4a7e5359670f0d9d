//! The sink: holds the items and their pairs, and passes on at the end what is to be written.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::found::{ItemCounts, ItemRules, LiveItems};
use crate::mark::Mark;
use crate::sinks::contract::Sink;
use crate::sinks::rows::RowWriter;
use dupflow_core::doc::{DocChange, Letter};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::Progress;

/// What is written at the end.
#[expect(missing_debug_implementations, reason = "sinks and rows are of any type")]
pub enum ItemOutput {
    /// To a sink that receives all pairs of items that are not above the limit.
    Pairs(Box<dyn Sink + Send>),
    /// To a sink of lists of documents, which receives one of these pairs for each page: that of the item
    /// with the greatest share; of equal ones the least id. So the cluster of a page is that of its item.
    Pages(Box<dyn Sink + Send>),
    /// A row for each item.
    Items(Box<dyn RowWriter + Send>),
}

/// Where an [`ItemSink`] leaves its counts.
pub type ItemCountsSlot = Arc<Mutex<Option<ItemCounts>>>;

/// Keeps the items and the pairs that the changes accumulate to, and writes at the end.
pub struct ItemSink {
    live: LiveItems,
    rules: ItemRules,
    output: ItemOutput,
    slot: ItemCountsSlot,
}

impl ItemSink {
    /// A sink before another, which must be new, or before rows.
    pub fn new(rules: ItemRules, output: ItemOutput, slot: ItemCountsSlot) -> Self {
        Self { live: LiveItems::default(), rules, output, slot }
    }
}

impl ItemOutput {
    fn sink(&mut self) -> Option<&mut (dyn Sink + Send)> {
        match self {
            Self::Pairs(sink) | Self::Pages(sink) => Some(&mut **sink),
            Self::Items(_) => None,
        }
    }
}

impl Sink for ItemSink {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.live.change(changes, &self.rules);
        self.output.sink().map_or(Ok(()), |sink| sink.documents(changes, restored))
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.live.follow(deltas);
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.live.follow(deltas);
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let Self { live, rules, output, slot } = self;
        *slot.lock() = Some(live.counts(rules));
        let added = |pair: &DocPair| Delta::by_block(pair.clone(), 1);
        match output {
            ItemOutput::Pairs(sink) => {
                sink.restored(&live.pairs(rules).map(added).collect::<Vec<_>>());
                sink.finish()
            }
            ItemOutput::Pages(sink) => {
                sink.restored(&live.greatest(rules).into_iter().map(added).collect::<Vec<_>>());
                sink.finish()
            }
            ItemOutput::Items(rows) => {
                live.found(rules).try_for_each(|found| rows.row(&found))?;
                rows.finish()
            }
        }
    }
}

impl fmt::Debug for ItemSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSink").field("rules", &self.rules).finish_non_exhaustive()
    }
}
