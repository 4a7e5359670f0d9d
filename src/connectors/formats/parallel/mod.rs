//! Reads the parts of an input in several threads, and returns their pieces in order.
//!
//! Parts -> their pieces (mostly records): those of part 0, then those of part 1, and so on, for any number
//! of threads. A thread takes the next part and reads it into that part's own queue, so the part that
//! is returned next is always being read. A batch waits while its queue has [`PART_BYTES`] or more, or all
//! queues together have the number of bytes given to [`ParallelReader::new`] or more; the second limit does
//! not hold for the part that is returned next. Beyond the queues, each thread has one batch in memory.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use parking_lot::{Condvar, Mutex};

use super::rows::{Damage, FileRow, NextRow, RowReader, RowText, panicked};

/// Bytes in the queue of one part above which no batch is added; the last batch may exceed it.
const PART_BYTES: usize = 32 << 20;

/// Minimum of bytes that are moved to a queue at once, so that locking costs little.
const BATCH_BYTES: usize = 64 << 10;

/// An input that can be read in parts, numbered from 0, each part independently.
pub(crate) trait ReadableParts: Send + Sync + 'static {
    /// What a part consists of.
    type PartItem: PartPiece;

    /// Number of parts.
    fn count(&self) -> usize;

    /// Calls `each` with the pieces of one part in order, until there are no more or `each` returns false.
    fn read(&self, part: usize, each: &mut dyn FnMut(Self::PartItem) -> bool);
}

/// A piece of a part.
pub(crate) trait PartPiece: Send {
    /// Its approximate size in memory.
    fn bytes(&self) -> usize;

    /// The piece that replaces the rest of a part whose reader panicked.
    fn panicked() -> Self;
}

/// The result of [`RowReader::next`], with its row.
pub(crate) type RowResult = Result<(NextRow, FileRow), Damage>;

/// The pieces of all parts, in order.
pub(crate) struct ParallelReader<P: ReadableParts> {
    shared: Arc<SharedParts<P>>,
    threads: Vec<JoinHandle<()>>,
    /// Pieces of the present part, taken from its queue.
    ready: VecDeque<P::PartItem>,
}

struct SharedParts<P: ReadableParts> {
    parts: Arc<P>,
    /// Bytes in all queues above which only the part that is returned next may add a batch.
    most: usize,
    state: Mutex<PartQueues<P::PartItem>>,
    changed: Condvar,
}

struct PartQueues<T> {
    /// The next part that a thread takes.
    next: usize,
    /// The part whose turn it is.
    turn: usize,
    /// The queues of the parts that threads have taken, beginning with the part whose turn it is.
    queues: VecDeque<PartQueue<T>>,
    /// Bytes in all queues.
    bytes: usize,
    /// Whether the reader was dropped: threads stop.
    is_over: bool,
}

/// The queue of one part.
struct PartQueue<T> {
    pieces: VecDeque<T>,
    bytes: usize,
    is_complete: bool,
}

impl<P: ReadableParts> fmt::Debug for ParallelReader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelReader").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl<P: ReadableParts> ParallelReader<P> {
    /// Reads with this number of threads (at least one, at most one for each part); about `most` bytes may be
    /// queued.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub(crate) fn new(parts: Arc<P>, threads: usize, most: usize) -> io::Result<Self> {
        let threads = threads.min(parts.count()).max(1);
        let state = PartQueues { next: 0, turn: 0, queues: VecDeque::new(), bytes: 0, is_over: false };
        let shared = Arc::new(SharedParts { parts, most, state: Mutex::new(state), changed: Condvar::new() });
        let read = |number| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("reader {number}"));
            thread.spawn(move || shared.read())
        };
        let threads = (0..threads).map(read).collect::<io::Result<_>>()?;
        Ok(Self { shared, threads, ready: VecDeque::new() })
    }
}

impl<P: ReadableParts> Iterator for ParallelReader<P> {
    type Item = P::PartItem;

    fn next(&mut self) -> Option<P::PartItem> {
        while self.ready.is_empty() {
            self.ready = self.shared.take()?;
        }
        self.ready.pop_front()
    }
}

/// Damage that ends a part does not end the file: the other parts follow.
impl<P: ReadableParts<PartItem = RowResult>> RowReader for ParallelReader<P> {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        let Some(record) = Iterator::next(self) else { return Ok(NextRow::End) };
        let (next, found) = record.map_err(|damage| Damage { ends: false, ..damage })?;
        *row = found;
        Ok(next)
    }
}

impl<P: ReadableParts> Drop for ParallelReader<P> {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic has already been logged.
            let _ = thread.join();
        }
    }
}

impl<P: ReadableParts> SharedParts<P> {
    /// Waits for pieces of the part whose turn it is; `None` after the last part.
    fn take(&self) -> Option<VecDeque<P::PartItem>> {
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

    /// The body of a thread: takes parts and reads them, until there are none.
    fn read(&self) {
        while let Some(part) = self.take_part() {
            let mut batch =
                PieceBatch { shared: self, part, pieces: VecDeque::new(), bytes: 0, is_wanted: true };
            let read = || self.parts.read(part, &mut |piece| batch.push(piece));
            // The consumer must learn that the part has ended.
            if catch_unwind(AssertUnwindSafe(read)).is_err() {
                batch.push(P::PartItem::panicked());
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
            state.queues.push_back(PartQueue { pieces: VecDeque::new(), bytes: 0, is_complete: false });
        }
        is_there.then_some(part)
    }
}

/// Pieces of a part that are moved to its queue together.
struct PieceBatch<'a, P: ReadableParts> {
    shared: &'a SharedParts<P>,
    part: usize,
    pieces: VecDeque<P::PartItem>,
    bytes: usize,
    /// Whether the consumer wants more.
    is_wanted: bool,
}

impl<P: ReadableParts> PieceBatch<'_, P> {
    /// Returns false if the consumer wants no more.
    fn push(&mut self, piece: P::PartItem) -> bool {
        self.bytes += piece.bytes();
        self.pieces.push_back(piece);
        if self.bytes >= BATCH_BYTES {
            self.hand_over(false);
        }
        self.is_wanted
    }

    /// Moves the pieces to the queue; waits until there is room.
    fn hand_over(&mut self, is_complete: bool) {
        let mut state = self.shared.state.lock();
        while !state.is_over {
            let is_first = self.part == state.turn;
            let place = self.part - state.turn;
            let PartQueues { queues, bytes, .. } = &mut *state;
            let Some(queue) = queues.get_mut(place) else { break };
            // The part whose turn it is must not wait for the parts after it.
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

impl PartPiece for RowResult {
    fn bytes(&self) -> usize {
        let own = match self {
            Ok((_, row)) => {
                let text = if let RowText::Is(text) = &row.text { text.len() } else { 0 };
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

/// Calls `each` with every record of `rows`, to the end or until `each` returns false.
pub(super) fn each_record(rows: &mut dyn RowReader, each: &mut dyn FnMut(RowResult) -> bool) {
    let mut row = FileRow::default();
    loop {
        let record = match rows.next(&mut row) {
            Ok(NextRow::End) => return,
            Ok(next) => Ok((next, std::mem::take(&mut row))),
            Err(damage) => Err(damage),
        };
        let is_last = record.as_ref().is_err_and(|damage| damage.ends);
        if !each(record) || is_last {
            return;
        }
    }
}

/// The cores of the machine.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests;
