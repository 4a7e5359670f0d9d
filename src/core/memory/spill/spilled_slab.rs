//! A slab whose values are in a file; the hashes by which they are found are in memory.
//!
//! An operator handles an epoch as a batch. It [fetches](SpilledSlab::fetch) the values of all hashes that
//! it will look up, in the order of their pages, and then reads and changes them in memory. The next fetch
//! writes back what has changed. So a batch reads each page once, a value that is added reads nothing, and
//! the memory is that of one batch, of the page cache, and of the hashes.
//!
//! A look-up without a fetch is an error of the operator, and panics: it never misses a value silently.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::file::SpillPlace;
use super::pages::{PagedRows, RowSum, SpillCounts, sum};
use super::row_value::RowValue;
use crate::hash::{BuildIdentityHasher, mix};
use crate::memory::HashIndex;

/// Values by place, found by hash; places of removed values are used again, the last one first.
///
/// # Panics
/// All methods that read or write the file unwind with a [`SpillError`](super::SpillError) if it fails.
#[derive(Debug)]
pub struct SpilledSlab<T: RowValue> {
    index: HashIndex,
    /// By place, as [`mix`] of it: values that are in memory, whatever the file holds at their places.
    present: HashMap<u64, PresentValue<T>, BuildIdentityHasher>,
    /// By place: the rests of values that are in the file.
    rests: HashMap<u64, T::Rest, BuildIdentityHasher>,
    rows: Arc<Mutex<PagedRows>>,
    /// Words of a row.
    width: usize,
    /// Places of present values that the next fetch may write back.
    batch: Vec<u32>,
    /// Free places, and the sums of the rows there.
    free: Vec<(u32, RowSum)>,
    /// The number of places, used and free.
    places: u32,
    /// A row to be written.
    buffer: Vec<u64>,
    /// The sum of the row at a new place.
    unset: RowSum,
}

/// Reads the rows of a [`SpilledSlab`] on any thread, as they were when their values were inserted or last
/// written back.
#[derive(Clone, Debug)]
pub struct SpilledRowsReader(Arc<Mutex<PagedRows>>);

impl SpilledRowsReader {
    /// Passes the row of the value at a place to `read`.
    ///
    /// # Panics
    /// Unwinds with a [`SpillError`](super::SpillError) if the file fails.
    pub fn with<R>(&self, place: u32, read: impl FnOnce(&[u64]) -> R) -> R {
        read(self.0.lock().row(place))
    }
}

/// A value in memory.
#[derive(Debug)]
struct PresentValue<T> {
    value: T,
    /// The sum of its row as it was last read or written.
    sum: RowSum,
    /// Differs from the file.
    is_changed: bool,
    /// Is in the batch.
    is_listed: bool,
}

impl<T: RowValue> SpilledSlab<T> {
    /// An empty slab, for values with rows of `width` words, in a new file of pages of `page_bytes`. The page
    /// cache takes `cache_bytes`, at least one page.
    pub fn create(place: &dyn SpillPlace, width: usize, page_bytes: usize, cache_bytes: usize) -> Self {
        let buffer = vec![0; width];
        Self {
            index: HashIndex::default(),
            present: HashMap::default(),
            rests: HashMap::default(),
            rows: Arc::new(Mutex::new(PagedRows::create(place, width, page_bytes, cache_bytes))),
            width,
            batch: Vec::new(),
            free: Vec::new(),
            places: 0,
            unset: sum(&buffer),
            buffer,
        }
    }

    /// A reader of the rows.
    pub fn reader(&self) -> SpilledRowsReader {
        SpilledRowsReader(Arc::clone(&self.rows))
    }

