//! What a filter is to decide: whether two sketches of one shape show a similarity of at least the threshold.
//!
//! Also where it looks. A look is cheap only at whole words of 64 components, and rejections come early: most pairs
//! that are far from similar end at the first look, so looks are dense at the beginning and double their distance
//! after every second one later. Looking at every word reads no less: at T = 0.8, K = 1024, b = 1 pairs of
//! similarity 0.3 / 0.5 / 0.7 end after 79 / 141 / 534 components with these 8 looks and after 84 / 145 / 486 with
//! 16, whose first look has half the error to spend.

use super::FilterError;
use super::binomial::least_count;
use super::sequential::FirstWord;
use crate::sketch::agreement::{Agreement, Shape};
use crate::sketch::estimate::match_probability;

/// Components in the first fingerprint word.
pub(super) const WORD: usize = 64;

/// A threshold for sketches of one shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    threshold: f64,
    shape: Shape,
}

impl Target {
    /// Similarity at least `threshold` (inclusive; above 0 and at most 1), on sketches of `size` components (K, 1
    /// to 32768 inclusive) of `bits` bits (1 to 64 inclusive).
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn new(threshold: f64, size: usize, bits: usize) -> Result<Self, FilterError> {
        Self::of(threshold, Shape::components(size, bits))
    }

    /// Similarity at least `threshold` (inclusive; above 0 and at most 1), on sketches of this shape.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn of(threshold: f64, shape: Shape) -> Result<Self, FilterError> {
        debug_assert!(
            (1..=32_768).contains(&shape.size) && (1..=64).contains(&shape.bits),
            "a scheme has been checked"
        );
        if threshold > 0.0 && threshold <= 1.0 {
            Ok(Self { threshold, shape })
        } else {
            Err(FilterError::Threshold { found: threshold })
        }
    }

    /// T, inclusive.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// K, components.
    pub fn size(&self) -> usize {
        self.shape.size
    }

    /// b, stored bits of a component.
    pub fn bits(&self) -> usize {
        self.shape.bits
    }

    /// How often components match.
    pub fn agreement(&self) -> Agreement {
        self.shape.agreement
    }

    /// The probability that a component matches at the threshold, `T + (1 - T) / 2^b` for plain components.
    pub fn probability(&self) -> f64 {
        self.shape.agreement.probability(self.threshold)
    }

    /// M0, the least number of matches that a full comparison accepts: `ceil(probability * K)`, at least 1.
    pub fn least_matches(&self) -> usize {
        least_count(self.probability() * self.shape.size as f64).max(1)
    }

    /// Whether a sketch fills a first word, and what one bit of a component says about it is known.
    pub(super) fn has_first_word(&self) -> bool {
        self.shape.size >= WORD && !matches!(self.shape.agreement, Agreement::Run { .. })
    }

    /// The first word's test: `(2^(b-1) - 1) / (2^b - 1)` of the components that differ agree in their lowest bit.
    pub(super) fn first_word(&self) -> FirstWord {
        let half = match_probability(0.0, self.shape.bits);
        FirstWord { components: WORD, agree: (0.5 - half) / (1.0 - half) }
    }

    /// Looks at 64, 128, 192, 256, 384, 512, 768, 1024, 1536, ... components and at K; a sketch of one word is read
    /// at once.
    pub fn default_looks(&self) -> Vec<usize> {
        let dense = (1..4).map(|word| word * WORD);
        let sparse = (0..).flat_map(|doubling| [4, 6].map(|words| (words * WORD) << doubling));
        dense.chain(sparse).take_while(|&k| k < self.shape.size).chain([self.shape.size]).collect()
    }

    /// The looks in force, configured or default; K is added if it is missing.
    ///
    /// # Errors
    /// If configured looks do not ascend strictly within `1..=K`.
    pub(super) fn looks(&self, configured: Option<&[usize]>) -> Result<Vec<usize>, FilterError> {
        self.looks_from(1, configured)
    }

    /// The looks in force where a first word's test goes before them: none reads less than that has read. With one
    /// bit the test *is* the look at 64 components, which is not repeated.
    ///
    /// # Errors
    /// If configured looks do not ascend strictly within `64..=K`.
    pub(super) fn looks_after_first_word(
        &self,
        configured: Option<&[usize]>,
    ) -> Result<Vec<usize>, FilterError> {
        let mut looks = self.looks_from(if self.has_first_word() { WORD } else { 1 }, configured)?;
        looks.retain(|&k| self.shape.bits > 1 || k != WORD || k == self.shape.size);
        Ok(looks)
    }

    fn looks_from(&self, first: usize, configured: Option<&[usize]>) -> Result<Vec<usize>, FilterError> {
        let Some(looks) = configured else { return Ok(self.default_looks()) };
        let ascending = looks.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || looks.iter().any(|look| !(first..=self.shape.size).contains(look)) {
            return Err(FilterError::Looks { found: looks.to_vec(), first, size: self.shape.size });
        }
        let last = (looks.last() != Some(&self.shape.size)).then_some(self.shape.size);
        Ok(looks.iter().copied().chain(last).collect())
    }
}
