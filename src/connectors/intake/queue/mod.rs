//! The bounded queue from the readers to the workers, where the input is cut into epochs.
//!
//! Readers [push](Queue::push) batches, and wait while too many batches are queued. Workers
//! [take](Queue::take) batches and never wait: if the queue has nothing for a worker, it returns the epoch to
//! which the worker may advance. The worker parks, and the waker that it registered wakes it.
//!
//! One epoch is open at a time, for all readers. A batch belongs to the epoch that is open when it is pushed,
//! and a [cut](Queue::cut) ends that epoch for all readers at once. So a reader with nothing to push does not
//! delay the others.
//!
//! Before the run is live there are [lines](catch_up) to reach: batches beyond the next line wait until
//! all partitions and processes have reached it. Each process has its own queue; [`Peers`] sends the cuts of
//! one process to the others.
//!
//! There are three ways to an end. Every reader [finishes](Queue::finish) its input. Or the run is
//! [stopped](Queue::stop): readers end, and the batches that they have pushed are still taken. Or it
//! [fails](Queue::fail): readers end, and workers get nothing more and no end of an epoch.
//!
//! Invariants: batches are taken in the order in which they were pushed, each once, and their epochs never
//! decrease. The epoch of a [`Dequeued::Nothing`] never decreases except after a failure, and no batch of an
//! earlier epoch is taken after it.

mod catch_up;

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

pub use catch_up::{CatchUp, CatchUpLine, Peers};

use super::batch::{Batch, Payload};
use dupflow_core::doc::Position;
use dupflow_core::time::{Epoch, LiveFrom};

/// The largest buffer that is kept for reuse: the memory of one long line is freed.
const SPARE_BYTES: usize = 1 << 20;

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
    /// Time from the epoch's first batch to its end; needs [`Queue::cut_by_clock`].
    pub interval: Option<Duration>,
}

/// The bounded queue from the readers, which wait for room, to the workers, which never wait. It owns the
/// open epoch.
pub struct Queue {
    /// Consistent after every statement, so it stays valid if a thread panics while it holds the lock.
    state: Mutex<QueueState>,
    /// Notified when batches are taken, and when readers are to end.
    room_made: Condvar,
    /// Notified when an epoch gets its first batch or ends and when readers are to end, for
    /// [`Queue::cut_by_clock`]; and when a reader has finished, for [`Queue::stay`].
    epoch_changed: Condvar,
    wakers: Mutex<Vec<Box<dyn Fn() + Send>>>,
    room: QueueRoom,
    limits: EpochLimits,
    live: Arc<LiveFrom>,
    peers: Option<Box<dyn Peers>>,
}

#[derive(Debug)]
struct QueueState {
    batches: VecDeque<(Epoch, Batch)>,
    bytes: u64,
    /// The open epoch: no batch of an earlier one will be pushed.
    epoch: Epoch,
    /// Batches, records and bytes pushed in the open epoch.
    in_epoch: (u64, u64, u64),
    /// Readers that have not finished.
    readers: usize,
    ahead: CatchUp,
    /// Records that are still accepted before the run stops by itself.
    wanted: Option<u64>,
    end: RunEnd,
    /// Buffers of batches that have been read, for reuse. Memory that one thread allocates and another one
    /// frees is slow to be reused by the allocator.
    spare: Vec<Vec<u8>>,
}

/// Whether the run is to end before its input does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEnd {
    No,
    Stopped,
    Failed,
}

/// The result of [`Queue::take`].
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

/// The reader is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Why a batch was not accepted.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// The queue is full.
    Full(Box<Batch>),
    /// The batch is beyond the line.
    Held(Box<Batch>),
    /// The reader is to end.
    Closed,
}

impl Queue {
    /// An empty queue for this number of readers, with epoch `first` open; live at once, without other
    /// processes.
    pub fn new(readers: usize, first: Epoch, room: QueueRoom, limits: EpochLimits) -> Self {
        let live = Arc::new(LiveFrom::beginning());
        Self::behind(CatchUp::default(), live, None, readers, first, room, limits)
    }

    /// Like [`Self::new`], with lines to reach and perhaps other processes. `live` is set when the last line
    /// is crossed, or now if there is none.
    pub fn behind(
        ahead: CatchUp,
        live: Arc<LiveFrom>,
        peers: Option<Box<dyn Peers>>,
        readers: usize,
        first: Epoch,
        room: QueueRoom,
        limits: EpochLimits,
    ) -> Self {
        if ahead.is_live() {
            live.set(first);
        }
        let state = QueueState {
            ahead,
            wanted: None,
            batches: VecDeque::new(),
            bytes: 0,
            epoch: first,
            in_epoch: (0, 0, 0),
            readers,
            end: RunEnd::No,
            spare: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            room_made: Condvar::new(),
            epoch_changed: Condvar::new(),
            wakers: Mutex::default(),
            room,
            limits,
            live,
            peers,
        }
    }

