//! The reader of a table: rounds over its rows.

use std::sync::Arc;
use std::time::Duration;

use super::frontier::Frontier;
use super::seen::{GivenDocuments, SeenRows};
use super::table::{DatabaseTable, RowPage, TableNow, TableRow, TableRows};
use super::transactions::Begun;
use crate::formats::{BadRecord, KeyedRecord, KeyedRecords, RecordPlace, RecordShape};
use crate::intake::{
    BadRecordAt, BadRecords, Batch, Closed, Payload, Queue, SourceError, SourceReader, TableLog,
};
use crate::mark::TableLook;
use crate::tables::database::{DatabaseFailure, is_of_limit, is_told};
use dupflow_core::doc::{Letter, Position};
use dupflow_core::time::{Clock, SystemClock};
use dupflow_run::backlog::Backlog;

/// A batch is pushed once it has this many bytes or records.
const BATCH_BYTES: usize = 128 << 10;
const BATCH_RECORDS: usize = 128;

/// A query, a view or a foreign table is read as a whole after so many polls, even if nothing was written:
/// its rows may depend on the time of day, or on another server.
const POLLS: u32 = 60;

/// Reading it as a whole takes at most this part of the time.
const OF_TIME: u32 = 10;

/// A run that does not follow ends after a statement has exceeded its time so many times in a row.
const EQUAL: u32 = 10;

/// The longest pause after a round.
const MOST_PAUSE: Duration = Duration::from_secs(60);

/// Reads a table.
pub(super) struct TableReader {
    pub(super) reading: TableReading,
    pub(super) backlog: Arc<Backlog>,
}

/// The state of reading a table.
pub(super) struct TableReading {
    table: DatabaseTable,
    input: Arc<str>,
    shape: Arc<RecordShape>,
    /// The last pushed position: everything before this offset has been read.
    pushed_to: u64,
    /// The greatest order that has been read.
    greatest: u64,
    seen: SeenRows,
    /// Which rows have been read, as the database counts them.
    frontier: Frontier,
    begun: Begun,
    /// Where the next round begins, if that is before the usual place.
    again: Option<u64>,
    /// The last look, and the looks for the marks.
    look: Option<TableLook>,
    log: Arc<TableLog>,
    /// Polls since the table was last read as a whole, if its rows may change without a write.
    polls: u32,
    /// When it was read as a whole, and how long that took; `None` before the first time.
    whole: Option<(SystemClock, Duration)>,
    /// The documents that it gives then.
    given: GivenDocuments,
    /// Whether the present round has pushed a row.
    pushed: bool,
    /// How long the present round has read, without waiting.
    took: Duration,
    /// The open table; `None` while the database cannot be reached.
    pub(super) rows: Option<Box<dyn TableRows>>,
}

/// What ends a round early.
pub(super) enum RoundEnd {
    Closed,
    Away(DatabaseFailure),
    Failed(SourceError),
}

impl From<Closed> for RoundEnd {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for RoundEnd {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

impl TableReading {
    /// Begins at a position. `look`: what the table was at the last look before it.
    pub(super) fn new(table: DatabaseTable, begin: u64, look: Option<TableLook>, log: Arc<TableLog>) -> Self {
        let (input, shape) = (table.name().into(), table.shape());
        let (below, rows) = look.as_ref().map(|look| (look.below, look.rows)).unwrap_or_default();
        Self {
            table,
            input,
            shape,
            pushed_to: begin,
            greatest: begin.saturating_sub(1),
            seen: SeenRows::default(),
            frontier: Frontier::new(below, rows),
            begun: Begun::new(below),
            again: look.as_ref().map(|look| look.below),
            look,
            log,
            polls: 0,
            whole: None,
            given: GivenDocuments::default(),
            pushed: false,
            took: Duration::ZERO,
            rows: None,
        }
    }

    fn failed(&self, failure: DatabaseFailure) -> RoundEnd {
        if failure.is_retriable() {
            RoundEnd::Away(failure)
        } else {
            RoundEnd::Failed(self.table.failed(&failure))
        }
    }

