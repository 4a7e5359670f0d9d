//! One table of the block index: block hash to a 32-bit value, in hash order. 8 bytes an entry, about 9.5
//! with gaps and headers.
//!
//! The range of hashes is cut into *segments* of about 512 entries. A segment is an ordered table with gaps
//! (O. Amble and D. E. Knuth, *Ordered hash tables*, 1974): entries ascend, and each is at its *home*, a
//! place proportional to its hash, or at the first free place after it. So a search reads one or two
//! neighbouring cache lines, and sorted hashes read memory in one direction.
//!
//! Segments are split one at a time, in turn, as the number of entries grows (W. Litwin, *Linear hashing*,
//! 1980): an insert moves the entries of at most two segments, in a table of any size. Positions are
//! stretched so that the next segments to be split are always the fullest, by a factor of two from first to
//! last (after G. N. N. Martin, *Spiral storage*, 1979). The distribution of segment sizes is therefore the
//! same at any time, and memory grows as smoothly as the number of entries.
//!
//! [`reserve`](BlockTable::reserve) announces a batch: a sorted batch fills a segment from its front, and
//! homes are well placed only if the final number of entries is known.

use std::ops::Range;

/// Sorted entries with gaps.
#[derive(Debug)]
pub(super) struct BlockTable {
    /// The segments of this round: 2^depth of equal width in stretched positions. Segments already split are
    /// empty.
    coarse: Vec<TableSegment>,
    /// Two segments for each one already split, from the first on.
    fine: Vec<TableSegment>,
    len: usize,
}

/// The entries of a range of hashes.
#[derive(Debug, Default)]
struct TableSegment {
    /// `hash << 32 | value`, or [`GAP`]; the last place is always a gap, so that every search ends.
    places: Vec<u64>,
    /// Homes are `0..homes`; the places after them hold entries displaced from the last homes.
    homes: usize,
    len: usize,
}

/// A hash in a table: its value, or the place where it would be inserted.
pub(super) struct TableEntry<'a> {
    segment: &'a mut TableSegment,
    table_len: &'a mut usize,
    depth: u32,
    hash: u32,
    at: usize,
    value: Option<u32>,
}

/// An empty place; greater than any entry, since a value is below `u32::MAX`.
const GAP: u64 = u64::MAX;

/// Mean number of entries of a segment. With fewer there are more headers; with more a split takes longer.
const MEAN: usize = 512;

impl Default for BlockTable {
    fn default() -> Self {
        Self { coarse: vec![TableSegment::default()], fine: Vec::new(), len: 0 }
    }
}

impl BlockTable {
    /// Makes room for the hashes of a batch, which ascend. Many inserts without this are correct but slow.
    pub(super) fn reserve(&mut self, batch: impl Iterator<Item = u32> + Clone) {
        let target = self.len + batch.clone().count();
        while (self.coarse.len() + self.fine.len() / 2) * MEAN < target {
            self.split();
        }
        let mut batch = batch.peekable();
        while let Some(first) = batch.next() {
            let (side, at, depth) = self.locate(first);
            let mut of_segment = 1;
            while batch.next_if(|hash| self.locate(*hash) == (side, at, depth)).is_some() {
                of_segment += 1;
            }
            let segment = self.segment(side, at);
            segment.fit(segment.len + of_segment, depth);
        }
    }

    /// Prefetch: reads the place where the search for a hash begins. Cache misses of such reads overlap,
    /// those of successive searches do not.
    pub(super) fn touch(&self, hash: u32) -> u64 {
        let (side, index, depth) = self.locate(hash);
        let segment = match side {
            SegmentList::Coarse => &self.coarse[index],
            SegmentList::Fine => &self.fine[index],
        };
        segment.places.get(segment.home(hash, depth)).copied().unwrap_or_default()
    }

    /// The value of a hash, if it is in the table.
    pub(super) fn get(&self, hash: u32) -> Option<u32> {
        let (side, index, depth) = self.locate(hash);
        let segment = match side {
            SegmentList::Coarse => &self.coarse[index],
            SegmentList::Fine => &self.fine[index],
        };
        let found = segment.places.get(segment.search(hash, depth)).copied();
        found.filter(|e| *e != GAP && high(*e) == hash).map(low)
    }

