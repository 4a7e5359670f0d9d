//! Output: worker 0 emits every closed epoch in order, with its deltas, consolidated and sorted, and how far
//! the epoch has read the input.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::scheduling::Activator;

use super::causes::Causes;
use super::operator::Operator;
#[cfg(doc)]
use super::shared::kept_epochs::KeptEpochs;
use super::{Deltas, Stages};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocChange, Letter, Position, UpsertedDoc};
use dupflow_core::pair::{Cause, Delta, DocPair};
use dupflow_core::time::{
    Epoch, LastRecord, LiveFrom, Offsets, Progress, RetentionTime, TableInForce, UnixTime,
};
use dupflow_core::views::{ViewDelta, ViewRow};
use dupflow_run::metrics::{Counter, Metrics};
use dupflow_run::watch::{Notice, WatchMatch};

/// The results of one epoch, from all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedEpoch {
    /// The number of the epoch, and how far it has read the input.
    pub progress: Progress,
    /// Changes of pairs: sorted by (a, b, diff), distinct, each with diff 1 or -1.
    pub deltas: Vec<Delta>,
    /// Changes of live documents, if [requested](Stages::emits_documents): at most one for each document,
    /// sorted by id.
    pub documents: Vec<DocChange>,
    /// Changes of the rows of [views](Stages::views): sorted by (view, group, id, value, diff), distinct,
    /// each with diff 1 or -1.
    pub views: Vec<ViewDelta>,
    /// Documents with an upsert in the epoch, if [requested](Stages::emits_upserts), sorted by id. Restored
    /// documents are not among them.
    pub upserts: Vec<UpsertedDoc>,
    /// What a later run needs of these changes, if documents are [kept](Stages::keeps). The changes of one
    /// document are in order.
    pub kept: Vec<Changes>,
    /// Bytes of such changes that [other processes](KeptEpochs) have.
    pub kept_by_others: u64,
    /// Invalid records by position, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads the whole input: for each process, a hash of what it has read.
    /// The hashes are equal unless the processes have read different inputs.
    pub seen: BTreeMap<usize, u64>,
    /// Changes of what is similar to a watch, if there is a [list](Stages::watches): sorted by (watch, id,
    /// diff), distinct.
    pub notices: Vec<Notice>,
    /// The greatest time of the events, if it is [requested](Stages::times) and one of them has a time.
    pub newest: Option<UnixTime>,
}

/// Receives the closed epochs from the dataflow.
///
/// Contract: called on worker 0 only. A comparison must not block: while worker 0 waits, all workers wait.
pub trait Emit {
    /// An epoch is closed on all workers, with or without deltas. Epochs are passed in order and without
    /// gaps.
    fn closed(&mut self, epoch: ClosedEpoch);

    /// The input has ended, and every epoch of it has been passed to `closed`. The last comparison; not made
    /// if the run ends in another way.
    fn ended(&mut self);
}

/// What operators report of an epoch, except its deltas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum EpochReport {
    /// A batch has been read up to this position.
    Read(Position),
    /// The last record of a batch of this partition.
    Last(u32, LastRecord),
    /// The epoch has made this table of document frequencies.
    Table(TableInForce),
    /// Changes of documents: all changes of one document in an epoch are in one record.
    Documents(Vec<DocChange>),
    /// Documents with an upsert in the epoch, each in one record.
    Upserts(Vec<UpsertedDoc>),
    /// What is kept of the changed documents.
    Kept(Changes),
    /// The process of the worker has so many bytes of that itself.
    KeptByProcess(u64),
    /// An invalid record.
    Letter(Letter),
    /// The time of the retention clock.
    Clock(RetentionTime),
    /// The greatest time of the events of a batch.
    Newest(UnixTime),
    /// Causes by the hash of the document's id.
    Causes(Vec<(u64, Cause)>),
    /// A batch that all processes have read: the index of this process, and a hash of the batch.
    Seen(usize, u64),
    /// Changes of what is similar to a watch.
    Notices(Vec<(WatchMatch, isize)>),
}

