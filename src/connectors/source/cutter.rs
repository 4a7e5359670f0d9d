//! Cuts a run of records into batches and epochs.
//!
//! Records come in one by one, in order; [`Batch`]es go to the [`Queue`]. A batch ends with its input, with
//! its epoch, at a bad record, before the reader waits for more input, and as soon as it has
//! [`BATCH_RECORDS`] records or [`BATCH_BYTES`] bytes.

use std::mem;
use std::sync::Arc;

use super::batch::{Batch, FileDocument, KeyedRecord, Payload, Records, is_blank};
use super::formats::{Row, Text};
use super::queue::{Closed, Queue};
use super::speed::{Pace, Speed};
use super::{EpochRule, LineRules, Shape, Share, SourceError};
use dupflow_core::doc::{Letter, Position};
use dupflow_core::hash;
use dupflow_core::time::Clock;

/// Why reading ends before the input does.
#[derive(Debug)]
pub(super) enum Ended {
    Closed,
    Failed(SourceError),
}

impl From<Closed> for Ended {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for Ended {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

/// The partition of all recorded inputs together.
pub(super) const PARTITION: u32 = 0;

/// Records after which a batch is full, inclusive: an epoch of 1,000 short records makes 8 batches, so that 2
/// to 4 workers share it evenly.
const BATCH_RECORDS: u64 = 128;

/// Bytes after which a batch is full, inclusive: the same for long records, and a batch stays within a core's
/// second-level cache between the reader and the worker.
const BATCH_BYTES: usize = 128 << 10;

/// See the [module](self).
pub(super) struct Cutter<'q> {
    queue: &'q Queue,
    clock: &'q dyn Clock,
    rule: EpochRule,
    pace: Option<Pace>,

    share: Share,
    /// Batches that have been made.
    batches: u64,
    /// The offset of the first record that is handed over; those before it are passed by.
    begin: u64,
    /// Where the partition has a line: a batch ends there.
    line_at: Option<u64>,
    /// The offset of the next record.
    next: u64,
    /// [`Batch::next`] of the last batch that was handed over.
    told: u64,
    /// Records in the open epoch so far, bad ones included.
    in_epoch: u64,
    /// The bits of the last `ts`.
    last_ts: Option<u64>,

    input: Arc<str>,
    /// How its lines are understood.
    rules: Arc<LineRules>,
    /// The next line's number.
    line: u64,
    /// The open batch: its first line, its records so far, and one of the three payloads.
    first_line: u64,
    records: u64,
    lines: Vec<u8>,
    files: Vec<FileDocument>,
    file_bytes: u64,
    rows: Records,
    /// Of bad records since the last batch.
    letters: Vec<Letter>,
}

impl<'q> Cutter<'q> {
    pub(super) fn new(
        queue: &'q Queue,
        clock: &'q dyn Clock,
        rule: EpochRule,
        speed: Speed,
        share: Share,
        begin: u64,
    ) -> Self {
        Self {
            queue,
            share,
            batches: 0,
            begin,
            line_at: queue.line(PARTITION),
            clock,
            rule,
            pace: Pace::new(speed),
            next: 0,
            told: 0,
            in_epoch: 0,
            last_ts: None,
            input: "".into(),
            rules: Arc::default(),
            line: 1,
            first_line: 1,
            records: 0,
            lines: Vec::new(),
            files: Vec::new(),
            file_bytes: 0,
            rows: Records::default(),
            letters: Vec::new(),
        }
    }

    /// Whether it is told if the next record is bad.
    pub(super) fn tells(&self) -> bool {
        self.is_wanted() && self.share.tells()
    }

    /// Whether the next record is handed over, or passed by.
    fn is_wanted(&self) -> bool {
        self.next >= self.begin
    }

    /// What follows belongs to this input.
    pub(super) fn begin(&mut self, input: Arc<str>) -> Result<(), Closed> {
        self.flush()?;
        self.input = input;
        self.rules = Arc::default();
        self.line = 1;
        self.first_line = 1;
        Ok(())
    }

    /// The lines of the input are understood so. Before the first one that is a record.
    pub(super) fn understand(&mut self, rules: LineRules) {
        self.rules = Arc::new(rules);
    }

    /// What follows are rows of a file, in this shape; the first one has this offset.
    pub(super) fn rows_of(&mut self, shape: &Arc<Shape>, first: u64) {
        self.rows = Records::of_file(Arc::clone(shape), first);
    }

    /// The number of the line that is read next, from 1.
    pub(super) fn line_number(&self) -> u64 {
        self.line
    }

