//! One table of the block index: block hash to a 32-bit value, 8 bytes an entry, in hash order.
//!
//! *Ordered linear probing* (O. Amble and D. E. Knuth, *Ordered hash tables*, 1974) with a home that grows with the hash:
//! the entries stand in ascending order with gaps between them. So a search reads one or two neighbouring cache lines and
//! ends at the first greater entry; a batch of sorted hashes walks through memory in one direction; and growing copies
//! from front to back. (hashbrown's table in this place took 1.2 times the time of the whole step: its control bytes and
//! its entries lie apart, two cache misses for each posting.)

/// Sorted entries with gaps.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// `hash << 32 | value`, or [`GAP`]; the last one is always a gap, so that every search ends.
    places: Vec<u64>,
    /// Homes are `0..homes`; the places behind them take what is pushed out of the last homes.
    homes: u64,
    len: usize,
}

/// An empty place; greater than any entry, since a value is below `u32::MAX`.
const GAP: u64 = u64::MAX;

/// Places behind the homes, to begin with: more are added for a run that no uniform hash makes.
const OVERFLOW: usize = 64;

impl Table {
    /// The value of a hash.
    pub(super) fn get(&self, hash: u32) -> Option<u32> {
        let entry = self.places.get(self.search(hash))?;
        (entry >> 32 == u64::from(hash) && *entry != GAP).then_some(low(*entry))
    }

    /// Sets the value of a hash, below `u32::MAX`.
    pub(super) fn insert(&mut self, hash: u32, value: u32) {
        debug_assert!(value < u32::MAX);
        let entry = u64::from(hash) << 32 | u64::from(value);
        let mut at = self.search(hash);
        if self.places.get(at).is_some_and(|e| e >> 32 == u64::from(hash) && *e != GAP) {
            self.places[at] = entry;
            return;
        }
        // At most three quarters full.
        if (self.len + 1) as u64 * 4 > self.homes * 3 {
            self.grow();
            at = self.search(hash);
        }
        // What stands here is pushed on, up to the next gap.
        let gap = at + self.places[at..].iter().position(|e| *e == GAP).expect("the last place is a gap");
        if gap + 1 == self.places.len() {
            self.places.resize(gap + OVERFLOW, GAP);
        }
        self.places.copy_within(at..gap, at + 1);
        self.places[at] = entry;
        self.len += 1;
    }

    /// Removes a hash, if it is there.
    pub(super) fn remove(&mut self, hash: u32) {
        let mut at = self.search(hash);
        if self.get(hash).is_none() {
            return;
        }
        // What was pushed out of its home moves back.
        while self.places[at + 1] != GAP && self.home(self.places[at + 1]) <= at {
            self.places[at] = self.places[at + 1];
            at += 1;
        }
        self.places[at] = GAP;
        self.len -= 1;
    }

    /// The place of the first entry that is not less than the hash, at or behind its home.
    fn search(&self, hash: u32) -> usize {
        let mut at = self.home(u64::from(hash) << 32);
        while self.places.get(at).is_some_and(|entry| (entry >> 32) < u64::from(hash)) {
            at += 1;
        }
        at
    }

    /// A third more homes: less than half of what doubling would leave empty, for memory, and still amortised.
    fn grow(&mut self) {
        self.homes = (self.homes * 4 / 3).max(8);
        let homes = usize::try_from(self.homes).expect("a table fits in memory");
        let mut old = std::mem::replace(&mut self.places, vec![GAP; homes + OVERFLOW]);
        let mut next = 0;
        old.retain(|entry| *entry != GAP);
        for entry in old {
            let at = self.home(entry).max(next);
            if at + 1 >= self.places.len() {
                self.places.resize(at + OVERFLOW, GAP);
            }
            self.places[at] = entry;
            next = at + 1;
        }
    }

    /// Where an entry belongs: in proportion to its hash.
    fn home(&self, entry: u64) -> usize {
        (((entry >> 32) * self.homes) >> 32) as usize
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low(entry: u64) -> u32 {
    entry as u32
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    /// Random inserts and removes, hashes spread or crowded at either end, against a map.
    #[test]
    fn a_table_is_a_map() {
        let crowded: [fn(u64) -> u32; 3] =
            [|n| (mix(n) >> 32) as u32, |n| (n % 200) as u32, |n| u32::MAX - (n % 200) as u32];
        for hash in crowded {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            assert_eq!(table.get(0), None);
            for step in 0..20_000 {
                let n = mix(step) % 2000;
                // Grows, shrinks and grows again.
                if mix(step ^ 77) % 5 < [4, 1, 3][step as usize / 7000] {
                    table.insert(hash(n), step as u32);
                    map.insert(hash(n), step as u32);
                } else {
                    table.remove(hash(n));
                    map.remove(&hash(n));
                }
                assert_eq!(table.get(hash(n)), map.get(&hash(n)).copied());
                assert_eq!(table.len, map.len());
            }
            let entries: Vec<_> =
                table.places.iter().filter(|e| **e != GAP).map(|e| ((e >> 32) as u32, low(*e))).collect();
            assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
            assert_eq!(table.places.last(), Some(&GAP));
        }
    }
}
