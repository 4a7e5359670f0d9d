//! The stopping rules that are compared.

use super::pair::PairMatches;
use dupflow_core::filter::{FilterError, FilterKind, FilterParams, Schedule, StagedFilter, Stop, Target};
use dupflow_core::sketch::estimate::match_probability;
use dupflow_core::sketch::kernel::Kernel;

/// K of the paper and of all rules here.
pub(crate) const SIZE: usize = 1000;

/// The error probability of each side. The paper's filter has it at each look, relative to the true
/// similarity; the program's filter has it for all looks together, relative to the full comparison.
pub(crate) const ERROR: f64 = 1e-5;

/// The looks of the paper.
pub(crate) const PAPER_LOOKS: [usize; 6] = [100, 200, 400, 600, 800, 1000];

/// The looks that read the fewest components: 16, 24, 32, 48, 64, 96, 128, then every 64. No shipped filter
/// has all of them, since each look has a cost.
fn dense_looks() -> Vec<usize> {
    [16, 24, 32, 48, 64, 96].into_iter().chain((128..SIZE).step_by(64)).chain([SIZE]).collect()
}

/// A filter at one threshold.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The name in tables.
    pub(crate) name: &'static str,
    /// The looks and bounds.
    pub(crate) schedule: Schedule,
    /// Components read up to each look.
    pub(crate) looks: Vec<u32>,
    /// Counts matches in [`PairMatches::one_bit_sketches`]: one bit for each component, whatever its width.
    kernel: Kernel,
}

impl Rule {
    /// All rules, grouped by the width of components, widest first: on full width the paper's rule and the
    /// one that reads the fewest components, then the shipped filter on 4 bits and on 1 bit.
    ///
    /// # Errors
    /// If the threshold is out of range.
    pub(crate) fn all(threshold: f64) -> Result<[Vec<Self>; 3], FilterError> {
        let target = Target::new(threshold, SIZE, 64)?;
        let paper = Schedule::per_look(target, &PAPER_LOOKS, ERROR);
        let dense = Schedule::sequential(target, &dense_looks(), false, ERROR);
        Ok([
            vec![Self::new("paper", paper), Self::new("dense", dense)],
            vec![Self::shipped("4 bits", threshold, 4)?],
            vec![Self::shipped("1 bit", threshold, 1)?],
        ])
    }

    /// The filter of a pipeline with default looks.
    fn shipped(name: &'static str, threshold: f64, bits: usize) -> Result<Self, FilterError> {
        let params = FilterParams { kind: FilterKind::Staged, error: Some(ERROR), ..FilterParams::default() };
        let filter = StagedFilter::new(Target::new(threshold, SIZE, bits)?, &params)?;
        Ok(Self::new(name, filter.schedule().clone()))
    }

    /// Stored bits of a component.
    pub(crate) fn bits(&self) -> usize {
        self.schedule.target().bits()
    }

    /// The probability that two components whose stored bits differ have the same lowest bit.
    pub(crate) fn agree(&self) -> f64 {
        let all_bits_equal = match_probability(0.0, self.bits());
        (0.5 - all_bits_equal) / (1.0 - all_bits_equal)
    }

    /// Bits read of each of the two sketches until the comparison ended: 64 for the first words, if the
    /// schedule tests them, and all stored bits of the components that later looks read.
    pub(crate) fn bits_read(&self, stop: Stop) -> u64 {
        let components = self.bits() as u64 * u64::from(stop.components);
        match self.schedule.first_word() {
            Some(_) if stop.look == 1 => 64,
            Some(_) => 64 + components,
            None => components,
        }
    }

    fn new(name: &'static str, schedule: Schedule) -> Self {
        let first_word = schedule.first_word().map(|_| 64);
        let looks =
            first_word.into_iter().chain(schedule.looks().iter().map(|look| look.components)).collect();
        Self { name, looks, kernel: Kernel::new(schedule.target().size(), 1), schedule }
    }

    /// The look at which the comparison of a pair ends.
    pub(crate) fn compare(&self, pair: &PairMatches) -> Stop {
        let (a, b) = pair.one_bit_sketches();
        let (first, other) = pair.first_words();
        if self.schedule.passes(first, other) {
            self.schedule.walk(&self.kernel, a, b)
        } else {
            Stop { look: 1, components: 64, matches: pair.among(64), rejected: true }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Rule; 4] {
        let rules: Vec<Rule> = Rule::all(0.8).unwrap().into_iter().flatten().collect();
        rules.try_into().unwrap()
    }

    /// Bounds by exact integer arithmetic: at T = 0.8 the paper rejects up to 61 and accepts from 96 of 100.
    #[test]
    fn bounds_are_those_of_the_paper_corrected() {
        let [paper, dense, four, one] = all();
        let first = paper.schedule.looks()[0];
        assert_eq!((first.components, first.reject_below, first.accept_from), (100, 62, 96));
        assert_eq!(
            (dense.looks.len(), dense.looks[7], dense.schedule.target().least_matches()),
            (21, 192, 800)
        );
        assert_eq!((four.looks[0], one.looks[0], four.looks.last()), (64, 64, Some(&1000)));
        // Of the 15 values that differ from one of 16, 7 have its lowest bit.
        assert!((four.agree() - 7.0 / 15.0).abs() < 1e-12 && one.agree() == 0.0);
    }

    #[test]
    fn a_comparison_ends_at_the_first_look_that_decides() {
        let [paper, _, four, one] = all();
        // Of each hundred components the first `percent` match.
        let stop = |percent| paper.compare(&PairMatches::from_fn(|j| j % 100 < percent));
        let end = |look, components, matches, rejected| Stop { look, components, matches, rejected };
        assert_eq!(stop(61), end(1, 100, 61, true));
        assert_eq!(stop(96), end(1, 100, 96, false));
        assert_eq!(stop(80), end(6, 1000, 800, false));
        assert_eq!(stop(79), end(6, 1000, 790, true));
        let few = one.compare(&PairMatches::from_fn(|j| j < 40));
        assert_eq!((few, one.bits_read(few), four.bits_read(few)), (end(1, 64, 40, true), 64, 64));
        let half = four.compare(&PairMatches::from_fn(|j| j < 64));
        let second = four.looks[1];
        assert_eq!((half, four.bits_read(half)), (end(2, second, 64, true), 64 + 4 * u64::from(second)));
        assert_eq!(paper.bits_read(stop(61)), 6400);
    }
}
