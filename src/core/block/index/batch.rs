//! The changes of a table that are applied together, as entries of 64 bits: the hash of a block, and below
//! it a number, that of the change or a slot. Leading bits are those of hashes, and so uniform.

use crate::block::BlockKey;

/// Bit of a change: the sketch is added.
pub(super) const ADDED: u32 = 1 << 31;

/// Bits of an entry below the hash.
pub(super) const NUMBER_BITS: u32 = u64::BITS - BlockKey::HASH_BITS;

/// Entries of a chunk, 128 KiB. Only the first chunk is kept from one round to the next.
const CHUNK: usize = 1 << 14;

/// Entries that are sorted by comparisons alone: they fit in the first-level cache.
const FEW: usize = 1 << 11;

/// Most leading bits by which entries are distributed: as many places to write to as a cache has lines for.
const MOST_BITS: u32 = 10;

/// See the [module](self). It grows by chunks, so that nothing is copied as it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// The last chunk; those before are full.
    last: Vec<u64>,
    full: Vec<Vec<u64>>,
}

impl Batch {
    #[inline]
    pub(super) fn push(&mut self, entry: u64) {
        if self.last.len() == CHUNK {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
        }
        self.last.push(entry);
    }

    /// Passes all entries to `apply`, sorted, and removes them.
    pub(super) fn apply<R>(&mut self, apply: impl FnOnce(&[u64]) -> R) -> R {
        if !self.full.is_empty() {
            let mut all = std::mem::take(&mut self.full);
            all.push(std::mem::take(&mut self.last));
            return apply(&sorted(all));
        }
        self.last.sort_unstable();
        let applied = apply(&self.last);
        self.last.clear();
        applied
    }
}

/// The number of an entry, below its hash.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
pub(super) fn low_number(entry: u64) -> u32 {
    entry as u32 & ((1 << NUMBER_BITS) - 1)
}

/// All entries of several chunks, sorted: they are distributed by their leading bits first, so that those
/// that are compared are in the cache. Takes as much memory again until it returns.
fn sorted(chunks: Vec<Vec<u64>>) -> Vec<u64> {
    let count = chunks.iter().map(Vec::len).sum::<usize>();
    let bits = (count / FEW).max(2).ilog2().min(MOST_BITS);
    let part = |entry: u64| usize::try_from(entry >> (u64::BITS - bits)).unwrap_or_default();
    let mut ends = vec![0; 1 << bits];
    chunks.iter().flatten().for_each(|entry| ends[part(*entry)] += 1);
    let mut before = 0;
    for end in &mut ends {
        before += std::mem::replace(end, before);
    }
    let mut sorted = vec![0; count];
    for entry in chunks.into_iter().flatten() {
        let end = &mut ends[part(entry)];
        sorted[*end] = entry;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        sorted[std::mem::replace(&mut start, end)..end].sort_unstable();
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// Uniform entries, and some that are all in one part; a batch is used again.
    #[test]
    fn a_batch_is_applied_in_order() {
        let mut batch = Batch::default();
        for count in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 0, 100_000, 7] {
            for shift in [0, 1, 40, 63] {
                let mut expected: Vec<u64> = (0..count as u64).map(|n| mix(n) >> shift).collect();
                expected.iter().for_each(|number| batch.push(*number));
                expected.sort_unstable();
                batch.apply(|numbers| assert_eq!(numbers, expected, "{count} {shift}"));
            }
        }
        assert!(batch.full.is_empty() && batch.last.capacity() <= CHUNK);
    }
}