/// What has been reported of an epoch that is still open.
#[derive(Default)]
struct OpenEpoch {
    deltas: Vec<(DocPair, isize)>,
    views: Vec<(ViewRow, isize)>,
    documents: Vec<DocChange>,
    upserts: Vec<UpsertedDoc>,
    kept: Vec<Changes>,
    kept_by_others: u64,
    letters: Vec<Letter>,
    seen: BTreeMap<usize, u64>,
    /// By partition, the offset after the last record read.
    next: Offsets,
    /// By partition, the last record read.
    last: BTreeMap<u32, LastRecord>,
    table: Option<TableInForce>,
    clock: Option<RetentionTime>,
    newest: Option<UnixTime>,
    causes: Causes,
    notices: Vec<(WatchMatch, isize)>,
}

/// The open epochs of one worker.
struct Closing {
    open: BTreeMap<Epoch, OpenEpoch>,
    /// That of the last epoch emitted.
    progress: Progress,
    live: Arc<LiveFrom>,
    metrics: Arc<Metrics>,
}

/// Collects all deltas and reports at worker 0. On each worker, the operator sets `open` to the first epoch
/// that is not closed, and activates `wake` so that the ingest reads it.
pub(super) fn output(
    deltas: Deltas<'_, DocPair>,
    rows: Option<Deltas<'_, ViewRow>>,
    reports: Stream<'_, Epoch, Vec<EpochReport>>,
    stages: &Stages,
    mut emit: Box<dyn Emit>,
    open: Rc<Cell<Epoch>>,
    wake: Activator,
) {
    let scope = deltas.scope();
    let is_first = scope.index() == 0;
    let mut operator = Operator::new("Output", scope);
    let mut deltas = operator.input(deltas, Exchange::new(|_: &(DocPair, Epoch, isize)| 0));
    let mut reports = operator.input(reports, Exchange::new(|_: &EpochReport| 0));
    let mut rows = rows.map(|rows| operator.input(rows, Exchange::new(|_: &(ViewRow, Epoch, isize)| 0)));
    let mut closing = Closing {
        open: BTreeMap::new(),
        progress: Progress { epoch: open.get() - 1, ..stages.start.past.clone() },
        live: Arc::clone(&stages.start.live),
        metrics: Arc::clone(&stages.observers.metrics),
    };
    let mut has_ended = false;
    operator.build(move |frontiers| {
        deltas.for_each_time(|_, data| {
            for (pair, epoch, diff) in data.flat_map(|d| d.drain(..)) {
                closing.open.entry(epoch).or_default().deltas.push((pair, diff));
            }
        });
        if let Some(rows) = &mut rows {
            rows.for_each_time(|_, data| {
                for (row, epoch, diff) in data.flat_map(|d| d.drain(..)) {
                    closing.open.entry(epoch).or_default().views.push((row, diff));
                }
            });
        }
        reports.for_each_time(|time, data| {
            let epoch = closing.open.entry(*time.time()).or_default();
            data.flat_map(|d| d.drain(..)).for_each(|report| epoch.add(report));
        });
        let first_open = frontiers.iter().filter_map(|f| f.frontier().first().copied()).min();
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
    });
}

