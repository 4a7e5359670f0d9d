//! A slab: values of one type at fixed addresses, found by hash.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use super::{HashIndex, Rows};

/// Values by place, found by hash. Places of removed values are used again, the least first, so that the
/// last chunks become free after the number of values has fallen.
#[derive(Debug)]
pub struct Slab<T> {
    things: Rows<Option<T>>,
    free: BinaryHeap<Reverse<u32>>,
    index: HashIndex,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Rows::new(1), free: BinaryHeap::new(), index: HashIndex::default() }
    }
}

impl<T> Slab<T> {
    /// The place of the value with this hash for which `is` returns true.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.find_place(hash, |place| self.get(place).is_some_and(&is))
    }

    /// The place of a value with this hash for which `is` returns true.
    #[inline]
    pub fn find_place(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.index.places(hash).find(|place| is(*place))
    }

    /// The places of values with this hash, and possibly a few others.
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.index.places(hash)
    }

    /// Prefetch for several hashes that are looked up or added next: their cache misses overlap.
    pub fn prefetch(&self, hashes: impl Iterator<Item = u64>) {
        black_box(hashes.fold(0, |all, hash| all ^ self.index.touch(hash)));
    }

    /// The value at a place, if there is one.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.things.get(place as usize)?[0].as_ref()
    }

    /// The value at a place, if there is one, mutable. Its hash must not change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.things.row_mut(place as usize)[0].as_mut()
    }

    /// Adds a value; returns its place. A place is below the maximum number of values so far, and below 2^32
    /// - 1.
    ///
    /// # Panics
    /// If there are 2^32 - 1 values, more than fit in memory.
    pub fn insert(&mut self, hash: u64, thing: T) -> u32 {
        let next = || u32::try_from(self.things.len()).ok().filter(|place| *place < u32::MAX);
        let free = self.free.pop().map(|Reverse(place)| place);
        let place = free.or_else(next).expect("fewer than 2^32 - 1 things");
        self.things.set(place as usize, std::iter::once(Some(thing)));
        self.index.insert(hash, place);
        place
    }

    /// Removes and returns the value at a place; `hash` is the one that it was inserted with.
    ///
    /// # Panics
    /// If the place has no value with this hash.
    pub fn remove(&mut self, hash: u64, place: u32) -> T {
        self.index.remove(hash, place);
        let thing = self.things.row_mut(place as usize)[0].take();
        self.free.push(Reverse(place));
        self.things.free(place as usize);
        thing.expect("what the index names is there")
    }

    /// All values, by place.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..self.things.len())
            .filter_map(|place| u32::try_from(place).ok())
            .filter_map(|place| self.get(place).map(|thing| (place, thing)))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    /// Compared with a map: random inserts and removals; many values have equal hashes.
    #[test]
    fn a_slab_is_a_map_that_uses_places_again() {
        let (mut slab, mut map) = (Slab::default(), BTreeMap::new());
        let mut most = 0;
        for step in 0..30_000_u64 {
            let n = mix(step) % 900;
            let hash = mix(n % 400);
            let found = slab.find(hash, |(m, _)| *m == n);
            assert_eq!(found.and_then(|place| slab.get(place)), map.get(&n));
            match found {
                Some(place) if mix(step ^ 5).is_multiple_of(3) => {
                    slab.get_mut(place).unwrap().1 = step;
                    map.insert(n, (n, step));
                }
                Some(place) => assert_eq!(Some(slab.remove(hash, place)), map.remove(&n)),
                None => {
                    let place = slab.insert(hash, (n, step));
                    map.insert(n, (n, step));
                    most = most.max(map.len());
                    assert!((place as usize) < most);
                }
            }
            assert_eq!((slab.len(), slab.is_empty()), (map.len(), map.is_empty()));
        }
    }

    /// Places that were used are asked for after all values have gone, and used again from the first on.
    #[test]
    fn an_emptied_slab_is_usable() {
        let mut slab = Slab::default();
        for _ in 0..2 {
            let places: Vec<u32> = (0..100_000_u64).map(|n| slab.insert(mix(n), n)).collect();
            assert!(places.iter().copied().eq(0..100_000));
            places.iter().zip(0..).for_each(|(place, n)| assert_eq!(slab.remove(mix(n), *place), n));
            assert!(slab.is_empty() && places.iter().all(|place| slab.get(*place).is_none()));
            assert_eq!(slab.iter().count(), 0);
        }
    }
}
