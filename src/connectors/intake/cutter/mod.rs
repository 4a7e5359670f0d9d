//! Cuts a stream of records into batches and epochs.
//!
//! The reader adds records one by one, in order; [`Batch`]es are pushed to the [`Queue`]. A batch ends when
//! its input or its epoch ends, at a bad record, before the reader waits for input, and when it has
//! [`BATCH_RECORDS`] records or [`BATCH_BYTES`] bytes.

mod epochs;
mod share;
mod speed;

use std::mem;
use std::sync::Arc;

pub use epochs::{EpochRule, interval};
pub use share::Share;
use speed::ReplayPace;
pub use speed::Speed;

use super::batch::{Batch, FileDocument, Payload, is_blank};
use super::error::SourceError;
use super::input_log::{InputLog, ReadBytes};
use super::queue::{Closed, Queue};
use crate::formats::feed::LineRules;
use crate::formats::{FileRow, KeyedRecord, KeyedRecords, RecordShape, RowText};
use dupflow_core::doc::{Letter, Position};
use dupflow_core::hash;
use dupflow_core::time::Clock;

/// Why reading stops before the end of the input.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    Closed,
    Failed(SourceError),
}

impl From<Closed> for ReadEnd {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for ReadEnd {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

/// The partition number of all recorded inputs.
pub(crate) const PARTITION: u32 = 0;

/// Records in a full batch, inclusive. An epoch of 1,000 short records is 8 batches, which 2 to 4 workers
/// share evenly.
const BATCH_RECORDS: u64 = 128;

/// Bytes in a full batch, inclusive: the limit for long records. A batch stays within a core's second-level
/// cache between the reader and the worker.
const BATCH_BYTES: usize = 128 << 10;

/// Bytes before a position that are hashed, so that a later run notices another file. 4 KiB.
const END_BYTES: usize = 4 << 10;

/// Cuts records into batches and epochs; see the [module](self).
pub(crate) struct Cutter<'q> {
    queue: &'q Queue,
    clock: &'q dyn Clock,
    rule: EpochRule,
    pace: Option<ReplayPace>,

    share: Share,
    /// Batches made so far, including those of other processes.
    batches: u64,
    /// The offset of the first record that is pushed; earlier ones are skipped.
    begin: u64,
    /// The line that this partition has to reach; a batch ends there.
    line_at: Option<u64>,
    /// The offset of the next record.
    next: u64,
    /// [`Batch::next`] of the last batch that was pushed.
    pushed_to: u64,
    /// Records in the open epoch, including bad ones.
    in_epoch: u64,
    /// The bits of the last record time.
    last_ts: Option<u64>,

    input: Arc<str>,
    /// The rules for its lines.
    rules: Arc<LineRules>,
    /// The number of the next line.
    line: u64,
    /// The open batch: its first line, its number of records, and one of the three payloads below.
    first_line: u64,
    records: u64,
    lines: Vec<u8>,
    files: Vec<FileDocument>,
    file_bytes: u64,
    rows: KeyedRecords,
    /// Bad records since the last batch.
    letters: Vec<Letter>,

    /// Where is noted how far each batch has read.
    list: Option<Arc<InputLog>>,
    /// Records of the present input that are still skipped, without taking an offset.
    skipped: u64,
    /// The byte after the last line, and the last bytes before it, at most [`END_BYTES`] after a flush.
    byte: Option<u64>,
    end: Vec<u8>,
}

impl<'q> Cutter<'q> {
    pub(crate) fn new(
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
            pace: ReplayPace::new(speed),
            next: 0,
            pushed_to: 0,
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
            rows: KeyedRecords::default(),
            letters: Vec::new(),
            list: None,
            skipped: 0,
            byte: None,
            end: Vec::new(),
        }
    }

    /// The same, with how far each batch has read noted in a list.
    pub(crate) fn noting(self, list: Option<Arc<InputLog>>) -> Self {
        Self { list, ..self }
    }

    /// Whether this process reports the next record if it is bad.
    pub(crate) fn reports(&self) -> bool {
        self.is_wanted() && self.share.reports()
    }

