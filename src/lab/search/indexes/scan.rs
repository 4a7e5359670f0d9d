//! The linear scan: every fingerprint, in the order of the corpus.
//!
//! The first words of all fingerprints form a column, and so may the second words; the other words of each
//! fingerprint are stored separately. There are as many columns as make two random fingerprints differ by
//! more than the radius on average (they differ in 32 bits per word): one for k = 3, two for k = 60. So most
//! fingerprints are rejected after a few bytes. Columns are read [`STEP`] fingerprints at a time, in loops
//! without branches.

use super::{Fingerprints, HammingSearch, SearchWork};
use dupflow_core::block::hamming::distance;

/// Fingerprints per step: their distances fit into a few cache lines.
const STEP: usize = 64;

/// The columns of a corpus.
#[derive(Debug)]
pub(super) struct ScanIndex {
    radius: usize,
    documents: usize,
    columns: Vec<Vec<u64>>,
    /// The words that are in no column.
    rest: Vec<u64>,
}

impl ScanIndex {
    pub(super) fn new(corpus: &Fingerprints, radius: usize) -> Self {
        let lead = (radius / 32 + 1).min(corpus.stride());
        let column = |at: usize| corpus.iter().map(|(_, words)| words[at]).collect();
        Self {
            radius,
            documents: corpus.len(),
            columns: (0..lead).map(column).collect(),
            rest: corpus.iter().flat_map(|(_, words)| &words[lead..]).copied().collect(),
        }
    }

    /// Distances in the words of the columns, from fingerprint `start` on; 0 beyond the end of the corpus.
    fn leading_distances(&self, query: &[u64], start: usize) -> [u64; STEP] {
        let mut distances = [0; STEP];
        for (column, word) in self.columns.iter().zip(query) {
            let end = (start + STEP).min(column.len());
            for (distance, other) in distances.iter_mut().zip(&column[start..end]) {
                *distance += u64::from((word ^ other).count_ones());
            }
        }
        distances
    }
}

impl HammingSearch for ScanIndex {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> SearchWork {
        found.clear();
        let others = &query[self.columns.len()..];
        let mut ids = 0..;
        for start in (0..self.documents).step_by(STEP) {
            let distances = self.leading_distances(query, start);
            let here = STEP.min(self.documents - start);
            for ((at, id), so_far) in (start..).zip(ids.by_ref().take(here)).zip(distances) {
                if so_far > self.radius as u64 {
                    continue;
                }
                let row = &self.rest[at * others.len()..(at + 1) * others.len()];
                if distance(row, others) as u64 + so_far <= self.radius as u64 {
                    found.push(id);
                }
            }
        }
        SearchWork { probes: 0, entries: self.documents as u64, verified: self.documents as u64 }
    }
}
