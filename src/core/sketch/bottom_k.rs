//! Bottom-k: the k least hash values of a text's features under one hash function. O(n + k log k log n).
//!
//! In: features. Out: k words, ascending, `NONE` where the text has fewer features. Two sketches hold the k
//! least values of A ∪ B, and which of those are in both: a sample of the union without replacement, so the
//! estimate `in both / sample` has no bias, the variance `J (1 - J) / k * (u - k) / (u - 1)`, and is exact
//! where the union has no more than k features. The values stand at no fixed place, so such sketches are
//! compared as a whole.
//!
//! References: A. Broder, *On the resemblance and containment of documents* (1997); E. Cohen and H. Kaplan,
//! *Summarizing data using bottom-k sketches* (PODC 2007).

use super::{Estimator, Sketcher};
use crate::hash::mix;
use crate::text::Features;

/// No value: the text has fewer features than the sketch has words.
const NONE: u64 = u64::MAX;

/// The sketcher.
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

    /// Keeps the distinct least values, ascending.
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

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// k.
    pub size: usize,
}

impl Sample {
    /// Of the k least values of the union: how many are in both, and how many there are.
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

impl Estimator for Sample {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        let (both, sample) = self.count(a, b);
        both as f64 / sample.max(1) as f64
    }

    /// An upper bound, that of large texts.
    fn standard_error(&self, similarity: f64) -> f64 {
        (similarity * (1.0 - similarity) / self.size as f64).sqrt()
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
        let count = |a: [u64; 4], b: [u64; 4]| Sample { size: 4 }.count(&a, &b);
        // The four least of the union are 1, 2, 3, 4; 2 and 4 are in both; 6 would be the sixth.
        assert_eq!(count([1, 2, 4, 6], [2, 3, 4, 6]), (2, 4));
        // Fewer than four altogether: exact.
        assert_eq!(count([1, 2, NONE, NONE], [2, NONE, NONE, NONE]), (1, 2));
        assert_eq!(count([1, 2, 3, 4], [5, 6, 7, 8]), (0, 4));
        assert_eq!(count([1, 2, 3, 4], [1, 2, 3, 4]), (4, 4));
    }

    #[test]
    fn small_texts_are_exact() {
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..30).collect(), (10..40).collect());
        let estimate = Sample { size: 64 }.estimate(&sketch(&a, 64), &sketch(&b, 64));
        assert!((estimate - 0.5).abs() < 1e-15);
    }
}
