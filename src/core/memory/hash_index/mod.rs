//! A hash index: a multimap from 64-bit hashes to 32-bit places. About 10.5 bytes an entry at any size; never
//! rebuilt as a whole.
//!
//! Rule: the range of hashes is cut into 64 parts, each a separate table. A part that is 85 % full grows by a
//! quarter. Part i starts at 1.25^(i / 64) times the size of part 0, so the parts grow one after another: the
//! whole is about 76 % full at any time, and an insert copies at most one part. Each entry stores 32 bits of
//! its hash, so that growing reads nothing outside the part.
//!
//! A part is an *ordered hash table* (O. Amble and D. E. Knuth, *Ordered hash tables*, 1974): linear probing,
//! with entries in ascending order and gaps between them. A search ends at the first greater entry, so
//! successful and unsuccessful searches are short (about four entries at 85 %).

/// Parts of an index.
const PARTS: usize = 64;
/// Number of homes of part 0 at its first entry.
const FIRST_HOMES: f64 = 16.0;
/// Factor by which a part grows.
const GROWTH: f64 = 1.25;
/// Initial number of places after the homes of a part; they hold entries displaced from the last homes.
const OVERFLOW: usize = 8;
/// An empty entry; greater than any other, since a place is below `u32::MAX`.
const GAP: u64 = u64::MAX;

/// A multimap from hashes to places. A hash may have several places, and different things may have equal
/// hashes.
#[derive(Debug)]
pub struct HashIndex {
    parts: Box<[IndexPart]>,
}

/// The entries of one share of the hashes.
#[derive(Debug, Default)]
struct IndexPart {
    /// `key << 32 | place`, ascending, with gaps; the last entry is always a gap, so that every search ends.
    entries: Vec<u64>,
    /// Number of homes. An entry's home is in `0..homes`, proportional to its key within the part.
    homes: u64,
    len: u64,
    /// Number of times the part has grown.
    grown: u16,
}

impl Default for HashIndex {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| IndexPart::default()).collect() }
    }
}

impl HashIndex {
    /// The places of a hash, and possibly a few of other hashes: the caller must compare what is stored
    /// there.
    #[inline]
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        let key = key(hash);
        let part = &self.parts[part(key)];
        part.entries[part.search(key)..]
            .iter()
            .take_while(move |entry| **entry >> 32 == u64::from(key) && **entry != GAP)
            .map(|entry| place(*entry))
    }

    /// Adds a place, below `u32::MAX`.
    pub fn insert(&mut self, hash: u64, place: u32) {
        debug_assert!(place < u32::MAX);
        let key = key(hash);
        let number = part(key);
        self.parts[number].insert(key, place, number);
    }

    /// Removes a place.
    ///
    /// # Panics
    /// If the hash does not have it.
    pub fn remove(&mut self, hash: u64, place: u32) {
        let key = key(hash);
        self.parts[part(key)].remove(key, place);
    }
}

/// The 32 bits stored of a hash. They depend on all its bits, so that ascending hashes, and hashes in which
/// the exchange between workers has fixed some bits, are uniform too.
#[inline]
fn key(hash: u64) -> u32 {
    (hash.wrapping_mul(crate::hash::PI[0]) >> 32) as u32
}

#[inline]
fn part(key: u32) -> usize {
    (key >> (32 - PARTS.ilog2())) as usize
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn place(entry: u64) -> u32 {
    entry as u32
}

impl IndexPart {
    /// The index of the first entry that is not less than the key, at or after its home; 0 in an empty part.
    #[inline]
    fn search(&self, key: u32) -> usize {
        let mut at = self.home(u64::from(key) << 32);
        while self.entries.get(at).is_some_and(|entry| entry >> 32 < u64::from(key)) {
            at += 1;
        }
        at
    }

    fn insert(&mut self, key: u32, place: u32, number: usize) {
        if (self.len + 1) * 20 > self.homes * 17 {
            self.grow(number);
        }
        let at = self.search(key);
        // The entries from here to the next gap are shifted by one.
        let gap = at + self.entries[at..].iter().position(|e| *e == GAP).expect("the last entry is a gap");
        if gap + 1 == self.entries.len() {
            self.entries.resize(gap + 1 + OVERFLOW, GAP);
        }
        self.entries.copy_within(at..gap, at + 1);
        self.entries[at] = u64::from(key) << 32 | u64::from(place);
        self.len += 1;
    }

    fn remove(&mut self, key: u32, place: u32) {
        let entry = u64::from(key) << 32 | u64::from(place);
        let first = self.search(key);
        let end = self.entries.get(first..).unwrap_or_default();
        let found = end.iter().take_while(|e| **e >> 32 == u64::from(key)).position(|e| *e == entry);
        let mut at = first + found.expect("a place is removed that the hash has");
        // Entries displaced from their home are shifted back.
        while self.entries[at + 1] != GAP && self.home(self.entries[at + 1]) <= at {
            self.entries[at] = self.entries[at + 1];
            at += 1;
        }
        self.entries[at] = GAP;
        self.len -= 1;
    }

    /// Grows the part and places all entries again, from front to back; homes are in the order of keys.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are positive and small"
    )]
    fn grow(&mut self, number: usize) {
        let growths = f64::from(self.grown) + number as f64 / PARTS as f64;
        self.grown += 1;
        self.homes = (FIRST_HOMES * GROWTH.powf(growths)) as u64;
        let homes = usize::try_from(self.homes).expect("an index fits in memory");
        let old = std::mem::replace(&mut self.entries, vec![GAP; homes + OVERFLOW]);
        let mut next = 0;
        for entry in old.into_iter().filter(|entry| *entry != GAP) {
            let at = self.home(entry).max(next);
            if at + 1 >= self.entries.len() {
                self.entries.resize(at + 1 + OVERFLOW, GAP);
            }
            self.entries[at] = entry;
            next = at + 1;
        }
    }

    /// The home of an entry.
    #[inline]
    fn home(&self, entry: u64) -> usize {
        let within = entry << PARTS.ilog2() >> 32;
        ((within * self.homes) >> 32) as usize
    }
}

#[cfg(test)]
mod tests;