    /// The entry of a hash, present or not.
    pub(super) fn entry(&mut self, hash: u32) -> TableEntry<'_> {
        let (side, index, depth) = self.locate(hash);
        let segment = match side {
            SegmentList::Coarse => &mut self.coarse[index],
            SegmentList::Fine => &mut self.fine[index],
        };
        let at = segment.search(hash, depth);
        let found = segment.places.get(at).copied().filter(|e| *e != GAP && high(*e) == hash);
        TableEntry { segment, table_len: &mut self.len, depth, hash, at, value: found.map(low) }
    }

    fn segment(&mut self, side: SegmentList, index: usize) -> &mut TableSegment {
        match side {
            SegmentList::Coarse => &mut self.coarse[index],
            SegmentList::Fine => &mut self.fine[index],
        }
    }

    /// The list and index of the segment of a hash, and the number of leading bits that select it.
    fn locate(&self, hash: u32) -> (SegmentList, usize, u32) {
        let depth = self.coarse.len().trailing_zeros();
        let index = index(hash, depth);
        if index < self.fine.len() / 2 {
            (SegmentList::Fine, self::index(hash, depth + 1), depth + 1)
        } else {
            (SegmentList::Coarse, index, depth)
        }
    }

    /// Splits the next segment of this round; after the last one a new round begins.
    fn split(&mut self) {
        if self.fine.len() == 2 * self.coarse.len() {
            self.coarse = std::mem::take(&mut self.fine);
            self.fine.reserve_exact(2 * self.coarse.len());
        }
        let depth = self.coarse.len().trailing_zeros() + 1;
        let next = self.fine.len() / 2;
        let whole = std::mem::take(&mut self.coarse[next]);
        let boundary =
            whole.places.iter().rposition(|e| *e != GAP && index(high(*e), depth).is_multiple_of(2));
        let boundary = boundary.map_or(0, |last| last + 1);
        self.fine.push(TableSegment::from_places(&whole.places, 0..boundary, depth));
        self.fine.push(TableSegment::from_places(&whole.places, boundary..whole.places.len(), depth));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentList {
    Coarse,
    Fine,
}

impl TableEntry<'_> {
    /// The value, if the hash is in the table.
    pub(super) fn value(&self) -> Option<u32> {
        self.value
    }

    /// Inserts or sets the value, which is below `u32::MAX`.
    pub(super) fn set(self, value: u32) {
        debug_assert!(value < u32::MAX);
        let entry = u64::from(self.hash) << 32 | u64::from(value);
        if self.value.is_some() {
            self.segment.places[self.at] = entry;
        } else {
            self.segment.insert(entry, self.at, self.depth);
            *self.table_len += 1;
        }
    }

    /// Removes the hash, if it is in the table.
    pub(super) fn remove(self) {
        if self.value.is_some() {
            self.segment.remove(self.at, self.depth);
            *self.table_len -= 1;
        }
    }
}

impl TableSegment {
    /// A segment of the entries in a range of another segment's places.
    fn from_places(places: &[u64], range: Range<usize>, depth: u32) -> Self {
        let places = &places[range];
        let mut segment = Self { len: places.iter().filter(|e| **e != GAP).count(), ..Self::default() };
        segment.place(places, segment.len, depth);
        segment
    }

    /// Makes room for `n` entries, so that at most 15 of 16 homes are used.
    fn fit(&mut self, n: usize, depth: u32) {
        if n * 16 > self.homes * 15 {
            let old = std::mem::take(&mut self.places);
            self.place(&old, n, depth);
        }
    }