    /// Where the next line is to be appended. Only [`Self::line`] or [`Self::take_line`] may follow.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.lines
    }

    /// Takes back what was appended to the buffer from `start`.
    pub(super) fn take_line(&mut self, start: usize) -> Vec<u8> {
        self.lines.split_off(start)
    }

    /// The buffer holds one more line, from `start`.
    pub(super) fn line(&mut self, start: usize) -> Result<(), Closed> {
        let blank = is_blank(&self.lines[start..]);
        if !blank && self.is_wanted() && (self.pace.is_some() || self.rule == EpochRule::Ts) {
            self.heed_line(start)?;
        }
        self.line += 1;
        if !blank {
            return self.record();
        }
        if self.records == 0 {
            self.lines.clear();
            self.first_line = self.line;
        }
        self.flush_if_full()
    }

    /// One more file of a folder.
    pub(super) fn file(&mut self, file: FileDocument) -> Result<(), Closed> {
        self.file_bytes += file.bytes;
        self.files.push(file);
        self.record()
    }

    /// One more row of a file, of the document of this id.
    pub(super) fn row(&mut self, id: &[u8], row: &Row) -> Result<(), Closed> {
        if let Some(ts) =
            row.ts.filter(|_| self.is_wanted() && (self.pace.is_some() || self.rule == EpochRule::Ts))
        {
            self.heed(ts, |_| {}, |_, ()| {})?;
        }
        let value = match &row.text {
            Text::Is(text) => Some(&**text),
            Text::Deleted | Text::Missing => None,
        };
        self.rows.push(KeyedRecord { offset: self.next, ts: row.ts, key: Some(id), value });
        row.fields.iter().enumerate().for_each(|(which, field)| self.rows.push_header(which, field));
        self.record()
    }

    /// The next record is sound, and holds no document: it has a position, and is none of an epoch's events.
    pub(super) fn passed_over(&mut self) -> Result<(), Closed> {
        self.next += 1;
        if self.next <= self.begin {
            self.pass_by();
            return Ok(());
        }
        if self.line_at == Some(self.next) { self.flush() } else { self.flush_if_full() }
    }

    /// The reader is about to wait for input, with no line begun.
    pub(super) fn wait(&mut self) -> Result<(), Closed> {
        self.flush()
    }