    /// Stops the run once this number of records has been pushed.
    pub fn stop_after(&self, records: Option<NonZeroU64>) {
        self.state.lock().wanted = records.map(NonZeroU64::get);
    }

    /// Adds a waker for a worker, which is called after something has changed for the workers. It must not
    /// use the queue.
    pub fn register(&self, waker: Box<dyn Fn() + Send>) {
        self.wakers.lock().push(waker);
    }

    /// Before workers and readers start: puts batches into the first epoch. They do not wait for room, and do
    /// not count for the limits of the epoch, so everything that is pushed later is behind them, or in the
    /// same epoch.
    pub fn put_first(&self, batches: impl IntoIterator<Item = Batch>) {
        let mut state = self.state.lock();
        let epoch = state.epoch;
        for batch in batches {
            state.in_epoch.0 += 1;
            state.bytes += batch.bytes();
            state.batches.push_back((epoch, batch));
        }
    }

    /// For readers: pushes a batch. Waits for room, and until the batch is not beyond the line.
    ///
    /// # Errors
    /// [`Closed`] if the reader is to end; the batch is dropped.
    pub fn push(&self, batch: Batch) -> Result<(), Closed> {
        let mut state = self.state.lock();
        self.arrive(&mut state, &batch);
        let full =
            |now: &mut QueueState| now.end == RunEnd::No && (now.is_full(self.room) || now.holds(&batch));
        self.room_made.wait_while(&mut state, full);
        if state.end != RunEnd::No {
            return Err(Closed);
        }
        self.add(state, batch);
        Ok(())
    }

