//! The ways to end a comparison that are measured beside each other.

use super::pair::Matches;
use crate::filter::{FilterError, Schedule, Stop, Target};
use crate::sketch::kernel::Kernel;

/// K of the paper, full-width components.
pub(super) const SIZE: usize = 1000;

/// K of one-bit components: 16 words.
pub(super) const BITS: usize = 1024;

/// The error probability, each way: for the paper's filter of each look, relative to the true similarity; for ours of all looks
/// together, relative to the full comparison.
pub(super) const ERROR: f64 = 1e-5;

/// Where the paper looks.
pub(super) const PAPER_LOOKS: [usize; 6] = [100, 200, 400, 600, 800, 1000];

/// Where we look: 16, 24, 32, 48, 64, 96, 128, and then every 64 components.
pub(super) fn our_looks() -> Vec<usize> {
    [16, 24, 32, 48, 64, 96].into_iter().chain((128..SIZE).step_by(64)).chain([SIZE]).collect()
}

/// A filter at one threshold.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// As it is called in tables.
    pub(super) name: &'static str,
    /// The looks and bounds.
    pub(super) schedule: Schedule,
    /// Components read by each look.
    pub(super) looks: Vec<u32>,
    /// Whatever the width of the components, one bit says whether they match.
    kernel: Kernel,
}

impl Rule {
    /// The rules on full-width components: the paper's and ours.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub(super) fn full_width(threshold: f64) -> Result<[Self; 2], FilterError> {
        let target = Target::new(threshold, SIZE, 64)?;
        let paper = Schedule::per_look(target, &PAPER_LOOKS, ERROR);
        let ours = Schedule::sequential(target, &our_looks(), false, ERROR);
        Ok([Self::of("paper", paper), Self::of("staged", ours)])
    }

    /// The rule on one-bit components, a look after each word.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub(super) fn one_bit(threshold: f64) -> Result<Self, FilterError> {
        let target = Target::new(threshold, BITS, 1)?;
        let looks: Vec<usize> = (128..=BITS).step_by(64).collect();
        Ok(Self::of("one-bit", Schedule::sequential(target, &looks, true, ERROR)))
    }

    fn of(name: &'static str, schedule: Schedule) -> Self {
        let first_word = schedule.first_word().map(|_| 64);
        let looks =
            first_word.into_iter().chain(schedule.looks().iter().map(|look| look.components)).collect();
        Self { name, looks, kernel: Kernel::new(schedule.target().size(), 1), schedule }
    }

    /// Where the comparison of a pair ends.
    pub(super) fn compare(&self, pair: &Matches) -> Stop {
        let (a, b) = pair.one_bit_sketches();
        if self.schedule.passes(a[0], b[0]) {
            self.schedule.walk(&self.kernel, a, b)
        } else {
            Stop { look: 1, components: 64, matches: pair.among(64), rejected: true }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds by exact whole-number arithmetic: at T = 0.8 the paper rejects up to 61 and accepts from 96 of 100.
    #[test]
    fn bounds_are_those_of_the_paper_corrected() {
        let [paper, ours] = Rule::full_width(0.8).unwrap();
        let first = paper.schedule.looks()[0];
        assert_eq!((first.components, first.reject_below, first.accept_from), (100, 62, 96));
        assert_eq!((ours.looks.len(), ours.looks[7], ours.schedule.target().least_matches()), (21, 192, 800));
        let one_bit = Rule::one_bit(0.8).unwrap();
        assert_eq!(
            (one_bit.looks[0], one_bit.schedule.first_word(), one_bit.looks.len()),
            (64, Some(44), 16)
        );
    }

    #[test]
    fn a_comparison_ends_at_the_first_look_that_decides() {
        let [paper, _] = Rule::full_width(0.8).unwrap();
        // Of each hundred components the first so many match.
        let stop = |percent| paper.compare(&Matches::of(|j| j % 100 < percent));
        let end = |look, components, matches, rejected| Stop { look, components, matches, rejected };
        assert_eq!(stop(61), end(1, 100, 61, true));
        assert_eq!(stop(96), end(1, 100, 96, false));
        assert_eq!(stop(80), end(6, 1000, 800, false));
        assert_eq!(stop(79), end(6, 1000, 790, true));
        let one_bit = Rule::one_bit(0.8).unwrap();
        assert_eq!(one_bit.compare(&Matches::of(|j| j < 43)), end(1, 64, 43, true));
    }
}