    fn batch(&self, records: KeyedRecords, letters: Vec<Letter>, next: u64) -> Batch {
        Batch {
            input: Arc::clone(&self.input),
            partition: 0,
            records: records.len() as u64,
            next,
            payload: Payload::Records(records),
            letters,
            seen: None,
        }
    }
}

impl SourceReader for TableReader {
    fn read(&mut self, queue: &Queue, bad: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        let Self { reading, backlog } = self;
        let DatabaseTable { follow, poll, is_here, .. } = reading.table;
        if !is_here {
            // Another process reads it.
            while follow && queue.pause(poll).is_ok() {}
            return Ok(());
        }
        let (mut attempts, mut equal, mut last) = (0, 0, None);
        loop {
            match reading.turn(queue, bad) {
                Ok(()) if !follow => return Ok(()),
                Ok(()) => {
                    if last.take().is_some() {
                        tracing::info!("{}: it is there again", reading.input);
                        backlog.away(None);
                    }
                    attempts = 0;
                }
                Err(RoundEnd::Closed) => return Ok(()),
                Err(RoundEnd::Failed(error)) => return Err(error),
                Err(RoundEnd::Away(failure)) => {
                    attempts += 1;
                    if is_told(attempts) {
                        let input = &reading.input;
                        tracing::warn!(attempts, "{input}: {failure}; it is tried again until it is there");
                    }
                    backlog.away(Some(format!("{}: {failure}", reading.input)));
                    equal = if last.as_ref() == Some(&failure) { equal + 1 } else { 1 };
                    if !follow && equal >= EQUAL && is_of_limit(&failure) {
                        return Err(reading.table.failed(&DatabaseFailure::Refused(format!(
                            "{failure}, {equal} times in a row: statement_timeout is too short for a page: \
                             raise it for the role (ALTER ROLE … SET statement_timeout), set a smaller \
                             source.page, or make the index that docs/tables.md advises"
                        ))));
                    }
                    last = Some(failure);
                }
            }
            // Each round reads the rows of the overlap again. If that takes long, rounds are less frequent:
            // reading takes at most a tenth of the time, as long as the pause is not too long.
            let took = std::mem::take(&mut reading.took);
            if queue.pause(poll.max(took.saturating_mul(9).min(MOST_PAUSE))).is_err() {
                return Ok(());
            }
        }
    }
}

impl TableReading {
    /// Reads a round, if the table may have changed.
    pub(super) fn turn(&mut self, queue: &Queue, bad: &BadRecords) -> Result<(), RoundEnd> {
        let mut rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.table.reach().map_err(|failure| self.failed(failure))?,
        };
        self.polls += 1;
        let has_changed = rows.has_changed().map_err(|failure| self.failed(failure))?;
        let is_whole = rows.is_derived() && self.is_whole_due();
        if has_changed || is_whole {
            let ended = self.round(&mut *rows, is_whole, queue, bad);
            // An epoch has each row at most once. The next round may read rows again, also after a round that
            // failed.
            let epoch = if std::mem::take(&mut self.pushed) { queue.cut() } else { queue.open() };
            ended?;
            if let Some(look) = &self.look {
                self.log.add(epoch, look.clone());
            }
        }
        queue.at_end(0);
        self.rows = Some(rows);
        Ok(())
    }

    /// Whether a table whose rows may change without a write is to be read as a whole.
    fn is_whole_due(&self) -> bool {
        let is_rested = |(since, took): &(SystemClock, Duration)| since.now() >= took.saturating_mul(OF_TIME);
        self.whole.as_ref().is_none_or(|whole| self.polls >= POLLS && is_rested(whole))
    }

