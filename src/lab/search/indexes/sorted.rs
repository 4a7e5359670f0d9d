//! A sorted table: a copy of the corpus in the order of some selected bits, with a directory of their first
//! values.
//!
//! Rows are not permuted: `a ^ b` serves every table, and the selected bits are extracted to compare keys.
//! The directory divides the order by the highest bits of the key, into about a quarter as many pieces as
//! there are rows (4 bytes each, 1 byte per row). Within a piece a binary search finds the range. So many
//! equal keys cost a few more steps instead of a linear scan.
//!
//! Rows are sorted in two steps, since a hundred million of them exceed every cache. They are counted and
//! moved into parts by the highest bits of their keys; then each part is sorted by itself, digit by digit.
//! The extra memory is one part.

use std::ops::Range;

use super::lead::Lead;
use super::{Fingerprints, SearchWork};
use dupflow_core::block::hamming::distance;

/// Rows of a part, as a power of two: a part fits into a cache.
const PART_BITS: u32 = 15;

/// Maximum number of parts, as a power of two: about the number of pages in a processor's TLB.
const MOST_PARTS_BITS: u32 = 11;

/// Rows in the order of their keys, then of their ids.
#[derive(Debug)]
pub(super) struct SortedTable {
    lead: Lead,
    stride: usize,
    rows: Vec<u64>,
    ids: Vec<u32>,
    /// The start of the rows whose key has these highest bits; one more at the end.
    directory: Vec<u32>,
    /// The number of key bits below those of the directory.
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
        let mut buffer = SortBuffer::default();
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

    /// Moves rows and ids into parts by the bits of their keys above `shift`, in the order of the corpus;
    /// returns the start of each part, and one more.
    fn move_into_parts(&mut self, corpus: &Fingerprints, shift: u32) -> Vec<usize> {
        // Counts are stored two places ahead; summed they are starts one place ahead, and moving shifts them
        // by one.
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
    fn sort(&mut self, part: Range<usize>, bits: u32, buffer: &mut SortBuffer) {
        let SortBuffer { order, spare, rows, ids } = buffer;
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

    /// Reads the rows that are looked up for a query, and calls `found` with id and distance of those within
    /// the radius, each once.
    pub(super) fn near(&self, query: &[u64], radius: usize, mut found: impl FnMut(u32, usize)) -> SearchWork {
        let mut work = SearchWork::default();
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

    /// Ranges of rows with equal keys.
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

    /// The piece of the directory that contains a key.
    fn piece(&self, key: u64) -> usize {
        high(key, self.shift)
    }

    /// The fingerprint at a position of the order.
    #[inline]
    pub(super) fn row(&self, at: usize) -> &[u64] {
        &self.rows[at * self.stride..(at + 1) * self.stride]
    }

    /// The id at a position of the order.
    pub(super) fn id(&self, at: usize) -> u32 {
        self.ids[at]
    }
}

/// The buffers for sorting a part.
#[derive(Default)]
struct SortBuffer {
    /// Keys with the positions of their rows in the part.
    order: Vec<(u64, u32)>,
    spare: Vec<(u64, u32)>,
    rows: Vec<u64>,
    ids: Vec<u32>,
}

/// Bits of a digit: its counters fit into the first-level cache.
const DIGIT_BITS: u32 = 11;

/// Sorts keys by their lowest `bits`; the sort is stable.
fn sort_by_digits(keys: &mut Vec<(u64, u32)>, spare: &mut Vec<(u64, u32)>, bits: u32) {
    // For few keys, clearing the counters would take longer than sorting.
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

/// Copies the words of a fingerprint; most have one.
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
