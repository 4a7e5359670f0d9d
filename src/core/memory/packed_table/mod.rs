//! Compact multimaps from uniform hashes of `BITS` bits to 32-bit values, in the order of hashes. About 5.8
//! bytes an entry for 40 bits of hash and values that count the entries, at any size; 4.8 for 32 bits.
//!
//! The range of hashes is cut into *buckets* of about 96 entries, each the hashes with the same leading bits.
//! A [bucket] stores of a hash only the bits that follow, in which the order of its entries takes the place
//! of four to five, beside its value, in as few bits as its entries need. With twice as many entries there
//! are twice as many buckets: a hash needs a bit less, and the number of an entry a bit more. So the bytes of
//! an entry do not depend on the size.
//!
//! Buckets are split one at a time, in turn, as the number of entries grows, and merged again as it falls (W.
//! Litwin, *Linear hashing*, 1980): an insert moves the entries of a few buckets at most, in a table of any
//! size. Buckets stand in the order of their reversed leading bits, so a split adds one at the end.
//!
//! The entries of a bucket are in a [cell](cells) of nearly its size; cells have no gaps between them. Tables
//! that change together share the cells, so that a table has no memory of its own that is not used yet.
//!
//! [`reserve`](PackedTables::reserve) announces a batch, so that buckets are split and grow once for it. A
//! batch with several hashes for each bucket is [merged](PackedTables::change_all) into the buckets.

mod bits;
mod bucket;
mod cells;
mod shape;
mod store;
#[cfg(test)]
mod tests;

use bucket::PackedBucket;
use shape::{BucketPlace, MEAN, TableShape};
use store::BucketStore;

/// One or several multimaps from hashes to values. A table is named by its number, from 0.
#[derive(Debug)]
pub struct PackedTables<const BITS: u32> {
    tables: Vec<TableShape>,
    store: BucketStore,
    /// Lowest bits in which all hashes of a table agree: they are not stored.
    common: u32,
}

/// A hash in a table: its first value, or the place where it would be inserted.
#[derive(Debug)]
pub struct PackedEntry<'a, const BITS: u32> {
    tables: &'a mut PackedTables<BITS>,
    table: usize,
    place: BucketPlace,
    at: usize,
    value: Option<u32>,
}

/// Hashes for each bucket from which on a batch is merged into the buckets.
const MERGED: usize = 4;

/// Hashes whose places are prefetched together.
const TOUCHED: usize = 64;

impl<const BITS: u32> PackedTables<BITS> {
    /// Most hashes of [`touch_all`](Self::touch_all), inclusive.
    pub const TOUCHED: usize = TOUCHED;

    /// This many empty tables.
    pub fn new(tables: usize) -> Self {
        Self::with_common(tables, 0)
    }

    /// This many empty tables. The hashes of a table agree in their `common` lowest bits, and are uniform in
    /// the others.
    pub fn with_common(tables: usize, common: u32) -> Self {
        const { assert!(BITS < u64::BITS, "a hash is smaller than a word") };
        assert!(common < BITS, "hashes differ in some bits");
        let mut store = BucketStore::default();
        let shape = |_| {
            let run = store.add_run();
            store.push(run);
            TableShape::new(run)
        };
        Self { tables: (0..tables).map(shape).collect(), store, common }
    }

    /// Number of entries of a table.
    pub fn len(&self, table: usize) -> usize {
        self.tables[table].len
    }

