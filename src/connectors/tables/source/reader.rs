//! The reader of a table: rounds over its rows.

use std::sync::Arc;

use super::seen::SeenRows;
use super::table::{DatabaseTable, RowPage, TableRow, TableRows};
use crate::formats::{BadRecord, KeyedRecord, KeyedRecords, RecordPlace, RecordShape};
use crate::intake::{BadRecordAt, BadRecords, Batch, Closed, Payload, Queue, SourceError, SourceReader};
use crate::tables::database::DatabaseFailure;
use dupflow_core::doc::{Letter, Position};
use dupflow_core::time::Clock;

/// A batch is pushed once it has this many bytes or records.
const BATCH_BYTES: usize = 128 << 10;
const BATCH_RECORDS: usize = 128;

/// Reads a table.
pub(super) struct TableReader {
    reading: TableReading,
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
    /// Whether the present round has pushed a row.
    pushed: bool,
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

impl TableReader {
    pub(super) fn new(table: DatabaseTable, begin: u64) -> Self {
        Self { reading: TableReading::new(table, begin) }
    }
}

impl TableReading {
    pub(super) fn new(table: DatabaseTable, begin: u64) -> Self {
        let (input, shape) = (table.name().into(), table.shape());
        let greatest = begin.saturating_sub(1);
        Self {
            table,
            input,
            shape,
            pushed_to: begin,
            greatest,
            seen: SeenRows::default(),
            pushed: false,
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
    fn read(&mut self, queue: &Queue, bad: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError> {
        let Self { reading } = self;
        let DatabaseTable { follow, poll, is_here, .. } = reading.table;
        if !is_here {
            // Another process reads it.
            while follow && queue.pause(poll).is_ok() {}
            return Ok(());
        }
        let mut is_away = false;
        loop {
            let begun = clock.now();
            match reading.turn(queue, bad) {
                Ok(()) if !follow => return Ok(()),
                Ok(()) => {
                    if is_away {
                        tracing::info!("{}: it is there again", reading.input);
                        is_away = false;
                    }
                }
                Err(RoundEnd::Closed) => return Ok(()),
                Err(RoundEnd::Failed(error)) => return Err(error),
                Err(RoundEnd::Away(failure)) => {
                    if !is_away {
                        tracing::warn!("{}: {failure}; it is tried again until it is there", reading.input);
                    }
                    is_away = true;
                }
            }
            // Each round reads the rows of the overlap again. If that takes long, rounds are less frequent:
            // reading takes at most a tenth of the time.
            let took = clock.now().saturating_sub(begun);
            if queue.pause(poll.max(took.saturating_mul(9))).is_err() {
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
        if rows.has_changed().map_err(|failure| self.failed(failure))? {
            let ended = self.round(&mut *rows, queue, bad);
            if std::mem::take(&mut self.pushed) {
                // An epoch has each row at most once. The next round may read rows again, also after a round
                // that failed.
                queue.cut();
            }
            ended?;
        }
        queue.at_end(0);
        self.rows = Some(rows);
        Ok(())
    }

    fn round(&mut self, rows: &mut dyn TableRows, queue: &Queue, bad: &BadRecords) -> Result<(), RoundEnd> {
        let latest = rows.latest().map_err(|failure| self.failed(failure))?;
        let overlap = self.table.overlap(rows.order());
        let from = self.greatest.min(latest).saturating_sub(overlap);
        let mut open = KeyedRecords::with_shape(Arc::clone(&self.shape));
        let mut letters = Vec::new();
        let mut page = rows.page(Some(from)).map_err(|failure| self.failed(failure))?;
        let mut last = 0;
        loop {
            let RowPage { rows: found, is_last } = page;
            for row in found {
                let Some(order) = row.order else {
                    if self.seen.is_new(&row, u64::MAX) {
                        // Reported at the position of the rows before it.
                        self.bad(&row, self.greatest, BadRecord::BadTs, bad, &mut letters)?;
                    }
                    continue;
                };
                let line = queue.line(0);
                if line.is_some_and(|line| self.pushed_to < line && line <= order) {
                    // A batch up to the line, even if it has no records; then the rest.
                    let line = line.unwrap_or_default();
                    self.hand_over(&mut open, &mut letters, line, queue)?;
                }
                self.greatest = self.greatest.max(order.min(latest));
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
            self.seen.trim(self.greatest.saturating_sub(overlap));
            if is_last {
                break;
            }
            page = match rows.page(None) {
                Ok(next) => next,
                Err(failure) => {
                    // Rows of the open batch are marked as pushed already.
                    self.hand_over(&mut open, &mut letters, 0, queue)?;
                    return Err(self.failed(failure));
                }
            };
        }
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