    /// The queue that it hands over to.
    pub(super) fn queue(&self) -> &'q Queue {
        self.queue
    }

    /// Whether all has been read that was read before: where the run begins, and up to the line that is
    /// ahead.
    pub(super) fn is_past_line(&self) -> bool {
        self.next >= self.begin && self.queue.line(PARTITION).is_none_or(|line| line <= self.next)
    }

    /// The next record is bad, and this is kept of it with its epoch; what came before is handed over.
    pub(super) fn keep(&mut self, letter: Letter) -> Result<(), Closed> {
        if self.records > 0 {
            self.flush()?;
        }
        self.letters.push(letter);
        Ok(())
    }

    /// Where the next record stands.
    pub(super) fn position(&self) -> Position {
        Position { partition: PARTITION, offset: self.next }
    }

    /// One record that was reported as bad: it has a position, and is in no batch. It took `lines` lines.
    pub(super) fn bad(&mut self, lines: u64) -> Result<(), Closed> {
        if self.records > 0 {
            self.flush()?;
        }
        self.line += lines;
        self.first_line = self.line;
        self.count()
    }

    /// Hands over what is whole, since the reader is about to wait for input; keeps the line that has begun
    /// at `start`, and says where it begins now.
    pub(super) fn hand_over(&mut self, start: usize) -> Result<usize, Closed> {
        if self.told == self.next {
            return Ok(start);
        }
        let begun = self.take_line(start);
        self.flush()?;
        self.lines.extend_from_slice(&begun);
        Ok(0)
    }

    /// Hands over the rest; the offset after the last record.
    pub(super) fn finish(mut self) -> Result<u64, Closed> {
        self.flush()?;
        Ok(self.next)
    }

    /// The open batch has one more record.
    fn record(&mut self) -> Result<(), Closed> {
        self.records += 1;
        self.count()
    }

    /// The open epoch has one more record, which may close it.
    fn count(&mut self) -> Result<(), Closed> {
        self.next += 1;
        if self.next <= self.begin {
            self.pass_by();
            return Ok(());
        }
        self.in_epoch += 1;
        if self.line_at == Some(self.next) {
            self.flush()?;
        }
        // An epoch that the clock has ended has no more of them than this.
        if self.rule.events().is_some_and(|events| self.in_epoch == events.get()) {
            self.flush()?;
            self.close_epoch();
            return Ok(());
        }
        self.flush_if_full()
    }

    /// The same for the line at `start`, if it has a time.
    fn heed_line(&mut self, start: usize) -> Result<(), Closed> {
        let Some(ts) = self.rules.timestamp(&self.lines[start..]) else { return Ok(()) };
        self.heed(ts, |all| all.take_line(start), |all, line| all.lines = line)
    }

    /// Opens an epoch before the next record if its `ts` is new, and waits until it is due. What has been
    /// read of it is taken out of the open batch, and put into the next one.
    fn heed<T>(
        &mut self,
        ts: f64,
        take: impl FnOnce(&mut Self) -> T,
        put: impl FnOnce(&mut Self, T),
    ) -> Result<(), Closed> {
        let before = self.last_ts.replace(ts.to_bits());
        let opens = self.rule == EpochRule::Ts && before.is_some_and(|before| before != ts.to_bits());
        let wait = self.pace.as_mut().and_then(|pace| pace.wait(ts, self.clock.now()));
        if opens || wait.is_some() {
            // What came before must not wait with this record.
            let taken = take(self);
            self.flush()?;
            put(self, taken);
        }
        if opens {
            self.close_epoch();
        }
        wait.map_or(Ok(()), |wait| self.queue.pause(wait))
    }

    /// Drops the open batch, which has been read before.
    fn pass_by(&mut self) {
        self.told = self.next;
        self.records = 0;
        self.first_line = self.line;
        self.lines.clear();
        self.files.clear();
        self.file_bytes = 0;
        self.rows.clear();
    }

    fn close_epoch(&mut self) {
        self.in_epoch = 0;
        self.queue.cut();
    }

    fn flush_if_full(&mut self) -> Result<(), Closed> {
        let bytes = self.lines.len() as u64 + self.file_bytes + self.rows.bytes() as u64;
        if self.records >= BATCH_RECORDS || bytes >= BATCH_BYTES as u64 { self.flush() } else { Ok(()) }
    }

    /// Hands over the open batch, if it has a record or one was bad, and opens the next one at the current
    /// line.
    fn flush(&mut self) -> Result<(), Closed> {
        let records = mem::take(&mut self.records);
        let first_line = mem::replace(&mut self.first_line, self.line);
        if self.told == self.next {
            return Ok(());
        }
        self.told = self.next;
        self.file_bytes = 0;
        let first = self.next - records;
        let payload = if !self.files.is_empty() {
            Payload::Files { files: mem::take(&mut self.files), first }
        } else if !self.rows.is_empty() {
            let empty = self.rows.emptied();
            Payload::Records(mem::replace(&mut self.rows, empty))
        } else if records > 0 {
            // The next batch is probably as large; but one huge line does not make them all so.
            let bytes = mem::replace(&mut self.lines, self.queue.buffer());
            Payload::Lines { bytes, first_line, first, rules: Arc::clone(&self.rules) }
        } else {
            nothing(first_line, first)
        };
        let (input, letters) = (Arc::clone(&self.input), mem::take(&mut self.letters));
        let mut batch =
            Batch { input, partition: PARTITION, records, next: self.next, payload, letters, seen: None };
        let Share { index, count, reads_all } = self.share;
        if count > 1 && reads_all {
            batch.seen = Some(digest(&batch));
            let is_here = self.batches % count as u64 == index as u64;
            self.batches += 1;
            if !is_here {
                // Others read it; what it was is told all the same.
                batch.records = 0;
                batch.payload = nothing(first_line, first);
            }
        }
        self.queue.push(batch)
    }
}

/// No records.
fn nothing(first_line: u64, first: u64) -> Payload {
    Payload::Lines { bytes: Vec::new(), first_line, first, rules: Arc::default() }
}

/// A hash of what a batch holds and where.
fn digest(batch: &Batch) -> u64 {
    let mut digest = hash::mix(batch.next);
    let mut add = |bytes: &[u8]| digest = hash::bytes(digest, bytes);
    match &batch.payload {
        Payload::Lines { bytes, .. } => add(bytes),
        Payload::Files { files, .. } => files.iter().for_each(|file| {
            add(file.id.as_bytes());
            add(&file.bytes.to_le_bytes());
        }),
        Payload::Records(records) => records.iter().for_each(|record| {
            add(record.key.unwrap_or_default());
            add(record.value.unwrap_or_default());
        }),
        Payload::Kept(_) => {}
    }
    digest
}
