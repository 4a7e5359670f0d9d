//! A sorted table: a copy of the corpus in the order of some selected bits, with a directory of their first
//! values.
//!
//! The rows themselves are not permuted: `a ^ b` then serves every table, and the selected bits are compared
//! by extracting them. The directory cuts the order into about a quarter as many pieces as there are rows, by
//! the highest bits of the key (4 bytes each, 1 byte a row); within a piece a binary search finds the range,
//! so that a corpus of many equal keys costs a few steps more and not a walk.
//!
//! Rows are sorted in two steps, since a hundred million of them are far beyond any cache: they are counted
//! and moved into parts by the highest bits of their keys, and each part is sorted by itself, digit by digit.
//! Nothing is needed beside the table but one part.

use std::ops::Range;

use super::lead::Lead;
use super::{Fingerprints, Work};
use dupflow_core::block::hamming::distance;

/// Rows of a part, as a power of two: what is sorted at a time stays in a cache.
const PART_BITS: u32 = 15;

/// Parts at most, as a power of two: about as many pages as a processor knows the places of.
const MOST_PARTS_BITS: u32 = 11;

/// Rows in the order of their keys; those of one key in the order of their ids.
#[derive(Debug)]
pub(super) struct SortedTable {
    lead: Lead,
    stride: usize,
    rows: Vec<u64>,
    ids: Vec<u32>,
    /// Where the rows begin whose key has these highest bits; one more at the end.
    directory: Vec<u32>,
    /// The key's bits below those of the directory.
    shift: u32,
}

impl SortedTable {
    pub(super) fn new(lead: &Lead, corpus: &Fingerprints) -> Self {
        let n = corpus.len();
        let below = |bits: u32| width_below(lead, bits);
        let mut table = Self {
            stride: corpus.stride(),
            rows: vec![0; n * corpus.stride()],
            ids: vec![0; n],
            directory: Vec::new(),
            shift: below(n.max(4).ilog2() - 2),
            lead: lead.clone(),
        };
        let parts = below(n.max(1).ilog2().saturating_sub(PART_BITS).min(MOST_PARTS_BITS));
        let starts = table.move_into_parts(corpus, parts);
        table.directory = vec![0; table.piece(!0 >> (64 - lead.width().max(1))) + 2];
        let mut buffer = Buffer::default();
        for part in starts.windows(2) {
            table.sort(part[0]..part[1], parts, &mut buffer);
        }
        let mut before = 0;
        for start in &mut table.directory {
            before += *start;
            *start = before;
        }
        table
    }

    /// Rows and ids by the bits of their keys above `shift`, in the order of the corpus; where each part
    /// begins, and one more.
    fn move_into_parts(&mut self, corpus: &Fingerprints, shift: u32) -> Vec<usize> {
        // Counts, moved on by two: then starts, moved on by one, which the moving makes the starts.
        let parts = high(!0 >> (64 - self.lead.width().max(1)), shift) + 1;
        let mut starts = vec![0; parts + 2];
        for (_, words) in corpus.iter() {
            starts[high(self.lead.key(words), shift) + 2] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += *start;
            *start = before;
        }
        for (id, words) in corpus.iter() {
            let next = &mut starts[high(self.lead.key(words), shift) + 1];
            copy(words, &mut self.rows[*next * self.stride..(*next + 1) * self.stride]);
            self.ids[*next] = id;
            *next += 1;
        }
        starts.pop();
        starts
    }

    /// Sorts a part, whose keys differ in the lowest `bits` only, and counts its rows for the directory.
    fn sort(&mut self, part: Range<usize>, bits: u32, buffer: &mut Buffer) {
        let Buffer { order, spare, rows, ids } = buffer;
        let stride = self.stride;
        let old = &mut self.rows[part.start * stride..part.end * stride];
        order.clear();
        order.extend(old.chunks_exact(stride).map(|words| self.lead.key(words)).zip(0..));
        sort_by_digits(order, spare, bits);
        rows.clear();
        rows.extend_from_slice(old);
        ids.clear();
        ids.extend_from_slice(&self.ids[part.clone()]);
        for (((key, from), row), id) in
            order.iter().zip(old.chunks_exact_mut(stride)).zip(&mut self.ids[part])
        {
            let from = *from as usize;
            copy(&rows[from * stride..(from + 1) * stride], row);
            *id = ids[from];
            self.directory[high(*key, self.shift) + 1] += 1;
        }
    }

