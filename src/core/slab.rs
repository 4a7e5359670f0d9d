//! Memory for many things of one size, which stay where they are: it grows by a chunk at a time and is never
//! copied, so that neither an epoch nor the peak of memory pays for its growth.

use crate::hash_index::HashIndex;

/// Bytes of a chunk, about: large enough for few chunks, small enough for little that is not used yet.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of `width` values each, by place: 0 and up.
#[derive(Debug)]
pub struct Rows<T> {
    /// Each with room for the same number of rows, a power of two, which is never exceeded.
    chunks: Vec<Vec<T>>,
    width: usize,
    /// log2 of the rows of a chunk.
    shift: u32,
    len: usize,
}

impl<T> Rows<T> {
    /// None yet; `width` values to a row, 1 or more.
    pub fn new(width: usize) -> Self {
        let bytes = (width * size_of::<T>()).max(1);
        Self { chunks: Vec::new(), width, shift: (CHUNK_BYTES / bytes).max(1).ilog2(), len: 0 }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row at a place below `len`.
    #[inline]
    pub fn row(&self, place: usize) -> &[T] {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &self.chunks[place >> self.shift][at..][..self.width]
    }

    /// The row at a place below `len`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, place: usize) -> &mut [T] {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &mut self.chunks[place >> self.shift][at..][..self.width]
    }

    /// Adds a row at the place `len`.
    ///
    /// # Panics
    /// If `row` does not have `width` values.
    pub fn push(&mut self, row: impl ExactSizeIterator<Item = T>) {
        assert_eq!(row.len(), self.width, "a row has the width of all rows");
        if self.len == self.chunks.len() << self.shift {
            self.chunks.push(Vec::with_capacity(self.width << self.shift));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.extend(row);
        }
        self.len += 1;
    }
}

/// Things by place, found by hash; places of what was removed are used again.
#[derive(Debug)]
pub struct Slab<T> {
    things: Rows<Option<T>>,
    free: Vec<u32>,
    index: HashIndex,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Rows::new(1), free: Vec::new(), index: HashIndex::default() }
    }
}

impl<T> Slab<T> {
    /// The place of the thing of this hash that `is` the one meant.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.index.places(hash).find(|place| self.get(*place).is_some_and(&is))
    }

    /// The thing at a place, if there is one.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.things.row(place as usize)[0].as_ref()
    }

    /// The thing at a place, if there is one, to be changed in what its hash does not depend on.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.things.row_mut(place as usize)[0].as_mut()
    }

    /// Keeps one more thing; tells its place. A place is less than 2^32 - 1, and at most the number of things
    /// that there were at a time.
    ///
    /// # Panics
    /// If there are 2^32 - 1 things, more than fit in memory.
    pub fn insert(&mut self, hash: u64, thing: T) -> u32 {
        let place = match self.free.pop() {
            Some(place) => {
                self.things.row_mut(place as usize)[0] = Some(thing);
                place
            }
            None => {
                let place = u32::try_from(self.things.len()).ok().filter(|place| *place < u32::MAX);
                self.things.push(std::iter::once(Some(thing)));
                place.expect("fewer than 2^32 - 1 things")
            }
        };
        self.index.insert(hash, place);
        place
    }

    /// Gives back the thing at a place; `hash` is the one that it was kept under.
    ///
    /// # Panics
    /// If there is none of that hash at the place.
    pub fn remove(&mut self, hash: u64, place: u32) -> T {
        self.index.remove(hash, place);
        self.free.push(place);
        self.things.row_mut(place as usize)[0].take().expect("what the index names is there")
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    #[test]
    fn rows_stay_where_they_are() {
        for width in [1, 3, 200_000] {
            let mut rows = Rows::new(width);
            let count = if width == 200_000 { 5 } else { 2 * CHUNK_BYTES / (8 * width) };
            for n in 0..count as u64 {
                rows.push((0..width).map(|i| n + i as u64));
            }
            assert_eq!(rows.len(), count);
            let first = rows.row(0).as_ptr();
            rows.push((0..width).map(|i| 7 * i as u64));
            assert_eq!(rows.row(0).as_ptr(), first);
            rows.row_mut(1)[0] = 9;
            for n in [0, 1, 2, count / 2, count - 1] {
                let value = if n == 1 { 9 } else { n as u64 };
                assert_eq!(rows.row(n)[0], value);
                assert!(rows.row(n).iter().zip(0..).skip(1).all(|(other, i)| *other == n as u64 + i));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a row has the width of all rows")]
    fn a_row_of_another_width_is_refused() {
        Rows::new(2).push([1, 2, 3].into_iter());
    }

    /// Random inserts and removes against a map; the hashes of many things are equal.
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
}
