//! One bucket: entries in ascending order, in as few bits as they need.
//!
//! The range of a bucket is cut into equal *sections*. An entry stores only what its section leaves open of
//! the remainder; a string with a zero for each entry and a one at the end of each section says which entries
//! a section has. That is two bits an entry in place of seven (P. Elias, *Efficient storage and retrieval by
//! content and address of static files*, 1974), and the place of a hash is nearly known.
//!
//! ```text
//! words of a cell   sections ─▶   free   ◀─ entry 2, entry 1, entry 0   owner
//! ```

use std::ops::Range;

use super::bits::{WORD, copy_last, index, load, low_bits, move_down, move_up, ones, select, store, zeros};
use super::cells::{OWNER, room};

/// Most bits of a remainder that the section says: about as many sections as entries. With one more or one
/// less an entry is longer by a third of a bit at most.
const SECTION_BITS: usize = 7;

/// Entries of a section up to which it is searched one by one.
const FEW: usize = 16;

/// The bits of an entry: a *remainder*, the bits of a hash that the range of the bucket leaves open, and a
/// value.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryBits {
    /// Of the remainder, what the section says.
    section: usize,
    /// Of the remainder, what is stored.
    rest: usize,
    value: usize,
}

impl EntryBits {
    #[inline]
    pub(super) fn new(remainder_bits: u32, value_bits: u8) -> Self {
        let remainder = remainder_bits as usize;
        let section = remainder.min(SECTION_BITS);
        Self { section, rest: remainder - section, value: value_bits.into() }
    }

    /// Bits of so many entries and their sections.
    #[inline]
    pub(super) fn bits(self, entries: usize) -> usize {
        if entries == 0 { 0 } else { self.sections(entries) + entries * self.each() }
    }

    /// Bits of the string of sections.
    #[inline]
    pub(super) fn sections(self, entries: usize) -> usize {
        (1 << self.section) + entries
    }

    /// Bits of an entry beside that string.
    #[inline]
    pub(super) fn each(self) -> usize {
        self.rest + self.value
    }

    /// The section of a remainder, and the rest.
    #[inline]
    fn parts(self, remainder: u64) -> (usize, u64) {
        (index(remainder >> self.rest), remainder & low_bits(self.rest))
    }
}

/// A bucket to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedBucket<'a> {
    words: &'a [u64],
    len: usize,
    bits: EntryBits,
}

impl<'a> PackedBucket<'a> {
    /// The first `len` entries in the words of a cell.
    #[inline]
    pub(super) fn new(words: &'a [u64], len: usize, bits: EntryBits) -> Self {
        Self { words, len, bits }
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// All entries.
    pub(super) fn entries(self) -> impl Iterator<Item = (u64, u32)> + 'a {
        let mut section = 0;
        (0..self.len).map(move |at| {
            section += ones(self.words, at + section);
            ((section as u64) << self.bits.rest | self.rest(at), self.value(at))
        })
    }

    /// The value of an entry.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a value has at most 32 bits")]
    pub(super) fn value(self, at: usize) -> u32 {
        load(self.words, place(self.words, self.bits, at) + self.bits.rest, self.bits.value) as u32
    }

    /// The words that a search for a remainder and an insert there read: from the sections to about the
    /// place of the remainder.
    #[inline]
    pub(super) fn searched(self, remainder: u64) -> &'a [u64] {
        let guess = (self.bits.parts(remainder).0 * self.len) >> self.bits.section;
        let end = if self.len == 0 { 0 } else { place(self.words, self.bits, guess) / WORD + 1 };
        &self.words[..end]
    }

    /// Where a remainder is inserted, and its first value.
    #[inline]
    pub(super) fn find(self, remainder: u64) -> (usize, Option<u32>) {
        let (found, rest) = (self.search(remainder), self.bits.parts(remainder).1);
        let is_there = !found.is_empty() && self.rest(found.start) == rest;
        (found.start, is_there.then(|| self.value(found.start)))
    }

    /// The entries of a remainder.
    #[inline]
    pub(super) fn entries_of(self, remainder: u64) -> impl Iterator<Item = usize> + 'a {
        let rest = self.bits.parts(remainder).1;
        self.search(remainder).take_while(move |at| self.rest(*at) == rest)
    }

    /// The entries that are not less than a remainder, up to the end of its section.
    #[inline]
    fn search(self, remainder: u64) -> Range<usize> {
        if self.len == 0 {
            return 0..0;
        }
        let (section, rest) = self.bits.parts(remainder);
        let Range { mut start, end } = self.section(section);
        // Entries are few where remainders are uniform.
        let mut many = end;
        while many - start > FEW {
            let middle = usize::midpoint(start, many);
            (start, many) = if self.rest(middle) < rest { (middle + 1, many) } else { (start, middle) };
            work(1);
        }
        while start < many && self.rest(start) < rest {
            start += 1;
            work(1);
        }
        start..end
    }

    /// The entries of a section.
    #[inline]
    fn section(self, section: usize) -> Range<usize> {
        let bit = if section == 0 { 0 } else { select(self.words, section - 1) + 1 };
        let start = bit - section;
        start..start + zeros(self.words, bit)
    }

    /// What an entry stores of its remainder.
    #[inline]
    fn rest(self, at: usize) -> u64 {
        load(self.words, place(self.words, self.bits, at), self.bits.rest)
    }
}