    /// Reads the rows that are looked up for a query, and has `found` told those within the radius: id and
    /// distance, each once.
    pub(super) fn near(&self, query: &[u64], radius: usize, mut found: impl FnMut(u32, usize)) -> Work {
        let mut work = Work::default();
        self.lead.each(self.lead.key(query), &mut |key| {
            let range = self.probe(key);
            work.probes += 1;
            work.entries += range.len() as u64;
            for at in range {
                let distance = distance(self.row(at), query);
                if distance <= radius {
                    found(self.ids[at], distance);
                }
            }
        });
        work.verified = work.entries;
        work
    }

    /// Rows of one key, of all keys.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let key = (start < self.ids.len()).then(|| self.lead.key(self.row(start)))?;
            let end = (start + 1..self.ids.len()).find(|at| self.lead.key(self.row(*at)) != key);
            let run = start..end.unwrap_or(self.ids.len());
            start = run.end;
            Some(run)
        })
    }

    /// The rows of this key.
    #[inline]
    fn probe(&self, key: u64) -> Range<usize> {
        let piece = self.piece(key);
        let piece = self.directory[piece] as usize..self.directory[piece + 1] as usize;
        if self.shift == 0 {
            return piece;
        }
        let (mut low, mut end) = (piece.start, piece.end);
        while low < end {
            let middle = low.midpoint(end);
            if self.lead.key(self.row(middle)) < key { low = middle + 1 } else { end = middle }
        }
        while end < piece.end && self.lead.key(self.row(end)) == key {
            end += 1;
        }
        low..end
    }

    /// Where a key stands in the directory.
    fn piece(&self, key: u64) -> usize {
        high(key, self.shift)
    }

    /// The fingerprint in a place of the order.
    #[inline]
    pub(super) fn row(&self, at: usize) -> &[u64] {
        &self.rows[at * self.stride..(at + 1) * self.stride]
    }

    /// Whose it is.
    pub(super) fn id(&self, at: usize) -> u32 {
        self.ids[at]
    }
}

/// What a part is sorted with.
#[derive(Default)]
struct Buffer {
    /// Keys, with the places of their rows in the part.
    order: Vec<(u64, u32)>,
    spare: Vec<(u64, u32)>,
    rows: Vec<u64>,
    ids: Vec<u32>,
}

/// Bits of a digit: its counters fit into the nearest cache.
const DIGIT_BITS: u32 = 11;

/// Sorts keys by their lowest `bits`; those of one key stay in their order.
fn sort_by_digits(keys: &mut Vec<(u64, u32)>, spare: &mut Vec<(u64, u32)>, bits: u32) {
    // A few keys are sorted before the counters are cleared.
    if keys.len() < 1 << (DIGIT_BITS - 1) {
        keys.sort_unstable();
        return;
    }
    spare.clear();
    spare.resize(keys.len(), (0, 0));
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let digit = |key: u64| high(key, shift) & ((1 << DIGIT_BITS) - 1);
        let mut starts = [0u32; 1 << DIGIT_BITS];
        for (key, _) in &*keys {
            starts[digit(*key)] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += std::mem::replace(start, before);
        }
        for entry in &*keys {
            let next = &mut starts[digit(entry.0)];
            spare[*next as usize] = *entry;
            *next += 1;
        }
        std::mem::swap(keys, spare);
    }
}

/// The words of one fingerprint; most have one.
#[inline(always)]
fn copy(from: &[u64], to: &mut [u64]) {
    match (from, to) {
        ([from], [to]) => *to = *from,
        (from, to) => to.copy_from_slice(from),
    }
}

/// The bits of a key below its first `bits`.
fn width_below(lead: &Lead, bits: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    let width = lead.width() as u32;
    width.saturating_sub(bits)
}

/// The bits of a key above `shift`, which is at most 64.
fn high(key: u64, shift: u32) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a directory is in memory")]
    let high = key.checked_shr(shift).unwrap_or(0) as usize;
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::hash::mix;

    #[test]
    fn digits_sort_as_a_comparison_does() {
        for (n, bits) in [(10, 64), (5000, 0), (5000, 5), (3000, 22), (3000, 33), (3000, 64)] {
            let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
            let mut keys: Vec<(u64, u32)> = (0..n).map(|i| (mix(u64::from(i) % 1500) & mask, i)).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort_by_digits(&mut keys, &mut Vec::new(), bits);
            assert_eq!(keys, expected, "{n} keys of {bits} bits");
        }
    }
}
