//! The buckets of all tables by number, each with its entries in a cell.

use super::bucket::{EntryBits, PackedBucket, PackedBucketMut, work};
use super::cells::{CellArena, CellPlace, room};

/// Buckets of several tables.
#[derive(Debug, Default)]
pub(super) struct BucketStore {
    /// Headers by bucket number, in runs of [`RUN`]: no growth copies all of them.
    runs: Vec<Vec<BucketHeader>>,
    free_runs: Vec<u32>,
    cells: CellArena,
    /// The entries of a bucket that is rewritten.
    rewritten: Vec<u64>,
}

/// A bucket without its entries; 12 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct BucketHeader {
    // The place of its cell.
    at: u32,
    len: u32,
    class: u8,
    /// Bits of a value.
    value_bits: u8,
}

impl BucketHeader {
    #[inline]
    fn cell(self) -> CellPlace {
        CellPlace { at: self.at, class: self.class }
    }

    fn set_cell(&mut self, CellPlace { at, class }: CellPlace) {
        (self.at, self.class) = (at, class);
    }

    #[inline]
    fn len(self) -> usize {
        self.len as usize
    }

    #[inline]
    fn bits(self, remainder_bits: u32) -> EntryBits {
        EntryBits::new(remainder_bits, self.value_bits)
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
            run.filter(|run| u64::from(*run) * RUN as u64 <= u64::from(u32::MAX))
                .expect("fewer than 2^32 buckets")
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
        PackedBucket::new(self.cells.cell(header.cell()), header.len(), header.bits(remainder_bits))
    }

    /// Number of entries of a bucket.
    pub(super) fn len(&self, number: u32) -> usize {
        self.header(number).len()
    }

    /// Inserts entries, which ascend, each with the place of [`PackedBucket::find`] before any is inserted.
    /// Returns their greatest value.
    pub(super) fn insert(
        &mut self,
        number: u32,
        entries: &[(usize, (u64, u32))],
        remainder_bits: u32,
    ) -> u32 {
        let Some(greatest) = entries.iter().map(|(_, (_, value))| *value).max() else { return 0 };
        self.widen(number, greatest, remainder_bits);
        self.grow(number, self.len(number) + entries.len(), remainder_bits);
        let before = *self.header(number);
        self.header_mut(number).len = u32::try_from(before.len() + entries.len()).expect("entries are fewer");
        let words = self.cells.cell_mut(before.cell());
        PackedBucketMut::new(words, before.len(), before.bits(remainder_bits)).insert(entries);
        greatest
    }

    /// Sets the value of an entry.
    pub(super) fn set(&mut self, number: u32, at: usize, value: u32, remainder_bits: u32) {
        self.widen(number, value, remainder_bits);
        self.change(number, remainder_bits).set(at, value);
    }

    /// Removes entries, which ascend: places with their remainders. Memory is given back when two classes
    /// less are enough.
    pub(super) fn remove(&mut self, number: u32, entries: &[(usize, u64)], remainder_bits: u32) {
        if entries.is_empty() {
            return;
        }
        self.change(number, remainder_bits).remove(entries);
        let header = self.header_mut(number);
        header.len = u32::try_from(header.len() - entries.len()).expect("entries are fewer");
        if header.len == 0 {
            header.value_bits = 0;
        }
        let (cell, used) = (header.cell(), header.bits(remainder_bits).bits(header.len()));
        if used == 0 || self.cells.is_much_larger(cell, used) {
            self.move_cell(number, used, remainder_bits);
        }
    }

    /// Makes room for `n` entries; `value` is a large one of their values.
    pub(super) fn reserve(&mut self, number: u32, n: usize, value: u32, remainder_bits: u32) {
        let header = self.header_mut(number);
        if header.len == 0 {
            header.value_bits = bits_of(value);
        }
        self.grow(number, n, remainder_bits);
    }

    /// Removes all entries and returns them.
    pub(super) fn take(&mut self, number: u32, remainder_bits: u32) -> Vec<(u64, u32)> {
        let entries = self.bucket(number, remainder_bits).entries().collect();
        self.header_mut(number).len = 0;
        self.move_cell(number, 0, remainder_bits);
        entries
    }

    /// Adds entries, which ascend by remainder, to an empty bucket. No value is greater than `greatest`.
    pub(super) fn fill(&mut self, number: u32, entries: &[(u64, u32)], greatest: u32, remainder_bits: u32) {
        self.header_mut(number).value_bits = bits_of(greatest);
        self.grow(number, entries.len(), remainder_bits);
        if !entries.is_empty() {
            self.change(number, remainder_bits).fill(entries.iter().copied());
        }
        self.header_mut(number).len = u32::try_from(entries.len()).expect("entries are fewer");
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
        let header = self.header_mut(number);
        if header.len == 0 {
            header.value_bits = header.value_bits.max(bits_of(value));
        } else if bits_of(value) > header.value_bits {
            let entries = self.take(number, remainder_bits);
            self.fill(number, &entries, value, remainder_bits);
        }
    }

    /// Makes room for `n` entries.
    fn grow(&mut self, number: u32, n: usize, remainder_bits: u32) {
        let header = self.header(number);
        let used = header.bits(remainder_bits).bits(n);
        if used > room(self.cells.cell(header.cell())) {
            self.move_cell(number, used, remainder_bits);
        }
    }

    /// Moves the entries of a bucket to a cell for `used` bits.
    fn move_cell(&mut self, number: u32, used: usize, remainder_bits: u32) {
        let header = *self.header(number);
        let before = header.cell();
        let after = self.cells.add(used, number);
        if header.len > 0 {
            self.rewritten.clear();
            self.rewritten.extend_from_slice(self.cells.cell(before));
            let words = self.cells.cell_mut(after);
            PackedBucketMut::new(words, header.len(), header.bits(remainder_bits)).copy_from(&self.rewritten);
        }
        self.header_mut(number).set_cell(after);
        let Self { runs, cells, .. } = self;
        // The new cell may be moved too.
        cells.free(before, |owner, place| {
            let moved = &mut runs[owner as usize / RUN][owner as usize % RUN];
            work(moved.len());
            moved.set_cell(place);
        });
    }

    /// A bucket to change.
    #[inline]
    fn change(&mut self, number: u32, remainder_bits: u32) -> PackedBucketMut<'_> {
        let header = *self.header(number);
        let words = self.cells.cell_mut(header.cell());
        PackedBucketMut::new(words, header.len(), header.bits(remainder_bits))
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

/// Bits of values up to this.
fn bits_of(greatest: u32) -> u8 {
    u8::try_from(u32::BITS - greatest.leading_zeros()).map_or(1, |bits| bits.max(1))
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
