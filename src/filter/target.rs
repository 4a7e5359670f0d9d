//! What a filter is to decide: whether two sketches of one shape show a similarity of at least the threshold.
//!
//! Also where it looks, by default: after the whole words that cost the least time. A look costs [`LOOK`] nanoseconds however little it
//! reads, mostly for a branch that nobody can foretell, and [`WORD_READ`] for each word of a plane. Which pairs a look leaves follows from the
//! threshold: of pairs whose similarities are spread evenly over 0 to 1, those above the similarity of which half are rejected there. What
//! such pairs cost is a sum over the looks, and the looks with the least sum are the shortest path through all that may be. So a short
//! sketch is read at once after its first word (K = 1000 of 4 bits: 64 words), and a long one in a few looks that lie further and
//! further apart. Which looks are taken never matters to the error: the bounds are made for them.

use super::FilterError;
use super::binomial::{Binomial, least_count};
use super::sequential::FirstWord;
use crate::sketch::agreement::{Agreement, Shape};
use crate::sketch::estimate::match_probability;

/// Components in the first fingerprint word.
pub(super) const WORD: usize = 64;

/// What a look takes however little it reads, in nanoseconds: a call, and a decision that is often foretold wrongly. With [`WORD_READ`]
/// between what the full comparison of 7 to 64 words takes on two machines (14.7 to 33 ns on an Intel Xeon, 17 to 24 ns from 16 words on an AMD
/// EPYC, both with AVX-512; `cargo bench --bench filter -- 'one query'`, November 2026). Only the ratio of the two decides where to look.
const LOOK: f64 = 15.0;

/// What a word of 64 bits takes to compare, in nanoseconds.
const WORD_READ: f64 = 0.2;

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

    /// The looks that take the least time, for bounds of such an error: some of 64, 128, 192, 256, 384, 512, 768, 1024, 1536, ...
    /// components, and K.
    pub fn default_looks(&self, error: f64) -> Vec<usize> {
        let dense = (1..4).map(|word| word * WORD);
        let sparse = (0..).flat_map(|doubling| [4, 6].map(|words| (words * WORD) << doubling));
        let early = dense.chain(sparse).take_while(|&k| k < self.shape.size);
        // What the first word leaves stands before them, with nothing read.
        let looks: Vec<usize> = [0].into_iter().chain(early).chain([self.shape.size]).collect();
        let left: Vec<f64> = looks.iter().map(|&k| self.left_after(k, error)).collect();
        // The least time of a way to each look, and the look before it on that way.
        let mut ways = vec![(0.0, 0)];
        for &to in &looks[1..] {
            let by_way_of = |(j, way): (usize, &(f64, usize))| (way.0 + left[j] * self.time(looks[j], to), j);
            let best = ways.iter().enumerate().map(by_way_of).min_by(|a, b| a.0.total_cmp(&b.0));
            ways.extend(best);
        }
        let before = |i: &usize| Some(ways[*i].1).filter(|i| *i > 0);
        let taken = std::iter::successors(Some(looks.len() - 1), before);
        let mut taken: Vec<usize> = taken.map(|i| looks[i]).collect();
        taken.reverse();
        taken
    }

    /// What a look at `to` components takes after one at `from`, in nanoseconds.
    fn time(&self, from: usize, to: usize) -> f64 {
        let words = (to.div_ceil(WORD) - from.div_ceil(WORD)) * self.shape.bits;
        LOOK + WORD_READ * words as f64
    }

    /// What these looks take on average, in nanoseconds.
    #[cfg(test)]
    pub(super) fn cost(&self, looks: &[usize], error: f64) -> f64 {
        let from = [0].iter().chain(looks);
        from.zip(looks).map(|(&from, &to)| self.left_after(from, error) * self.time(from, to)).sum()
    }

    /// The share of similarities, of all from 0 to 1, that the first word and a look at `k` components leave: those of which half or more
    /// pass.
    fn left_after(&self, k: usize, error: f64) -> f64 {
        let below = Binomial::new(k, self.probability()).reject_below(error);
        let look = if below == 0 { 1.0 } else { self.share_above(below as f64 / k as f64) };
        if self.has_first_word() { look.min(self.left_by_first_word(error)) } else { look }
    }

    /// The share that the first word's test leaves.
    fn left_by_first_word(&self, error: f64) -> f64 {
        let FirstWord { components, agree } = self.first_word();
        let p = self.probability();
        let below = Binomial::new(components, p + (1.0 - p) * agree).reject_below(error);
        self.share_above((below as f64 / components as f64 - agree) / (1.0 - agree))
    }

    /// The share of similarities at which components match with more than this probability.
    fn share_above(&self, p: f64) -> f64 {
        1.0 - self.shape.agreement.similarity(p).clamp(0.0, 1.0)
    }

    /// The looks of the staged filter over consistent weighted samples (Yuan et al. 2019), who take 100, 200, 400, 600, 800 and 1000 of
    /// 1000 components; the same shares of other sizes.
    fn paper_looks(&self) -> Vec<usize> {
        let mut looks: Vec<usize> =
            [1, 2, 4, 6, 8, 10].iter().map(|tenths| (self.shape.size * tenths / 10).max(1)).collect();
        looks.dedup();
        looks
    }

    /// The looks in force for kind `paper`, configured or the paper's; K is added if it is missing.
    ///
    /// # Errors
    /// If configured looks do not ascend strictly within `1..=K`.
    pub(super) fn looks(&self, configured: Option<&[usize]>) -> Result<Vec<usize>, FilterError> {
        configured.map_or_else(|| Ok(self.paper_looks()), |looks| self.configured(1, looks))
    }

    /// The looks in force where a first word's test goes before them, configured or default: none reads less than that has read. With
    /// one bit the test *is* the look at 64 components, which is not repeated.
    ///
    /// # Errors
    /// If configured looks do not ascend strictly within `64..=K`.
    pub(super) fn looks_after_first_word(
        &self,
        configured: Option<&[usize]>,
        error: f64,
    ) -> Result<Vec<usize>, FilterError> {
        let first = if self.has_first_word() { WORD } else { 1 };
        let mut looks = configured
            .map_or_else(|| Ok(self.default_looks(error)), |looks| self.configured(first, looks))?;
        looks.retain(|&k| self.shape.bits > 1 || k != WORD || k == self.shape.size);
        Ok(looks)
    }

    fn configured(&self, first: usize, looks: &[usize]) -> Result<Vec<usize>, FilterError> {
        let ascending = looks.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || looks.iter().any(|look| !(first..=self.shape.size).contains(look)) {
            return Err(FilterError::Looks { found: looks.to_vec(), first, size: self.shape.size });
        }
        let last = (looks.last() != Some(&self.shape.size)).then_some(self.shape.size);
        Ok(looks.iter().copied().chain(last).collect())
    }
}
