//! Bottom-k: the k least hash values of a text's features under one hash function. O(n + k log k log n).
//!
//! Features -> k words, ascending; `NONE` fills up if the text has fewer features. From two sketches follow
//! the k least values of A ∪ B, and which of those are in both. That is a sample of the union without
//! replacement. So the estimate `in both / sample` is unbiased, with variance `J (1 - J) / k * (u - k) / (u -
//! 1)`, and exact if the union has at most k features. A value has no fixed place, so such sketches are
//! compared as a whole.
//!
//! References: A. Broder, *On the resemblance and containment of documents* (1997); E. Cohen and H. Kaplan,
//! *Summarizing data using bottom-k sketches* (PODC 2007).

use crate::hash::mix;
use crate::sketch::sampler::Sketcher;
use crate::sketch::theory::Estimator;
use crate::text::Features;

/// Marks a word without a value: the text has fewer features than the sketch has words.
const NONE: u64 = u64::MAX;

/// The bottom-k sketcher.
#[derive(Clone, Debug)]
pub struct BottomK {
    size: usize,
    salt: u64,
    least: Vec<u64>,
}

impl BottomK {
    /// The `size` least values under the hash function derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { size, salt: mix(mix(seed)), least: Vec::new() }
    }

    /// Sorts the collected values and keeps the `size` least distinct ones.
    fn settle(&mut self) {
        self.least.sort_unstable();
        self.least.dedup();
        self.least.truncate(self.size);
    }
}

impl Sketcher for BottomK {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        self.least.clear();
        let mut below = NONE;
        for x in features.ids {
            // A bijection: different features have different values.
            let value = mix(x ^ self.salt);
            if value < below {
                self.least.push(value);
                if self.least.len() == 2 * self.size {
                    self.settle();
                    below = self.least.get(self.size - 1).copied().unwrap_or(NONE);
                }
            }
        }
        self.settle();
        words.extend_from_slice(&self.least);
        words.extend(std::iter::repeat_n(NONE, self.size - self.least.len()));
    }
}

/// The estimator for bottom-k sketches.
#[derive(Clone, Copy, Debug)]
pub struct BottomKEstimator {
    /// k.
    pub size: usize,
}

impl BottomKEstimator {
    /// Among the k least values of the union: how many are in both sketches, and how many there are.
    pub fn count(&self, a: &[u64], b: &[u64]) -> (usize, usize) {
        let (mut a, mut b) = (&a[..self.size], &b[..self.size]);
        let (mut both, mut sample) = (0, 0);
        while sample < self.size {
            let (x, y) = (a.first().copied().unwrap_or(NONE), b.first().copied().unwrap_or(NONE));
            if x.min(y) == NONE {
                break;
            }
            sample += 1;
            both += usize::from(x == y);
            a = &a[usize::from(x <= y)..];
            b = &b[usize::from(y <= x)..];
        }
        (both, sample)
    }
}

impl Estimator for BottomKEstimator {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        let (both, sample) = self.count(a, b);
        both as f64 / sample.max(1) as f64
    }

    /// An upper bound: the value for large texts.
    fn standard_error(&self, similarity: f64) -> f64 {
        (similarity * (1.0 - similarity) / self.size as f64).sqrt()
    }

    fn unseen(&self) -> f64 {
        (3.0 / self.size as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(ids: &[u64], size: usize) -> Vec<u64> {
        let mut words = Vec::new();
        BottomK::new(size, 5).sketch(Features::set(ids), &mut words);
        words
    }

    #[test]
    fn the_least_values_of_a_set() {
        let ids: Vec<u64> = (0..1000).map(|i| i % 300).collect();
        let mut all: Vec<u64> = (0..300).map(|i| mix(i ^ mix(mix(5)))).collect();
        all.sort_unstable();
        assert_eq!(sketch(&ids, 20), all[..20]);
        let few = sketch(&ids[..3], 5);
        assert!(few.is_sorted() && few[2] < NONE && few[3..] == [NONE, NONE]);
    }

    #[test]
    fn counts_by_hand() {
        let count = |a: [u64; 4], b: [u64; 4]| BottomKEstimator { size: 4 }.count(&a, &b);
        // The four least of the union are 1, 2, 3, 4; 2 and 4 are in both; 6 would be the fifth.
        assert_eq!(count([1, 2, 4, 6], [2, 3, 4, 6]), (2, 4));
        // The union has fewer than four values: exact.
        assert_eq!(count([1, 2, NONE, NONE], [2, NONE, NONE, NONE]), (1, 2));
        assert_eq!(count([1, 2, 3, 4], [5, 6, 7, 8]), (0, 4));
        assert_eq!(count([1, 2, 3, 4], [1, 2, 3, 4]), (4, 4));
    }

    #[test]
    fn small_texts_are_exact() {
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..30).collect(), (10..40).collect());
        let estimate = BottomKEstimator { size: 64 }.estimate(&sketch(&a, 64), &sketch(&b, 64));
        assert!((estimate - 0.5).abs() < 1e-15);
    }
}