/// A bucket to change. Its cell has room for what is added.
#[derive(Debug)]
pub(super) struct PackedBucketMut<'a> {
    words: &'a mut [u64],
    len: usize,
    bits: EntryBits,
}

impl<'a> PackedBucketMut<'a> {
    /// The first `len` entries in the words of a cell.
    #[inline]
    pub(super) fn new(words: &'a mut [u64], len: usize, bits: EntryBits) -> Self {
        Self { words, len, bits }
    }

    /// Writes entries, which ascend by remainder, in place of all.
    pub(super) fn fill(&mut self, entries: impl ExactSizeIterator<Item = (u64, u32)>) {
        self.len = entries.len();
        self.words[..self.bits.sections(self.len).div_ceil(WORD)].fill(u64::MAX);
        work(self.len);
        entries.enumerate().for_each(|(at, entry)| self.write(at, entry));
    }

    /// Inserts entries, which ascend by remainder, each with its place among those of before.
    pub(super) fn insert(&mut self, entries: &[(usize, (u64, u32))]) {
        if self.len == 0 {
            return self.fill(entries.iter().map(|(_, entry)| *entry));
        }
        let (mut end, mut end_of_sections) = (self.len, self.bits.sections(self.len));
        self.len += entries.len();
        for (before, (at, entry)) in entries.iter().enumerate().rev() {
            let bit = at + self.bits.parts(entry.0).0;
            move_up(self.words, bit..end_of_sections, before + 1);
            move_down(self.words, self.range(*at..end), (before + 1) * self.bits.each());
            self.write(at + before, *entry);
            work(end - at);
            (end, end_of_sections) = (*at, bit);
        }
    }

    /// Copies all entries from the words of another cell.
    pub(super) fn copy_from(&mut self, words: &[u64]) {
        let sections = self.bits.sections(self.len).div_ceil(WORD);
        self.words[..sections].copy_from_slice(&words[..sections]);
        copy_last(words, self.words, self.bits.each() * self.len + OWNER);
        work(self.len);
    }

    /// Removes entries, which ascend: places with their remainders.
    pub(super) fn remove(&mut self, entries: &[(usize, u64)]) {
        let bits = self.bits;
        let bit = |(at, remainder): &(usize, u64)| (*at, at + bits.parts(*remainder).0);
        let end = (self.len, bits.sections(self.len));
        for (before, entry) in entries.iter().enumerate() {
            let ((at, bit), (next, next_bit)) = (bit(entry), entries.get(before + 1).map_or(end, bit));
            move_down(self.words, bit + 1..next_bit, before + 1);
            let kept = range(self.words, bits, at + 1..next);
            move_up(self.words, kept, (before + 1) * bits.each());
            work(next - at);
        }
        self.len -= entries.len();
    }

    /// Sets the value of an entry.
    #[inline]
    pub(super) fn set(&mut self, at: usize, value: u32) {
        let start = place(self.words, self.bits, at) + self.bits.rest;
        store(self.words, start, self.bits.value, value.into());
    }

    /// Writes an entry, whose bit among the sections may be a one.
    #[inline]
    fn write(&mut self, at: usize, (remainder, value): (u64, u32)) {
        let (section, rest) = self.bits.parts(remainder);
        self.words[(at + section) / WORD] &= !(1 << ((at + section) % WORD));
        let start = place(self.words, self.bits, at);
        if self.bits.each() <= WORD {
            store(self.words, start, self.bits.each(), rest | u64::from(value) << self.bits.rest);
        } else {
            store(self.words, start, self.bits.rest, rest);
            self.set(at, value);
        }
    }

    /// The bits of entries.
    #[inline]
    fn range(&self, entries: Range<usize>) -> Range<usize> {
        range(self.words, self.bits, entries)
    }
}

/// The bits of entries, of which the last is the first.
#[inline]
fn range(words: &[u64], bits: EntryBits, Range { start, end }: Range<usize>) -> Range<usize> {
    room(words) - end * bits.each()..room(words) - start * bits.each()
}

/// The first bit of an entry.
#[inline]
fn place(words: &[u64], bits: EntryBits, at: usize) -> usize {
    room(words) - (at + 1) * bits.each()
}

#[cfg(test)]
thread_local! {
    /// Entries moved or passed.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts moved or passed entries, in tests only.
pub(super) fn work(_entries: usize) {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + _entries));
}