    /// Whether the next record is pushed; otherwise it is skipped.
    fn is_wanted(&self) -> bool {
        self.next >= self.begin && self.skipped == 0
    }

    /// Begins the next input.
    pub(crate) fn begin(&mut self, input: Arc<str>) -> Result<(), Closed> {
        self.flush()?;
        self.input = input;
        self.rules = Arc::default();
        self.line = 1;
        self.first_line = 1;
        self.skipped = 0;
        self.byte = None;
        self.end.clear();
        Ok(())
    }

    /// Skips the first records of the present input, which have their offsets already.
    pub(crate) fn skip_first(&mut self, records: u64) {
        self.skipped = records;
    }

    /// Whether records of the present input are still skipped.
    pub(crate) fn skips(&self) -> bool {
        self.skipped > 0
    }

    /// The number of the next record if those that are skipped counted.
    pub(crate) fn number(&self) -> u64 {
        self.next.saturating_sub(self.skipped)
    }

    /// The number of the first record of an input that has just begun, counted in the same way.
    pub(crate) fn first_of_input(&self) -> u64 {
        self.number()
    }

    /// Whether the run is live once everything has been read, wherever that ends.
    pub(crate) fn reads_to_end(&self) -> bool {
        self.queue.line(PARTITION) == Some(u64::MAX)
    }

    /// The offset of the first record that is pushed.
    pub(crate) fn begins_at(&self) -> u64 {
        self.begin
    }

    /// Leaves out offsets: their records cannot be read again.
    pub(crate) fn leave_out(&mut self, records: u64) -> Result<(), Closed> {
        self.flush()?;
        self.next += records;
        if self.next <= self.begin {
            self.pushed_to = self.next;
        }
        Ok(())
    }

    /// Sets the rules of the input's lines, before the first line that is a record.
    pub(crate) fn set_rules(&mut self, rules: LineRules) {
        self.rules = Arc::new(rules);
    }

    /// Begins the rows of a file in this shape; the first one has the offset `first`.
    pub(crate) fn rows_of(&mut self, shape: &Arc<RecordShape>, first: u64) {
        self.rows = KeyedRecords::for_file(Arc::clone(shape), first);
    }

