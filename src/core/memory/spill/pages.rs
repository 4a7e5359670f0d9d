//! Rows in the pages of a file, read and written through a cache of fixed size.
//!
//! A row does not straddle pages. A page is one read: of [`PAGE_BYTES`] in a run, or of one row where rows
//! are longer.
//! The cache drops pages by CLOCK: the hand passes over pages that were used since its last pass. Changed
//! pages are written when they are dropped. Nothing is read by address, so an error of the disk is an error
//! here, and no signal. A sum of the rows of each page is in memory: a disk that returns what it was not
//! given, as after a write that was lost, is an error too. A row that is written alone changes the sum by its
//! own part, for which its part before must be known.
//!
//! References: F. J. Corbató, *A paging experiment with the Multics system* (1969), for CLOCK.

use std::io;
use std::ops::AddAssign;

use hashbrown::HashMap;

use super::file::{PageFile, SpillError, SpillPlace};
use crate::hash::{BuildIdentityHasher, mix};
use crate::memory::Rows;

/// Bytes of a page, where a row is not longer: the unit of most disks. A longer page costs as much to read,
/// and holds more rows that are not asked for.
pub const PAGE_BYTES: usize = 4096;

const WORD: usize = size_of::<u64>();

/// Counts of a file and its cache, or what was added to them since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillCounts {
    /// Rows that were looked up.
    pub rows: u64,
    /// Pages that were read, since the row was not in the cache.
    pub reads: u64,
    /// Pages and rows that were written.
    pub writes: u64,
    /// Bytes that the file gained.
    pub bytes: u64,
    /// Pages that the cache gained.
    pub cached: u64,
}

impl AddAssign for SpillCounts {
    fn add_assign(&mut self, more: Self) {
        self.rows += more.rows;
        self.reads += more.reads;
        self.writes += more.writes;
        self.bytes += more.bytes;
        self.cached += more.cached;
    }
}

/// Rows of words by place: 0, 1, 2, …
#[derive(Debug)]
pub(super) struct PagedRows {
    file: Box<dyn PageFile>,
    /// The name of the place of the file.
    place: String,
    /// Words of a row, of a page; and rows of a page.
    width: usize,
    page_words: usize,
    rows_of_page: usize,
    frames: Vec<Frame>,
    /// Most frames, 1 or more.
    most: usize,
    /// By page, as [`mix`] of its number: its index in `frames`.
    frame_of: HashMap<u64, usize, BuildIdentityHasher>,
    hand: usize,
    /// Pages that there are, in the file or in the cache only.
    pages: usize,
    /// By page, the [`RowSum`]s of its rows, combined. Rows that were never set are zeros.
    sums: Rows<RowSum>,
    pub(super) counts: SpillCounts,
}

/// 32 bits of a hash of a row. Those of a page are combined by exclusive or.
pub(super) type RowSum = u32;

/// A page in the cache.
#[derive(Debug)]
struct Frame {
    page: usize,
    words: Box<[u64]>,
    /// Differs from the file.
    is_changed: bool,
    /// Used since the hand last passed.
    is_used: bool,
}

impl PagedRows {
    /// Rows of `width` words, 1 or more, in a new file of pages of `page_bytes`. The cache takes
    /// `cache_bytes`, at least one page.
    pub(super) fn create(
        place: &dyn SpillPlace,
        width: usize,
        page_bytes: usize,
        cache_bytes: usize,
    ) -> Self {
        let name = place.name();
        let file = place.open().unwrap_or_else(|error| SpillError::new(&name, "created", error).unwind());
        let rows_of_page = (page_bytes / (width * WORD)).max(1);
        let page_words = if rows_of_page == 1 { width } else { page_bytes / WORD };
        Self {
            file,
            place: name,
            width,
            page_words,
            rows_of_page,
            frames: Vec::new(),
            most: (cache_bytes / (page_words * WORD)).max(1),
            frame_of: HashMap::default(),
            hand: 0,
            pages: 0,
            sums: Rows::new(1),
            counts: SpillCounts::default(),
        }
    }

