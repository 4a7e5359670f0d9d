//! The buckets of all tables by number, each with its entries in a cell.

use super::bucket::{PackedBucket, entry_width, work, write_entry};
use super::cells::{CellArena, CellPlace};

/// Buckets of several tables.
#[derive(Debug, Default)]
pub(super) struct BucketStore {
    /// Headers by bucket number, in runs of [`RUN`]: no growth copies all of them.
    runs: Vec<Vec<BucketHeader>>,
    free_runs: Vec<u32>,
    cells: CellArena,
    /// The entries of a bucket that is rewritten.
    rewritten: Vec<u8>,
}

/// A bucket without its entries; 12 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct BucketHeader {
    // The place of its cell.
    at: u32,
    len: u32,
    class: u8,
    /// Bytes of an entry.
    width: u8,
}

impl BucketHeader {
    #[inline]
    fn cell(self) -> CellPlace {
        CellPlace { at: self.at, class: self.class }
    }

    fn set_cell(&mut self, CellPlace { at, class }: CellPlace) {
        (self.at, self.class) = (at, class);
    }
}

/// Headers of a run, a power of two.
pub(super) const RUN: usize = 256;

impl BucketStore {
    /// Adds a run without buckets; returns its number. Its buckets are numbered from `RUN` times that on.
    pub(super) fn add_run(&mut self) -> u32 {
        self.free_runs.pop().unwrap_or_else(|| {
            self.runs.push(Vec::new());
            let run = u32::try_from(self.runs.len() - 1).ok();
            run.filter(|run| run.checked_mul(256).is_some()).expect("fewer than 2^32 buckets")
        })
    }

    /// Adds an empty bucket to a run that is not full.
    pub(super) fn push(&mut self, run: u32) {
        self.runs[run as usize].push(BucketHeader::default());
    }

    /// Removes the last bucket of a run, which is empty. A run without buckets is freed, and true is
    /// returned.
    pub(super) fn pop(&mut self, run: u32) -> bool {
        let headers = &mut self.runs[run as usize];
        let last = headers.pop();
        debug_assert!(last.is_some_and(|header| header.len == 0 && header.class == 0));
        let is_free = headers.is_empty();
        if is_free {
            *headers = Vec::new();
            self.free_runs.push(run);
        }
        is_free
    }

