//! A sorted table: a copy of the corpus in the order of some selected bits, with a directory of their first values.
//!
//! The rows themselves are not permuted: `a ^ b` then serves every table, and the selected bits are compared by
//! extracting them. The directory cuts the order into about a quarter as many pieces as there are rows, by the
//! highest bits of the key (4 bytes each, 1 byte a row); within a piece a binary search finds the range, so that a corpus of
//! many equal keys costs a few steps more and not a walk.

use std::ops::Range;

use super::Fingerprints;
use crate::block::hamming::Selection;

/// Rows in the order of their keys.
#[derive(Debug)]
pub(super) struct SortedTable {
    selection: Selection,
    stride: usize,
    rows: Vec<u64>,
    ids: Vec<u32>,
    /// Where the rows begin whose key has these highest bits; one more at the end.
    directory: Vec<u32>,
    /// The key's bits below those of the directory.
    shift: u32,
}

impl SortedTable {
    pub(super) fn new(selection: Selection, corpus: &Fingerprints) -> Self {
        let order = by_key(&selection, corpus);
        let directory_bits = (order.len().max(4).ilog2() as usize - 2).min(selection.key_width());
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        let shift = (selection.key_width() - directory_bits) as u32;
        let mut directory = vec![0; (1 << directory_bits) + 1];
        for (key, _) in &order {
            directory[high(*key, shift) + 1] += 1;
        }
        let mut before = 0;
        for start in &mut directory {
            before += *start;
            *start = before;
        }
        let mut rows = Vec::with_capacity(order.len() * corpus.stride());
        for (_, id) in &order {
            rows.extend_from_slice(corpus.get(*id));
        }
        let ids = order.into_iter().map(|(_, id)| id).collect();
        Self { selection, stride: corpus.stride(), rows, ids, directory, shift }
    }

    /// The bits that the table is ordered by, of a fingerprint.
    pub(super) fn key(&self, words: &[u64]) -> u64 {
        self.selection.key(words)
    }

    /// The rows of this key.
    #[inline]
    pub(super) fn probe(&self, key: u64) -> Range<usize> {
        let piece = high(key, self.shift);
        let piece = self.directory[piece] as usize..self.directory[piece + 1] as usize;
        if self.shift == 0 {
            return piece;
        }
        let (mut low, mut end) = (piece.start, piece.end);
        while low < end {
            let middle = low.midpoint(end);
            if self.selection.key(self.row(middle)) < key { low = middle + 1 } else { end = middle }
        }
        while end < piece.end && self.selection.key(self.row(end)) == key {
            end += 1;
        }
        low..end
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

/// Keys with their ids, ascending.
pub(super) fn by_key(selection: &Selection, corpus: &Fingerprints) -> Vec<(u64, u32)> {
    let mut order: Vec<(u64, u32)> = corpus.iter().map(|(id, words)| (selection.key(words), id)).collect();
    order.sort_unstable();
    order
}

/// The bits of a key above `shift`, which is at most 64.
fn high(key: u64, shift: u32) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a directory is in memory")]
    let high = key.checked_shr(shift).unwrap_or(0) as usize;
    high
}
