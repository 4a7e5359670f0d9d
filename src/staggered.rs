//! Collections that grow in small steps, so that no single insert pays for the size of what is there already.
//!
//! [`Staggered`] is a hash table in parts. A hash table doubles: it moves all its entries at once, and just after that
//! it is half empty. Here each part holds another share of the hashes, and the shares form a geometric series from 1 to
//! 2: whatever the number of entries, the parts are at different points between two doublings. So an insert moves at most
//! the entries of one part, about 1 in 90, and the memory for each entry is nearly the same at any size.
//!
//! [`Chunks`] is a vector in chunks of fixed size: what is in a full chunk never moves, and at most one chunk has room.

use std::ops::{Index, IndexMut};

use hashbrown::HashTable;
use hashbrown::hash_table::{Entry, OccupiedEntry};

/// Parts of a table: a doubling moves at most 1/88 of its entries.
const PARTS: usize = 128;

/// Leading bits of a hash that choose the part.
const CHOICE: u32 = 12;

/// A hash table whose growth is spread over its inserts.
///
/// Hashes are 64 well-mixed bits. The lowest 20 need not be: they may be the same for all entries, since workers share
/// entries out by them.
#[derive(Debug)]
pub struct Staggered<T> {
    parts: Box<[HashTable<T>]>,
    /// The part for each value of the leading bits.
    choice: Box<[u8]>,
    len: usize,
}

impl<T> Default for Staggered<T> {
    fn default() -> Self {
        let part =
            |leading: usize| (leading as f64 / f64::from(1 << CHOICE)).ln_1p() / std::f64::consts::LN_2;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to below the number of parts"
        )]
        let choice = (0..1 << CHOICE).map(|leading| (part(leading) * PARTS as f64) as u8).collect();
        Self { parts: (0..PARTS).map(|_| HashTable::new()).collect(), choice, len: 0 }
    }
}

impl<T> Staggered<T> {
    /// Entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry with this hash that `eq` holds for.
    #[inline]
    pub fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        self.parts[self.part(hash)].find(in_part(hash), eq)
    }

    /// As [`find`](Self::find), to be changed; what decides its hash must stay.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let part = self.part(hash);
        self.parts[part].find_mut(in_part(hash), eq)
    }

    /// Adds an entry, equal to none that is there. `rehash` gives the hash of any entry.
    #[inline]
    pub fn insert(&mut self, hash: u64, entry: T, rehash: impl Fn(&T) -> u64) {
        let part = self.part(hash);
        self.parts[part].insert_unique(in_part(hash), entry, |e| in_part(rehash(e)));
        self.len += 1;
    }

    /// Takes out the entry with this hash that `eq` holds for.
    #[inline]
    pub fn remove(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<T> {
        let part = self.part(hash);
        let found = self.parts[part].find_entry(in_part(hash), eq).ok()?;
        self.len -= 1;
        Some(OccupiedEntry::remove(found).0)
    }

    /// Sets, changes or removes the entry with this hash that `eq` holds for: `change` gets what is there, and what it
    /// returns is there afterwards.
    #[inline]
    pub fn update(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
        rehash: impl Fn(&T) -> u64,
        change: impl FnOnce(Option<T>) -> Option<T>,
    ) {
        let part = self.part(hash);
        match self.parts[part].entry(in_part(hash), eq, |e| in_part(rehash(e))) {
            Entry::Occupied(found) => {
                let (before, place) = found.remove();
                match change(Some(before)) {
                    Some(after) => drop(place.insert(after)),
                    None => self.len -= 1,
                }
            }
            Entry::Vacant(place) => {
                if let Some(after) = change(None) {
                    place.insert(after);
                    self.len += 1;
                }
            }
        }
    }

    /// All entries, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(HashTable::iter)
    }

    #[inline]
    fn part(&self, hash: u64) -> usize {
        usize::from(self.choice[(hash >> (64 - CHOICE)) as usize])
    }
}

/// A part's table reads the low bits and the seven highest: those that chose the part are between.
#[inline]
fn in_part(hash: u64) -> u64 {
    hash.rotate_right(20)
}

