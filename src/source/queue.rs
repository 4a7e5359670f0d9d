//! The bounded hand-over from one reader to the workers.
//!
//! The reader [pushes](Queue::push) batches in order and waits while too much lies ahead of the workers. Workers
//! [pull](Queue::pull) and never wait: where there is nothing for them they learn up to where they may advance, park,
//! and are woken by the waker that they registered.
//!
//! Invariants: batches are handed out in the order in which they were pushed, each once; the epoch of an
//! [`Pull::Idle`] never goes back, and no batch of an earlier epoch is handed out after it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::{Batch, Payload};
use crate::time::Epoch;

/// The bounded hand-over from one reader, which waits for room, to the workers, which never wait: where there is nothing
/// for them they park, and are called after a batch, an advance or the end has come.
pub struct Queue {
    state: Mutex<State>,
    /// Signalled when batches are taken, and when the queue is closed.
    room: Condvar,
    wakers: Mutex<Vec<Box<dyn Fn() + Send>>>,
    limit_bytes: u64,
    limit_batches: usize,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    bytes: u64,
    /// The reader's current epoch: nothing of an earlier one will be pushed.
    reading: Epoch,
    /// The reader is done.
    finished: bool,
    /// The workers want no more.
    closed: bool,
    /// Buffers of batches that have been read, to be filled again: what one thread allocates and another frees is slow to
    /// come back.
    spare: Vec<Vec<u8>>,
}

/// What a worker gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Pull {
    /// The next batch.
    Batch(Batch),
    /// Nothing now; no batch of an epoch below `low` will ever be handed out again.
    Idle {
        /// The lowest epoch that may still come.
        low: Epoch,
    },
    /// Nothing will ever come again.
    Done,
}

/// The workers want no more: the reader may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Queue {
    /// An empty queue whose reader is in epoch 1. It accepts a batch while fewer than `limit_bytes` and fewer than
    /// `limit_batches` (both 1 or more) are waiting, so that it may hold one batch more than that many bytes.
    pub fn new(limit_bytes: u64, limit_batches: usize) -> Self {
        Self {
            state: Mutex::new(State { reading: 1, ..State::default() }),
            room: Condvar::new(),
            wakers: Mutex::default(),
            limit_bytes,
            limit_batches,
        }
    }

    /// Adds what is called after something has come for the workers; one for each worker. It must not use the queue.
    pub fn register(&self, waker: Box<dyn Fn() + Send>) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Reader: hands over a batch; waits for room. Epochs must not descend.
    ///
    /// # Errors
    /// [`Closed`] if the workers want no more.
    pub fn push(&self, batch: Batch) -> Result<(), Closed> {
        let full = |state: &mut State| {
            !state.closed && (state.bytes >= self.limit_bytes || state.batches.len() >= self.limit_batches)
        };
        let mut state = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(Closed);
        }
        debug_assert!(batch.epoch >= state.reading, "epochs must not descend");
        state.reading = batch.epoch;
        state.bytes += batch.bytes();
        state.batches.push_back(batch);
        drop(state);
        self.wake();
        Ok(())
    }

    /// Reader: nothing of an epoch below `epoch` will be pushed any more.
    pub fn advance(&self, epoch: Epoch) {
        let mut state = self.lock();
        debug_assert!(epoch >= state.reading, "epochs must not descend");
        state.reading = epoch;
        drop(state);
        self.wake();
    }

    /// Reader: nothing will be pushed any more.
    pub fn finish(&self) {
        self.lock().finished = true;
        self.wake();
    }

    /// Reader: lets `time` pass.
    ///
    /// # Errors
    /// [`Closed`], at once, if the workers want no more.
    pub fn pause(&self, time: Duration) -> Result<(), Closed> {
        let open = |state: &mut State| !state.closed;
        let (state, _) =
            self.room.wait_timeout_while(self.lock(), time, open).unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(Closed) } else { Ok(()) }
    }

    /// Worker: takes the next batch if there is one and its epoch is at most `limit`, inclusive. Never waits.
    pub fn pull(&self, limit: Epoch) -> Pull {
        let mut state = self.lock();
        if let Some(batch) = state.batches.pop_front_if(|batch| batch.epoch <= limit) {
            state.bytes -= batch.bytes();
            drop(state);
            self.room.notify_all();
            return Pull::Batch(batch);
        }
        match state.batches.front() {
            Some(batch) => Pull::Idle { low: batch.epoch },
            None if state.finished => Pull::Done,
            None => Pull::Idle { low: state.reading },
        }
    }

    /// Worker: the batch has been read.
    pub fn give_back(&self, batch: Batch) {
        if let Payload::Lines(mut buffer) = batch.payload
            && buffer.capacity() <= SPARE_BYTES
        {
            buffer.clear();
            let mut state = self.lock();
            if state.spare.len() < self.limit_batches {
                state.spare.push(buffer);
            }
        }
    }

    /// Reader: an empty buffer for lines.
    pub fn buffer(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Anyone: drops what is waiting and ends the reader at its next step. Workers get [`Pull::Done`].
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.finished = true;
        state.batches.clear();
        state.bytes = 0;
        drop(state);
        self.room.notify_all();
        self.wake();
    }

    /// The state is whole between any two statements, so that it is good even if a holder panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
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
#[path = "queue_tests.rs"]
mod tests;
/// The largest buffer that is kept to be filled again; one long line must not stay in memory.
const SPARE_BYTES: usize = 1 << 20;
