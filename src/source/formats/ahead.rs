//! Parts of an input, read at once by several threads, that come out one after another.
//!
//! Parts -> their records: those of part 0, then those of part 1, and so on, whatever the number of threads. A thread takes the first part
//! that no other has taken, and reads it into a queue of its own; so the part whose turn it is is always being read. A queue holds
//! [`PART_BYTES`] at most, and all together [`ALL_BYTES`], of which the part whose turn it is may take what it needs. Nothing is held but
//! that, and a record for each thread.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::{Damage, Next, Row, Rows, Text, panicked};

/// Bytes of records that wait of one part, at most, but for one batch.
const PART_BYTES: usize = 32 << 20;

/// Bytes of records that wait, at most, but for a batch of each thread.
const ALL_BYTES: usize = 128 << 20;

/// Bytes of records that are handed over at once, at least: locks must not show.
const BATCH_BYTES: usize = 64 << 10;

/// What can be read in parts, from 0, each by itself.
pub(in crate::source) trait Parts: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The records of one.
    ///
    /// # Errors
    /// If nothing of it can be read.
    fn open(&self, part: usize) -> Result<Box<dyn Rows + '_>, Damage>;
}

type Record = Result<(Next, Row), Damage>;

/// The records of all parts, in order.
pub(in crate::source) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Of the part whose turn it is, taken from its queue.
    ready: VecDeque<Record>,
}

struct Shared {
    parts: Box<dyn Parts>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The next part that a thread takes.
    next: usize,
    /// The part whose turn it is.
    turn: usize,
    queues: VecDeque<Queue>,
    /// Bytes that wait in all queues.
    bytes: usize,
    /// Nobody wants the rest.
    is_over: bool,
}

/// The records of one part, from the one whose turn it is on.
#[derive(Default)]
struct Queue {
    records: VecDeque<Record>,
    bytes: usize,
    is_complete: bool,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Ahead {
    /// Reads by so many threads, one at least, and no more than there are parts.
    ///
    /// # Errors
    /// If they cannot be started.
    pub(in crate::source) fn new(parts: Box<dyn Parts>, threads: usize) -> io::Result<Self> {
        let threads = threads.min(parts.count()).max(1);
        let state = State { next: 0, turn: 0, queues: VecDeque::new(), bytes: 0, is_over: false };
        let shared = Arc::new(Shared { parts, state: Mutex::new(state), changed: Condvar::new() });
        let read = |number| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("reader {number}"));
            thread.spawn(move || shared.read())
        };
        let threads = (0..threads).map(read).collect::<io::Result<_>>()?;
        Ok(Self { shared, threads, ready: VecDeque::new() })
    }
}

impl Rows for Ahead {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                let (next, found) = record?;
                *row = found;
                return Ok(next);
            }
            match self.shared.take() {
                Some(records) => self.ready = records,
                None => return Ok(Next::End),
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for records of the part whose turn it is; `None` behind the last part.
    fn take(&self) -> Option<VecDeque<Record>> {
        let mut state = self.lock();
        loop {
            if state.turn == self.parts.count() {
                return None;
            }
            match state.queues.front_mut() {
                Some(queue) if !queue.records.is_empty() => {
                    let records = std::mem::take(&mut queue.records);
                    let bytes = std::mem::take(&mut queue.bytes);
                    state.bytes -= bytes;
                    self.changed.notify_all();
                    return Some(records);
                }
                Some(queue) if queue.is_complete => {
                    state.queues.pop_front();
                    state.turn += 1;
                    self.changed.notify_all();
                }
                _ => state = self.wait(state),
            }
        }
    }

    /// A thread: takes parts and reads them, until there are none.
    fn read(&self) {
        while let Some(part) = self.take_part() {
            let mut batch = Batch { shared: self, part, records: VecDeque::new(), bytes: 0 };
            let read = || match self.parts.open(part) {
                Ok(mut rows) => batch.fill(&mut *rows),
                Err(damage) => batch.push(Err(damage)),
            };
            // Whoever waits for the part must learn of its end.
            let is_wanted =
                catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| batch.push(Err(panicked())));
            if !(is_wanted && batch.hand_over(true)) {
                return;
            }
        }
    }

    fn take_part(&self) -> Option<usize> {
        let mut state = self.lock();
        let part = state.next;
        let is_there = part < self.parts.count() && !state.is_over;
        if is_there {
            state.next += 1;
            state.queues.push_back(Queue::default());
        }
        is_there.then_some(part)
    }
}

/// Records of a part that are handed over together.
struct Batch<'a> {
    shared: &'a Shared,
    part: usize,
    records: VecDeque<Record>,
    bytes: usize,
}

impl Batch<'_> {
    /// Reads a part to its end; false if nobody wants it.
    fn fill(&mut self, rows: &mut dyn Rows) -> bool {
        let mut row = Row::default();
        loop {
            let record = rows.next(&mut row);
            let is_last =
                matches!(&record, Ok(Next::End)) || record.as_ref().is_err_and(|damage| damage.ends);
            match record {
                Ok(Next::End) => {}
                Ok(next) => {
                    if !self.push(Ok((next, std::mem::take(&mut row)))) {
                        return false;
                    }
                }
                Err(damage) => {
                    if !self.push(Err(damage)) {
                        return false;
                    }
                }
            }
            if is_last {
                return true;
            }
        }
    }

    /// False if nobody wants it.
    fn push(&mut self, record: Record) -> bool {
        // The parts behind it can still be read.
        let record = record.map_err(|damage| Damage { ends: false, ..damage });
        self.bytes += bytes(&record);
        self.records.push_back(record);
        self.bytes < BATCH_BYTES || self.hand_over(false)
    }

    /// Waits until there is room; false if nobody wants it.
    fn hand_over(&mut self, is_complete: bool) -> bool {
        let mut state = self.shared.lock();
        loop {
            if state.is_over {
                return false;
            }
            let is_first = self.part == state.turn;
            let place = self.part - state.turn;
            let State { queues, bytes, .. } = &mut *state;
            let Some(queue) = queues.get_mut(place) else { return false };
            // The part whose turn it is must not wait for those behind it.
            let has_room = queue.bytes < PART_BYTES && (is_first || *bytes < ALL_BYTES);
            if has_room {
                queue.records.append(&mut self.records);
                queue.bytes += self.bytes;
                *bytes += std::mem::take(&mut self.bytes);
                queue.is_complete = is_complete;
                self.shared.changed.notify_all();
                return true;
            }
            state = self.shared.wait(state);
        }
    }
}

/// What a record takes in memory, about.
fn bytes(record: &Record) -> usize {
    let of_row = |row: &Row| {
        let text = if let Text::Is(text) = &row.text { text.len() } else { 0 };
        text + row.id.as_ref().map_or(0, Vec::len) + row.fields.iter().map(Vec::len).sum::<usize>()
    };
    let own = match record {
        Ok((_, row)) => of_row(row),
        Err(damage) => damage.head.len() + damage.cause.as_ref().map_or(0, String::len),
    };
    own + size_of::<Record>()
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
