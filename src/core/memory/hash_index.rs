//! A hash index: a multimap from 64-bit hashes to 32-bit places, in [`PackedTables`] of 32 bits of each
//! hash. About 4.8 bytes an entry at any size.

use super::PackedTables;

/// A multimap from hashes to places. A hash may have several places, and different things may have equal
/// hashes.
#[derive(Debug)]
pub struct HashIndex {
    entries: PackedTables<32>,
}

impl Default for HashIndex {
    fn default() -> Self {
        Self { entries: PackedTables::new(1) }
    }
}

impl HashIndex {
    /// The places of a hash, and possibly a few of other hashes: the caller must compare what is stored
    /// there.
    #[inline]
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.entries.values(0, key(hash))
    }

    /// Prefetch: reads what is read to find or to add a place of a hash.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        self.entries.touch(0, key(hash))
    }

    /// Adds a place.
    pub fn insert(&mut self, hash: u64, place: u32) {
        self.entries.insert(0, key(hash), place);
    }

    /// Removes a place.
    ///
    /// # Panics
    /// If the hash does not have it.
    pub fn remove(&mut self, hash: u64, place: u32) {
        assert!(self.entries.remove(0, key(hash), place), "a place is removed that the hash has");
    }
}

/// The 32 bits stored of a hash. They depend on all its bits, so that ascending hashes, and hashes in which
/// the exchange between workers has fixed some bits, are uniform too.
#[inline]
fn key(hash: u64) -> u64 {
    hash.wrapping_mul(crate::hash::PI[0]) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ascending hashes are spread over the table, and what is there is found.
    #[test]
    fn places_of_a_hash_are_found() {
        for step in [1, 1 << 32, 1 << 40] {
            let mut index = HashIndex::default();
            (0..20_000).for_each(|n| index.insert(u64::from(n) * step, n));
            for n in 0..20_000 {
                let found: Vec<u32> = index.places(u64::from(n) * step).collect();
                assert!(found.contains(&n) && found.len() < 4, "{found:?}");
            }
            (0..20_000).for_each(|n| index.remove(u64::from(n) * step, n));
            assert!((0..20_000_u32).all(|n| index.places(u64::from(n) * step).next().is_none()));
        }
    }

    #[test]
    #[should_panic(expected = "a place is removed that the hash has")]
    fn what_is_not_there_is_not_removed() {
        let mut index = HashIndex::default();
        index.insert(1, 1);
        index.remove(1, 2);
    }
}
