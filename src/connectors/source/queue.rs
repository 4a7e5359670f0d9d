//! The bounded hand-over from the readers to the workers, and where the input is cut into epochs.
//!
//! Readers [push](Queue::push) batches and wait while too much lies ahead of the workers. Workers
//! [take](Queue::take) batches and never wait: where there is nothing for them they learn up to where they
//! may advance, park, and are woken by the waker that they registered.
//!
//! One epoch is open at a time, for all readers together: a batch belongs to the epoch that is open when it
//! is pushed, and a [cut](Queue::cut) ends that epoch for all of them at once. So a reader that has nothing
//! to push holds nobody up.
//!
//! Before the run is live, [lines](super::ahead) are ahead: batches from beyond the next one are held until
//! everybody has come to it. Of several processes each has a queue; what one does to the open epoch the
//! others follow, through [`Peers`].
//!
//! Three ways to an end: every reader [finishes](Queue::finish) its input; or the run is
//! [stopped](Queue::stop): readers end, and what they have pushed is still handed out; or it
//! [fails](Queue::fail): readers end, workers get nothing more, and are never told that an epoch is over.
//!
//! Invariants: batches are handed out in the order in which they were pushed, each once, with epochs that
//! never descend; the epoch of a [`Taken::Nothing`] never goes back but for a failure, and no batch of an
//! earlier epoch is handed out after it.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::ahead::{Ahead, Peers};
use super::batch::{Batch, Payload};
use dupflow_core::doc::Position;
use dupflow_core::time::{Epoch, LiveFrom};

/// The largest buffer that is kept to be filled again; one long line must not stay in memory.
const SPARE_BYTES: usize = 1 << 20;

/// What a queue holds at most: it takes a batch while fewer than `bytes` and fewer than `batches` (both 1 or
/// more) wait, so that it may hold one batch more than that many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes.
    pub bytes: u64,
    /// Batches.
    pub batches: usize,
}

/// How large an epoch may grow before the queue cuts it, by whichever comes first; for readers that do not
/// cut themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochLimits {
    /// Records, 1 or more: the batch that reaches it is the epoch's last.
    pub records: Option<u64>,
    /// Bytes, 1 or more: the batch that reaches it is the epoch's last.
    pub bytes: Option<u64>,
    /// Time from the epoch's first batch to its end, if [`Queue::cut_by_clock`] runs.
    pub interval: Option<Duration>,
}

/// The bounded hand-over from the readers, which wait for room, to the workers, which never wait; it holds
/// the open epoch.
pub struct Queue {
    /// Whole between any two statements, so that it is good even if a holder panicked.
    state: Mutex<State>,
    /// Signalled when batches are taken, and when readers are to end.
    room_made: Condvar,
    /// Signalled, for [`Queue::cut_by_clock`], when an epoch gets its first batch or ends, and when readers
    /// are to end; for [`Queue::stay`], when one has finished.
    epoch_changed: Condvar,
    wakers: Mutex<Vec<Box<dyn Fn() + Send>>>,
    room: Room,
    limits: EpochLimits,
    live: Arc<LiveFrom>,
    peers: Option<Box<dyn Peers>>,
}

#[derive(Debug)]
struct State {
    batches: VecDeque<(Epoch, Batch)>,
    bytes: u64,
    /// The open epoch: nothing of an earlier one will be pushed.
    epoch: Epoch,
    /// Batches, records and bytes pushed in it.
    in_epoch: (u64, u64, u64),
    /// Readers that have not finished.
    readers: usize,
    ahead: Ahead,
    /// Records that are still taken, before the run is stopped.
    wanted: Option<u64>,
    end: End,
    /// Buffers of batches that have been read, to be filled again: what one thread allocates and another
    /// frees is slow to come back.
    spare: Vec<Vec<u8>>,
}

/// Whether the run is to end before its input does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    No,
    Stopped,
    Failed,
}

/// What a worker gets.
#[derive(Debug, PartialEq)]
pub enum Taken {
    /// The next batch, and its epoch.
    Batch(Epoch, Batch),
    /// Nothing now; no batch of an epoch below `low` will ever be handed out again. After a failure `low` is
    /// 0: a worker keeps the epochs that it holds.
    Nothing {
        /// The lowest epoch that may still come.
        low: Epoch,
    },
    /// Nothing will ever come again, and all that was pushed has been handed out.
    Done,
}

/// The reader is to end: no more is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Why a batch is not taken at once.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// There is no room for it now.
    Full(Box<Batch>),
    /// It lies beyond the line.
    Held(Box<Batch>),
    /// The reader is to end.
    Closed,
}

impl Queue {
    /// An empty queue for so many readers, with epoch `first` open; live at once, and alone.
    pub fn new(readers: usize, first: Epoch, room: Room, limits: EpochLimits) -> Self {
        let live = Arc::new(LiveFrom::beginning());
        Self::behind(Ahead::default(), live, None, readers, first, room, limits)
    }

