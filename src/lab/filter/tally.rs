//! What rules do to many simulated pairs.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::pair::Matches;
use super::rules::Rule;
use crate::distribution::Distribution;
use crate::{Bench, threads};
use dupflow_core::hash::mix;
use dupflow_core::sketch::estimate::match_probability;

/// Pairs of a task: each has a random generator of its own.
const CHUNK: usize = 1 << 14;

/// What one rule did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    /// Pairs.
    pub(super) pairs: u64,
    /// Components read, of all pairs.
    pub(super) components: u64,
    /// Bits read of one of the two sketches, of all pairs.
    pub(super) bits: u64,
    /// Components after which the outcome was certain, of all pairs.
    pub(super) certain: u64,
    /// Pairs that the full comparison accepts.
    pub(super) acceptable: u64,
    /// Of these, how many were rejected.
    pub(super) wrongly_rejected: u64,
    /// Of the others, how many were accepted.
    pub(super) wrongly_accepted: u64,
    /// Pairs decided at each look.
    pub(super) decided: Vec<u64>,
}

impl Tally {
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

    fn pair(&mut self, rule: &Rule, pair: &Matches) {
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

    /// The mean of a sum over the pairs.
    pub(super) fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.pairs as f64
    }

    /// The share of pairs that are decided at the first `looks` looks.
    pub(super) fn share_decided(&self, looks: usize) -> f64 {
        self.mean(self.decided[..looks].iter().sum())
    }
}

/// Compares `pairs` pairs of one distribution by rules on components of one width, which see the same
/// matches.
pub(super) fn simulate(
    bench: &Bench<'_>,
    distribution: Distribution,
    pairs: usize,
    rules: &[Rule],
) -> Vec<Tally> {
    let (bits, agree) = (rules[0].bits(), rules[0].agree());
    let task = |chunk: usize| {
        let seed = mix(bench.seed ^ mix(distribution as u64 + 1) ^ mix((chunk as u64) << 8 | bits as u64));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tallies: Vec<Tally> = rules.iter().map(Tally::new).collect();
        for _ in 0..CHUNK.min(pairs - chunk * CHUNK) {
            let similarity = distribution.sample(&mut rng);
            let pair = Matches::draw(&mut rng, match_probability(similarity, bits), agree);
            tallies.iter_mut().zip(rules).for_each(|(tally, rule)| tally.pair(rule, &pair));
        }
        tallies
    };
    let mut total: Vec<Tally> = rules.iter().map(Tally::new).collect();
    for tallies in threads::map(bench.threads, pairs.div_ceil(CHUNK), task) {
        total.iter_mut().zip(&tallies).for_each(|(sum, more)| sum.add(more));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanError, Planner, StudiedPlan};
    use dupflow_core::time::SystemClock;

    /// Reads no pipeline: this study needs none.
    struct NoPipelines;

    impl Planner for NoPipelines {
        fn plan(&self, pipeline: &str, _: &[String]) -> Result<StudiedPlan, PlanError> {
            Err(PlanError::new(std::io::Error::other(pipeline.to_owned())))
        }
    }

    #[test]
    fn counts_add_up_and_do_not_depend_on_threads() {
        let clock = SystemClock::start();
        let [rules, ..] = Rule::all(0.5).unwrap();
        let run = |threads| {
            let bench = Bench { clock: &clock, threads, seed: 5, planner: &NoPipelines, told: &|_| {} };
            simulate(&bench, Distribution::Uniform, 3 * CHUNK + 7, &rules)
        };
        let tallies = run(1);
        assert_eq!(tallies, run(3));
        for tally in tallies {
            assert_eq!((tally.pairs, tally.decided.iter().sum()), (3 * CHUNK as u64 + 7, tally.pairs));
            // U(0, 1) is at least 0.5 in half of the cases.
            assert!((tally.mean(tally.acceptable) - 0.5).abs() < 4.5 * (0.25 / tally.pairs as f64).sqrt());
            assert!(tally.components < 1000 * tally.pairs && tally.bits == 64 * tally.components);
        }
    }
}
