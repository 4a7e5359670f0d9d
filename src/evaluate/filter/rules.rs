//! The ways to end a comparison that are measured beside each other.

use crate::filter::{FilterError, Look, Schedule, Target};

/// K of the paper, full-width components.
pub(super) const SIZE: usize = 1000;

/// K of one-bit components: 16 words.
pub(super) const BITS: usize = 1024;

/// The error probability, each way: of the paper's filter that of one look, relative to the true similarity; of ours the most that all
/// looks together change the full comparison's answer by.
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
    /// Its looks and bounds.
    pub(super) looks: Vec<Look>,
    /// K.
    pub(super) size: usize,
    /// M0, the least matches that the full comparison accepts.
    pub(super) least: usize,
}

/// Where a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The look, from 0.
    pub(super) look: usize,
    /// Components read.
    pub(super) components: u32,
    /// The verdict.
    pub(super) accepted: bool,
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
        Ok([Self::of("paper", &paper), Self::of("staged", &ours)])
    }

    /// The rule on one-bit components, a look after each word.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub(super) fn one_bit(threshold: f64) -> Result<Self, FilterError> {
        let target = Target::new(threshold, BITS, 1)?;
        let looks: Vec<usize> = (128..=BITS).step_by(64).collect();
        Ok(Self::of("one-bit", &Schedule::sequential(target, &looks, true, ERROR)))
    }

    fn of(name: &'static str, schedule: &Schedule) -> Self {
        let target = schedule.target();
        let word = |reject_below| Look { components: 64, reject_below, accept_from: 65 };
        let looks = schedule.first_word().map(word).into_iter().chain(schedule.looks().iter().copied());
        Self { name, looks: looks.collect(), size: target.size(), least: target.least_matches() }
    }

    /// Compares look by look; `matches` counts among the components from one number (inclusive) to another (exclusive).
    #[inline]
    pub(super) fn compare(&self, mut matches: impl FnMut(usize, usize) -> u32) -> Stop {
        let (mut at, mut count) = (0, 0);
        for (look, bounds) in self.looks.iter().enumerate() {
            let components = bounds.components;
            count += matches(at, components as usize);
            at = components as usize;
            let accepted = count >= bounds.accept_from;
            if accepted || count < bounds.reject_below {
                return Stop { look, components, accepted };
            }
        }
        unreachable!("the last look rejects below M0 and accepts from M0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds by exact whole-number arithmetic: at T = 0.8 the paper rejects up to 61 and accepts from 96 of 100.
    #[test]
    fn bounds_are_those_of_the_paper_corrected() {
        let [paper, ours] = Rule::full_width(0.8).unwrap();
        let first = paper.looks[0];
        assert_eq!((first.components, first.reject_below, first.accept_from), (100, 62, 96));
        assert_eq!((ours.looks.len(), ours.looks[7].components, ours.least), (21, 192, 800));
        let one_bit = Rule::one_bit(0.8).unwrap();
        let word = one_bit.looks[0];
        assert_eq!((word.components, word.reject_below, one_bit.looks.len()), (64, 44, 16));
    }

    #[test]
    fn a_comparison_ends_at_the_first_look_that_decides() {
        let [paper, _] = Rule::full_width(0.8).unwrap();
        let stop = |share: usize| {
            paper.compare(|from, to| u32::try_from((to - from) * share / 100).expect("at most 1000"))
        };
        assert_eq!(stop(61), Stop { look: 0, components: 100, accepted: false });
        assert_eq!(stop(96), Stop { look: 0, components: 100, accepted: true });
        assert_eq!(stop(80), Stop { look: 5, components: 1000, accepted: true });
        assert_eq!(stop(79), Stop { look: 5, components: 1000, accepted: false });
    }
}