impl OpenEpoch {
    fn add(&mut self, report: EpochReport) {
        match report {
            EpochReport::Read(Position { partition, offset }) => {
                let next = self.next.entry(partition).or_default();
                *next = offset.max(*next);
            }
            EpochReport::Last(partition, last) => {
                let so_far = self.last.entry(partition).or_insert(last);
                *so_far = last.max(*so_far);
            }
            EpochReport::Table(table) => self.table = Some(table),
            EpochReport::Documents(mut changes) => self.documents.append(&mut changes),
            EpochReport::Upserts(mut upserts) => self.upserts.append(&mut upserts),
            EpochReport::Kept(changes) => self.kept.push(changes),
            EpochReport::KeptByProcess(bytes) => self.kept_by_others += bytes,
            EpochReport::Clock(clock) => self.clock = self.clock.max(Some(clock)),
            EpochReport::Newest(newest) => self.newest = self.newest.max(Some(newest)),
            EpochReport::Causes(causes) => self.causes.add(causes),
            EpochReport::Letter(letter) => self.letters.push(letter),
            EpochReport::Notices(mut notices) => self.notices.append(&mut notices),
            EpochReport::Seen(process, hash) => {
                // Wrapping addition: the order of batches does not matter.
                let seen = self.seen.entry(process).or_default();
                *seen = seen.wrapping_add(hash);
            }
        }
    }
}

impl Closing {
    /// Emits every epoch before `first_open`; at the end of the input, every epoch up to the last one with
    /// records.
    fn close(&mut self, first_open: Option<Epoch>, emit: &mut dyn Emit) {
        let end = first_open.or_else(|| Some(self.open.last_key_value()?.0 + 1));
        for epoch in self.progress.epoch + 1..end.unwrap_or(0) {
            let mut open = self.open.remove(&epoch).unwrap_or_default();
            let notices = consolidated(std::mem::take(&mut open.notices));
            let (seen, next, last, table, clock, newest, causes) =
                (open.seen, open.next, open.last, open.table, open.clock, open.newest, open.causes);
            let kept_by_others = open.kept_by_others;
            let OpenEpoch { mut deltas, mut views, mut documents, mut upserts, kept, mut letters, .. } = open;
            documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            upserts.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            letters.sort_by_key(|letter| letter.position);
            consolidate(&mut deltas);
            consolidate(&mut views);
            views.sort_unstable();
            let views = views.into_iter().map(|(row, diff)| ViewDelta { row, diff }).collect();
            deltas.sort_unstable_by(|(a, i), (b, j)| (&a.pair, i, a).cmp(&(&b.pair, j, b)));
            let causes = causes.sorted();
            let is_live = self.live.holds(epoch);
            let deltas: Vec<_> = (deltas.into_iter())
                .map(|(pair, diff)| Delta { cause: causes.cause(&pair.pair, diff, is_live), pair, diff })
                .collect();
            let formed = deltas.iter().filter(|delta| delta.diff > 0).count();
            self.metrics.add(Counter::Formed, formed as u64);
            self.metrics.add(Counter::Dissolved, (deltas.len() - formed) as u64);
            self.metrics.add(Counter::Epochs, 1);
            self.progress.epoch = epoch;
            self.progress.table = table.or(self.progress.table);
            self.progress.clock = clock.max(self.progress.clock);
            for (partition, offset) in next {
                let so_far = self.progress.next.entry(partition).or_default();
                *so_far = offset.max(*so_far);
            }
            for (partition, record) in last {
                let so_far = self.progress.last.entry(partition).or_insert(record);
                *so_far = record.max(*so_far);
            }
            let progress = self.progress.clone();
            emit.closed(ClosedEpoch {
                progress,
                deltas,
                views,
                documents,
                upserts,
                kept,
                kept_by_others,
                letters,
                seen,
                notices,
                newest,
            });
        }
        if first_open.is_none() {
            emit.ended();
        }
    }
}

/// The notices of an epoch: consolidated, and sorted by (watch, id, diff).
fn consolidated(mut noticed: Vec<(WatchMatch, isize)>) -> Vec<Notice> {
    consolidate(&mut noticed);
    let diff = |diff: isize| if diff > 0 { 1 } else { -1 };
    let mut notices: Vec<_> =
        noticed.into_iter().map(|(of, change)| Notice { of, diff: diff(change) }).collect();
    notices.sort_unstable_by(|a, b| (&a.of.watch, &a.of.id, a.diff).cmp(&(&b.of.watch, &b.of.id, b.diff)));
    notices
}
