//! Simulated pairs of the models: results of bounds and filter, and the distribution of their similarities.

use std::ops::AddAssign;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{PAPER_LOOKS, SETS, SIZE, THRESHOLDS, filter, percent};
use crate::distribution::Distribution;
use crate::filter::pair::PairMatches;
use crate::paper::{ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use crate::{EvaluateError, threads};
use dupflow_core::filter::{Schedule, Stop};
use dupflow_core::hash::mix;
use dupflow_core::sketch::kernel::Kernel;

/// Simulated pairs of each set, at full scale; the source has 1000.
const PAIRS: usize = 2_000_000;

/// Pairs of a task.
const CHUNK: usize = 1 << 14;

/// k of the first look.
pub(super) const FIRST: usize = PAPER_LOOKS[0];

/// Number of looks before the last.
pub(super) const EARLY: usize = PAPER_LOOKS.len() - 1;

/// The distribution of the similarities of pairs.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimilarityLaw {
    Set(Distribution),
    /// A single similarity.
    At(f64),
}

/// Counts of pairs at one threshold.
#[derive(Clone, Debug)]
pub(super) struct PairStatistics {
    pub(super) pairs: u64,
    /// By X at the first look: pairs with R_K below T, and pairs with T or above.
    pub(super) first: Vec<[u64; 2]>,
    /// By look: pairs that its bounds alone would reject, and accept.
    pub(super) apart: [[u64; 2]; EARLY],
    /// Samples that the filter reads.
    pub(super) read: u64,
    /// Pairs that an early look rejects, and accepts.
    pub(super) early: [u64; 2],
    /// Those of them for which the full comparison decides otherwise.
    pub(super) wrong: [u64; 2],
}

impl PairStatistics {
    fn new() -> Self {
        Self {
            pairs: 0,
            first: vec![[0; 2]; FIRST + 1],
            apart: [[0; 2]; EARLY],
            read: 0,
            early: [0; 2],
            wrong: [0; 2],
        }
    }

    fn pair(&mut self, pair: &PairMatches, schedule: &Schedule, stop: Stop) {
        let is_similar = pair.among(SIZE) as usize >= schedule.target().least_matches();
        self.pairs += 1;
        self.first[pair.among(FIRST) as usize][usize::from(is_similar)] += 1;
        for (apart, look) in self.apart.iter_mut().zip(schedule.looks()) {
            let equal = pair.among(look.components as usize);
            apart[0] += u64::from(equal < look.reject_below);
            apart[1] += u64::from(equal >= look.accept_from);
        }
        self.read += u64::from(stop.components);
        if (stop.components as usize) < SIZE {
            let side = usize::from(!stop.rejected);
            self.early[side] += 1;
            self.wrong[side] += u64::from(is_similar == stop.rejected);
        }
    }

    /// The share of accepted pairs that are right, and of right pairs that are accepted; right is what the
    /// full comparison accepts.
    pub(super) fn filtered(&self) -> [f64; 2] {
        let right: u64 = self.first.iter().map(|both| both[1]).sum();
        let kept = right - self.wrong[0];
        [kept + self.wrong[1], right].map(|of| kept as f64 / of.max(1) as f64)
    }

    pub(super) fn share(&self, count: u64) -> f64 {
        count as f64 / self.pairs as f64
    }

    /// Pairs with more than `m` equal samples at the first look (`above`) or fewer, and how many of these are
    /// on the same side of T.
    fn beyond(&self, m: usize, above: bool) -> (u64, u64) {
        let part = if above { &self.first[m + 1..] } else { &self.first[..m] };
        let right = part.iter().map(|both| both[usize::from(above)]).sum();
        (part.iter().flatten().sum(), right)
    }

    /// Accuracy and recall of "more than m" (`above`), or "fewer than m"; `None` without pairs.
    pub(super) fn quality(&self, m: usize, above: bool) -> [Option<f64>; 2] {
        let (found, right) = self.beyond(m, above);
        let all: u64 = self.first.iter().map(|both| both[usize::from(above)]).sum();
        [found, all].map(|of| (of > 0).then(|| right as f64 / of as f64))
    }
}

