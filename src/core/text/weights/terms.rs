//! Terms: the distinct features of a text, and how often it has each.
//!
//! Hashed shingles, repeats included -> distinct ids, ascending, with their counts. Sorting and counting runs
//! needs no hash table: texts have hundreds of shingles, not millions.

use serde::{Deserialize, Serialize};

/// The distinct features of one text with their counts. Weights are computed from nothing else, so terms are
/// stored for texts whose weights will change.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Terms {
    /// Distinct features, ascending.
    pub ids: Box<[u64]>,
    /// How often the text has each, 1 or more; occurrences in a field of weight w count w times.
    pub counts: Box<[u32]>,
}

impl Terms {
    /// Borrows the terms.
    pub fn view(&self) -> TermsRef<'_> {
        TermsRef { ids: &self.ids, counts: &self.counts }
    }
}

/// Borrowed [`Terms`].
#[derive(Clone, Copy, Debug)]
pub struct TermsRef<'a> {
    /// See [`Terms::ids`].
    pub ids: &'a [u64],
    /// See [`Terms::counts`].
    pub counts: &'a [u32],
}

impl TermsRef<'_> {
    /// The number of shingles, repeats and field weights included.
    pub fn total(self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Copies into owned lists.
    pub fn to_owned(self) -> Terms {
        Terms { ids: self.ids.into(), counts: self.counts.into() }
    }
}

/// Counts features; reuses its buffers.
#[derive(Debug, Default)]
pub(in crate::text) struct TermCounter {
    ids: Vec<u64>,
    counts: Vec<u32>,
    /// Features with counts of their own.
    weighted: Vec<(u64, u32)>,
}

impl TermCounter {
    /// Removes all features.
    pub(in crate::text) fn clear(&mut self) {
        self.ids.clear();
        self.weighted.clear();
    }

    /// Adds features, each `times` times.
    pub(in crate::text) fn add(&mut self, features: &[u64], times: u32) {
        for _ in 0..times {
            self.ids.extend_from_slice(features);
        }
    }

    /// Adds features, each as often as its weight says. A text has either these or those of [`Self::add`].
    pub(in crate::text) fn add_weighted(&mut self, features: &[u64], weights: &[u32]) {
        self.weighted.extend(features.iter().copied().zip(weights.iter().copied()));
    }

    /// The terms of all added features. Counts saturate at 2^32 - 1.
    pub(in crate::text) fn terms(&mut self) -> TermsRef<'_> {
        let Self { ids, counts, weighted } = self;
        counts.clear();
        if !weighted.is_empty() {
            weighted.sort_unstable();
            for run in weighted.chunk_by(|a, b| a.0 == b.0) {
                ids.push(run[0].0);
                counts.push(run.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count)));
            }
            return TermsRef { ids, counts };
        }
        ids.sort_unstable();
        let count = |run: &[u64]| u32::try_from(run.len()).unwrap_or(u32::MAX);
        counts.extend(ids.chunk_by(|a, b| a == b).map(count));
        ids.dedup();
        TermsRef { ids, counts }
    }
}
