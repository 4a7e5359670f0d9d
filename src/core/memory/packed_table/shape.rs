//! The buckets of one table: which one a hash belongs to, and how their number follows that of the entries.

use super::bits::index;
use super::store::{BucketStore, RUN};

/// A table without its buckets.
#[derive(Debug)]
pub(super) struct TableShape {
    /// The runs of the store in which its buckets are.
    pub(super) runs: Vec<u32>,
    /// Number of buckets.
    pub(super) count: usize,
    /// Number of entries.
    pub(super) len: usize,
    /// The greatest value so far.
    pub(super) greatest: u32,
}

/// The bucket of a hash, and what it stores of the hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketPlace {
    /// The bucket's number in the store.
    pub(super) bucket: u32,
    pub(super) remainder: u64,
    pub(super) remainder_bits: u32,
}

/// Mean number of entries of a bucket while the table grows. With fewer there are more headers and ends of
/// cells, about 32 bytes a bucket; with more an insert moves more words.
pub(super) const MEAN: usize = 96;

impl TableShape {
    /// An empty table of one bucket, the first of a run.
    pub(super) fn new(run: u32) -> Self {
        Self { runs: vec![run], count: 1, len: 0, greatest: 0 }
    }

    /// The bucket of a hash of `bits` bits.
    #[inline]
    pub(super) fn place(&self, hash: u64, bits: u32) -> BucketPlace {
        let reversed = index(bits_reversed(hash, bits));
        let half = 1 << self.count.ilog2();
        let mut number = reversed & (half - 1);
        let mut depth = self.count.ilog2();
        if number < self.count - half {
            number = reversed & (2 * half - 1);
            depth += 1;
        }
        let remainder_bits = bits - depth;
        let remainder = hash & ((1 << remainder_bits) - 1);
        BucketPlace { bucket: self.in_store(number), remainder, remainder_bits }
    }

    /// Splits the next bucket of this round; after the last one a new round begins. Returns false if there is
    /// a bucket for every hash.
    pub(super) fn split(&mut self, store: &mut BucketStore, all_bits: u32) -> bool {
        let depth = self.count.ilog2();
        if depth == all_bits {
            return false;
        }
        if self.count.is_multiple_of(RUN) {
            self.runs.push(store.add_run());
        }
        store.push(self.runs[self.count / RUN]);
        let (first, second) = (self.in_store(self.count - (1 << depth)), self.in_store(self.count));
        self.count += 1;
        let (bits, halved) = (all_bits - depth, all_bits - depth - 1);
        let mut whole = store.take(first, bits);
        let boundary = whole.partition_point(|(remainder, _)| remainder >> halved == 0);
        let (first_half, second_half) = whole.split_at_mut(boundary);
        second_half.iter_mut().for_each(|(remainder, _)| *remainder ^= 1 << halved);
        store.fill(first, first_half, greatest_of(first_half), halved);
        store.fill(second, second_half, greatest_of(second_half), halved);
        true
    }

    /// Merges the last bucket with the one that it was split from.
    pub(super) fn merge(&mut self, store: &mut BucketStore, all_bits: u32) {
        self.count -= 1;
        let depth = self.count.ilog2();
        let (first, second) = (self.in_store(self.count - (1 << depth)), self.in_store(self.count));
        let (bits, halved) = (all_bits - depth, all_bits - depth - 1);
        let mut whole = store.take(first, halved);
        whole.extend(
            store.take(second, halved).into_iter().map(|(remainder, n)| (remainder | 1 << halved, n)),
        );
        store.fill(first, &whole, greatest_of(&whole), bits);
        if store.pop(self.runs[self.count / RUN]) {
            self.runs.pop();
        }
    }

    /// Whether it has too many buckets: at half the number, so that a table of constant size is neither split
    /// nor merged.
    pub(super) fn is_sparse(&self) -> bool {
        self.len < self.count * MEAN / 2 && self.count > 1
    }

    /// Number of leading bits that the hashes of a bucket share.
    pub(super) fn depth(&self, number: usize) -> u32 {
        let half = 1 << self.count.ilog2();
        let is_split = number >= half || number < self.count - half;
        self.count.ilog2() + u32::from(is_split)
    }

    /// The number of a bucket in the store.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the number in a run is below 256")]
    pub(super) fn in_store(&self, number: usize) -> u32 {
        self.runs[number / RUN] * RUN as u32 + (number % RUN) as u32
    }
}

fn greatest_of(entries: &[(u64, u32)]) -> u32 {
    entries.iter().map(|(_, value)| *value).max().unwrap_or_default()
}

/// A hash with its `bits` bits in reverse order.
#[inline]
pub(super) fn bits_reversed(hash: u64, bits: u32) -> u64 {
    hash.reverse_bits() >> (u64::BITS - bits)
}
