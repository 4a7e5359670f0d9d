//! The target of a filter: a threshold for sketches of one shape; and the default looks.
//!
//! The default looks are at the numbers of words for which the candidates that banding yields cost least.
//! Rule:
//!
//! - A filter reads candidates, not a whole corpus, and most candidates are near the threshold.
//!   [`CANDIDATES`] is their density, measured once and fixed here, since looks must be a function of the
//!   configuration alone.
//! - The cost is the number of words read, since a candidate's sketch is rarely in a cache; a look costs as
//!   much as [`LOOK`] words.
//! - After a rejection a pair costs nothing more. After an acceptance all its components are read for the
//!   estimate, but without further looks.
//! - The looks with the least sum are a shortest path through all possible looks.
//!
//! The choice of looks does not affect the error: the bounds are derived for the chosen looks.

use super::FilterError;
use super::sequential::{Bounds, FirstWord, Model};
use crate::pair::Threshold;
use crate::probability::{Binomial, least_count};
use crate::sketch::agreement::{Agreement, Shape};
use crate::sketch::estimate::match_probability;

/// Components in the first fingerprint word.
pub(super) const WORD: usize = 64;

/// Fixed cost of a look, in words of 64 bits: a call, and a branch that is often mispredicted. This is a
/// weight, not a time: for 448 components of 4 bits all three early looks together take 4 ns, fetching and
/// deciding a candidate takes 66 ns (`cargo bench --bench filter -- candidates`), and a run spends thousands
/// of ns on each candidate; the looks save half of the bytes.
const LOOK: f64 = 2.0;

/// Density of candidates by their similarity s, in thousandths: ten ranges of `s / T` from 0 to 1, then four
/// of `(s - T) / (1 - T)`. Measured: the mean of twelve runs with equal weights, with the bands derived for
/// their threshold: 10,000 pages and a feed of long texts at T = 0.5, 0.6, 0.7, 0.8 and 0.9, a feed of short
/// texts at 0.5 and 0.8. A candidate counts once for any number of shared blocks. Pairs of similarity 1 are
/// not counted.
const CANDIDATES: [f64; BELOW + ABOVE] =
    [1.0, 31.0, 31.0, 23.0, 35.0, 68.0, 87.0, 127.0, 135.0, 116.0, 84.0, 62.0, 50.0, 150.0];

/// Ranges of [`CANDIDATES`] below the threshold.
const BELOW: usize = 10;

/// Ranges of [`CANDIDATES`] above the threshold.
const ABOVE: usize = 4;

/// The share of the error that one look is assumed to have while looks are chosen: as with four early looks.
const SHARE: f64 = 0.25;

/// Shares of the candidates after a look.
#[derive(Clone, Copy, Debug)]
struct RemainingShares {
    /// The share that is neither rejected nor accepted.
    undecided: f64,
    /// The share that is not rejected, of which further components are read.
    not_rejected: f64,
}

/// A threshold for sketches of one shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    threshold: Threshold,
    shape: Shape,
}

impl Target {
    /// Similarity at least `threshold` (inclusive; above 0 and at most 1), on sketches of `size` components
    /// (K, 1 to 32768 inclusive) of `bits` bits (1 to 64 inclusive).
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn new(threshold: f64, size: usize, bits: usize) -> Result<Self, FilterError> {
        Self::for_shape(threshold, Shape::components(size, bits))
    }

