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
mod state;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

pub use catch_up::{CatchUp, CatchUpLine, Peers};
pub use state::{Dequeued, EpochLimits, QueueRoom};

use super::batch::{Batch, Payload};
use dupflow_core::time::{Epoch, LiveFrom};
use state::{QueueState, RunEnd};

/// The largest buffer that is kept for reuse: the memory of one long line is freed.
const SPARE_BYTES: usize = 1 << 20;

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
        Self {
            state: Mutex::new(QueueState::new(readers, first, ahead)),
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
        for batch in batches {
            state.add_first(batch);
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
        let opens = state.batches_in_epoch() == 0;
        let cuts = state.add(batch, self.limits);
        if state.end == RunEnd::Stopped {
            self.room_made.notify_all();
            self.epoch_changed.notify_all();
        }
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

    /// For readers: everything of a partition has been pushed, wherever its line is.
    pub fn reach_end(&self, partition: u32) {
        let mut state = self.state.lock();
        state.ahead.read_all(partition);
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
            let is_empty = |now: &mut QueueState| now.is_read_on() && now.batches_in_epoch() == 0;
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
            |now: &mut QueueState| now.is_read_on() || (now.end != RunEnd::Failed && now.has_batches());
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
            let seen = (state.epoch, state.batches_in_epoch());
            let is_idle =
                |now: &mut QueueState| now.is_read_on() && (now.epoch, now.batches_in_epoch()) == seen;
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
        let taken = state.take(limit);
        let is_last = !state.has_batches() && !state.is_read_on();
        drop(state);
        if matches!(taken, Dequeued::Batch(..)) {
            self.room_made.notify_all();
            if is_last {
                // `pulse` ends now, and not when its time is over: until then it would hold the state.
                self.epoch_changed.notify_all();
            }
        }
        taken
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
        self.state.lock().end(end);
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

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