    /// Whether all tables are empty.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|shape| shape.len == 0)
    }

    /// Makes room in a table for the hashes of a batch, which ascend. Inserts without this are correct too.
    pub fn reserve(&mut self, table: usize, batch: impl Iterator<Item = u64> + Clone) {
        let announced = batch.clone().count();
        while self.tables[table].count * MEAN < self.tables[table].len + announced {
            if !self.split(table) {
                break;
            }
        }
        if announced < self.tables[table].count {
            return;
        }
        let mut batch = batch.peekable();
        while let Some(first) = batch.next() {
            let BucketPlace { bucket, remainder_bits, .. } = self.place(table, first);
            let mut of_bucket = 1;
            while batch.next_if(|hash| self.place(table, *hash).bucket == bucket).is_some() {
                of_bucket += 1;
            }
            let (n, greatest) = (self.store.len(bucket) + of_bucket, self.tables[table].greatest);
            self.store.reserve(bucket, n, greatest, remainder_bits);
        }
    }

    /// Whether so many hashes are cheaper to [change](Self::change_all) together than one by one.
    pub fn is_many(&self, table: usize, hashes: usize) -> bool {
        hashes >= self.tables[table].count * MERGED
    }

    /// Changes the values of hashes that have one value at most; they ascend, each once. Of each hash
    /// `change` gets what belongs to it and its value, and returns the new value, `None` to remove it. The
    /// entries of a bucket are moved once for all that are added to it.
    pub fn change_all<G>(
        &mut self,
        table: usize,
        batch: impl Iterator<Item = (u64, G)> + Clone,
        mut change: impl FnMut(u64, G, Option<u32>) -> Option<u32>,
    ) {
        let announced = batch.clone().count();
        while self.tables[table].count * MEAN < self.tables[table].len + announced && self.split(table) {}
        let mut batch = batch.peekable();
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        while let Some((first, _)) = batch.peek() {
            let BucketPlace { bucket, remainder_bits, .. } = self.place(table, *first);
            let leading = first >> self.common >> remainder_bits;
            let is_there = |(hash, _): &(u64, G)| hash >> self.common >> remainder_bits == leading;
            while let Some((hash, group)) = batch.next_if(is_there) {
                let remainder = hash >> self.common ^ leading << remainder_bits;
                let (at, known) = self.store.bucket(bucket, remainder_bits).find(remainder);
                match (known, change(hash, group, known)) {
                    (None, Some(value)) => added.push((at, (remainder, value))),
                    (Some(before), Some(value)) if before != value => {
                        self.store.set(bucket, at, value, remainder_bits);
                        self.tables[table].greatest = self.tables[table].greatest.max(value);
                    }
                    (Some(_), None) => removed.push((at + added.len(), remainder)),
                    _ => {}
                }
            }
            let greatest = self.store.insert(bucket, &added, remainder_bits);
            let shape = &mut self.tables[table];
            shape.greatest = shape.greatest.max(greatest);
            shape.len = shape.len + added.len() - removed.len();
            added.clear();
            self.store.remove(bucket, &removed, remainder_bits);
            removed.clear();
        }
        while self.tables[table].is_sparse() {
            self.merge(table);
        }
    }

    /// Prefetch: reads what a search for a hash and an insert there read. Cache misses of such reads overlap,
    /// those of successive searches do not.
    #[inline]
    pub fn touch(&self, table: usize, hash: u64) -> u64 {
        let (bucket, remainder) = self.bucket(table, hash);
        touched(bucket.searched(remainder))
    }

    /// Prefetch for the first [`TOUCHED`](Self::TOUCHED) of several hashes. Three short loops, so that many
    /// reads are under way: over the places, over the headers of their buckets, over the entries.
    pub fn touch_all(&self, table: usize, hashes: impl Iterator<Item = u64>) -> u64 {
        let mut places = [BucketPlace { bucket: 0, remainder: 0, remainder_bits: 0 }; TOUCHED];
        let mut count = 0;
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = self.place(table, hash);
            count += 1;
        }
        let mut searched: [&[u64]; TOUCHED] = [&[]; TOUCHED];
        for (entries, place) in searched.iter_mut().zip(&places[..count]) {
            *entries = self.store.bucket(place.bucket, place.remainder_bits).searched(place.remainder);
        }
        searched[..count].iter().fold(0, |all, entries| all ^ touched(entries))
    }

    /// The first value of a hash.
    #[inline]
    pub fn get(&self, table: usize, hash: u64) -> Option<u32> {
        self.values(table, hash).next()
    }

    /// The values of a hash.
    #[inline]
    pub fn values(&self, table: usize, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let (bucket, remainder) = self.bucket(table, hash);
        bucket.entries_of(remainder).map(move |at| bucket.value(at))
    }

    /// The entry of a hash that has one value at most, present or not.
    #[inline]
    pub fn entry(&mut self, table: usize, hash: u64) -> PackedEntry<'_, BITS> {
        let place = self.place(table, hash);
        let (at, value) = self.store.bucket(place.bucket, place.remainder_bits).find(place.remainder);
        PackedEntry { tables: self, table, place, at, value }
    }

    /// Adds a value to those of a hash.
    pub fn insert(&mut self, table: usize, hash: u64, value: u32) {
        let place = self.place(table, hash);
        let at = self.store.bucket(place.bucket, place.remainder_bits).find(place.remainder).0;
        self.insert_at(table, place, at, value);
    }

    /// Removes a value of a hash; returns whether the hash had it.
    pub fn remove(&mut self, table: usize, hash: u64, value: u32) -> bool {
        let place = self.place(table, hash);
        let bucket = self.store.bucket(place.bucket, place.remainder_bits);
        let found = bucket.entries_of(place.remainder).find(|at| bucket.value(*at) == value);
        if let Some(at) = found {
            self.remove_at(table, place, at);
        }
        found.is_some()
    }

    /// All entries of a table, hash and value, in no order. Common bits are zeros.
    pub fn iter(&self, table: usize) -> impl Iterator<Item = (u64, u32)> + '_ {
        let (shape, bits, common) = (&self.tables[table], self.bits(), self.common);
        (0..shape.count).flat_map(move |number| {
            let remainder_bits = bits - shape.depth(number);
            let leading = shape::bits_reversed(number as u64, bits);
            let entries = self.store.bucket(shape.in_store(number), remainder_bits).entries();
            entries.map(move |(remainder, value)| ((leading | remainder) << common, value))
        })
    }

    /// Bits of a hash that are not common.
    #[inline]
    fn bits(&self) -> u32 {
        BITS - self.common
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        let runs: usize = self.tables.iter().map(|shape| shape.runs.capacity()).sum();
        self.store.bytes() + runs * size_of::<u32>()
    }

    fn insert_at(&mut self, table: usize, place: BucketPlace, at: usize, value: u32) {
        let BucketPlace { bucket, remainder, remainder_bits } = place;
        self.store.insert(bucket, &[(at, (remainder, value))], remainder_bits);
        let shape = &mut self.tables[table];
        shape.greatest = shape.greatest.max(value);
        shape.len += 1;
        if shape.len > shape.count * MEAN {
            self.split(table);
        }
    }

    fn remove_at(&mut self, table: usize, place: BucketPlace, at: usize) {
        self.store.remove(place.bucket, &[(at, place.remainder)], place.remainder_bits);
        let shape = &mut self.tables[table];
        shape.len -= 1;
        if shape.is_sparse() {
            self.merge(table);
        }
    }

    #[inline]
    fn place(&self, table: usize, hash: u64) -> BucketPlace {
        debug_assert!(hash >> BITS == 0);
        self.tables[table].place(hash >> self.common, self.bits())
    }

    /// The bucket of a hash, and the remainder.
    #[inline]
    fn bucket(&self, table: usize, hash: u64) -> (PackedBucket<'_>, u64) {
        let BucketPlace { bucket, remainder, remainder_bits } = self.place(table, hash);
        (self.store.bucket(bucket, remainder_bits), remainder)
    }

    /// Splits the next bucket of a table. Returns false if there is a bucket for every hash.
    fn split(&mut self, table: usize) -> bool {
        let bits = self.bits();
        self.tables[table].split(&mut self.store, bits)
    }

    /// Merges the last bucket of a table.
    fn merge(&mut self, table: usize) {
        let bits = self.bits();
        self.tables[table].merge(&mut self.store, bits);
    }
}

impl<const BITS: u32> PackedEntry<'_, BITS> {
    /// The value, if the hash has one.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// Inserts or sets the value.
    pub fn set(self, value: u32) {
        let Self { tables, table, place, at, value: before } = self;
        if before.is_some() {
            tables.store.set(place.bucket, at, value, place.remainder_bits);
        } else {
            tables.insert_at(table, place, at, value);
        }
    }

    /// Removes the hash, if it has a value.
    pub fn remove(self) {
        if self.value.is_some() {
            self.tables.remove_at(self.table, self.place, self.at);
        }
    }
}

/// Reads all cache lines of these words.
#[inline]
fn touched(words: &[u64]) -> u64 {
    let last = words.last().copied().unwrap_or_default();
    words.iter().step_by(8).fold(last, |all, word| all ^ word)
}