    /// A bucket; its remainders have `remainder_bits` bits.
    #[inline]
    pub(super) fn bucket(&self, number: u32, remainder_bits: u32) -> PackedBucket<'_> {
        let header = self.header(number);
        let bytes = self.cells.cell(header.cell());
        PackedBucket::new(bytes, header.len as usize, header.width.into(), remainder_bits)
    }

    /// Number of entries of a bucket.
    pub(super) fn len(&self, number: u32) -> usize {
        self.header(number).len as usize
    }

    /// Inserts an entry at the result of [`PackedBucket::search`].
    pub(super) fn insert(&mut self, number: u32, at: usize, entry: (u64, u32), remainder_bits: u32) {
        self.widen(number, entry.1, remainder_bits);
        let BucketHeader { len, width, .. } = *self.header(number);
        let (len, width) = (len as usize, usize::from(width));
        let used = len * width;
        self.grow(number, used + width);
        let header = self.header_mut(number);
        header.len += 1;
        let cell = header.cell();
        let bytes = self.cells.cell_mut(cell);
        bytes.copy_within(at * width..used, (at + 1) * width);
        work(len - at);
        write_entry(&mut bytes[at * width..], width, entry, remainder_bits);
    }

    /// Sets the value of an entry.
    pub(super) fn set(&mut self, number: u32, at: usize, value: u32, remainder_bits: u32) {
        self.widen(number, value, remainder_bits);
        let remainder = self.bucket(number, remainder_bits).remainder(at);
        let header = *self.header(number);
        let width = usize::from(header.width);
        let bytes = &mut self.cells.cell_mut(header.cell())[at * width..];
        write_entry(bytes, width, (remainder, value), remainder_bits);
    }

    /// Removes an entry. Memory is given back when two classes less are enough.
    pub(super) fn remove(&mut self, number: u32, at: usize) {
        let header = self.header_mut(number);
        let (len, width) = (header.len as usize, usize::from(header.width));
        header.len -= 1;
        if len == 1 {
            header.width = 0;
        }
        let (cell, used) = (header.cell(), (len - 1) * width);
        self.cells.cell_mut(cell).copy_within((at + 1) * width..len * width, at * width);
        work(len - at);
        if len == 1 || self.cells.is_much_larger(cell, used) {
            self.move_cell(number, used);
        }
    }

    /// Makes room for `n` entries; `value` is a large one of their values.
    pub(super) fn reserve(&mut self, number: u32, n: usize, value: u32, remainder_bits: u32) {
        let header = self.header_mut(number);
        if header.len == 0 {
            header.width = entry_width(value, remainder_bits);
        }
        let used = n * usize::from(header.width);
        self.grow(number, used);
    }

    /// Removes all entries and returns them.
    pub(super) fn take(&mut self, number: u32, remainder_bits: u32) -> Vec<(u64, u32)> {
        let entries = self.bucket(number, remainder_bits).entries().collect();
        self.header_mut(number).len = 0;
        self.move_cell(number, 0);
        entries
    }

    /// Adds entries, which ascend by remainder, to an empty bucket. No value is greater than `greatest`.
    pub(super) fn fill(&mut self, number: u32, entries: &[(u64, u32)], greatest: u32, remainder_bits: u32) {
        let width = entry_width(greatest, remainder_bits);
        let header = self.header_mut(number);
        (header.len, header.width) = (u32::try_from(entries.len()).expect("entries are fewer"), width);
        let width = usize::from(width);
        let cell = self.cells.add(entries.len() * width, number);
        self.header_mut(number).set_cell(cell);
        let bytes = self.cells.cell_mut(cell);
        for (at, entry) in entries.iter().enumerate() {
            write_entry(&mut bytes[at * width..], width, *entry, remainder_bits);
        }
        work(entries.len());
    }

    /// Inserts entries, which ascend, each at the result of [`PackedBucket::search`] before any is inserted.
    /// Returns their greatest value.
    pub(super) fn insert_all(
        &mut self,
        number: u32,
        entries: &[(usize, (u64, u32))],
        remainder_bits: u32,
    ) -> u32 {
        let Some(greatest) = entries.iter().map(|(_, (_, value))| *value).max() else { return 0 };
        self.widen(number, greatest, remainder_bits);
        let BucketHeader { len, width, .. } = *self.header(number);
        let (mut end, width) = (len as usize, usize::from(width));
        self.grow(number, (end + entries.len()) * width);
        let header = self.header_mut(number);
        header.len = u32::try_from(end + entries.len()).expect("entries are fewer");
        let cell = header.cell();
        let bytes = self.cells.cell_mut(cell);
        for (before, (at, entry)) in entries.iter().enumerate().rev() {
            bytes.copy_within(at * width..end * width, (at + before + 1) * width);
            write_entry(&mut bytes[(at + before) * width..], width, *entry, remainder_bits);
            work(end - at);
            end = *at;
        }
        greatest
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let headers: usize = self.runs.iter().map(Vec::capacity).sum();
        self.cells.bytes()
            + headers * size_of::<BucketHeader>()
            + self.runs.capacity() * size_of::<Vec<BucketHeader>>()
    }

    /// Makes entries wide enough for a value.
    fn widen(&mut self, number: u32, value: u32, remainder_bits: u32) {
        let wide = entry_width(value, remainder_bits);
        let header = self.header_mut(number);
        if header.len == 0 {
            header.width = header.width.max(wide);
        } else if wide > header.width {
            let entries = self.take(number, remainder_bits);
            self.fill(number, &entries, value, remainder_bits);
        }
    }

    /// Makes room for `used` bytes.
    fn grow(&mut self, number: u32, used: usize) {
        if used > self.cells.room(self.header(number).cell()) {
            self.move_cell(number, used);
        }
    }

    /// Moves the entries of a bucket to a cell for `used` bytes.
    fn move_cell(&mut self, number: u32, used: usize) {
        let header = *self.header(number);
        let before = header.cell();
        let kept = header.len as usize * usize::from(header.width);
        self.rewritten.clear();
        self.rewritten.extend_from_slice(&self.cells.cell(before)[..kept]);
        let after = self.cells.add(used, number);
        self.cells.cell_mut(after)[..kept].copy_from_slice(&self.rewritten);
        work(header.len as usize);
        self.header_mut(number).set_cell(after);
        let Self { runs, cells, .. } = self;
        // The new cell may be moved too.
        cells.free(before, |owner, place| {
            let moved = &mut runs[owner as usize / RUN][owner as usize % RUN];
            work(moved.len as usize);
            moved.set_cell(place);
        });
    }

    #[inline]
    fn header(&self, number: u32) -> &BucketHeader {
        &self.runs[number as usize / RUN][number as usize % RUN]
    }

    #[inline]
    fn header_mut(&mut self, number: u32) -> &mut BucketHeader {
        &mut self.runs[number as usize / RUN][number as usize % RUN]
    }
}

#[cfg(test)]
impl BucketStore {
    /// The cell of a bucket, if it has one, with the bucket's number.
    pub(super) fn cell_of(&self, number: u32) -> Option<(CellPlace, u32)> {
        let cell = self.header(number).cell();
        (cell != CellPlace::default()).then_some((cell, number))
    }

    /// Asserts that the arena has these cells, with these owners, and no others.
    pub(super) fn check_cells(&self, cells: &std::collections::BTreeSet<(CellPlace, u32)>) {
        assert_eq!(&self.cells.all(), cells);
    }
}
