//! Output: every closed epoch in order, from one worker: its deltas, consolidated and sorted, and how far it
//! has read.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::progress::frontier::MutableAntichain;
use timely::scheduling::Activator;

use super::causes::Causes;
use super::{Deltas, Stages};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocChange, Letter, Position};
use dupflow_core::pair::{Cause, Delta, DocPair};
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::time::{Epoch, Offsets, Progress, RetentionTime, TableInForce};

/// All that an epoch has come to, on all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedEpoch {
    /// Its number, and how far it has read.
    pub progress: Progress,
    /// What it changes of the pairs: sorted by (a, b, diff), distinct, and of diff 1 or -1.
    pub deltas: Vec<Delta>,
    /// What it changes of the documents alive, if that is [told](Stages::tells_documents): one change of a
    /// document, sorted by id.
    pub documents: Vec<DocChange>,
    /// What a later run needs of these changes, if documents are [kept](Stages::keeps); of one document in
    /// order.
    pub kept: Vec<Changes>,
    /// Its records that are no events, by position, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads all: of each, a hash of what it has read. All are equal, or they
    /// have read different inputs.
    pub seen: BTreeMap<usize, u64>,
}

/// Takes what leaves the dataflow.
///
/// Contract: called on worker 0 only, where it must not wait: a worker that waits holds up all of them.
pub trait Emit {
    /// An epoch that is closed on all workers, whether it has deltas or not; epochs follow each other without
    /// gaps.
    fn closed(&mut self, epoch: ClosedEpoch);

    /// The input has ended, and every epoch of it has been given. Last, and never if the run ends in another
    /// way.
    fn ended(&mut self);
}

/// What an epoch has come to, beside its deltas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Reached {
    /// A batch has been read up to here.
    Read(Position),
    /// The epoch has made this table of document frequencies.
    Table(TableInForce),
    /// What has changed of documents: all that is told of one in an epoch.
    Documents(Vec<DocChange>),
    /// What is kept of documents that have changed.
    Kept(Changes),
    /// A record that is no event.
    Letter(Letter),
    /// The clock of retention has come to this time.
    Clock(RetentionTime),
    /// What was done to documents, by the hashes of their ids.
    Causes(Vec<(u64, Cause)>),
    /// A batch that all processes have read: by this one, a hash of what it was.
    Seen(usize, u64),
}

/// What is known of an epoch that is not closed.
#[derive(Default)]
struct OpenEpoch {
    deltas: Vec<(DocPair, isize)>,
    documents: Vec<DocChange>,
    kept: Vec<Changes>,
    letters: Vec<Letter>,
    seen: BTreeMap<usize, u64>,
    /// Of each partition that was read, the offset after what was read.
    next: Offsets,
    table: Option<TableInForce>,
    clock: Option<RetentionTime>,
    causes: Causes,
}

/// The epochs on their way out, on one worker.
struct Closing {
    open: BTreeMap<Epoch, OpenEpoch>,
    /// Of the last epoch that was given.
    progress: Progress,
    metrics: Arc<Metrics>,
}

/// Gathers all deltas, and what else epochs have come to, at worker 0. On each worker, `open` follows the
/// first epoch that is not closed, and `wake` gives the ingest a new look at it.
pub(super) fn output(
    deltas: Deltas<'_, DocPair>,
    reached: Stream<'_, Epoch, Vec<Reached>>,
    stages: &Stages,
    mut emit: Box<dyn Emit>,
    open: Rc<Cell<Epoch>>,
    wake: Activator,
) {
    let scope = deltas.scope();
    let is_first = scope.index() == 0;
    let mut builder = OperatorBuilder::new("Output".to_owned(), scope);
    let mut deltas = builder.new_input(deltas, Exchange::new(|_: &(DocPair, Epoch, isize)| 0));
    let mut reached = builder.new_input(reached, Exchange::new(|_: &Reached| 0));
    let mut closing = Closing {
        open: BTreeMap::new(),
        progress: Progress { epoch: open.get() - 1, ..stages.past.clone() },
        metrics: Arc::clone(&stages.metrics),
    };
    let mut has_ended = false;
    builder.build(move |_| {
        move |frontiers| {
            deltas.for_each_time(|_, data| {
                for (pair, epoch, diff) in data.flat_map(|d| d.drain(..)) {
                    closing.open.entry(epoch).or_default().deltas.push((pair, diff));
                }
            });
            reached.for_each_time(|time, data| {
                let epoch = closing.open.entry(*time.time()).or_default();
                data.flat_map(|d| d.drain(..)).for_each(|one| match one {
                    Reached::Read(Position { partition, offset }) => {
                        let next = epoch.next.entry(partition).or_default();
                        *next = offset.max(*next);
                    }
                    Reached::Table(table) => epoch.table = Some(table),
                    Reached::Documents(mut changes) => epoch.documents.append(&mut changes),
                    Reached::Kept(changes) => epoch.kept.push(changes),
                    Reached::Clock(clock) => epoch.clock = epoch.clock.max(Some(clock)),
                    Reached::Causes(causes) => epoch.causes.add(causes),
                    Reached::Letter(letter) => epoch.letters.push(letter),
                    Reached::Seen(process, hash) => {
                        // In any order of batches.
                        let seen = epoch.seen.entry(process).or_default();
                        *seen = seen.wrapping_add(hash);
                    }
                });
            });
            let first_open =
                frontiers.iter().filter_map(|f: &MutableAntichain<_>| f.frontier().first().copied()).min();
            if first_open.is_some_and(|epoch| epoch <= open.get())
                || mem::replace(&mut has_ended, first_open.is_none())
            {
                return;
            }
            if is_first {
                closing.close(first_open, &mut *emit);
            }
            open.set(first_open.unwrap_or(Epoch::MAX / 2));
            wake.activate();
        }
    });
}

impl Closing {
    /// Gives every epoch before `first_open`; at the end of the input, every one in which anything was read.
    fn close(&mut self, first_open: Option<Epoch>, emit: &mut dyn Emit) {
        let end = first_open.or_else(|| Some(self.open.last_key_value()?.0 + 1));
        for epoch in self.progress.epoch + 1..end.unwrap_or(0) {
            let OpenEpoch { mut deltas, mut documents, kept, mut letters, seen, next, table, clock, causes } =
                self.open.remove(&epoch).unwrap_or_default();
            documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            letters.sort_by_key(|letter| letter.position);
            consolidate(&mut deltas);
            deltas.sort_unstable_by(|(a, i), (b, j)| (&a.pair, i, a).cmp(&(&b.pair, j, b)));
            let causes = causes.sorted();
            let deltas: Vec<_> = (deltas.into_iter())
                .map(|(pair, diff)| Delta { cause: causes.of(&pair.pair, diff), pair, diff })
                .collect();
            self.metrics.add_causes(deltas.iter().map(|delta| delta.cause));
            let added = deltas.iter().filter(|delta| delta.diff > 0).count();
            self.metrics.add(Counter::Added, added as u64);
            self.metrics.add(Counter::Removed, (deltas.len() - added) as u64);
            self.metrics.add(Counter::Epochs, 1);
            self.progress.epoch = epoch;
            self.progress.table = table.or(self.progress.table);
            self.progress.clock = clock.max(self.progress.clock);
            for (partition, offset) in next {
                let so_far = self.progress.next.entry(partition).or_default();
                *so_far = offset.max(*so_far);
            }
            let progress = self.progress.clone();
            emit.closed(ClosedEpoch { progress, deltas, documents, kept, letters, seen });
        }
        if first_open.is_none() {
            emit.ended();
        }
    }
}