    /// Places all entries anew, with room for `n`.
    fn place(&mut self, old: &[u64], n: usize, depth: u32) {
        let homes = n * 16 / 15 + 1;
        let size = allocated(homes + homes / 32 + 2);
        self.homes = size - size / 32 - 2;
        self.places = vec![GAP; size];
        let mut next = 0;
        for entry in old.iter().filter(|e| **e != GAP) {
            let at = self.home(high(*entry), depth).max(next);
            if at + 1 >= self.places.len() {
                self.places.resize(allocated(at + 2), GAP);
            }
            self.places[at] = *entry;
            next = at + 1;
        }
        work(self.places.len());
    }

    /// Inserts an entry whose hash is not present; `at` is the result of [`search`](Self::search).
    fn insert(&mut self, entry: u64, at: usize, depth: u32) {
        let mut at = at;
        if (self.len + 1) * 16 > self.homes * 15 {
            self.fit(self.len + 1, depth);
            at = self.search(high(entry), depth);
        }
        // The entries from here to the next gap are shifted by one.
        let gap = at
            + self.places[at..].iter().position(|e| *e == GAP).expect("the last place of a segment is a gap");
        if gap + 1 == self.places.len() {
            self.places.resize(allocated(gap + 2), GAP);
        }
        self.places.copy_within(at..gap, at + 1);
        work(gap - at);
        self.places[at] = entry;
        self.len += 1;
    }

    /// Removes the entry at a place.
    fn remove(&mut self, mut at: usize, depth: u32) {
        // Entries displaced from their home are shifted back.
        while self.places[at + 1] != GAP && self.home(high(self.places[at + 1]), depth) <= at {
            self.places[at] = self.places[at + 1];
            at += 1;
            work(1);
        }
        self.places[at] = GAP;
        self.len -= 1;
        if self.len * 4 < self.homes && self.homes > 16 {
            let old = std::mem::take(&mut self.places);
            self.place(&old, self.len, depth);
        }
    }

    /// The place of the first entry that is not less than the hash, at or after its home.
    fn search(&self, hash: u32, depth: u32) -> usize {
        let home = self.home(hash, depth);
        let less = self.places[home.min(self.places.len())..].iter().take_while(|e| high(**e) < hash);
        let passed = less.count();
        work(passed);
        home + passed
    }

    /// The home of a hash: a place proportional to its position in the segment.
    fn home(&self, hash: u32, depth: u32) -> usize {
        let within = position(hash) << depth & u64::from(u32::MAX);
        ((within * self.homes as u64) >> 32) as usize
    }
}

/// The stretched position of a hash, 32 bits. It ascends with the hash, with slope 2/3 at the least hashes
/// and 4/3 at the greatest. So of two equally wide ranges of positions the first has more hashes.
fn position(hash: u32) -> u64 {
    let hash = u64::from(hash);
    (2 * hash + ((hash * hash) >> 32)) / 3
}

/// The `depth` leading bits of a hash's position.
fn index(hash: u32, depth: u32) -> usize {
    (position(hash) << depth >> 32) as usize
}

/// `n` words rounded up to the next size class of an allocator with four classes to a power of two.
fn allocated(n: usize) -> usize {
    let step = n.next_power_of_two().max(8) / 8;
    n.next_multiple_of(step).max(4)
}

