//! A compact multimap from uniform hashes of `BITS` bits to 32-bit values, in the order of hashes. About 6.9
//! bytes an entry for 40 bits of hash and values that count the entries, at any size; 5.8 for 32 bits.
//!
//! The range of hashes is cut into *buckets* of about 64 entries, each the hashes with the same leading bits.
//! A bucket stores of a hash only the bits that follow, beside its value, in as few bytes as its entries
//! need. With twice as many entries there are twice as many buckets: a hash needs a bit less, and the number
//! of an entry a bit more. So the bytes of an entry do not depend on the size.
//!
//! Buckets are split one at a time, in turn, as the number of entries grows, and merged again as it falls (W.
//! Litwin, *Linear hashing*, 1980): an insert moves the entries of two buckets at most, in a table of any
//! size. Buckets stand in the order of their reversed leading bits, so a split adds one at the end.
//!
//! [`reserve`](PackedTable::reserve) announces a batch, so that buckets are split and grow once for it.

mod bucket;
#[cfg(test)]
mod tests;

use bucket::PackedBucket;

/// A multimap from hashes to values.
#[derive(Debug)]
pub struct PackedTable<const BITS: u32> {
    /// Buckets by number, in chunks of [`CHUNK`]: no growth copies all of them.
    chunks: Vec<Vec<PackedBucket>>,
    count: usize,
    len: usize,
    /// The greatest value so far.
    greatest: u32,
}

/// A hash in the table: its first value, or the place where it would be inserted.
#[derive(Debug)]
pub struct PackedEntry<'a, const BITS: u32> {
    table: &'a mut PackedTable<BITS>,
    place: BucketPlace,
    at: usize,
    value: Option<u32>,
}

/// The bucket of a hash, and what it stores of the hash.
#[derive(Clone, Copy, Debug)]
struct BucketPlace {
    number: usize,
    remainder: u64,
    remainder_bits: u32,
}

/// Mean number of entries of a bucket while the table grows. With fewer there are more headers, of 24 bytes;
/// with more an entry stores more of its hash.
const MEAN: usize = 64;

/// Buckets of a chunk, a power of two.
const CHUNK: usize = 256;

/// Hashes whose places are prefetched together.
const TOUCHED: usize = 64;

impl<const BITS: u32> Default for PackedTable<BITS> {
    fn default() -> Self {
        const { assert!(BITS <= 40, "the proportional place is computed in 64 bits") };
        Self { chunks: vec![vec![PackedBucket::default()]], count: 1, len: 0, greatest: 0 }
    }
}

impl<const BITS: u32> PackedTable<BITS> {
    /// Most hashes of [`touch_all`](Self::touch_all), inclusive.
    pub const TOUCHED: usize = TOUCHED;

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for the hashes of a batch, which ascend. Inserts without this are correct too.
    pub fn reserve(&mut self, batch: impl Iterator<Item = u64> + Clone) {
        let announced = batch.clone().count();
        while self.count * MEAN < self.len + announced {
            self.split();
        }
        if announced < self.count {
            return;
        }
        let mut batch = batch.peekable();
        while let Some(first) = batch.next() {
            let BucketPlace { number, remainder_bits, .. } = self.place(first);
            let mut of_bucket = 1;
            while batch.next_if(|hash| self.place(*hash).number == number).is_some() {
                of_bucket += 1;
            }
            let greatest = self.greatest;
            let bucket = self.bucket_mut(number);
            bucket.reserve(bucket.len() + of_bucket, greatest, remainder_bits);
        }
    }