    /// Similarity at least `threshold` (inclusive; above 0 and at most 1), on sketches of this shape.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn for_shape(threshold: f64, shape: Shape) -> Result<Self, FilterError> {
        debug_assert!(
            (1..=32_768).contains(&shape.size) && (1..=64).contains(&shape.bits),
            "a scheme has been checked"
        );
        let threshold = Threshold::new(threshold).ok_or(FilterError::Threshold { found: threshold })?;
        Ok(Self { threshold, shape })
    }

    /// T, inclusive.
    pub fn threshold(&self) -> Threshold {
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

    /// The probability that components match, by similarity.
    pub fn agreement(&self) -> Agreement {
        self.shape.agreement
    }

    /// The probability that a component matches at the threshold, `T + (1 - T) / 2^b` for plain components.
    pub fn probability(&self) -> f64 {
        self.shape.agreement.probability(self.threshold.get())
    }

    /// M0, the least number of matches that a full comparison accepts: `ceil(probability * K)`, at least 1.
    pub fn least_matches(&self) -> usize {
        least_count(self.probability() * self.shape.size as f64).max(1)
    }

    /// Whether the first word can be tested: the sketch fills it, and the probability that the low bits of
    /// different components agree is known.
    pub(super) fn has_first_word(&self) -> bool {
        self.shape.size >= WORD && !matches!(self.shape.agreement, Agreement::Run { .. })
    }

    /// The first word's test: of the components that differ, the share `(2^(b-1) - 1) / (2^b - 1)` agrees in
    /// the lowest bit.
    pub(super) fn first_word(&self) -> FirstWord {
        let half = match_probability(0.0, self.shape.bits);
        FirstWord { components: WORD, agree: (0.5 - half) / (1.0 - half) }
    }

    /// The looks with the least cost for `CANDIDATES`, with bounds for this error: some of 64, 128, 192, ...
    /// 512, 640, ... 1024, 1280, ... components, and K.
    pub fn default_looks(&self, error: f64) -> Vec<usize> {
        let looks = self.possible_looks();
        let left: Vec<RemainingShares> = looks.iter().map(|&k| self.left_after(k, error)).collect();
        // The least cost of a path to each look, and the look before it on that path. The path begins after
        // the first word's test, with no component read.
        let mut ways = vec![(0.0, 0)];
        for &to in &looks[1..] {
            let by_way_of = |(j, way): (usize, &(f64, usize))| (way.0 + self.price(left[j], looks[j], to), j);
            let best = ways.iter().enumerate().map(by_way_of).min_by(|a, b| a.0.total_cmp(&b.0));
            ways.extend(best);
        }
        let before = |i: &usize| Some(ways[*i].1).filter(|i| *i > 0);
        let taken = std::iter::successors(Some(looks.len() - 1), before);
        let mut taken: Vec<usize> = taken.map(|i| looks[i]).collect();
        taken.reverse();
        taken
    }

    /// 0 (the start), all possible looks, and K. Possible looks are at whole words, at most four from a power
    /// of two to the next.
    fn possible_looks(&self) -> Vec<usize> {
        let next = |k: &usize| Some(k + ((k + 1).next_power_of_two() / 8).max(WORD));
        let early = std::iter::successors(Some(WORD), next).take_while(|&k| k < self.shape.size);
        [0].into_iter().chain(early).chain([self.shape.size]).collect()
    }

    /// The cost of a look at `to` components after a look at `from`, in words for each candidate.
    fn price(&self, left: RemainingShares, from: usize, to: usize) -> f64 {
        let words = (to.div_ceil(WORD) - from.div_ceil(WORD)) * self.shape.bits;
        left.undecided * LOOK + left.not_rejected * words as f64
    }

    /// What these looks cost, in words a candidate.
    #[cfg(test)]
    pub(super) fn cost(&self, looks: &[usize], error: f64) -> f64 {
        let from = [0].iter().chain(looks);
        from.zip(looks).map(|(&from, &to)| self.price(self.left_after(from, error), from, to)).sum()
    }

    /// What the first word and a look at `k` components leave of the candidates.
    fn left_after(&self, k: usize, error: f64) -> RemainingShares {
        if k == 0 {
            return self.left_by_first_word(error * SHARE);
        }
        let (size, least) = (self.shape.size, self.least_matches());
        let one = |total: usize| Bounds::new(Model::sketch(size, total), None, &[k], error * SHARE).below[0];
        let (below, from) = (one(least), k + 1 - one(size - (least - 1)));
        let mut left = RemainingShares { undecided: 0.0, not_rejected: 0.0 };
        for (similarity, share) in self.candidates() {
            let matches = Binomial::new(k, self.shape.agreement.probability(similarity));
            let (rejected, accepted) = (matches.below(below), matches.at_least(from));
            left.undecided += share * (1.0 - rejected - accepted);
            left.not_rejected += share * (1.0 - rejected);
        }
        left
    }

    /// The shares after the first word's test, if there is one; before any look.
    fn left_by_first_word(&self, error: f64) -> RemainingShares {
        let mut left = 1.0;
        if self.has_first_word() {
            let FirstWord { components, agree } = self.first_word();
            let bits = |similarity| {
                let p = self.shape.agreement.probability(similarity);
                Binomial::new(components, p + (1.0 - p) * agree)
            };
            let below = bits(self.threshold.get()).reject_below(error);
            left =
                self.candidates().map(|(similarity, share)| share * bits(similarity).at_least(below)).sum();
        }
        RemainingShares { undecided: left, not_rejected: left }
    }

    /// Similarities of the candidates that banding yields, and the share of each: the mixture used to choose
    /// the default looks.
    pub fn candidates(&self) -> impl Iterator<Item = (f64, f64)> {
        let threshold = self.threshold.get();
        let middle = move |range: usize| match range.checked_sub(BELOW) {
            None => threshold * (range as f64 + 0.5) / BELOW as f64,
            Some(above) => threshold + (1.0 - threshold) * (above as f64 + 0.5) / ABOVE as f64,
        };
        let all: f64 = CANDIDATES.iter().sum();
        CANDIDATES.iter().enumerate().map(move |(range, share)| (middle(range), share / all))
    }

    /// The looks of the staged filter over consistent weighted samples (Yuan et al. 2019), who take 100, 200,
    /// 400, 600, 800 and 1000 of 1000 components; the same shares of other sizes.
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

    /// The looks after a first word's test, configured or default: at least as many components as the test
    /// reads. With one bit the test is equal to the look at 64 components, which is not repeated.
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