fn high(entry: u64) -> u32 {
    u32::try_from(entry >> 32).expect("32 bits are left")
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low(entry: u64) -> u32 {
    entry as u32
}

/// Counts moved or passed entries, in tests only.
fn work(_entries: usize) {
    #[cfg(test)]
    tests::WORK.with(|work| work.set(work.get() + _entries));
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    thread_local! {
        pub(super) static WORK: Cell<usize> = const { Cell::new(0) };
    }

    impl BlockTable {
        fn segments(&self) -> impl Iterator<Item = &TableSegment> {
            self.fine.iter().chain(&self.coarse[self.fine.len() / 2..])
        }

        fn entries(&self) -> Vec<(u32, u32)> {
            let entries = self.segments().flat_map(|s| &s.places).filter(|e| **e != GAP);
            entries.map(|e| (high(*e), low(*e))).collect()
        }

        fn bytes(&self) -> usize {
            let places: usize = self.segments().map(|s| s.places.capacity()).sum();
            places * 8 + (self.coarse.len() + self.fine.capacity()) * size_of::<TableSegment>()
        }
    }

    fn spread(n: u64) -> u32 {
        (mix(n) >> 32) as u32
    }

    /// Compared with a map: random inserts and removals, hashes uniform or crowded at either end, announced
    /// or not.
    #[test]
    fn a_table_is_a_map() {
        let hashes: [fn(u64) -> u32; 4] =
            [spread, |n| (n % 1000) as u32, |n| u32::MAX - (n % 1000) as u32, |n| 3 << 30 | spread(n) >> 20];
        for hash in hashes {
            let (mut table, mut map) = (BlockTable::default(), BTreeMap::new());
            assert_eq!((table.entry(0).value(), table.touch(0)), (None, 0));
            for step in 0..40_000 {
                let n = mix(step) % 6000;
                // First the table grows, then it shrinks, then it grows again.
                if mix(step ^ 77) % 5 < [4, 1, 3][step as usize / 14_000] {
                    if step % 3 == 0 {
                        table.reserve(std::iter::once(hash(n)));
                    }
                    table.entry(hash(n)).set(step as u32);
                    map.insert(hash(n), step as u32);
                } else {
                    table.entry(hash(n)).remove();
                    map.remove(&hash(n));
                }
                assert_eq!(table.entry(hash(n)).value(), map.get(&hash(n)).copied());
                assert_eq!(table.len, map.len());
            }
            assert_eq!(table.entries(), map.into_iter().collect::<Vec<_>>());
            assert!(table.segments().all(|s| s.places.last().is_none_or(|last| *last == GAP)));
            assert!(table.bytes() < 200_000, "{}", table.bytes());
        }
    }

    /// A million entries in sorted batches of any size. (Without [`BlockTable::reserve`] a sorted batch fills
    /// the table from its front, and each entry passes all entries before it.)
    #[test]
    fn work_is_linear_for_any_cut() {
        for cut in [1_000_000, 50_000, 1000, 10] {
            let entries = if cut == 10 { 100_000 } else { 1_000_000 };
            let mut table = BlockTable::default();
            WORK.set(0);
            for start in (0..entries).step_by(cut as usize) {
                let mut batch: Vec<u32> = (start..start + cut).map(spread).collect();
                batch.sort_unstable();
                table.reserve(batch.iter().copied());
                batch.iter().for_each(|hash| table.entry(*hash).set(1));
            }
            let each = WORK.get() as f64 / entries as f64;
            assert!(each < 70.0, "{each} entries moved or passed for each, in batches of {cut}");
        }
    }

    /// No insert rebuilds the whole table, and memory does not jump.
    #[test]
    fn no_insert_pays_for_the_table() {
        let mut table = BlockTable::default();
        let (mut most, mut least_bytes, mut most_bytes) = (0, f64::MAX, 0.0_f64);
        for n in 0..1_000_000 {
            WORK.set(0);
            let hash = spread(n);
            table.reserve(std::iter::once(hash));
            table.entry(hash).set(1);
            most = most.max(WORK.get());
            if n > 100_000 && n % 5000 == 0 {
                let each = table.bytes() as f64 / table.len as f64;
                (least_bytes, most_bytes) = (least_bytes.min(each), most_bytes.max(each));
            }
        }
        assert!(most < 8 * MEAN, "an insert moved or passed {most} entries");
        assert!(least_bytes > 9.6 && most_bytes < 10.2, "{least_bytes} to {most_bytes} bytes an entry");
    }

    /// Hashes that differ only in their last bits are slow, but take no more memory.
    #[test]
    fn crowded_hashes_take_no_more_memory() {
        let mut table = BlockTable::default();
        let batch = 7 << 18..(7 << 18) + 20_000;
        table.reserve(batch.clone());
        batch.clone().for_each(|hash| table.entry(hash).set(1));
        assert_eq!(table.entries().len(), batch.len());
        assert!(table.bytes() < 12 * batch.len(), "{}", table.bytes());
    }
}
