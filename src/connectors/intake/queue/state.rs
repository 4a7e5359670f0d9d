//! What the queue holds: the batches of the open and earlier epochs, and how the run is to end.
//!
//! Plain data without a lock; [`Queue`](super::Queue) adds the lock, the waits and the wakers.

use std::collections::VecDeque;
use std::time::Duration;

use super::catch_up::CatchUp;
use crate::intake::batch::Batch;
use dupflow_core::doc::Position;
use dupflow_core::time::Epoch;

/// The bounds of a queue. It accepts a batch while fewer than `bytes` and fewer than `batches` (both at least
/// 1) are queued, so it may exceed `bytes` by one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRoom {
    /// Bytes.
    pub bytes: u64,
    /// Batches.
    pub batches: usize,
}

/// How large an epoch may grow before the queue cuts it; the first limit that is reached counts. For readers
/// that do not cut themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochLimits {
    /// Records, at least 1: the batch that reaches this number is the last one of the epoch.
    pub records: Option<u64>,
    /// Bytes, at least 1: the batch that reaches this number is the last one of the epoch.
    pub bytes: Option<u64>,
    /// Time from the epoch's first batch to its end; needs [`cut_by_clock`](super::Queue::cut_by_clock).
    pub interval: Option<Duration>,
}

/// Whether the run is to end before its input does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    No,
    Stopped,
    Failed,
}

/// The result of [`Queue::take`](super::Queue::take).
#[derive(Debug, PartialEq)]
pub enum Dequeued {
    /// The next batch, and its epoch.
    Batch(Epoch, Batch),
    /// Nothing at present. No batch of an epoch below `low` will be taken any more. After a failure `low` is
    /// 0, so that a worker closes none of its open epochs.
    Nothing {
        /// The lowest epoch that may still have batches.
        low: Epoch,
    },
    /// The end: everything that was pushed has been taken, and nothing more will be pushed.
    Done,
}

#[derive(Debug)]
pub(super) struct QueueState {
    batches: VecDeque<(Epoch, Batch)>,
    bytes: u64,
    /// The open epoch: no batch of an earlier one will be pushed.
    pub(super) epoch: Epoch,
    /// Batches, records and bytes pushed in the open epoch.
    in_epoch: (u64, u64, u64),
    /// Readers that have not finished.
    pub(super) readers: usize,
    pub(super) ahead: CatchUp,
    /// Records that are still accepted before the run stops by itself.
    pub(super) wanted: Option<u64>,
    pub(super) end: RunEnd,
    /// Buffers of batches that have been read, for reuse. Memory that one thread allocates and another one
    /// frees is slow to be reused by the allocator.
    pub(super) spare: Vec<Vec<u8>>,
}

impl QueueState {
    /// Without batches, with epoch `first` open.
    pub(super) fn new(readers: usize, first: Epoch, ahead: CatchUp) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            epoch: first,
            in_epoch: (0, 0, 0),
            readers,
            ahead,
            wanted: None,
            end: RunEnd::No,
            spare: Vec::new(),
        }
    }

    pub(super) fn is_full(&self, room: QueueRoom) -> bool {
        self.bytes >= room.bytes || self.batches.len() >= room.batches
    }

    /// Whether anything may still be pushed.
    pub(super) fn is_read_on(&self) -> bool {
        self.readers > 0 && self.end == RunEnd::No
    }

    /// Whether batches wait to be taken.
    pub(super) fn has_batches(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Batches pushed in the open epoch.
    pub(super) fn batches_in_epoch(&self) -> u64 {
        self.in_epoch.0
    }

    /// Whether a batch is beyond the line.
    pub(super) fn holds(&self, batch: &Batch) -> bool {
        batch.end().is_some_and(|Position { partition, offset }| self.ahead.holds(partition, offset))
    }

    pub(super) fn open(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.in_epoch = (0, 0, 0);
    }

    /// Adds a batch that does not count for the limits of the epoch.
    pub(super) fn add_first(&mut self, batch: Batch) {
        self.in_epoch.0 += 1;
        self.bytes += batch.bytes();
        self.batches.push_back((self.epoch, batch));
    }

    /// Adds a batch to the open epoch, and stops the run with the last wanted record. Returns whether the
    /// epoch has reached a limit.
    pub(super) fn add(&mut self, batch: Batch, limits: EpochLimits) -> bool {
        let (batches, records, bytes) = &mut self.in_epoch;
        *batches += 1;
        *records += batch.records;
        *bytes += batch.bytes();
        let reached = |limit: Option<u64>, n: u64| limit.is_some_and(|limit| n >= limit);
        let is_complete = reached(limits.records, *records) || reached(limits.bytes, *bytes);
        if let Some(end) = batch.end() {
            self.ahead.read(end.partition, end.offset);
        }
        self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(batch.records));
        if self.wanted == Some(0) && self.end == RunEnd::No {
            self.end = RunEnd::Stopped;
        }
        self.bytes += batch.bytes();
        self.batches.push_back((self.epoch, batch));
        is_complete
    }

    /// Takes the next batch, if there is one and its epoch is at most `limit` (inclusive).
    pub(super) fn take(&mut self, limit: Epoch) -> Dequeued {
        if self.end == RunEnd::Failed {
            return Dequeued::Nothing { low: 0 };
        }
        if let Some((epoch, batch)) = self.batches.pop_front_if(|(epoch, _)| *epoch <= limit) {
            self.bytes -= batch.bytes();
            return Dequeued::Batch(epoch, batch);
        }
        match self.batches.front() {
            Some((epoch, _)) => Dequeued::Nothing { low: *epoch },
            None if self.is_read_on() => Dequeued::Nothing { low: self.epoch },
            None => Dequeued::Done,
        }
    }

    /// Ends the readers; after a failure nothing is taken any more.
    pub(super) fn end(&mut self, end: RunEnd) {
        if end == RunEnd::Failed {
            self.batches.clear();
            self.bytes = 0;
        }
        if self.end != RunEnd::Failed {
            self.end = end;
        }
    }
}