/// A vector in chunks.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
    /// Elements of a chunk, a power of two: some 64 KiB, for elements of any size.
    const CHUNK: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fit = (64 << 10) / size;
        if fit < 2 { 1 } else { 1 << fit.ilog2() }
    };

    /// Elements.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::CHUNK + last.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds an element behind the others.
    pub fn push(&mut self, element: T) {
        match self.chunks.last_mut().filter(|last| last.len() < Self::CHUNK) {
            Some(last) => last.push(element),
            None => {
                // The first chunk grows as needed: most collections are small.
                let room = if self.chunks.is_empty() { 4 } else { Self::CHUNK };
                let mut chunk = Vec::with_capacity(room.min(Self::CHUNK));
                chunk.push(element);
                self.chunks.push(chunk);
            }
        }
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / Self::CHUNK][at % Self::CHUNK]
    }
}

impl<T> IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / Self::CHUNK][at % Self::CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    #[test]
    fn a_staggered_table_is_a_map() {
        // Hashes that differ in few bits too, and that agree in the low ones.
        let hashes: [fn(u64) -> u64; 4] = [mix, |n| n << 52, |n| mix(n) << 20, |_| 0];
        for (hash, steps) in hashes.into_iter().zip([20_000, 20_000, 20_000, 500]) {
            let (mut table, mut map) = (Staggered::default(), BTreeMap::new());
            for step in 0..steps {
                let key = mix(step) % 700;
                let eq = |e: &(u64, u64)| e.0 == key;
                match mix(step ^ 5) % 4 {
                    0 => assert_eq!(table.remove(hash(key), eq), map.remove(&key).map(|value| (key, value))),
                    1 if !map.contains_key(&key) => {
                        table.insert(hash(key), (key, step), |e| hash(e.0));
                        map.insert(key, step);
                    }
                    1 => {
                        table.find_mut(hash(key), eq).unwrap().1 = step;
                        map.insert(key, step);
                    }
                    2 => {
                        // Sets what is not there, removes what is there and odd.
                        let change =
                            |value: Option<u64>| value.map_or(Some(step), |v| (v % 2 == 0).then_some(v));
                        table.update(hash(key), eq, |e| hash(e.0), |e| Some((key, change(e.map(|e| e.1))?)));
                        match change(map.get(&key).copied()) {
                            Some(value) => drop(map.insert(key, value)),
                            None => drop(map.remove(&key)),
                        }
                    }
                    _ => {}
                }
                assert_eq!(table.find(hash(key), eq).map(|e| e.1), map.get(&key).copied());
                assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
            }
            let mut entries: Vec<_> = table.iter().copied().collect();
            entries.sort_unstable();
            assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
        }
    }

    /// A table that doubles moves all its entries at some insert; and its load swings between 7/16 and 7/8.
    #[test]
    fn no_insert_pays_for_the_whole_table() {
        let mut table = Staggered::default();
        let moved = Cell::new(0);
        let (mut most, mut least_load, mut greatest_load) = (0.0_f64, 1.0_f64, 0.0_f64);
        for n in 1..=400_000_u64 {
            moved.set(0);
            table.insert(mix(n), n, |n| {
                moved.set(moved.get() + 1);
                mix(*n)
            });
            if n > 50_000 {
                most = most.max(f64::from(moved.get()) / n as f64);
                if n % 1000 == 0 {
                    let room: usize = table.parts.iter().map(HashTable::capacity).sum();
                    let load = n as f64 / room as f64;
                    (least_load, greatest_load) = (least_load.min(load), greatest_load.max(load));
                }
            }
        }
        assert!(most < 1.0 / 60.0, "an insert moves {most} of all");
        assert!(least_load > 0.66 && greatest_load < 0.74, "of what fits: {least_load} to {greatest_load}");
    }

    #[test]
    fn what_is_in_chunks_stays_where_it_is() {
        let mut chunks = Chunks::default();
        assert!(chunks.is_empty());
        for n in 0..Chunks::<[u64; 3]>::CHUNK * 3 + 1 {
            assert_eq!(chunks.len(), n);
            chunks.push([n as u64; 3]);
        }
        chunks[5][1] = 77;
        assert_eq!((chunks[5], chunks[4], chunks[6000]), ([5, 77, 5], [4; 3], [6000; 3]));
        assert_eq!(chunks.chunks.len(), 4);
        assert!(chunks.chunks[1..].iter().all(|c| c.capacity() == Chunks::<[u64; 3]>::CHUNK));
        assert_eq!([Chunks::<u8>::CHUNK, Chunks::<[u8; 3 << 16]>::CHUNK], [1 << 16, 1]);
    }
}