    /// As [`Self::new`], with lines ahead and perhaps others beside. `live` is set when the last line is
    /// crossed, or now.
    pub fn behind(
        ahead: Ahead,
        live: Arc<LiveFrom>,
        peers: Option<Box<dyn Peers>>,
        readers: usize,
        first: Epoch,
        room: Room,
        limits: EpochLimits,
    ) -> Self {
        if ahead.is_live() {
            live.set(first);
        }
        let state = State {
            ahead,
            wanted: None,
            batches: VecDeque::new(),
            bytes: 0,
            epoch: first,
            in_epoch: (0, 0, 0),
            readers,
            end: End::No,
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

    /// The run is to be stopped once so many records have been pushed.
    pub fn stop_after(&self, records: Option<NonZeroU64>) {
        self.state.lock().wanted = records.map(NonZeroU64::get);
    }

    /// Adds what is called after something has come for the workers; one for each worker. It must not use the
    /// queue.
    pub fn register(&self, waker: Box<dyn Fn() + Send>) {
        self.wakers.lock().push(waker);
    }

    /// Reader: hands over a batch; waits for room, and while it lies beyond the line.
    ///
    /// # Errors
    /// [`Closed`] if the reader is to end; the batch is dropped.
    pub fn push(&self, batch: Batch) -> Result<(), Closed> {
        let mut state = self.state.lock();
        self.arrive(&mut state, &batch);
        let full = |now: &mut State| now.end == End::No && (now.is_full(self.room) || now.holds(&batch));
        self.room_made.wait_while(&mut state, full);
        if state.end != End::No {
            return Err(Closed);
        }
        self.add(state, batch);
        Ok(())
    }

    /// Reader: hands over a batch if there is room for it. For a reader that has something else to do than to
    /// wait.
    ///
    /// # Errors
    /// The batch if there is no room, or that the reader is to end.
    pub fn try_push(&self, batch: Batch) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.end != End::No {
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

    fn add(&self, mut state: MutexGuard<'_, State>, batch: Batch) {
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
        if left == Some(0) && state.end == End::No {
            state.end = End::Stopped;
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

    /// The epoch that is open.
    pub fn open(&self) -> Epoch {
        self.state.lock().epoch
    }

    /// Reader: the offset of the line that is ahead in this partition, exclusive: no batch may go beyond it.
    /// `None` if there is none.
    pub fn line(&self, partition: u32) -> Option<u64> {
        self.state.lock().ahead.of_partition(partition)
    }

    /// Whoever restores: all documents have been handed over.
    pub fn restored(&self) {
        let mut state = self.state.lock();
        state.ahead.restored();
        self.reach(&mut state);
        drop(state);
        self.room_made.notify_all();
        self.wake();
    }

    /// A partition whose next batch lies beyond the line has come to it: batches are in order, and none goes
    /// over.
    fn arrive(&self, state: &mut State, batch: &Batch) {
        if state.holds(batch) {
            state.ahead.read(batch.partition, batch.next);
            self.reach(state);
        }
    }

    /// If a line has been reached: crosses it, or tells the others.
    fn reach(&self, state: &mut State) {
        while state.ahead.reaches() {
            match &self.peers {
                Some(peers) => peers.reached(state.ahead.number(), state.epoch),
                None => self.cross_at(state, state.epoch + 1),
            }
        }
    }

    /// Another process: everybody has reached the next line, and this epoch lies behind it for all.
    pub fn cross(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        self.cross_at(&mut state, epoch);
        self.reach(&mut state);
        drop(state);
        self.epoch_changed.notify_all();
        self.wake();
    }

    fn cross_at(&self, state: &mut State, epoch: Epoch) {
        state.ahead.cross();
        if state.ahead.is_live() {
            // Before the epoch is open, so that nobody can close it without knowing.
            self.live.set(epoch);
        }
        state.open(epoch);
        self.room_made.notify_all();
    }

    /// Another process: it has opened this epoch.
    pub fn follow(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        if state.epoch < epoch {
            state.open(epoch);
            drop(state);
            self.epoch_changed.notify_all();
            self.wake();
        }
    }

    /// Ends the open epoch, and tells the others.
    fn cut_now(&self, state: &mut State) {
        state.open(state.epoch + 1);
        if let Some(peers) = &self.peers {
            peers.opened(state.epoch);
        }
    }

    /// Reader: ends the open epoch, for all readers, and opens the next one.
    pub fn cut(&self) {
        self.cut_now(&mut self.state.lock());
        if self.limits.interval.is_some() {
            self.epoch_changed.notify_all();
        }
        self.wake();
    }

    /// Ends each epoch [`EpochLimits::interval`] after its first batch, until no reader is left. Blocks; does
    /// nothing if there is no interval.
    pub fn cut_by_clock(&self) {
        let Some(interval) = self.limits.interval else { return };
        let mut state = self.state.lock();
        loop {
            let is_empty = |now: &mut State| now.is_read_on() && now.in_epoch.0 == 0;
            self.epoch_changed.wait_while(&mut state, is_empty);
            let epoch = state.epoch;
            let is_open = |now: &mut State| now.is_read_on() && now.epoch == epoch;
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

    /// Wakes the workers each time that so long has passed, until all is handed out or the run has failed.
    /// Blocks.
    pub fn pulse(&self, every: Duration) {
        let goes_on =
            |now: &mut State| now.is_read_on() || (now.end != End::Failed && !now.batches.is_empty());
        let mut state = self.state.lock();
        while goes_on(&mut state) {
            self.epoch_changed.wait_while_for(&mut state, goes_on, every);
            drop(state);
            self.wake();
            state = self.state.lock();
        }
    }

    /// Pushes what `make` makes, a batch without records, whenever nothing has been pushed for so long; until
    /// no reader is left. Blocks.
    pub fn tick(&self, idle: Duration, make: impl Fn() -> Batch) {
        let mut state = self.state.lock();
        while state.is_read_on() {
            let seen = (state.epoch, state.in_epoch.0);
            let is_idle = |now: &mut State| now.is_read_on() && (now.epoch, now.in_epoch.0) == seen;
            self.epoch_changed.wait_while_for(&mut state, is_idle, idle);
            // Not whether the time is up: a batch may have been pushed just then.
            if is_idle(&mut state) && !state.is_full(self.room) {
                self.add(state, make());
                state = self.state.lock();
            }
        }
    }

    /// Reader: it has read all its input, and pushes nothing any more. Never called by one that fails.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.readers = state.readers.saturating_sub(1);
        drop(state);
        self.epoch_changed.notify_all();
        self.wake();
    }

    /// Reader: waits until there may be room, but no longer than `time`.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn wait_for_room(&self, time: Duration) -> Result<(), Closed> {
        self.wait(time, |state| state.is_full(self.room))
    }

    /// Reader: lets `time` pass.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn pause(&self, time: Duration) -> Result<(), Closed> {
        self.wait(time, |_| true)
    }

    fn wait(&self, time: Duration, on: impl Fn(&State) -> bool) -> Result<(), Closed> {
        let goes_on = |state: &mut State| state.end == End::No && on(state);
        let mut state = self.state.lock();
        self.room_made.wait_while_for(&mut state, goes_on, time);
        if state.end == End::No { Ok(()) } else { Err(Closed) }
    }

    /// Worker: takes the next batch if there is one and its epoch is at most `limit`, inclusive. Never waits.
    pub fn take(&self, limit: Epoch) -> Taken {
        let mut state = self.state.lock();
        if state.end == End::Failed {
            return Taken::Nothing { low: 0 };
        }
        if let Some((epoch, batch)) = state.batches.pop_front_if(|(epoch, _)| *epoch <= limit) {
            state.bytes -= batch.bytes();
            drop(state);
            self.room_made.notify_all();
            return Taken::Batch(epoch, batch);
        }
        match state.batches.front() {
            Some((epoch, _)) => Taken::Nothing { low: *epoch },
            None if state.is_read_on() => Taken::Nothing { low: state.epoch },
            None => Taken::Done,
        }
    }

    /// Worker: the batch has been read.
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

    /// Reader: an empty buffer for lines.
    pub fn buffer(&self) -> Vec<u8> {
        self.state.lock().spare.pop().unwrap_or_default()
    }

    /// A reader that stays while others read: waits until it is the last one, and ends the open epoch, which
    /// is told. So all that was read closes, though the input does not end.
    ///
    /// # Errors
    /// [`Closed`], at once, if the reader is to end.
    pub fn stay(&self) -> Result<Epoch, Closed> {
        let others_read = |now: &mut State| now.end == End::No && now.readers > 1;
        let mut state = self.state.lock();
        self.epoch_changed.wait_while(&mut state, others_read);
        if state.end != End::No {
            return Err(Closed);
        }
        let last = state.epoch;
        self.cut_now(&mut state);
        drop(state);
        self.wake();
        Ok(last)
    }

    /// Anyone: ends the readers at their next step. What has been pushed is still handed out; then workers
    /// get [`Taken::Done`].
    pub fn stop(&self) {
        self.end(End::Stopped);
    }

    /// Anyone: ends the readers at their next step, and drops what waits. Workers get nothing more, and no
    /// end: what they hold of an open epoch is not all of it.
    pub fn fail(&self) {
        self.end(End::Failed);
    }

    fn end(&self, end: End) {
        let mut state = self.state.lock();
        if end == End::Failed {
            state.batches.clear();
            state.bytes = 0;
        }
        if state.end != End::Failed {
            state.end = end;
        }
        drop(state);
        self.room_made.notify_all();
        self.epoch_changed.notify_all();
        self.wake();
    }

    /// Anyone: calls every waker.
    pub fn wake(&self) {
        for waker in self.wakers.lock().iter() {
            waker();
        }
    }
}

impl State {
    fn is_full(&self, room: Room) -> bool {
        self.bytes >= room.bytes || self.batches.len() >= room.batches
    }

    /// Whether anything may still be pushed.
    fn is_read_on(&self) -> bool {
        self.readers > 0 && self.end == End::No
    }

    /// Whether a batch lies beyond the line.
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
#[path = "queue_tests.rs"]
mod tests;