    /// A row that was written.
    pub(super) fn row(&mut self, place: u32) -> &[u64] {
        self.counts.rows += 1;
        let (page, at) = self.position(place);
        let frame = match self.frame_of.get(&mix(page as u64)) {
            Some(frame) => *frame,
            None => {
                let frame = self.free_frame(page);
                let bytes = bytemuck::cast_slice_mut(&mut self.frames[frame].words);
                let mut read = self.file.read_at(bytes, page as u64 * (self.page_words * WORD) as u64);
                self.counts.reads += 1;
                if read.is_ok() && self.sums.row(page)[0] != self.sum_of_page(&self.frames[frame].words) {
                    let lost = "it returns what was not written to it";
                    read = Err(io::Error::new(io::ErrorKind::InvalidData, lost));
                }
                read.unwrap_or_else(|error| {
                    // Other threads read until the run has failed: they find no page here.
                    self.frame_of.remove(&mix(page as u64));
                    SpillError::new(&self.place, "read", error).unwind()
                });
                frame
            }
        };
        let frame = &mut self.frames[frame];
        frame.is_used = true;
        &frame.words[at..][..self.width]
    }

    /// Sets a row; `before` is the sum of the row that was there. Returns the new sum. Reads nothing: a row
    /// of a page that is not in the cache is written alone.
    pub(super) fn set(&mut self, place: u32, row: &[u64], before: RowSum) -> RowSum {
        let (page, at) = self.position(place);
        let known = self.frame_of.get(&mix(page as u64)).copied();
        let frame = known.or_else(|| (page >= self.pages).then(|| self.add_pages(page)));
        let sum = sum(row);
        let row_of_page = at / self.width;
        self.sums.row_mut(page)[0] ^= placed(before, row_of_page) ^ placed(sum, row_of_page);
        if let Some(frame) = frame {
            let frame = &mut self.frames[frame];
            (frame.is_used, frame.is_changed) = (true, true);
            frame.words[at..][..self.width].copy_from_slice(row);
        } else {
            self.write(row, (page * self.page_words + at) as u64 * WORD as u64);
        }
        sum
    }

    fn sum_of_page(&self, words: &[u64]) -> RowSum {
        let rows = words[..self.rows_of_page * self.width].chunks_exact(self.width);
        rows.enumerate().fold(0, |all, (at, row)| all ^ placed(sum(row), at))
    }

    /// Adds the pages up to this one, of zeros. Returns the frame of the last one. They are written whole, so
    /// that every page can be read whole.
    fn add_pages(&mut self, page: usize) -> usize {
        let mut frame = 0;
        for new in self.pages..=page {
            frame = self.free_frame(new);
            self.frames[frame].words.fill(0);
            self.frames[frame].is_changed = true;
            self.sums.push(std::iter::once(self.sum_of_page(&self.frames[frame].words)));
            self.counts.bytes += (self.page_words * WORD) as u64;
        }
        self.pages = page + 1;
        frame
    }

    /// The page of a place, and the first word of the row there.
    fn position(&self, place: u32) -> (usize, usize) {
        let place = place as usize;
        (place / self.rows_of_page, place % self.rows_of_page * self.width)
    }

    fn write(&mut self, words: &[u64], offset: u64) {
        self.counts.writes += 1;
        let written = self.file.write_at(bytemuck::cast_slice(words), offset);
        written.unwrap_or_else(|error| SpillError::new(&self.place, "written", error).unwind());
    }

    /// A frame for a page, of any content. If the cache is full a page is dropped, and written if it has
    /// changed.
    fn free_frame(&mut self, page: usize) -> usize {
        if self.frames.len() < self.most {
            let words = vec![0; self.page_words].into();
            self.frames.push(Frame { page, words, is_changed: false, is_used: true });
            self.counts.cached += 1;
            self.frame_of.insert(mix(page as u64), self.frames.len() - 1);
            return self.frames.len() - 1;
        }
        while std::mem::take(&mut self.frames[self.hand].is_used) {
            self.hand = (self.hand + 1) % self.most;
        }
        let frame = self.hand;
        self.hand = (self.hand + 1) % self.most;
        let old = self.frames[frame].page;
        if std::mem::take(&mut self.frames[frame].is_changed) {
            let words = std::mem::take(&mut self.frames[frame].words);
            self.write(&words, (old * self.page_words * WORD) as u64);
            self.frames[frame].words = words;
        }
        self.frame_of.remove(&mix(old as u64));
        self.frames[frame].page = page;
        self.frame_of.insert(mix(page as u64), frame);
        frame
    }
}

/// What a row adds to the sum of its page: another number at each place, so that rows that are exchanged, or
/// lost to the same older ones, are noticed.
fn placed(sum: RowSum, row_of_page: usize) -> RowSum {
    let place = RowSum::try_from(row_of_page).expect("a page has fewer than 2^32 rows");
    sum.wrapping_mul(2 * place + 1)
}

pub(super) fn sum(row: &[u64]) -> RowSum {
    (row.iter().fold(0, |hash, word| mix(hash ^ word)) >> 32) as u32
}
