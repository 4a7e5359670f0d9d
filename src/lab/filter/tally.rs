//! Results of stopping rules on many simulated pairs.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::pair::PairMatches;
use super::rules::Rule;
use crate::distribution::Distribution;
use crate::{StudyContext, threads};
use dupflow_core::hash::mix;
use dupflow_core::sketch::estimate::match_probability;

/// Pairs of a task; each task has its own random generator.
const CHUNK: usize = 1 << 14;

/// The results of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleTally {
    /// Number of pairs.
    pub(super) pairs: u64,
    /// Components read, summed over pairs.
    pub(super) components: u64,
    /// Bits read of one of the two sketches, summed over pairs.
    pub(super) bits: u64,
    /// Components after which the outcome is certain, summed over pairs.
    pub(super) certain: u64,
    /// Pairs that the full comparison accepts.
    pub(super) acceptable: u64,
    /// Of these, pairs that were rejected.
    pub(super) wrongly_rejected: u64,
    /// Of the other pairs, those that were accepted.
    pub(super) wrongly_accepted: u64,
    /// Pairs decided at each look.
    pub(super) decided: Vec<u64>,
}

impl RuleTally {
    fn new(rule: &Rule) -> Self {
        Self {
            pairs: 0,
            components: 0,
            bits: 0,
            certain: 0,
            acceptable: 0,
            wrongly_rejected: 0,
            wrongly_accepted: 0,
            decided: vec![0; rule.looks.len()],
        }
    }

    fn pair(&mut self, rule: &Rule, pair: &PairMatches) {
        let stop = rule.compare(pair);
        let (size, least) = (rule.schedule.target().size(), rule.schedule.target().least_matches());
        let acceptable = pair.among(size) as usize >= least;
        self.pairs += 1;
        self.components += u64::from(stop.components);
        self.bits += rule.bits_read(stop);
        self.certain += pair.certain_after(least, size) as u64;
        self.acceptable += u64::from(acceptable);
        self.wrongly_rejected += u64::from(acceptable && stop.rejected);
        self.wrongly_accepted += u64::from(!acceptable && !stop.rejected);
        self.decided[usize::from(stop.look) - 1] += 1;
    }

    fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.components += other.components;
        self.bits += other.bits;
        self.certain += other.certain;
        self.acceptable += other.acceptable;
        self.wrongly_rejected += other.wrongly_rejected;
        self.wrongly_accepted += other.wrongly_accepted;
        self.decided.iter_mut().zip(&other.decided).for_each(|(sum, more)| *sum += more);
    }

    /// A sum divided by the number of pairs.
    pub(super) fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.pairs as f64
    }

    /// The fraction of pairs that are decided at the first `looks` looks.
    pub(super) fn share_decided(&self, looks: usize) -> f64 {
        self.mean(self.decided[..looks].iter().sum())
    }
}

/// Compares `pairs` pairs of one distribution by rules on components of one width. All rules see the same
/// matches.
pub(super) fn simulate(
    bench: &StudyContext<'_>,
    distribution: Distribution,
    pairs: usize,
    rules: &[Rule],
) -> Vec<RuleTally> {
    let (bits, agree) = (rules[0].bits(), rules[0].agree());
    let task = |chunk: usize| {
        let seed = mix(bench.seed ^ mix(distribution as u64 + 1) ^ mix((chunk as u64) << 8 | bits as u64));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tallies: Vec<RuleTally> = rules.iter().map(RuleTally::new).collect();
        for _ in 0..CHUNK.min(pairs - chunk * CHUNK) {
            let similarity = distribution.sample(&mut rng);
            let pair = PairMatches::draw(&mut rng, match_probability(similarity, bits), agree);
            tallies.iter_mut().zip(rules).for_each(|(tally, rule)| tally.pair(rule, &pair));
        }
        tallies
    };
    let mut total: Vec<RuleTally> = rules.iter().map(RuleTally::new).collect();
    for tallies in threads::map(bench.threads, pairs.div_ceil(CHUNK), task) {
        total.iter_mut().zip(&tallies).for_each(|(sum, more)| sum.add(more));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Planner, PlannerError, StudiedPlan};
    use dupflow_core::time::SystemClock;

    /// Reads no pipeline: this study needs none.
    struct NoPipelines;

    impl Planner for NoPipelines {
        fn plan(&self, pipeline: &str, _: &[String]) -> Result<StudiedPlan, PlannerError> {
            Err(PlannerError::new(std::io::Error::other(pipeline.to_owned())))
        }
    }

    #[test]
    fn counts_add_up_and_do_not_depend_on_threads() {
        let clock = SystemClock::start();
        let [rules, ..] = Rule::all(0.5).unwrap();
        let run = |threads| {
            let bench =
                StudyContext { clock: &clock, threads, seed: 5, planner: &NoPipelines, progress: &|_| {} };
            simulate(&bench, Distribution::Uniform, 3 * CHUNK + 7, &rules)
        };
        let tallies = run(1);
        assert_eq!(tallies, run(3));
        for tally in tallies {
            assert_eq!((tally.pairs, tally.decided.iter().sum()), (3 * CHUNK as u64 + 7, tally.pairs));
            // U(0, 1) is at least 0.5 with probability 1/2.
            assert!((tally.mean(tally.acceptable) - 0.5).abs() < 4.5 * (0.25 / tally.pairs as f64).sqrt());
            assert!(tally.components < 1000 * tally.pairs && tally.bits == 64 * tally.components);
        }
    }
}
