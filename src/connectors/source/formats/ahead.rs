//! Parts of an input, read at once by several threads, that come out one after another.
//!
//! Parts -> their pieces, which are records for the most part: those of part 0, then those of part 1, and so
//! on, whatever the number of threads. A thread takes the first part that no other has taken, and reads it
//! into a queue of its own; so the part whose turn it is is always being read. A queue holds [`PART_BYTES`]
//! at most, and all together as much as was said, of which the part whose turn it is may take what it needs.
//! Nothing is held but that, and a batch for each thread.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::{Damage, Next, Row, Rows, Text, panicked};

/// Bytes of records that wait of one part, at most, but for one batch.
const PART_BYTES: usize = 32 << 20;

/// Bytes of records that are handed over at once, at least: locks must not show.
const BATCH_BYTES: usize = 64 << 10;

/// What can be read in parts, from 0, each by itself.
pub(in crate::source) trait Parts: Send + Sync + 'static {
    /// What a part is made of.
    type Piece: Piece;

    /// How many parts there are.
    fn count(&self) -> usize;

    /// Gives the pieces of one part to `each`, in order, until there are no more or it says that nobody wants
    /// them.
    fn read(&self, part: usize, each: &mut dyn FnMut(Self::Piece) -> bool);
}

/// What a part is made of.
pub(in crate::source) trait Piece: Send {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize;

    /// What stands for the rest of a part whose reader panicked.
    fn panicked() -> Self;
}

/// What [`Rows::next`] gives.
pub(in crate::source) type Record = Result<(Next, Row), Damage>;

/// The pieces of all parts, in order.
pub(in crate::source) struct Ahead<P: Parts> {
    shared: Arc<Shared<P>>,
    threads: Vec<JoinHandle<()>>,
    /// Of the part whose turn it is, taken from its queue.
    ready: VecDeque<P::Piece>,
}

struct Shared<P: Parts> {
    parts: Arc<P>,
    /// Bytes that wait in all queues, at most, but for a batch of each thread.
    most: usize,
    state: Mutex<State<P::Piece>>,
    changed: Condvar,
}

struct State<T> {
    /// The next part that a thread takes.
    next: usize,
    /// The part whose turn it is.
    turn: usize,
    /// Those of the parts that have been taken, from the one whose turn it is on.
    queues: VecDeque<Queue<T>>,
    /// Bytes that wait in all queues.
    bytes: usize,
    /// Nobody wants the rest.
    is_over: bool,
}

/// What waits of one part.
struct Queue<T> {
    pieces: VecDeque<T>,
    bytes: usize,
    is_complete: bool,
}

impl<P: Parts> fmt::Debug for Ahead<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl<P: Parts> Ahead<P> {
    /// Reads by so many threads, one at least, and no more than there are parts; pieces of `most` bytes wait.
    ///
    /// # Errors
    /// If they cannot be started.
    pub(in crate::source) fn new(parts: Arc<P>, threads: usize, most: usize) -> io::Result<Self> {
        let threads = threads.min(parts.count()).max(1);
        let state = State { next: 0, turn: 0, queues: VecDeque::new(), bytes: 0, is_over: false };
        let shared = Arc::new(Shared { parts, most, state: Mutex::new(state), changed: Condvar::new() });
        let read = |number| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("reader {number}"));
            thread.spawn(move || shared.read())
        };
        let threads = (0..threads).map(read).collect::<io::Result<_>>()?;
        Ok(Self { shared, threads, ready: VecDeque::new() })
    }
}

impl<P: Parts> Iterator for Ahead<P> {
    type Item = P::Piece;

    fn next(&mut self) -> Option<P::Piece> {
        while self.ready.is_empty() {
            self.ready = self.shared.take()?;
        }
        self.ready.pop_front()
    }
}

/// Behind a part that cannot be read on, the others are.
impl<P: Parts<Piece = Record>> Rows for Ahead<P> {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        let Some(record) = Iterator::next(self) else { return Ok(Next::End) };
        let (next, found) = record.map_err(|damage| Damage { ends: false, ..damage })?;
        *row = found;
        Ok(next)
    }
}

