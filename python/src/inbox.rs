//! The bounded queue from the thread of a caller to the reader of a run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dupflow::connectors::intake::{BadRecords, Batch, EpochLimits, Queue, Source, SourceError, SourceReader};
use dupflow::core::run::origins::Origins;
use dupflow::core::time::{Clock, Epoch, Offsets};
use parking_lot::{Condvar, Mutex};

/// Most batches that wait.
const MOST: usize = 4;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InboxState {
    orders: VecDeque<Order>,
    /// Nothing more will be ordered.
    is_closed: bool,
    /// The reader has ended.
    is_left: bool,
    /// Cuts that were ordered.
    ordered: u64,
    /// Cuts that were made, and the epoch that the last one ended.
    cuts: (u64, Epoch),
    /// The offset of the first record; known once the run begins.
    first: Option<u64>,
}

#[derive(Debug)]
enum Order {
    Push(Batch),
    Cut,
}

/// The reader has ended, and so will the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left;

impl Inbox {
    /// Adds a batch, unless there is no room within `time`: then it stays where it is.
    ///
    /// # Errors
    /// If the reader has ended.
    pub(crate) fn push(&self, batch: &mut Option<Batch>, time: Duration) -> Result<(), Left> {
        let mut state = self.state.lock();
        let full = |state: &mut InboxState| !state.is_left && state.orders.len() >= MOST;
        self.changed.wait_while_for(&mut state, full, time);
        if state.is_left {
            return Err(Left);
        }
        if state.orders.len() < MOST {
            state.orders.extend(batch.take().map(Order::Push));
            drop(state);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Orders a cut behind all batches. Returns its number, from 1, for [`Self::ended`].
    pub(crate) fn cut(&self) -> u64 {
        let mut state = self.state.lock();
        state.orders.push_back(Order::Cut);
        state.ordered += 1;
        let number = state.ordered;
        drop(state);
        self.changed.notify_all();
        number
    }

    /// The epoch that a cut has ended; `None` if it has not been made within `time`.
    ///
    /// # Errors
    /// If the reader has ended.
    pub(crate) fn ended(&self, number: u64, time: Duration) -> Result<Option<Epoch>, Left> {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.cuts.0 < number && !state.is_left, time);
        match state.cuts {
            (made, epoch) if made >= number => Ok(Some(epoch)),
            _ if state.is_left => Err(Left),
            _ => Ok(None),
        }
    }

    /// Nothing more will be ordered: the reader ends after what waits.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The offset of the first record; 0 before the run has begun.
    pub(crate) fn first(&self) -> u64 {
        self.state.lock().first.unwrap_or_default()
    }

    fn next(&self) -> Option<Order> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.orders.is_empty() && !state.is_closed);
        let order = state.orders.pop_front();
        drop(state);
        self.changed.notify_all();
        order
    }
}

/// The source of a run whose events are pushed. It cannot repeat them.
#[derive(Debug)]
pub(crate) struct PushedEvents {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) limits: EpochLimits,
    /// Where the documents of a reference end, if there is one.
    pub(crate) origins: Option<Arc<Origins>>,
}

impl Source for PushedEvents {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let first = from.and_then(|from| from.get(&0)).copied().unwrap_or(0);
        self.inbox.state.lock().first = Some(first);
        Ok(Offsets::from([(0, first)]))
    }

    fn origins(&self) -> Option<Arc<Origins>> {
        self.origins.clone()
    }

    fn readers(self: Box<Self>, _: &Offsets) -> Vec<Box<dyn SourceReader>> {
        vec![Box::new(PushReader(self.inbox))]
    }
}

struct PushReader(Arc<Inbox>);

impl SourceReader for PushReader {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        while let Some(order) = self.0.next() {
            match order {
                Order::Push(batch) => {
                    if queue.push(batch).is_err() {
                        break;
                    }
                }
                Order::Cut => {
                    let ended = queue.cut();
                    let mut state = self.0.state.lock();
                    state.cuts = (state.cuts.0 + 1, ended);
                    drop(state);
                    self.0.changed.notify_all();
                }
            }
        }
        Ok(())
    }
}

impl Drop for PushReader {
    fn drop(&mut self) {
        self.0.state.lock().is_left = true;
        self.0.changed.notify_all();
    }
}