    fn round(
        &mut self,
        rows: &mut dyn TableRows,
        is_whole: bool,
        queue: &Queue,
        bad: &BadRecords,
    ) -> Result<(), RoundEnd> {
        let overlap = self.table.overlap(rows.order());
        let is_derived = rows.is_derived();
        let (TableNow { latest, look, transactions, .. }, mut from) = self.look(rows, overlap)?;
        let is_whole = is_whole || self.again == Some(0) && is_derived;
        let clock = SystemClock::start();
        if is_whole {
            (self.frontier, self.again, from) = (Frontier::new(0, 0), Some(0), 0);
            self.given.begin();
        }
        // Rows may still be added from here on, unless an open transaction has begun before.
        let usual = |greatest: u64| greatest.min(latest).saturating_sub(overlap);
        self.begun.look(transactions, latest.saturating_sub(overlap));
        let held = self.begun.least();
        self.frontier.begin(from);
        let mut open = KeyedRecords::with_shape(Arc::clone(&self.shape));
        let mut letters = Vec::new();
        let mut page = self.page(rows, Some(from))?;
        let mut last = 0;
        loop {
            let RowPage { rows: found, is_last } = page;
            // An earlier round may have read further than this page.
            let mut page_end = if is_last { u64::MAX } else { from };
            for row in found {
                if is_derived {
                    self.given.row(&row, row.order);
                }
                let Some(order) = row.order else {
                    if self.seen.is_new(&row, u64::MAX) {
                        // Reported at the position of the rows before it.
                        self.bad(&row, self.greatest, BadRecord::BadTs, bad, &mut letters)?;
                    }
                    continue;
                };
                page_end = page_end.max(order);
                if order < from {
                    // Times in several notations are sorted by their days only. It was read before, or else
                    // the next look counts it.
                    continue;
                }
                let line = queue.line(0);
                if line.is_some_and(|line| self.pushed_to < line && line <= order) {
                    // A batch up to the line, even if it has no records; then the rest.
                    let line = line.unwrap_or_default();
                    self.hand_over(&mut open, &mut letters, line, queue)?;
                }
                self.greatest = self.greatest.max(order.min(latest));
                self.frontier.row(order, !row.deleted && row.id.is_ok() && row.text.is_some());
                if !self.seen.is_new(&row, order) {
                    continue;
                }
                // Times in several notations are not sorted by their texts.
                if order < last {
                    self.hand_over(&mut open, &mut letters, 0, queue)?;
                }
                (self.pushed, last) = (true, order);
                match (&row.id, &row.text) {
                    (Err(reason), _) => self.bad(&row, order, *reason, bad, &mut letters)?,
                    (Ok(_), None) if !row.deleted => {
                        self.bad(&row, order, BadRecord::MissingText, bad, &mut letters)?;
                    }
                    (Ok(id), _) => put(&mut open, id, &row, order),
                }
                if open.len() >= BATCH_RECORDS || open.bytes() >= BATCH_BYTES {
                    // More rows with this order may follow.
                    self.hand_over(&mut open, &mut letters, order.min(latest), queue)?;
                }
            }
            // The next page may have earlier times of the same day.
            let page_end = if is_last { page_end } else { rows.sorted(page_end) };
            let passed = usual(self.greatest).min(held).min(page_end);
            if !is_derived {
                self.seen.trim(passed);
            }
            self.frontier.advance(passed);
            if is_last {
                break;
            }
            page = match self.page(rows, None) {
                Ok(next) => next,
                Err(failure) => {
                    // Rows of the open batch are marked as pushed already.
                    self.hand_over(&mut open, &mut letters, 0, queue)?;
                    return Err(failure);
                }
            };
        }
        if is_whole {
            self.end_documents(&mut open, &mut letters, queue)?;
            (self.polls, self.whole) = (0, Some((SystemClock::start(), clock.now())));
        }
        self.again = None;
        self.look = Some(TableLook {
            below: self.frontier.below(),
            rows: self.frontier.rows(),
            greatest: self.frontier.greatest().min(latest),
            ..look
        });
        let end = queue.line(0).unwrap_or(0).max(if self.greatest == 0 && !self.pushed {
            0
        } else {
            self.greatest + 1
        });
        if self.pushed || end > self.pushed_to {
            self.hand_over(&mut open, &mut letters, end, queue)?;
        }
        Ok(())
    }

    /// Ends the documents that a reading of the whole table has no longer given.
    fn end_documents(
        &mut self,
        open: &mut KeyedRecords,
        letters: &mut Vec<Letter>,
        queue: &Queue,
    ) -> Result<(), Closed> {
        let ended = self.given.ended();
        if ended.is_empty() {
            return Ok(());
        }
        // Their orders begin anew.
        self.hand_over(open, letters, 0, queue)?;
        self.pushed = true;
        for (order, id) in ended {
            self.seen.forget(&id);
            open.push(KeyedRecord { offset: order, ts: None, key: Some(&id), value: None });
            if open.len() >= BATCH_RECORDS || open.bytes() >= BATCH_BYTES {
                self.hand_over(open, letters, 0, queue)?;
            }
        }
        Ok(())
    }

    /// Reads a page, and measures how long that takes.
    fn page(&mut self, rows: &mut dyn TableRows, from: Option<u64>) -> Result<RowPage, RoundEnd> {
        rows.begin_page().map_err(|failure| self.failed(failure))?;
        let clock = SystemClock::start();
        let page = rows.page(from).map_err(|failure| self.failed(failure))?;
        self.took += clock.now();
        rows.end_page().map_err(|failure| self.failed(failure))?;
        Ok(page)
    }