impl AddAssign<&Self> for PairStatistics {
    fn add_assign(&mut self, more: &Self) {
        self.pairs += more.pairs;
        self.read += more.read;
        let sum = |to: &mut [[u64; 2]], from: &[[u64; 2]]| {
            to.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(total, count)| *total += count);
        };
        sum(&mut self.first, &more.first);
        sum(&mut self.apart, &more.apart);
        sum(std::slice::from_mut(&mut self.early), &[more.early]);
        sum(std::slice::from_mut(&mut self.wrong), &[more.wrong]);
    }
}

/// Results of the filter at each threshold.
pub(super) fn simulate(
    work: &SectionContext<'_>,
    law: SimilarityLaw,
    pairs: usize,
) -> Result<Vec<PairStatistics>, EvaluateError> {
    let schedules = THRESHOLDS.map(filter).into_iter().collect::<Result<Vec<_>, _>>()?;
    let kernel = Kernel::new(SIZE, 1);
    let salt = match law {
        SimilarityLaw::Set(set) => mix(set as u64 + 1),
        SimilarityLaw::At(similarity) => similarity.to_bits(),
    };
    let task = |chunk: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(mix(work.bench.seed ^ mix(salt) ^ mix(chunk as u64)));
        let mut seen = vec![PairStatistics::new(); schedules.len()];
        for _ in 0..CHUNK.min(pairs - chunk * CHUNK) {
            let similarity = match law {
                SimilarityLaw::Set(set) => set.sample(&mut rng),
                SimilarityLaw::At(similarity) => similarity,
            };
            // Two different samples of full width are equal in their lowest bit by chance only, which is not
            // counted.
            let pair = PairMatches::draw(&mut rng, similarity, 0.0);
            let (a, b) = pair.one_bit_sketches();
            for (one, schedule) in seen.iter_mut().zip(&schedules) {
                one.pair(&pair, schedule, schedule.walk(&kernel, a, b));
            }
        }
        seen
    };
    let mut all = vec![PairStatistics::new(); schedules.len()];
    for seen in threads::map(work.bench.threads, pairs.div_ceil(CHUNK), task) {
        all.iter_mut().zip(&seen).for_each(|(sum, more)| *sum += more);
    }
    Ok(all)
}

/// By set, then by threshold.
pub(super) fn simulate_sets(work: &SectionContext<'_>) -> Result<Vec<Vec<PairStatistics>>, EvaluateError> {
    let pairs = work.size(PAIRS, 1000);
    SETS.iter().map(|set| simulate(work, SimilarityLaw::Set(*set), pairs)).collect()
}

/// 000-F7.
pub(super) fn densities(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "000_f7_shares",
        "000-F7: pairs below the threshold",
        "In percent of the pairs of a model, by its density.",
        "T | UNIFORM, % | GAUSSIAN, % | FUNDS-like, %",
    );
    // Integrated independently of the program, in percent.
    const APART: [[f64; 3]; 3] = [[80.0, 97.8, 97.1], [50.0, 50.0, 94.0], [30.0, 9.1, 83.6]];
    let mut lines = Vec::new();
    for (threshold, apart) in THRESHOLDS.into_iter().zip(APART) {
        let shares = SETS.map(|set| 100.0 * set.share_below(threshold));
        let mut row = row![threshold];
        row.extend(shares.map(Into::into));
        table.push(row);
        lines.push(
            ItemLine::new(
                "000-F7",
                format!("share with R < {threshold}, UNIFORM / GAUSSIAN / FUNDS-like"),
                "lost",
            )
            .measured(shares.map(|share| percent(share / 100.0)).join(" / "))
            .judged(
                UnjudgedReason::StandIn
                    .checked(PrintedClaim::each(apart.into_iter().zip(shares), Matters::From(0.1))),
            )
            .because("The sets are private; these are the models, beside another integration of them."),
        );
    }
    let low = Distribution::Funds.share_below(0.3);
    lines.push(
        ItemLine::new("000-F7", "FUNDS", "mostly low similarities")
            .measured(format!("{} of FUNDS-like pairs below 0.3", percent(low)))
            .judged(UnjudgedReason::StandIn)
            .because("The model is made to be so."),
    );
    let series = SETS.map(|set| {
        Series::new(set.name(), (1..100).map(|i| f64::from(i) / 100.0).map(|s| (s, set.density(s))))
    });
    let plot = Plot::new(
        "000_f7_densities",
        "000-F7: similarities of the models",
        Axis::linear("similarity"),
        Axis::linear("density"),
        series.to_vec(),
    );
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![plot] })
}
