//! Rows of words that one thread writes and other threads read, without a lock.
//!
//! The words are atomic. Which row a read returns is up to the threads: the writer passes a place on after it
//! has set the row, as over a channel, and does not set it again before the reader has no more use for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Approximate bytes of a chunk, as of [`Rows`](super::Rows).
const CHUNK_BYTES: usize = 1 << 20;

/// Rows in memory. Empty, if the rows are all free.
type Chunk = Arc<[AtomicU64]>;

/// Rows of `width` words each, by place: 0, 1, 2, … They never move, and a chunk whose rows are all free is
/// given back once all readers have read another row.
#[derive(Debug)]
pub struct SharedRows {
    chunks: Vec<Chunk>,
    /// By chunk, the number of rows that are not free.
    used: Vec<usize>,
    /// The chunk that was emptied last, for the next that is needed.
    spare: Option<Chunk>,
    shape: RowShape,
    published: Arc<PublishedChunks>,
}

/// Reads the rows of [`SharedRows`], on any thread.
#[derive(Clone, Debug)]
pub struct SharedRowsReader {
    published: Arc<PublishedChunks>,
    seen: RefCell<SeenChunks>,
    shape: RowShape,
}

#[derive(Clone, Copy, Debug)]
struct RowShape {
    width: usize,
    /// log2 of the number of rows of a chunk.
    shift: u32,
}

/// The chunks, for readers.
#[derive(Debug, Default)]
struct PublishedChunks {
    chunks: Mutex<Vec<Chunk>>,
    /// Number of changes of `chunks`.
    version: AtomicU64,
}

/// The chunks as of a version.
#[derive(Clone, Debug, Default)]
struct SeenChunks {
    version: u64,
    chunks: Vec<Chunk>,
}

impl RowShape {
    #[inline]
    fn row(self, chunks: &[Chunk], place: u32) -> &[AtomicU64] {
        let place = place as usize;
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &chunks[place >> self.shift][at..][..self.width]
    }

    fn new_chunk(self) -> Chunk {
        (0..self.width << self.shift).map(|_| AtomicU64::new(0)).collect()
    }
}

impl SharedRows {
    /// No rows; a row will have `width` words, 1 or more.
    pub fn new(width: usize) -> Self {
        let shift = (CHUNK_BYTES / (width * size_of::<u64>()).max(1)).max(1).ilog2();
        Self {
            chunks: Vec::new(),
            used: Vec::new(),
            spare: None,
            shape: RowShape { width, shift },
            published: Arc::default(),
        }
    }

    /// A reader of the rows.
    pub fn reader(&self) -> SharedRowsReader {
        let published = Arc::clone(&self.published);
        SharedRowsReader { published, seen: RefCell::default(), shape: self.shape }
    }

    /// The first word of a row that is not free.
    #[inline]
    pub fn first(&self, place: u32) -> u64 {
        self.shape.row(&self.chunks, place)[0].load(Ordering::Relaxed)
    }

    /// Passes the row at a place that is not free to `read`.
    #[inline]
    pub fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        with_words(self.shape.row(&self.chunks, place), read)
    }

    /// Copies the row at a place that is not free.
    #[inline]
    pub fn read<'a>(&self, place: u32, row: &'a mut Vec<u64>) -> &'a [u64] {
        row.clear();
        row.extend(loaded(self.shape.row(&self.chunks, place)));
        row
    }

    /// Sets the row at a place that is free, or adds it at the place after the last one.
    ///
    /// # Panics
    /// If `row` does not have `width` words.
    pub fn set(&mut self, place: u32, row: impl ExactSizeIterator<Item = u64>) {
        assert_eq!(row.len(), self.shape.width, "a row has the width of all rows");
        let chunk = place as usize >> self.shape.shift;
        if chunk == self.chunks.len() {
            self.chunks.push(Chunk::default());
            self.used.push(0);
        }
        if self.chunks[chunk].is_empty() {
            self.chunks[chunk] = self.spare.take().unwrap_or_else(|| self.shape.new_chunk());
            self.publish(chunk);
        }
        self.used[chunk] += 1;
        let words = self.shape.row(&self.chunks, place);
        words.iter().zip(row).for_each(|(word, new)| word.store(new, Ordering::Relaxed));
    }

    /// Frees the row at a place. It must not be read until it is [set](Self::set) again.
    pub fn free(&mut self, place: u32) {
        let chunk = place as usize >> self.shape.shift;
        self.used[chunk] -= 1;
        if self.used[chunk] == 0 && chunk + 1 < self.chunks.len() {
            self.spare = Some(std::mem::take(&mut self.chunks[chunk]));
            self.publish(chunk);
        }
    }

    fn publish(&self, chunk: usize) {
        let mut chunks = self.published.chunks.lock();
        chunks.resize(self.chunks.len(), Chunk::default());
        chunks[chunk] = Arc::clone(&self.chunks[chunk]);
        self.published.version.fetch_add(1, Ordering::Release);
    }
}