    /// Looks at the table, and compares it with the last look. A regression of the order ends the run; a
    /// table that may change without a write is read as a whole instead. Also returns where the round begins.
    fn look(&mut self, rows: &mut dyn TableRows, overlap: u64) -> Result<(TableNow, u64), RoundEnd> {
        let usual = |now: &TableNow| self.greatest.min(now.latest).saturating_sub(overlap);
        let Some(was) = &self.look else {
            // Nothing is known of the rows before the position.
            let begin = self.greatest.saturating_sub(overlap);
            let now = rows.look(&mut |_| (begin > 0).then_some(begin));
            let now = now.map_err(|failure| self.failed(failure))?;
            let from = self.again.unwrap_or(u64::MAX).min(usual(&now));
            self.frontier = Frontier::new(begin, now.below.unwrap_or(0));
            self.begun = Begun::new(begin);
            return Ok((now, from));
        };
        // All that is below the beginning of the round has been read, unless a transaction was open before
        // anything was read: it may have written anywhere.
        let (mut from, mut counted, mut is_anew) = (0, None, false);
        let mut bound = |now: &TableNow| {
            let ended = self.begun.ended(&now.transactions);
            from = [self.again, ended].into_iter().flatten().fold(usual(now), u64::min);
            is_anew = ended.is_some_and(|order| order < self.frontier.below());
            counted = self.frontier.is_due(from).filter(|_| !is_anew);
            counted
        };
        let now = rows.look(&mut bound).map_err(|failure| self.failed(failure))?;
        let difference = difference(rows, was, &now).map_err(|failure| self.failed(failure))?;
        let regression = regression(rows, was, &now);
        let is_derived = rows.is_derived();
        if is_anew {
            (self.frontier, from) = (Frontier::new(0, 0), 0);
        }
        let more = counted.zip(now.below).map_or(0, |(order, found)| self.frontier.count(order, found));
        // All documents are known that it has given.
        let is_known = is_derived && self.whole.is_some();
        let refused = difference.or(regression.clone().filter(|_| !is_known));
        if let Some(what) = refused.or_else(|| arrived(more).filter(|_| !is_derived)) {
            return Err(RoundEnd::Failed(self.table.regressed(&what)));
        }
        if is_derived && (more > 0 || regression.is_some()) {
            from = 0;
        }
        self.again = Some(from);
        Ok((now, from))
    }

    /// Pushes the open batch, and reports that everything before `next` has been read.
    fn hand_over(
        &mut self,
        open: &mut KeyedRecords,
        letters: &mut Vec<Letter>,
        next: u64,
        queue: &Queue,
    ) -> Result<(), Closed> {
        let records = std::mem::replace(open, KeyedRecords::with_shape(Arc::clone(&self.shape)));
        let next = next.max(self.pushed_to);
        queue.push(self.batch(records, std::mem::take(letters), next))?;
        self.pushed_to = next;
        Ok(())
    }

    fn bad(
        &self,
        row: &TableRow,
        offset: u64,
        reason: BadRecord,
        bad: &BadRecords,
        letters: &mut Vec<Letter>,
    ) -> Result<(), SourceError> {
        let raw = row.text.as_deref();
        let at = BadRecordAt {
            reason,
            input: Arc::clone(&self.input),
            place: RecordPlace::Offset(offset),
            cause: row.id.as_ref().ok().map(|id| format!("id \"{}\"", String::from_utf8_lossy(id))),
        };
        letters.extend(bad.letter(|| Letter {
            input: Arc::clone(&self.input),
            position: Position { partition: 0, offset },
            reason: reason.reason().into(),
            key: row.id.clone().ok(),
            raw: raw.map(<[u8]>::to_vec),
            hides_records: at.hides_records(),
        }));
        bad.report(at, raw.unwrap_or_default(), &mut std::io::empty())
    }
}

/// How the table differs from the last look at it, if it is another table.
pub(super) fn difference(
    rows: &mut dyn TableRows,
    was: &TableLook,
    now: &TableNow,
) -> Result<Option<String>, DatabaseFailure> {
    if let Some(what) = was.another(&now.look) {
        return Ok(Some(what));
    }
    if let Some(what) = was.decrease(&now.look) {
        // A standby that has restarted, or another one, may not have replayed yet what was read.
        let is_behind = now.transactions.is_partial;
        return if is_behind {
            Err(DatabaseFailure::Away(format!("standby: {what}")))
        } else {
            Ok(Some(what))
        };
    }
    let moved = was.storage.zip(now.look.storage).filter(|((was, _), (is, _))| was != is);
    if let Some(((_, since), _)) = moved
        && rows.is_rewritten(was.below.max(was.greatest), since)?
    {
        return Ok(Some("all its rows were written anew".to_owned()));
    }
    Ok(None)
}

/// How the greatest order has regressed since the last look, if it has.
pub(super) fn regression(rows: &dyn TableRows, was: &TableLook, now: &TableNow) -> Option<String> {
    let (is, read) = (now.newest, was.greatest);
    let is_lower = rows.sorted(is) < rows.sorted(read);
    is_lower.then(|| format!("its greatest {} is {is}, and {read} had been read", rows.order().name()))
}

/// Describes rows that were added where all had been read; `None` if there are none.
pub(super) fn arrived(rows: u64) -> Option<String> {
    let come = if rows == 1 { "1 row has come".to_owned() } else { format!("{rows} rows have come") };
    (rows > 0).then(|| {
        format!(
            "{come} where all rows had been read: restored, written with an older order, or committed later \
             than source.overlap allows"
        )
    })
}

/// Adds a row to a batch.
fn put(open: &mut KeyedRecords, id: &[u8], row: &TableRow, offset: u64) {
    let value = row.text.as_deref().filter(|_| !row.deleted);
    open.push(KeyedRecord { offset, ts: row.ts, key: Some(id), value });
    for (which, field) in row.fields.iter().enumerate() {
        if let Some(field) = field {
            open.push_header(which, field);
        }
    }
}
