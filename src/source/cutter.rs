//! Cuts a run of records into batches and epochs.
//!
//! Records come in one by one, in order; [`Batch`]es go to the [`Queue`]. A batch ends with its input, with its epoch,
//! at a bad record, and as soon as it has [`BATCH_RECORDS`] records or [`BATCH_BYTES`] bytes.

use std::mem;
use std::sync::Arc;

use super::batch::{Batch, FileDocument, Payload, is_blank};
use super::queue::{Closed, Queue};
use super::speed::{Pace, Speed};
use super::{EpochRule, Totals};
use crate::doc::Position;
use crate::feed;
use crate::time::{Clock, Epoch};

/// Records after which a batch is full, inclusive: an epoch of 1,000 short records makes 8 batches, so that 2 to 4
/// workers share it evenly.
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

    epoch: Epoch,
    /// Records in the open epoch so far, bad ones included.
    in_epoch: u64,
    /// The bits of the last `ts`.
    last_ts: Option<u64>,
    totals: Totals,

    input: Arc<str>,
    /// The next line's number.
    line: u64,
    /// The open batch: its first line, its records so far, and one of the two payloads.
    first_line: u64,
    records: u64,
    lines: Vec<u8>,
    files: Vec<FileDocument>,
    file_bytes: u64,
}

impl<'q> Cutter<'q> {
    pub(super) fn new(queue: &'q Queue, clock: &'q dyn Clock, rule: EpochRule, speed: Speed) -> Self {
        Self {
            queue,
            clock,
            rule,
            pace: Pace::new(speed),
            epoch: 1,
            in_epoch: 0,
            last_ts: None,
            totals: Totals::default(),
            input: "".into(),
            line: 1,
            first_line: 1,
            records: 0,
            lines: Vec::new(),
            files: Vec::new(),
            file_bytes: 0,
        }
    }

    /// What follows belongs to this input.
    pub(super) fn begin(&mut self, input: Arc<str>) -> Result<(), Closed> {
        self.flush()?;
        self.input = input;
        self.line = 1;
        self.first_line = 1;
        Ok(())
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
        self.totals.bytes += (self.lines.len() - start) as u64;
        let blank = is_blank(&self.lines[start..]);
        if !blank && (self.pace.is_some() || self.rule == EpochRule::Ts) {
            self.heed_ts(start)?;
        }
        self.line += 1;
        if !blank {
            self.records += 1;
            return self.settle();
        }
        if self.records == 0 {
            self.lines.clear();
            self.first_line = self.line;
        }
        self.flush_if_full()
    }

    /// One more file of a folder.
    pub(super) fn file(&mut self, file: FileDocument) -> Result<(), Closed> {
        self.totals.bytes += file.bytes;
        self.file_bytes += file.bytes;
        self.files.push(file);
        self.records += 1;
        self.settle()
    }

    /// One record that was reported as bad: it has a position, and is in no batch. It took `lines` lines and `bytes`.
    pub(super) fn bad(&mut self, lines: u64, bytes: u64) -> Result<(), Closed> {
        self.flush()?;
        self.totals.bytes += bytes;
        self.totals.records += 1;
        self.line += lines;
        self.first_line = self.line;
        self.settle()
    }

    /// Hands over the rest.
    pub(super) fn finish(mut self) -> Result<Totals, Closed> {
        self.flush()?;
        // An epoch is opened when the one before it closes, and may be left without a record.
        self.totals.epochs = self.epoch - u64::from(self.in_epoch == 0);
        Ok(self.totals)
    }

    /// A record has been added to the open epoch, which may close it.
    fn settle(&mut self) -> Result<(), Closed> {
        self.in_epoch += 1;
        match self.rule {
            EpochRule::Events(events) if self.in_epoch == events.get() => {
                self.flush()?;
                self.close_epoch();
                Ok(())
            }
            _ => self.flush_if_full(),
        }
    }

    /// Opens an epoch before the line at `start` if its `ts` is new, and waits until it is due.
    fn heed_ts(&mut self, start: usize) -> Result<(), Closed> {
        let Some(ts) = feed::timestamp(&self.lines[start..]) else { return Ok(()) };
        let before = self.last_ts.replace(ts.to_bits());
        let opens = self.rule == EpochRule::Ts && before.is_some_and(|before| before != ts.to_bits());
        let wait = self.pace.as_mut().and_then(|pace| pace.wait(ts, self.clock.now()));
        if opens || wait.is_some() {
            // What came before must not wait with this line.
            let line = self.take_line(start);
            self.flush()?;
            self.lines = line;
        }
        if opens {
            self.close_epoch();
        }
        wait.map_or(Ok(()), |wait| self.queue.pause(wait))
    }

    fn close_epoch(&mut self) {
        self.epoch += 1;
        self.in_epoch = 0;
        self.queue.advance(self.epoch);
    }

    fn flush_if_full(&mut self) -> Result<(), Closed> {
        let bytes = self.lines.len() as u64 + self.file_bytes;
        if self.records >= BATCH_RECORDS || bytes >= BATCH_BYTES as u64 { self.flush() } else { Ok(()) }
    }

    /// Hands over the open batch, if it has a record, and opens the next one at the current line.
    fn flush(&mut self) -> Result<(), Closed> {
        let records = mem::take(&mut self.records);
        let first_line = mem::replace(&mut self.first_line, self.line);
        if records == 0 {
            return Ok(());
        }
        self.file_bytes = 0;
        let (payload, first_line) = if self.files.is_empty() {
            // The next batch is probably as large; but one huge line does not make them all so.
            (Payload::Lines(mem::replace(&mut self.lines, self.queue.buffer())), first_line)
        } else {
            (Payload::Files(mem::take(&mut self.files)), 0)
        };
        let first = Position(self.totals.records);
        self.totals.records += records;
        let input = Arc::clone(&self.input);
        self.queue.push(Batch { epoch: self.epoch, first, records, input, first_line, payload })
    }
}