impl SharedRowsReader {
    /// The first word of a row that is not free.
    #[inline]
    pub fn first(&self, place: u32) -> u64 {
        self.row(place, |row| row[0].load(Ordering::Relaxed))
    }

    /// Passes the row at a place that is not free to `read`.
    pub fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        self.row(place, |row| with_words(row, read))
    }

    #[inline]
    fn row<R>(&self, place: u32, read: impl FnOnce(&[AtomicU64]) -> R) -> R {
        let mut seen = self.seen.borrow_mut();
        if seen.version != self.published.version.load(Ordering::Acquire) {
            seen.renew(&self.published);
        }
        read(self.shape.row(&seen.chunks, place))
    }
}

impl SeenChunks {
    fn renew(&mut self, published: &PublishedChunks) {
        let chunks = published.chunks.lock();
        self.version = published.version.load(Ordering::Acquire);
        for (seen, chunk) in self.chunks.iter_mut().zip(&*chunks) {
            if !Arc::ptr_eq(seen, chunk) {
                seen.clone_from(chunk);
            }
        }
        self.chunks.extend(chunks.iter().skip(self.chunks.len()).map(Arc::clone));
    }
}

#[inline]
fn loaded(row: &[AtomicU64]) -> impl ExactSizeIterator<Item = u64> {
    row.iter().map(|word| word.load(Ordering::Relaxed))
}

/// Words that are copied without an allocation.
const FEW: usize = 32;

fn with_words<R>(row: &[AtomicU64], read: impl FnOnce(&[u64]) -> R) -> R {
    let mut few = [0; FEW];
    match few.get_mut(..row.len()) {
        Some(words) => {
            words.iter_mut().zip(loaded(row)).for_each(|(word, loaded)| *word = loaded);
            read(words)
        }
        None => read(&loaded(row).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::hash::mix;

    fn words(width: usize, n: u64) -> Vec<u64> {
        (0..width as u64).map(|i| mix(n ^ i << 32)).collect()
    }

    /// Random rows are set and freed, the least free place first; a thread reads each row that it learns of.
    #[test]
    fn a_reader_sees_the_rows_whose_places_it_gets() {
        for width in [1, 3, FEW, FEW + 1] {
            let mut rows = SharedRows::new(width);
            let reader = rows.reader();
            let (sender, receiver) = channel::<Vec<(u32, u64)>>();
            let (done, was_read) = channel();
            let thread = std::thread::spawn(move || {
                for batch in receiver {
                    for (place, n) in batch {
                        assert_eq!(reader.first(place), words(width, n)[0]);
                        reader.with(place, |row| assert_eq!(row, words(width, n)));
                    }
                    done.send(()).unwrap();
                }
                reader.seen.borrow().chunks.iter().filter(|chunk| !chunk.is_empty()).count()
            });
            let each = 1_usize << rows.shape.shift;
            let (mut live, mut next) = (BTreeMap::<u32, u64>::new(), 0_u64);
            let mut copy = Vec::new();
            // Grows to three chunks, shrinks to the last of them, and grows again.
            for (least, most) in [(0, 2 * each + 9), (2 * each, 2 * each + 9), (0, 2 * each + 9)] {
                let places = u32::try_from(least).unwrap()..u32::try_from(most).unwrap();
                let ended: Vec<u32> = live.keys().copied().filter(|place| !places.contains(place)).collect();
                for place in ended {
                    live.remove(&place);
                    rows.free(place);
                }
                for place in places {
                    if let std::collections::btree_map::Entry::Vacant(entry) = live.entry(place) {
                        rows.set(place, words(width, next).into_iter());
                        entry.insert(next);
                        next += 1;
                    }
                }
                let sample = live.iter().filter(|(place, _)| *place % 97 < 2 || **place as usize >= 2 * each);
                let sample: Vec<_> = sample.map(|(place, n)| (*place, *n)).collect();
                for (place, n) in &sample {
                    assert_eq!(rows.read(*place, &mut copy), words(width, *n));
                    assert_eq!((rows.first(*place), rows.with(*place, <[u64]>::len)), (copy[0], width));
                }
                let chunks = rows.chunks.iter().filter(|chunk| !chunk.is_empty()).count();
                assert_eq!(chunks, if least == 0 { 3 } else { 1 });
                sender.send(sample).unwrap();
                was_read.recv().unwrap();
            }
            drop(sender);
            assert_eq!(thread.join().unwrap(), 3);
        }
    }

    #[test]
    #[should_panic(expected = "a row has the width of all rows")]
    fn a_row_of_another_width_is_refused() {
        SharedRows::new(2).set(0, [1, 2, 3].into_iter());
    }
}