    /// For readers: pushes a batch if there is room for it. For readers that must not block.
    ///
    /// # Errors
    /// The batch if there is no room or it is beyond the line; or [`Refused::Closed`].
    pub fn try_push(&self, batch: Batch) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.end != RunEnd::No {
            return Err(Refused::Closed);
        }
        self.arrive(&mut state, &batch);
        if state.holds(&batch) {
            return Err(Refused::Held(Box::new(batch)));
        }
        if state.is_full(self.room) {
            return Err(Refused::Full(Box::new(batch)));
        }
        self.add(state, batch);
        Ok(())
    }

    fn add(&self, mut state: MutexGuard<'_, QueueState>, batch: Batch) {
        let opens = state.in_epoch.0 == 0;
        let (bytes, epoch) = (batch.bytes(), state.epoch);
        let (batches, in_records, in_bytes) = &mut state.in_epoch;
        *batches += 1;
        *in_records += batch.records;
        *in_bytes += bytes;
        let reached = |limit: Option<u64>, n: u64| limit.is_some_and(|limit| n >= limit);
        let cuts = reached(self.limits.records, *in_records) || reached(self.limits.bytes, *in_bytes);
        state.bytes += bytes;
        if let Some(end) = batch.end() {
            state.ahead.read(end.partition, end.offset);
        }
        let left = state.wanted.map(|wanted| wanted.saturating_sub(batch.records));
        state.wanted = left;
        if left == Some(0) && state.end == RunEnd::No {
            state.end = RunEnd::Stopped;
            self.room_made.notify_all();
            self.epoch_changed.notify_all();
        }
        state.batches.push_back((epoch, batch));
        if cuts {
            self.cut_now(&mut state);
        }
        self.reach(&mut state);
        drop(state);
        if (opens || cuts) && self.limits.interval.is_some() {
            self.epoch_changed.notify_all();
        }
        self.wake();
    }

    /// Whether every line has been crossed.
    pub fn is_live(&self) -> bool {
        self.live.get().is_some()
    }

    /// The open epoch.
    pub fn open(&self) -> Epoch {
        self.state.lock().epoch
    }

    /// For readers: the offset of the next line in this partition, exclusive: no batch may go beyond it.
    /// `None` if there is no line.
    pub fn line(&self, partition: u32) -> Option<u64> {
        self.state.lock().ahead.of_partition(partition)
    }

    /// Called after the last restored document has been pushed.
    pub fn restored(&self) {
        let mut state = self.state.lock();
        state.ahead.restored();
        self.reach(&mut state);
        drop(state);
        self.room_made.notify_all();
        self.wake();
    }

    /// Waits until the first line has been crossed, if there are lines, or the reader is to end.
    pub fn wait_for_first_line(&self) {
        let mut state = self.state.lock();
        let is_before =
            |now: &mut QueueState| now.end == RunEnd::No && now.ahead.number() == 0 && !now.ahead.is_live();
        self.room_made.wait_while(&mut state, is_before);
    }

    /// Notes that the partition of a batch beyond the line has reached the line: its batches are in order,
    /// and none crosses it.
    fn arrive(&self, state: &mut QueueState, batch: &Batch) {
        if state.holds(batch) {
            state.ahead.read(batch.partition, batch.next);
            self.reach(state);
        }
    }

    /// If a line has been reached: crosses it, or reports that to the other processes.
    fn reach(&self, state: &mut QueueState) {
        while state.ahead.reaches() {
            match &self.peers {
                Some(peers) => peers.reached(state.ahead.number(), state.epoch),
                None => self.cross_at(state, state.epoch + 1),
            }
        }
    }

    /// For other processes: all have reached the next line, and `epoch` is the first epoch after it
    /// everywhere.
    pub fn cross(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        self.cross_at(&mut state, epoch);
        self.reach(&mut state);
        drop(state);
        self.epoch_changed.notify_all();
        self.wake();
    }

    fn cross_at(&self, state: &mut QueueState, epoch: Epoch) {
        state.ahead.cross();
        if state.ahead.is_live() {
            // Set before the epoch opens, so that no worker can close the epoch without knowing.
            self.live.set(epoch);
        }
        state.open(epoch);
        self.room_made.notify_all();
    }

    /// For other processes: one of them has opened this epoch.
    pub fn follow(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        if state.epoch < epoch {
            state.open(epoch);
            drop(state);
            self.epoch_changed.notify_all();
            self.wake();
        }
    }

    /// Ends the open epoch, and reports that to the other processes. Returns the epoch that ended.
    fn cut_now(&self, state: &mut QueueState) -> Epoch {
        let ended = state.epoch;
        state.open(ended + 1);
        if let Some(peers) = &self.peers {
            peers.opened(state.epoch);
        }
        ended
    }

    /// For readers: ends the open epoch for all readers, and opens the next one. Returns the epoch that
    /// ended.
    pub fn cut(&self) -> Epoch {
        let ended = self.cut_now(&mut self.state.lock());
        if self.limits.interval.is_some() {
            self.epoch_changed.notify_all();
        }
        self.wake();
        ended
    }

    /// Ends the open epoch, if no clock does. For batches that no record may follow for long.
    pub fn cut_if_not_by_clock(&self) {
        if self.limits.interval.is_none() {
            self.cut();
        }
    }

    /// Ends each epoch [`EpochLimits::interval`] after its first batch, until no reader is left. Blocks;
    /// returns at once without an interval.
    pub fn cut_by_clock(&self) {
        let Some(interval) = self.limits.interval else { return };
        let mut state = self.state.lock();
        loop {
            let is_empty = |now: &mut QueueState| now.is_read_on() && now.in_epoch.0 == 0;
            self.epoch_changed.wait_while(&mut state, is_empty);
            let epoch = state.epoch;
            let is_open = |now: &mut QueueState| now.is_read_on() && now.epoch == epoch;
            self.epoch_changed.wait_while_for(&mut state, is_open, interval);
            if !state.is_read_on() {
                return;
            }
            if state.epoch == epoch {
                self.cut_now(&mut state);
                drop(state);
                self.wake();
                state = self.state.lock();
            }
        }
    }

    /// Wakes the workers at this interval, until everything has been taken or the run has failed. Blocks.
    pub fn pulse(&self, every: Duration) {
        let goes_on =
            |now: &mut QueueState| now.is_read_on() || (now.end != RunEnd::Failed && !now.batches.is_empty());
        let mut state = self.state.lock();
        while goes_on(&mut state) {
            self.epoch_changed.wait_while_for(&mut state, goes_on, every);
            drop(state);
            self.wake();
            state = self.state.lock();
        }
    }

    /// Pushes the batch that `make` returns (without records) whenever nothing has been pushed for the time
    /// `idle`, until no reader is left. Blocks.
    pub fn tick(&self, idle: Duration, make: impl Fn() -> Batch) {
        let mut state = self.state.lock();
        while state.is_read_on() {
            let seen = (state.epoch, state.in_epoch.0);
            let is_idle = |now: &mut QueueState| now.is_read_on() && (now.epoch, now.in_epoch.0) == seen;
            self.epoch_changed.wait_while_for(&mut state, is_idle, idle);
            // Checks the state instead of the timeout: a batch may have been pushed at the last moment.
            if is_idle(&mut state) && !state.is_full(self.room) {
                self.add(state, make());
                state = self.state.lock();
            }
        }
    }

    /// For readers: the reader has read all its input and will push nothing more. Not called by a reader that
    /// fails.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.readers = state.readers.saturating_sub(1);
        drop(state);
        self.epoch_changed.notify_all();
        self.wake();
    }

    /// For readers: waits until there may be room, at most `time`.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn wait_for_room(&self, time: Duration) -> Result<(), Closed> {
        self.wait(time, |state| state.is_full(self.room))
    }

    /// For readers: waits for `time`.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn pause(&self, time: Duration) -> Result<(), Closed> {
        self.wait(time, |_| true)
    }

    /// For readers: waits until `is_due`, at most `time`. [`Self::wake_readers`] has it evaluated again.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn pause_until(&self, time: Duration, is_due: impl Fn() -> bool) -> Result<(), Closed> {
        self.wait(time, |_| !is_due())
    }

    /// Wakes the readers that wait.
    pub fn wake_readers(&self) {
        // With the lock, so that no reader is between its test and its wait.
        let _state = self.state.lock();
        self.room_made.notify_all();
    }

    fn wait(&self, time: Duration, on: impl Fn(&QueueState) -> bool) -> Result<(), Closed> {
        let goes_on = |state: &mut QueueState| state.end == RunEnd::No && on(state);
        let mut state = self.state.lock();
        self.room_made.wait_while_for(&mut state, goes_on, time);
        if state.end == RunEnd::No { Ok(()) } else { Err(Closed) }
    }

    /// For workers: takes the next batch, if there is one and its epoch is at most `limit` (inclusive). Never
    /// waits.
    pub fn take(&self, limit: Epoch) -> Dequeued {
        let mut state = self.state.lock();
        if state.end == RunEnd::Failed {
            return Dequeued::Nothing { low: 0 };
        }
        if let Some((epoch, batch)) = state.batches.pop_front_if(|(epoch, _)| *epoch <= limit) {
            state.bytes -= batch.bytes();
            let is_last = state.batches.is_empty() && !state.is_read_on();
            drop(state);
            self.room_made.notify_all();
            if is_last {
                // `pulse` ends now, and not when its time is over: until then it would hold the state.
                self.epoch_changed.notify_all();
            }
            return Dequeued::Batch(epoch, batch);
        }
        match state.batches.front() {
            Some((epoch, _)) => Dequeued::Nothing { low: *epoch },
            None if state.is_read_on() => Dequeued::Nothing { low: state.epoch },
            None => Dequeued::Done,
        }
    }

    /// For workers: returns a batch that has been decoded, so that its buffer is reused.
    pub fn give_back(&self, batch: Batch) {
        if let Payload::Lines { mut bytes, .. } = batch.payload
            && bytes.capacity() <= SPARE_BYTES
        {
            bytes.clear();
            let mut state = self.state.lock();
            if state.spare.len() < self.room.batches {
                state.spare.push(bytes);
            }
        }
    }

    /// For readers: an empty buffer for lines.
    pub fn buffer(&self) -> Vec<u8> {
        self.state.lock().spare.pop().unwrap_or_default()
    }

    /// For a reader that stays after the others: waits until it is the last one, ends the open epoch, and
    /// returns that epoch. So everything that was read closes, although the input does not end.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn stay(&self) -> Result<Epoch, Closed> {
        let others_read = |now: &mut QueueState| now.end == RunEnd::No && now.readers > 1;
        let mut state = self.state.lock();
        self.epoch_changed.wait_while(&mut state, others_read);
        if state.end != RunEnd::No {
            return Err(Closed);
        }
        let last = self.cut_now(&mut state);
        drop(state);
        self.wake();
        Ok(last)
    }

    /// Ends the readers at their next call. What has been pushed is still taken; then workers get
    /// [`Dequeued::Done`].
    pub fn stop(&self) {
        self.end(RunEnd::Stopped);
    }

    /// Ends the readers at their next call, and drops the queued batches. Workers get nothing more and no
    /// end, since their open epochs are incomplete.
    pub fn fail(&self) {
        self.end(RunEnd::Failed);
    }

    fn end(&self, end: RunEnd) {
        let mut state = self.state.lock();
        if end == RunEnd::Failed {
            state.batches.clear();
            state.bytes = 0;
        }
        if state.end != RunEnd::Failed {
            state.end = end;
        }
        drop(state);
        self.room_made.notify_all();
        self.epoch_changed.notify_all();
        self.wake();
    }

    /// Calls every waker.
    pub fn wake(&self) {
        for waker in self.wakers.lock().iter() {
            waker();
        }
    }
}

impl QueueState {
    fn is_full(&self, room: QueueRoom) -> bool {
        self.bytes >= room.bytes || self.batches.len() >= room.batches
    }

    /// Whether anything may still be pushed.
    fn is_read_on(&self) -> bool {
        self.readers > 0 && self.end == RunEnd::No
    }

    /// Whether a batch is beyond the line.
    fn holds(&self, batch: &Batch) -> bool {
        batch.end().is_some_and(|Position { partition, offset }| self.ahead.holds(partition, offset))
    }

    fn open(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.in_epoch = (0, 0, 0);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