    /// Brings the values of these hashes into memory, where they are until the next fetch. Values that were
    /// fetched before are written back.
    pub fn fetch(&mut self, hashes: impl Iterator<Item = u64>) {
        let mut wanted: Vec<u32> = hashes.flat_map(|hash| self.index.places(hash)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.write_back(&wanted);
        for place in wanted {
            let key = mix(place.into());
            if !self.present.contains_key(&key) {
                let mut rows = self.rows.lock();
                let row = rows.row(place);
                let (value, sum) = (T::load(row, self.rests.remove(&key)), sum(row));
                self.present.insert(key, PresentValue { value, sum, is_changed: false, is_listed: true });
                self.batch.push(place);
            }
        }
    }

    /// Writes the values of the batch to their rows, except those at the places of `wanted`, which ascend,
    /// and those that stay.
    fn write_back(&mut self, wanted: &[u32]) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.sort_unstable();
        batch.retain(|place| {
            let key = mix((*place).into());
            // A removed value may be listed still.
            let Some(present) = self.present.get_mut(&key).filter(|present| present.is_listed) else {
                return false;
            };
            if wanted.binary_search(place).is_ok() {
                return true;
            }
            present.is_listed = false;
            if present.value.stays() {
                return false;
            }
            if let Some(PresentValue { value, sum, is_changed, .. }) = self.present.remove(&key) {
                if is_changed {
                    value.store(&mut self.buffer);
                    self.rows.lock().set(*place, &self.buffer, sum);
                }
                if let Some(rest) = value.rest() {
                    self.rests.insert(key, rest);
                }
            }
            false
        });
        batch.dedup();
        self.batch = batch;
        if self.present.capacity() > 8 * (self.present.len() + 1024) {
            self.present.shrink_to_fit();
        }
    }

    /// The place of the value with this hash for which `is` returns true.
    ///
    /// # Panics
    /// If the values of this hash were not fetched.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<u32> {
        self.index.places(hash).find(|place| is(self.get(*place).expect("what is looked up was fetched")))
    }

    /// The places of values with this hash, and possibly a few others.
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.index.places(hash)
    }

    /// The value at a place, if it is in memory.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.present.get(&mix(place.into())).map(|present| &present.value)
    }

    /// The value at a place, if it is in memory, mutable. Its hash must not change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let present = self.present.get_mut(&mix(place.into()))?;
        present.is_changed = true;
        if !std::mem::replace(&mut present.is_listed, true) {
            self.batch.push(place);
        }
        Some(&mut present.value)
    }

    /// Adds a value, which is then in memory and in its row; returns its place. A place is below the maximum
    /// number of values so far, and below 2^32 - 1.
    ///
    /// # Panics
    /// If there are 2^32 - 1 values.
    pub fn insert(&mut self, hash: u64, value: T) -> u32 {
        let (place, before) = self.free.pop().unwrap_or_else(|| {
            let next = self.places;
            self.places = next.checked_add(1).expect("fewer than 2^32 - 1 values");
            (next, self.unset)
        });
        value.store(&mut self.buffer);
        let sum = self.rows.lock().set(place, &self.buffer, before);
        self.present
            .insert(mix(place.into()), PresentValue { value, sum, is_changed: false, is_listed: true });
        self.batch.push(place);
        self.index.insert(hash, place);
        place
    }

    /// Removes and returns a value in memory; `hash` is the one that it was inserted with.
    ///
    /// # Panics
    /// If the place has no value with this hash, or it was not fetched.
    pub fn remove(&mut self, hash: u64, place: u32) -> T {
        self.index.remove(hash, place);
        let removed = self.present.remove(&mix(place.into())).expect("what is removed was fetched");
        self.free.push((place, removed.sum));
        removed.value
    }

    /// Calls `each` with all values, by place. Reads all pages that are not in the cache.
    pub fn for_each(&mut self, mut each: impl FnMut(u32, &T)) {
        let mut free: Vec<u32> = self.free.iter().map(|(place, _)| *place).collect();
        free.sort_unstable();
        for place in 0..self.places {
            if free.binary_search(&place).is_ok() {
                continue;
            }
            let key = mix(place.into());
            if let Some(present) = self.present.get(&key) {
                each(place, &present.value);
                continue;
            }
            let value = T::load(self.rows.lock().row(place), self.rests.remove(&key));
            each(place, &value);
            if let Some(rest) = value.rest() {
                self.rests.insert(key, rest);
            }
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.places as usize - self.free.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The counts since they were last taken.
    pub fn take_counts(&mut self) -> SpillCounts {
        std::mem::take(&mut self.rows.lock().counts)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