    /// Prefetch: reads what a search for a hash and an insert there read. Cache misses of such reads overlap,
    /// those of successive searches do not.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let place = self.place(hash);
        touched(self.bucket(place.number).searched(place.remainder, place.remainder_bits))
    }

    /// Prefetch for the first [`TOUCHED`](Self::TOUCHED) of several hashes. Three short loops, so that many
    /// reads are under way: over the places, over the headers of their buckets, over the entries.
    pub fn touch_all(&self, hashes: impl Iterator<Item = u64>) -> u64 {
        let mut places = [(self.bucket(0), 0, 1); TOUCHED];
        let mut count = 0;
        for (place, hash) in places.iter_mut().zip(hashes) {
            let BucketPlace { number, remainder, remainder_bits } = self.place(hash);
            *place = (self.bucket(number), remainder, remainder_bits);
            count += 1;
        }
        let mut searched: [&[u8]; TOUCHED] = [&[]; TOUCHED];
        for (entries, (bucket, remainder, bits)) in searched.iter_mut().zip(&places[..count]) {
            *entries = bucket.searched(*remainder, *bits);
        }
        searched[..count].iter().fold(0, |all, entries| all ^ touched(entries))
    }

    /// The first value of a hash.
    #[inline]
    pub fn get(&self, hash: u64) -> Option<u32> {
        self.values(hash).next()
    }

    /// The values of a hash.
    #[inline]
    pub fn values(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let BucketPlace { number, remainder, remainder_bits } = self.place(hash);
        let bucket = self.bucket(number);
        (bucket.search(remainder, remainder_bits)..bucket.len())
            .take_while(move |at| bucket.remainder(*at, remainder_bits) == remainder)
            .map(move |at| bucket.value(at, remainder_bits))
    }

    /// The entry of a hash that has one value at most, present or not.
    #[inline]
    pub fn entry(&mut self, hash: u64) -> PackedEntry<'_, BITS> {
        let place = self.place(hash);
        let BucketPlace { number, remainder, remainder_bits } = place;
        let bucket = self.bucket(number);
        let at = bucket.search(remainder, remainder_bits);
        let is_present = at < bucket.len() && bucket.remainder(at, remainder_bits) == remainder;
        let value = is_present.then(|| bucket.value(at, remainder_bits));
        PackedEntry { table: self, place, at, value }
    }

    /// Adds a value to those of a hash.
    pub fn insert(&mut self, hash: u64, value: u32) {
        let place = self.place(hash);
        let at = self.bucket(place.number).search(place.remainder, place.remainder_bits);
        self.insert_at(place, at, value);
    }

    /// Removes a value of a hash; returns whether the hash had it.
    pub fn remove(&mut self, hash: u64, value: u32) -> bool {
        let BucketPlace { number, remainder, remainder_bits } = self.place(hash);
        let bucket = self.bucket(number);
        let first = bucket.search(remainder, remainder_bits);
        let found = (first..bucket.len())
            .take_while(|at| bucket.remainder(*at, remainder_bits) == remainder)
            .find(|at| bucket.value(*at, remainder_bits) == value);
        if let Some(at) = found {
            self.remove_at(number, at);
        }
        found.is_some()
    }

    /// All entries, hash and value, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.chunks.iter().flatten().zip(0..).flat_map(|(bucket, number)| {
            let depth = self.depth(number);
            let leading = bits_reversed::<BITS>(number as u64);
            let entries = bucket.entries(BITS - depth);
            entries.map(move |(remainder, value)| (leading | remainder, value))
        })
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        let headers: usize = self.chunks.iter().map(Vec::capacity).sum();
        let entries: usize = self.chunks.iter().flatten().map(PackedBucket::bytes).sum();
        entries
            + headers * size_of::<PackedBucket>()
            + self.chunks.capacity() * size_of::<Vec<PackedBucket>>()
    }

    fn insert_at(&mut self, place: BucketPlace, at: usize, value: u32) {
        let BucketPlace { number, remainder, remainder_bits } = place;
        self.bucket_mut(number).insert(at, remainder, value, remainder_bits);
        self.greatest = self.greatest.max(value);
        self.len += 1;
        if self.len > self.count * MEAN {
            self.split();
        }
    }

    fn remove_at(&mut self, number: usize, at: usize) {
        self.bucket_mut(number).remove(at);
        self.len -= 1;
        // At half the number, so that a table of constant size is neither split nor merged.
        if self.len < self.count * MEAN / 2 && self.count > 1 {
            self.merge();
        }
    }

    #[inline]
    fn place(&self, hash: u64) -> BucketPlace {
        debug_assert!(hash >> BITS == 0);
        let reversed = bits_reversed::<BITS>(hash);
        let half = 1 << self.count.ilog2();
        let mut number = low(reversed) & (half - 1);
        let mut depth = self.count.ilog2();
        if number < self.count - half {
            number = low(reversed) & (2 * half - 1);
            depth += 1;
        }
        let remainder_bits = BITS - depth;
        BucketPlace { number, remainder: hash & ((1 << remainder_bits) - 1), remainder_bits }
    }

    /// Number of leading bits that the hashes of a bucket share.
    fn depth(&self, number: usize) -> u32 {
        let half = 1 << self.count.ilog2();
        let is_split = number >= half || number < self.count - half;
        self.count.ilog2() + u32::from(is_split)
    }

    #[inline]
    fn bucket(&self, number: usize) -> &PackedBucket {
        &self.chunks[number / CHUNK][number % CHUNK]
    }

    fn bucket_mut(&mut self, number: usize) -> &mut PackedBucket {
        &mut self.chunks[number / CHUNK][number % CHUNK]
    }

    /// Splits the next bucket of this round; after the last one a new round begins.
    fn split(&mut self) {
        let depth = self.count.ilog2();
        if depth == BITS {
            return;
        }
        let (first, second) = (self.count - (1 << depth), self.count);
        let whole = std::mem::take(self.bucket_mut(first));
        let (bits, halved) = (BITS - depth, BITS - depth - 1);
        let boundary = whole.search(1 << halved, bits);
        let entries = |range: std::ops::Range<usize>| {
            let whole = &whole;
            range.map(move |at| (whole.remainder(at, bits) & ((1 << halved) - 1), whole.value(at, bits)))
        };
        *self.bucket_mut(first) = PackedBucket::from_entries(entries(0..boundary), halved);
        let split_off = PackedBucket::from_entries(entries(boundary..whole.len()), halved);
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(split_off),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(split_off);
                self.chunks.push(chunk);
            }
        }
        debug_assert_eq!(
            second,
            (self.chunks.len() - 1) * CHUNK + self.chunks.last().map_or(0, Vec::len) - 1
        );
        self.count += 1;
    }

    /// Merges the last bucket with the one that it was split from.
    fn merge(&mut self) {
        self.count -= 1;
        let depth = self.count.ilog2();
        let first = self.count - (1 << depth);
        let chunk = self.chunks.last_mut().expect("a chunk of buckets");
        let second = chunk.pop().expect("a chunk has a bucket");
        if chunk.is_empty() {
            self.chunks.pop();
        }
        let (bits, halved) = (BITS - depth, BITS - depth - 1);
        let whole = std::mem::take(self.bucket_mut(first));
        let entries: Vec<(u64, u32)> = whole
            .entries(halved)
            .chain(second.entries(halved).map(|(remainder, value)| (remainder | 1 << halved, value)))
            .collect();
        *self.bucket_mut(first) = PackedBucket::from_entries(entries.iter().copied(), bits);
    }
}

impl<const BITS: u32> PackedEntry<'_, BITS> {
    /// The value, if the hash has one.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// Inserts or sets the value.
    pub fn set(self, value: u32) {
        let Self { table, place, at, value: before } = self;
        if before.is_some() {
            table.bucket_mut(place.number).set(at, value, place.remainder_bits);
        } else {
            table.insert_at(place, at, value);
        }
    }

    /// Removes the hash, if it has a value.
    pub fn remove(self) {
        if self.value.is_some() {
            self.table.remove_at(self.place.number, self.at);
        }
    }
}

/// Reads the first, the middle and the last of these bytes.
#[inline]
fn touched(entries: &[u8]) -> u64 {
    let byte = |at: usize| entries.get(at).copied().map_or(0, u64::from);
    byte(0) ^ byte(entries.len() / 2) ^ byte(entries.len().wrapping_sub(1))
}

/// A hash with its bits in reverse order.
#[inline]
fn bits_reversed<const BITS: u32>(hash: u64) -> u64 {
    hash.reverse_bits() >> (u64::BITS - BITS)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the number of a bucket, of the low bits, is in memory")]
fn low(reversed: u64) -> usize {
    reversed as usize
}
