//! Terms: the distinct features of a text, and how often it has each.
//!
//! Hashed shingles of one or more parts of a text, repeats included -> distinct ids, ascending, with their
//! counts. Those of a part with a weight count so many times. Sorting and counting runs needs no hash table.

use serde::{Deserialize, Serialize};

/// The distinct features of one text with their counts. Weights are computed from nothing else, so terms are
/// stored for texts whose weights will change.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Terms {
    /// Distinct features, ascending.
    pub ids: Box<[u64]>,
    /// How often the text has each, 1 or more; occurrences in a field of weight w count w times.
    pub counts: Box<[u64]>,
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
    pub counts: &'a [u64],
}

impl TermsRef<'_> {
    /// The number of shingles, repeats and field weights included.
    pub fn total(self) -> u64 {
        self.counts.iter().sum()
    }

    /// Copies into owned lists.
    pub fn to_owned(self) -> Terms {
        Terms { ids: self.ids.into(), counts: self.counts.into() }
    }
}

/// Counts features; reuses its buffers.
#[derive(Debug, Default)]
pub(in crate::text) struct TermCounter {
    /// Features of all parts, one part after the other.
    features: Vec<u64>,
    /// The end of each part in `features`, and how often each of its features counts.
    parts: Vec<(usize, u64)>,
    /// Features with counts of their own.
    weighted: Vec<(u64, u32)>,
    /// Distinct features, where they are not those of one part.
    ids: Vec<u64>,
    counts: Vec<u64>,
}

impl TermCounter {
    /// Removes all features.
    pub(in crate::text) fn clear(&mut self) {
        self.features.clear();
        self.parts.clear();
        self.weighted.clear();
    }

    /// Adds features, each of which counts `times` times.
    pub(in crate::text) fn add(&mut self, features: &[u64], times: u32) {
        self.features.extend_from_slice(features);
        let (end, times) = (self.features.len(), u64::from(times));
        match self.parts.last_mut() {
            Some(part) if part.1 == times => part.0 = end,
            _ => self.parts.push((end, times)),
        }
    }

    /// Adds features, each as often as its weight says. A text has either these or those of [`Self::add`].
    pub(in crate::text) fn add_weighted(&mut self, features: &[u64], weights: &[u32]) {
        self.weighted.extend(features.iter().copied().zip(weights.iter().copied()));
    }

    /// The terms of all added features.
    pub(in crate::text) fn terms(&mut self) -> TermsRef<'_> {
        let Self { features, parts, weighted, ids, counts } = self;
        ids.clear();
        counts.clear();
        if !weighted.is_empty() {
            weighted.sort_unstable();
            for run in weighted.chunk_by(|a, b| a.0 == b.0) {
                ids.push(run[0].0);
                counts.push(run.iter().map(|(_, count)| u64::from(*count)).sum());
            }
            return TermsRef { ids, counts };
        }
        let mut first = 0;
        for (end, _) in &*parts {
            features[first..*end].sort_unstable();
            first = *end;
        }
        if let [(_, times)] = parts[..] {
            counts.extend(features.chunk_by(|a, b| a == b).map(|run| run.len() as u64 * times));
            features.dedup();
            return TermsRef { ids: features, counts };
        }
        merge(features, parts, ids, counts);
        TermsRef { ids, counts }
    }
}

/// Merges sorted parts, each given by its end, into distinct features with their counts.
fn merge(features: &[u64], parts: &[(usize, u64)], ids: &mut Vec<u64>, counts: &mut Vec<u64>) {
    let starts = std::iter::once(0).chain(parts.iter().map(|(end, _)| *end));
    let mut rest: Vec<(&[u64], u64)> =
        starts.zip(parts).map(|(first, (end, times))| (&features[first..*end], *times)).collect();
    while let Some(least) = rest.iter().filter_map(|(part, _)| part.first()).min().copied() {
        let mut count = 0;
        for (part, times) in &mut rest {
            let run = part.iter().take_while(|feature| **feature == least).count();
            *part = &part[run..];
            count += run as u64 * *times;
        }
        ids.push(least);
        counts.push(count);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    /// Parts of any lengths and weights, against copies that are added to a map.
    #[test]
    fn a_weight_is_as_so_many_copies() {
        let mut counter = TermCounter::default();
        for seed in 0..500_u64 {
            counter.clear();
            let mut expected = BTreeMap::<u64, u64>::new();
            for part in 0..seed % 6 {
                let number = |salt: u64| mix(seed << 20 ^ part << 10 ^ salt);
                let times = [1, 1, 2, 3, 100]
                    .into_iter()
                    .cycle()
                    .nth(usize::try_from(number(0) % 5).unwrap())
                    .unwrap();
                let features: Vec<u64> = (0..number(1) % 30).map(|i| number(i + 2) % 20).collect();
                counter.add(&features, times);
                for feature in features {
                    (0..times).for_each(|_| *expected.entry(feature).or_default() += 1);
                }
            }
            let terms = counter.terms();
            assert!(terms.ids.iter().eq(expected.keys()) && terms.counts.iter().eq(expected.values()));
            assert_eq!(terms.total(), expected.values().sum::<u64>());
        }
    }

    /// Counts do not end at those of 32 bits.
    #[test]
    fn weights_of_one_feature_add_up() {
        let mut counter = TermCounter::default();
        counter.add_weighted(&[7, 3, 7, 7], &[u32::MAX, 2, u32::MAX, 1]);
        let terms = counter.terms();
        assert_eq!((terms.ids, terms.counts), (&[3, 7][..], &[2, (1 << 33) - 1][..]));
        assert_eq!(terms.total(), (1 << 33) + 1);
    }
}