    /// The number of the next line, from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.line
    }

    /// The buffer to which the reader appends the next line, before [`Self::line`] or [`Self::take_line`].
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.lines
    }

    /// Removes the bytes from `start` on from the buffer.
    pub(crate) fn take_line(&mut self, start: usize) -> Vec<u8> {
        self.lines.split_off(start)
    }

    /// Completes the line in the buffer from `start` on. `after`: the byte after it, if it is not compressed.
    pub(crate) fn line(&mut self, start: usize, after: Option<u64>) -> Result<(), Closed> {
        let blank = is_blank(&self.lines[start..]);
        if !blank && self.is_wanted() && (self.pace.is_some() || self.rule == EpochRule::Ts) {
            self.apply_line_time(start)?;
        }
        self.line += 1;
        self.byte = after;
        if !blank {
            return self.record();
        }
        if self.records == 0 {
            self.lines.clear();
            self.end.clear();
            self.first_line = self.line;
        }
        self.flush_if_full()
    }

    /// Adds a file that is one document.
    pub(crate) fn file(&mut self, file: FileDocument) -> Result<(), Closed> {
        self.file_bytes += file.bytes;
        self.files.push(file);
        self.record()
    }

    /// Adds a row of a file, for the document of this id.
    pub(crate) fn row(&mut self, id: &[u8], row: &FileRow) -> Result<(), Closed> {
        if let Some(ts) =
            row.ts.filter(|_| self.is_wanted() && (self.pace.is_some() || self.rule == EpochRule::Ts))
        {
            self.apply_time(ts, |_| {}, |_, ()| {})?;
        }
        let value = match &row.text {
            RowText::Is(text) => Some(&**text),
            RowText::Deleted | RowText::Missing => None,
        };
        self.rows.push(KeyedRecord { offset: self.next, ts: row.ts, key: Some(id), value });
        row.fields.iter().enumerate().for_each(|(which, field)| self.rows.push_header(which, field));
        self.record()
    }

    /// Skips a valid record without a document: it takes an offset, and does not count as an event of the
    /// epoch.
    pub(crate) fn skip_record(&mut self) -> Result<(), Closed> {
        if !self.takes_offset() {
            return Ok(());
        }
        if self.line_at == Some(self.next) { self.flush() } else { self.flush_if_full() }
    }

    /// Pushes the open batch, since the present input has been read to its end. Others may follow.
    pub(crate) fn end_input(&mut self) -> Result<(), Closed> {
        self.flush()
    }

    /// Pushes the open batch, since the reader is about to wait for input between two records.
    pub(crate) fn wait(&mut self) -> Result<(), Closed> {
        self.flush()?;
        self.queue.at_end(PARTITION);
        Ok(())
    }

    /// The queue to which batches are pushed.
    pub(crate) fn queue(&self) -> &'q Queue {
        self.queue
    }

    /// Whether reading has passed the offset where the run begins and the line ahead of this partition.
    pub(crate) fn is_past_line(&self) -> bool {
        let is_past = |line| line <= self.next || line == u64::MAX;
        self.next >= self.begin && self.queue.line(PARTITION).is_none_or(is_past)
    }

    /// Keeps the next record, which is bad, with its epoch; records before it are pushed first.
    pub(crate) fn keep(&mut self, letter: Letter) -> Result<(), Closed> {
        if self.records > 0 {
            self.flush()?;
        }
        self.letters.push(letter);
        Ok(())
    }

    /// The position of the next record.
    pub(crate) fn position(&self) -> Position {
        Position { partition: PARTITION, offset: self.next }
    }

    /// Counts a bad record: it takes an offset and `lines` lines, and is in no batch.
    pub(crate) fn bad(&mut self, lines: u64) -> Result<(), Closed> {
        if self.records > 0 {
            self.flush()?;
        }
        self.byte = None;
        self.end.clear();
        self.line += lines;
        self.first_line = self.line;
        self.count()
    }

    /// Pushes the complete records, since the reader is about to wait for input. Keeps the line that begins
    /// at `start` in the buffer, and returns where it begins now.
    pub(crate) fn hand_over(&mut self, start: usize) -> Result<usize, Closed> {
        if self.pushed_to == self.next {
            return Ok(start);
        }
        let begun = self.take_line(start);
        self.flush()?;
        self.lines.extend_from_slice(&begun);
        Ok(0)
    }

    /// Pushes the rest; returns the offset after the last record.
    pub(crate) fn finish(mut self) -> Result<u64, Closed> {
        self.wait()?;
        Ok(self.next)
    }

    /// Counts a record of the open batch.
    fn record(&mut self) -> Result<(), Closed> {
        self.records += 1;
        self.count()
    }

    /// Gives the next record its offset. Returns whether it is pushed; else an earlier run has read it.
    fn takes_offset(&mut self) -> bool {
        let is_skipped = self.skipped > 0;
        self.skipped = self.skipped.saturating_sub(1);
        self.next += u64::from(!is_skipped);
        let is_pushed = !is_skipped && self.next > self.begin;
        if !is_pushed {
            self.drop_open_batch();
        }
        is_pushed
    }

    /// Counts a record of the open epoch, and ends the epoch if it is full.
    fn count(&mut self) -> Result<(), Closed> {
        if !self.takes_offset() {
            return Ok(());
        }
        self.in_epoch += 1;
        if self.line_at == Some(self.next) {
            self.flush()?;
        }
        // If the clock cut the epoch, `in_epoch` has not been reset: it is an upper bound.
        if self.rule.events().is_some_and(|events| self.in_epoch == events.get()) {
            self.flush()?;
            self.close_epoch();
            return Ok(());
        }
        self.flush_if_full()
    }

    /// Applies [`Self::apply_time`] to the line at `start`, if it has a time.
    fn apply_line_time(&mut self, start: usize) -> Result<(), Closed> {
        let Some(ts) = self.rules.timestamp(&self.lines[start..]) else { return Ok(()) };
        self.apply_time(ts, |all| all.take_line(start), |all, line| all.lines = line)
    }

    /// Opens an epoch before the next record if its time `ts` is new, and waits until the record is due.
    /// `take` removes from the open batch what has been read of the record, and `put` adds that to the next
    /// batch.
    fn apply_time<T>(
        &mut self,
        ts: f64,
        take: impl FnOnce(&mut Self) -> T,
        put: impl FnOnce(&mut Self, T),
    ) -> Result<(), Closed> {
        // The sum makes a negative zero positive, so that equal times have equal bits.
        let bits = (ts + 0.0).to_bits();
        let before = self.last_ts.replace(bits);
        let opens = self.rule == EpochRule::Ts && before.is_some_and(|before| before != bits);
        let wait = self.pace.as_mut().and_then(|pace| pace.wait(ts, self.clock.now()));
        if opens || wait.is_some() {
            // The records before must not wait with this one.
            let taken = take(self);
            self.flush()?;
            put(self, taken);
        }
        if opens {
            self.close_epoch();
        }
        wait.map_or(Ok(()), |wait| self.queue.pause(wait))
    }

    /// Drops the open batch: an earlier run has read it.
    fn drop_open_batch(&mut self) {
        self.pushed_to = self.next;
        self.records = 0;
        self.first_line = self.line;
        self.lines.clear();
        self.files.clear();
        self.file_bytes = 0;
        self.rows.clear();
        self.end.clear();
    }

    fn close_epoch(&mut self) {
        self.in_epoch = 0;
        self.queue.cut();
    }

    /// Notes how far the batch has read that is pushed next.
    fn note(&mut self) {
        let Some(list) = &self.list else { return };
        let lines = &self.lines[self.lines.len().saturating_sub(END_BYTES)..];
        self.end.extend_from_slice(lines);
        self.end.drain(..self.end.len().saturating_sub(END_BYTES));
        let read = self
            .byte
            .filter(|_| !self.end.is_empty())
            .map(|bytes| ReadBytes { bytes, end: (self.end.len() as u64, hash::bytes(0, &self.end)) });
        list.note(self.next, read);
    }

    fn flush_if_full(&mut self) -> Result<(), Closed> {
        let bytes = self.lines.len() as u64 + self.file_bytes + self.rows.bytes() as u64;
        if self.records >= BATCH_RECORDS || bytes >= BATCH_BYTES as u64 { self.flush() } else { Ok(()) }
    }

    /// Pushes the open batch if it has a record or a bad record was counted. The next batch begins at the
    /// current line.
    fn flush(&mut self) -> Result<(), Closed> {
        let records = mem::take(&mut self.records);
        let first_line = mem::replace(&mut self.first_line, self.line);
        if self.pushed_to == self.next {
            return Ok(());
        }
        self.pushed_to = self.next;
        self.note();
        self.file_bytes = 0;
        let first = self.next - records;
        let payload = if !self.files.is_empty() {
            Payload::Files { files: mem::take(&mut self.files), first }
        } else if !self.rows.is_empty() {
            let empty = self.rows.emptied();
            Payload::Records(mem::replace(&mut self.rows, empty))
        } else if records > 0 {
            // The next batch is probably as large, so it reuses a buffer of the queue. A buffer that one huge
            // line has grown is not reused. A new one has room for a batch: growing copies it several times.
            let mut next = self.queue.buffer();
            next.reserve(BATCH_BYTES + BATCH_BYTES / 8);
            let bytes = mem::replace(&mut self.lines, next);
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
                // Another process pushes this batch; here only its digest and end remain.
                batch.records = 0;
                batch.payload = nothing(first_line, first);
            }
        }
        self.queue.push(batch)
    }
}

/// A payload without records.
fn nothing(first_line: u64, first: u64) -> Payload {
    Payload::Lines { bytes: Vec::new(), first_line, first, rules: Arc::default() }
}

/// A hash of the contents and the end of a batch.
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
        Payload::Events { .. } | Payload::Kept(_) | Payload::Watched(_) => {}
    }
    digest
}
