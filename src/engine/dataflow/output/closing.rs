//! Closing: the open epochs on worker 0, and what is emitted of one that closes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::consolidation::consolidate;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::scheduling::Activator;

use super::causes::Causes;
use super::report::{ClosedEpoch, Emit, EpochReport};
use crate::dataflow::operator::{Deltas, Operator};
use crate::dataflow::stages::Stages;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocChange, Letter, Position, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{
    Epoch, LastRecord, LiveFrom, Offsets, Progress, RetentionTime, TableInForce, UnixTime,
};
use dupflow_core::views::{ViewDelta, ViewRow};
use dupflow_run::metrics::{Counter, Metrics};
use dupflow_run::watch::{Notice, WatchMatch};

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
pub(in crate::dataflow) fn output(
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