impl<P: Parts> Drop for Ahead<P> {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl<P: Parts> Shared<P> {
    /// Waits for pieces of the part whose turn it is; `None` behind the last part.
    fn take(&self) -> Option<VecDeque<P::Piece>> {
        let mut state = self.state.lock();
        loop {
            if state.turn == self.parts.count() {
                return None;
            }
            match state.queues.front_mut() {
                Some(queue) if !queue.pieces.is_empty() => {
                    let pieces = std::mem::take(&mut queue.pieces);
                    let bytes = std::mem::take(&mut queue.bytes);
                    state.bytes -= bytes;
                    self.changed.notify_all();
                    return Some(pieces);
                }
                Some(queue) if queue.is_complete => {
                    state.queues.pop_front();
                    state.turn += 1;
                    self.changed.notify_all();
                }
                _ => self.changed.wait(&mut state),
            }
        }
    }

    /// A thread: takes parts and reads them, until there are none.
    fn read(&self) {
        while let Some(part) = self.take_part() {
            let mut batch = Batch { shared: self, part, pieces: VecDeque::new(), bytes: 0, is_wanted: true };
            let read = || self.parts.read(part, &mut |piece| batch.push(piece));
            // Whoever waits for the part must learn of its end.
            if catch_unwind(AssertUnwindSafe(read)).is_err() {
                batch.push(P::Piece::panicked());
            }
            batch.hand_over(true);
            if !batch.is_wanted {
                return;
            }
        }
    }

    fn take_part(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let part = state.next;
        let is_there = part < self.parts.count() && !state.is_over;
        if is_there {
            state.next += 1;
            state.queues.push_back(Queue { pieces: VecDeque::new(), bytes: 0, is_complete: false });
        }
        is_there.then_some(part)
    }
}

/// Pieces of a part that are handed over together.
struct Batch<'a, P: Parts> {
    shared: &'a Shared<P>,
    part: usize,
    pieces: VecDeque<P::Piece>,
    bytes: usize,
    /// Whether anybody wants more.
    is_wanted: bool,
}

impl<P: Parts> Batch<'_, P> {
    /// False if nobody wants more.
    fn push(&mut self, piece: P::Piece) -> bool {
        self.bytes += piece.bytes();
        self.pieces.push_back(piece);
        if self.bytes >= BATCH_BYTES {
            self.hand_over(false);
        }
        self.is_wanted
    }

    /// Waits until there is room.
    fn hand_over(&mut self, is_complete: bool) {
        let mut state = self.shared.state.lock();
        while !state.is_over {
            let is_first = self.part == state.turn;
            let place = self.part - state.turn;
            let State { queues, bytes, .. } = &mut *state;
            let Some(queue) = queues.get_mut(place) else { break };
            // The part whose turn it is must not wait for those behind it.
            let has_room = queue.bytes < PART_BYTES && (is_first || *bytes < self.shared.most);
            if has_room {
                queue.pieces.append(&mut self.pieces);
                queue.bytes += self.bytes;
                *bytes += std::mem::take(&mut self.bytes);
                queue.is_complete = is_complete;
                self.shared.changed.notify_all();
                return;
            }
            self.shared.changed.wait(&mut state);
        }
        self.is_wanted = false;
    }
}

impl Piece for Record {
    fn bytes(&self) -> usize {
        let own = match self {
            Ok((_, row)) => {
                let text = if let Text::Is(text) = &row.text { text.len() } else { 0 };
                text + row.id.as_ref().map_or(0, Vec::len) + row.fields.iter().map(Vec::len).sum::<usize>()
            }
            Err(damage) => damage.head.len() + damage.cause.as_ref().map_or(0, String::len),
        };
        own + size_of::<Self>()
    }

    fn panicked() -> Self {
        Err(panicked())
    }
}

/// Gives what a reader reads to `each`, to its end or until it is not wanted.
pub(super) fn each_record(rows: &mut dyn Rows, each: &mut dyn FnMut(Record) -> bool) {
    let mut row = Row::default();
    loop {
        let record = match rows.next(&mut row) {
            Ok(Next::End) => return,
            Ok(next) => Ok((next, std::mem::take(&mut row))),
            Err(damage) => Err(damage),
        };
        let is_last = record.as_ref().is_err_and(|damage| damage.ends);
        if !each(record) || is_last {
            return;
        }
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
