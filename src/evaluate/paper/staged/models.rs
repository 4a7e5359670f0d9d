//! What the bounds and the filter do to pairs of the models.

use std::ops::AddAssign;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{ERROR, PAPER_LOOKS, SETS, SIZE, THRESHOLDS, by_set, filter, percent};
use crate::evaluate::distribution::Distribution;
use crate::evaluate::filter::pair::Matches;
use crate::evaluate::paper::{Line, Made, Verdict, Work};
use crate::evaluate::plot::{Axis, Plot, Series};
use crate::evaluate::table::{Table, row};
use crate::evaluate::{EvaluateError, threads};
use crate::filter::binomial::Binomial;
use crate::filter::{Schedule, Stop};
use crate::hash::mix;
use crate::sketch::kernel::Kernel;

/// Simulated pairs of each set, at full scale; the source has 1000.
const PAIRS: usize = 1_000_000;

/// Simulated pairs where errors are counted.
const MANY: usize = 10_000_000;

/// Pairs of a task.
const CHUNK: usize = 1 << 14;

/// k of the first look.
const FIRST: usize = PAPER_LOOKS[0];

/// Looks before the last.
const EARLY: usize = PAPER_LOOKS.len() - 1;

/// Where similarities of pairs come from.
#[derive(Clone, Copy, Debug)]
enum Law {
    Set(Distribution),
    /// All the same.
    At(f64),
}

/// What was seen of pairs, at one threshold.
#[derive(Clone, Debug)]
struct Seen {
    pairs: u64,
    /// By X at the first look: pairs with R_K below T, and those at T or above.
    first: Vec<[u64; 2]>,
    /// By look: pairs that its bounds alone would reject, and accept.
    apart: [[u64; 2]; EARLY],
    /// Samples that the filter reads.
    read: u64,
    /// Pairs that an early look rejects, and accepts.
    early: [u64; 2],
    /// Those of them that the full comparison would not.
    wrong: [u64; 2],
}

impl Seen {
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

    fn pair(&mut self, pair: &Matches, schedule: &Schedule, stop: Stop) {
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

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.pairs as f64
    }

    /// Pairs with more than `m` equal samples at the first look (`above`) or fewer, and how many of these are on that side of T too.
    fn beyond(&self, m: usize, above: bool) -> (u64, u64) {
        let part = if above { &self.first[m + 1..] } else { &self.first[..m] };
        let right = part.iter().map(|both| both[usize::from(above)]).sum();
        (part.iter().flatten().sum(), right)
    }

    /// Accuracy and recall of "more than m" (`above`), or "fewer than m"; `None` where nothing is there.
    fn quality(&self, m: usize, above: bool) -> [Option<f64>; 2] {
        let (found, right) = self.beyond(m, above);
        let all: u64 = self.first.iter().map(|both| both[usize::from(above)]).sum();
        [found, all].map(|of| (of > 0).then(|| right as f64 / of as f64))
    }
}

impl AddAssign<&Self> for Seen {
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

/// What is seen of pairs by the filter at each threshold.
fn simulate(work: &Work<'_>, law: Law, pairs: usize) -> Result<Vec<Seen>, EvaluateError> {
    let schedules = THRESHOLDS.map(filter).into_iter().collect::<Result<Vec<_>, _>>()?;
    let kernel = Kernel::new(SIZE, 1);
    let salt = match law {
        Law::Set(set) => mix(set as u64 + 1),
        Law::At(similarity) => similarity.to_bits(),
    };
    let task = |chunk: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(mix(work.bench.seed ^ mix(salt) ^ mix(chunk as u64)));
        let mut seen = vec![Seen::new(); schedules.len()];
        for _ in 0..CHUNK.min(pairs - chunk * CHUNK) {
            let similarity = match law {
                Law::Set(set) => set.sample(&mut rng),
                Law::At(similarity) => similarity,
            };
            // Two different samples of full width have one bit in common by chance only, and none that counts.
            let pair = Matches::draw(&mut rng, similarity, 0.0);
            let (a, b) = pair.one_bit_sketches();
            for (one, schedule) in seen.iter_mut().zip(&schedules) {
                one.pair(&pair, schedule, schedule.walk(&kernel, a, b));
            }
        }
        seen
    };
    let mut all = vec![Seen::new(); schedules.len()];
    for seen in threads::map(work.bench.threads, pairs.div_ceil(CHUNK), task) {
        all.iter_mut().zip(&seen).for_each(|(sum, more)| *sum += more);
    }
    Ok(all)
}

/// By set, then by threshold.
fn simulate_sets(work: &Work<'_>, full: usize) -> Result<Vec<Vec<Seen>>, EvaluateError> {
    let pairs = work.size(full, 1000);
    SETS.iter().map(|set| simulate(work, Law::Set(*set), pairs)).collect()
}

/// 000-F7.
pub(super) fn densities(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let mut table = Table::new(
        "000_f7_shares",
        "000-F7: pairs below the threshold",
        "In percent of the pairs of a model, by its density.",
        &["T", "UNIFORM, %", "GAUSSIAN, %", "FUNDS-like, %"],
    );
    let mut lines = Vec::new();
    for threshold in THRESHOLDS {
        let shares = SETS.map(|set| set.share_below(threshold));
        let mut row = row![threshold];
        row.extend(shares.map(|share| (100.0 * share).into()));
        table.push(row);
        lines.push(Line::new(
            "000-F7",
            format!("share with R < {threshold}, UNIFORM / GAUSSIAN / FUNDS-like"),
            "lost",
            shares.map(percent).join(" / "),
            Verdict::StandIn,
            "The sets are private; these are the models.",
        ));
    }
    let low = Distribution::Funds.share_below(0.3);
    lines.push(Line::new(
        "000-F7",
        "FUNDS",
        "mostly low similarities",
        format!("{} of FUNDS-like pairs below 0.3", percent(low)),
        if low > 0.5 { Verdict::Agrees } else { Verdict::Differs },
        "The model is made to be so.",
    ));
    let series = SETS.map(|set| Series {
        name: set.name().to_owned(),
        points: (1..100).map(|i| f64::from(i) / 100.0).map(|s| (s, set.density(s))).collect(),
    });
    let plot = Plot {
        name: "000_f7_densities".to_owned(),
        title: "000-F7: similarities of the models".to_owned(),
        x: Axis::linear("similarity"),
        y: Axis::linear("density"),
        series: series.to_vec(),
    };
    Ok(Made { lines, tables: vec![table], plots: vec![plot] })
}

/// 000-F8 and 000-F9: each bound by itself.
pub(super) fn bounds_apart(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let sets = simulate_sets(work, PAIRS)?;
    let mut made = accuracy(&sets)?;
    made += rates(&sets)?;
    Ok(made)
}

/// A share in percent with enough digits to see what is missing to 100 %.
fn fine(share: Option<f64>) -> String {
    share.map_or_else(|| "none".to_owned(), |share| format!("{:.3} %", 100.0 * share))
}

/// 000-F8.
fn accuracy(sets: &[Vec<Seen>]) -> Result<Made, EvaluateError> {
    let mut table = Table::new(
        "000_f8_bounds",
        "000-F8: accuracy and recall of each bound, k = 100",
        "T_U: pairs with more than m of 100 samples equal; T_L: pairs with fewer. Accuracy: the share of them on the same side of T by \
         all 1000 samples; recall: the share of those on that side that are found. m: the corrected bounds, and T.",
        &[
            "T",
            "pairs",
            "m",
            "accuracy of T_U, %",
            "recall of T_U, %",
            "accuracy of T_L, %",
            "recall of T_L, %",
        ],
    );
    let mut plots = Vec::new();
    for (at, percent) in [80, 50, 30].into_iter().enumerate() {
        let threshold = THRESHOLDS[at];
        let first = filter(threshold)?.looks()[0];
        for (set, seen) in SETS.iter().zip(sets).map(|(set, seen)| (set, &seen[at])) {
            for m in [first.reject_below, percent, first.accept_from - 1] {
                let percents = [true, false].into_iter().flat_map(|above| seen.quality(m as usize, above));
                let mut row = row![threshold, set.name(), u64::from(m)];
                row.extend(percents.map(|share| share.map(|share| 100.0 * share).into()));
                table.push(row);
            }
            let series = |name: &str, above: bool, which: usize| Series {
                name: name.to_owned(),
                points: (0..=FIRST)
                    .filter_map(|m| seen.quality(m, above)[which].map(|share| (m as f64, share)))
                    .collect(),
            };
            plots.push(Plot {
                name: format!("000_f8_{}_{threshold}", set.name().to_lowercase()),
                title: format!("000-F8: bounds at k = 100, {}, T = {threshold}", set.name()),
                x: Axis::linear("m, of 100 samples"),
                y: Axis::linear("share"),
                series: vec![
                    series("accuracy of T_U", true, 0),
                    series("recall of T_U", true, 1),
                    series("accuracy of T_L", false, 0),
                    series("recall of T_L", false, 1),
                ],
            });
        }
    }
    Ok(Made { lines: accuracy_lines(sets), tables: vec![table], plots })
}

/// What the source says of 000-F8, at T = 0.8.
fn accuracy_lines(sets: &[Vec<Seen>]) -> Vec<Line> {
    let high = |m: usize, above: bool, which: usize| -> Vec<Option<f64>> {
        sets.iter().map(|seen| seen[0].quality(m, above)[which]).collect()
    };
    let told =
        |shares: &[Option<f64>]| shares.iter().map(|share| fine(*share)).collect::<Vec<_>>().join(" / ");
    let judge = |agrees: bool| if agrees { Verdict::Agrees } else { Verdict::Differs };
    let least = |shares: &[Option<f64>]| shares.iter().map(|share| share.unwrap_or(1.0)).fold(1.0, f64::min);
    let most = |shares: &[Option<f64>]| shares.iter().map(|share| share.unwrap_or(0.0)).fold(0.0, f64::max);
    let (at_90, at_50) = (high(90, true, 0), high(50, true, 0));
    let (found, dropped) = (high(90, true, 1), high(61, false, 1));
    let of = |what: &str| format!("{what}, T = 0.8, UNIFORM / GAUSSIAN / FUNDS-like");
    // The least bound from which on accuracy is 99.99 %.
    let dividing = |seen: &Vec<Seen>| {
        let is_low = |m: &usize| seen[0].quality(*m, true)[0].is_some_and(|share| share < 0.9999);
        (0..FIRST).rev().find(is_low).map_or(0, |m| m + 1)
    };
    let dividing: Vec<usize> = sets.iter().map(dividing).collect();
    let spread = dividing.iter().max().unwrap_or(&0) - dividing.iter().min().unwrap_or(&0);
    vec![
        Line::new(
            "000-F8",
            of("accuracy of T_U at m = 90"),
            "100 %",
            told(&at_90),
            judge(least(&at_90) >= 0.999_995),
            "As a share of what is accepted; as a tail of pairs at T itself 90 is not enough, and 000-T1 has 95.",
        ),
        Line::new(
            "000-F8",
            of("accuracy of T_U at m = 50"),
            "low on [0, 90]",
            told(&at_50),
            judge(most(&at_50) < 0.9),
            "It rises to 100 % between 70 and 90.",
        ),
        Line::new(
            "000-F8",
            of("recall of T_U at m = 90"),
            "not high for UNIFORM and GAUSSIAN",
            told(&found),
            judge(found[0].unwrap_or(1.0) < 0.7 && found[1].unwrap_or(1.0) < 0.7),
            "Pairs between 0.8 and 0.9 have to wait for later looks.",
        ),
        Line::new(
            "000-F8",
            of("recall of T_L at the corrected bound, 61"),
            "high for FUNDS",
            told(&dropped),
            judge(dropped[2].unwrap_or(0.0) > 0.9),
            "Most of these pairs are far below T.",
        ),
        Line::new(
            "000-F8",
            of("least m from which accuracy of T_U is 99.99 %"),
            "the same in all sets",
            dividing.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / "),
            judge(spread <= 2),
            "It depends on T and k, and on how many pairs lie just below T.",
        ),
        Line::new(
            "000-F8",
            "the second set of the definition",
            "R_k",
            "R_K",
            Verdict::Misprint,
            "With R_k on both sides accuracy is 1 by definition for T_U >= T.",
        ),
    ]
}

/// 000-F9.
fn rates(sets: &[Vec<Seen>]) -> Result<Made, EvaluateError> {
    let mut table = Table::new(
        "000_f9_rates",
        "000-F9: pairs that each bound alone decides",
        "In percent of all pairs, each look over all of them. \"expected\": binomial tails integrated over the model.",
        &["T", "pairs", "bound", "k = 100, %", "k = 200, %", "k = 400, %", "k = 600, %", "k = 800, %"],
    );
    let mut plots = Vec::new();
    let mut furthest: f64 = 0.0;
    for (set, of_set) in SETS.iter().zip(sets) {
        let mut series = Vec::new();
        for (threshold, seen) in THRESHOLDS.into_iter().zip(of_set) {
            let schedule = filter(threshold)?;
            let looks = &schedule.looks()[..EARLY];
            for (side, bound) in ["T_L", "T_U"].into_iter().enumerate() {
                let shares: Vec<f64> = seen.apart.iter().map(|apart| seen.share(apart[side])).collect();
                let expected = looks.iter().map(|look| {
                    set.expectation(|s| {
                        let tails = Binomial::new(look.components as usize, s);
                        let (below, from) = (look.reject_below as usize, look.accept_from as usize);
                        if side == 0 { tails.below(below) } else { tails.at_least(from) }
                    })
                });
                let expected: Vec<f64> = expected.collect();
                for (share, mean) in shares.iter().zip(&expected) {
                    let deviation = (mean * (1.0 - mean) / seen.pairs as f64).sqrt();
                    furthest = furthest.max((share - mean).abs() / deviation.max(1e-6));
                }
                for (name, values) in [(bound.to_owned(), &shares), (format!("{bound} expected"), &expected)]
                {
                    let mut row = row![threshold, set.name(), name];
                    row.extend(values.iter().map(|share| (100.0 * share).into()));
                    table.push(row);
                }
                let points = looks.iter().map(|look| f64::from(look.components)).zip(shares).collect();
                series.push(Series { name: format!("{bound}, T = {threshold}"), points });
            }
        }
        plots.push(Plot {
            name: format!("000_f9_{}", set.name().to_lowercase()),
            title: format!("000-F9: share decided by each bound, {}", set.name()),
            x: Axis::linear("k, samples"),
            y: Axis::linear("share of pairs"),
            series,
        });
    }
    let mut lines = rates_lines(sets);
    lines.push(Line::new(
        "000-F9",
        "all other values",
        "lost",
        format!("table 000_f9_rates; simulated and expected at most {furthest:.1} standard deviations apart"),
        Verdict::StandIn,
        "On the models, by the corrected bounds.",
    ));
    // The widest first: of one threshold together.
    table.rows.sort_by_key(|row| THRESHOLDS.iter().position(|t| row[0] == (*t).into()));
    Ok(Made { lines, tables: vec![table], plots })
}

/// What the source says of 000-F9.
fn rates_lines(sets: &[Vec<Seen>]) -> Vec<Line> {
    let rate = |set: usize, threshold: usize, look: usize, side: usize| {
        let seen = &sets[set][threshold];
        seen.share(seen.apart[look][side])
    };
    let judge = |agrees: bool| if agrees { Verdict::Agrees } else { Verdict::Differs };
    let [high, low] = [0, 2].map(|threshold| rate(2, threshold, 0, 0));
    // Whether one bound does more than the other at all looks, in both sets.
    let leads = |threshold: usize, side: usize| {
        let does = |(set, look)| rate(set, threshold, look, side) > rate(set, threshold, look, 1 - side);
        (0..2).flat_map(|set| (0..EARLY).map(move |look| (set, look))).all(does)
    };
    let at_first = |threshold: usize| {
        let both = |set: usize| [0, 1].map(|side| percent(rate(set, threshold, 0, side))).join(" and ");
        [0, 1].map(both).join(" / ")
    };
    vec![
        Line::new(
            "000-F9",
            "FUNDS, T_L at k = 100, T = 0.8",
            "over 90 %",
            percent(high),
            judge(high > 0.9),
            "On the FUNDS-like model.",
        ),
        Line::new(
            "000-F9",
            "FUNDS, T_L at k = 100, T = 0.3",
            "about 50 %",
            percent(low),
            judge((low - 0.5).abs() < 0.05),
            "On the FUNDS-like model.",
        ),
        Line::new(
            "000-F9",
            "UNIFORM / GAUSSIAN, T = 0.8, T_L and T_U at k = 100",
            "T_L does most",
            at_first(0),
            judge(leads(0, 0)),
            "So it is at every look.",
        ),
        Line::new(
            "000-F9",
            "UNIFORM / GAUSSIAN, T = 0.3, T_L and T_U at k = 100",
            "T_U does most",
            at_first(2),
            judge(leads(2, 1)),
            "So it is at every look.",
        ),
    ]
}

/// 000-H1.
pub(super) fn saved(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let sets = simulate_sets(work, PAIRS)?;
    let mut table = Table::new(
        "000_h1_saved",
        "000-H1: samples read",
        "Mean over all pairs, of 1000, by the source's looks with corrected bounds.",
        &["T", "UNIFORM", "saved, %", "GAUSSIAN", "saved, %", "FUNDS-like", "saved, %"],
    );
    let mean = |set: usize, threshold: usize| {
        let seen = &sets[set][threshold];
        seen.share(seen.read)
    };
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let means = (0..SETS.len()).map(|set| mean(set, at));
        let mut row = row![threshold];
        row.extend(means.flat_map(|read| [read.into(), (100.0 * (1.0 - read / SIZE as f64)).into()]));
        table.push(row);
    }
    let funds = mean(2, 0);
    let is_best =
        (0..3).flat_map(|set| (0..3).map(move |at| (set, at))).all(|(set, at)| mean(set, at) >= funds);
    let lines = vec![
        Line::new(
            "000-H1",
            "comparisons of samples saved",
            "85 %, 6.7 times fewer",
            format!("{}, {:.1} times fewer", percent(1.0 - funds / SIZE as f64), SIZE as f64 / funds),
            Verdict::StandIn,
            "FUNDS-like pairs at T = 0.8; the source's pairs are private.",
        ),
        Line::new(
            "000-H1",
            "where most is saved",
            "low similarities and high T",
            format!("FUNDS-like, T = 0.8: {funds:.0} of 1000 read"),
            if is_best { Verdict::Agrees } else { Verdict::Differs },
            "No other set or threshold of table 000_h1_saved reads less.",
        ),
    ];
    Ok(Made { lines, tables: vec![table], plots: Vec::new() })
}

/// 000-H4.
pub(super) fn errors(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let pairs = work.size(MANY, 1000);
    let mut table = Table::new(
        "000_h4_errors",
        "000-H4: decisions of early looks",
        "Rejected and accepted before the last look, and how many of these the full comparison of 1000 samples decides otherwise. \
         At R = T every early decision is one that table 1 would call an error.",
        &["T", "pairs of", "pairs", "rejected early", "against R_K", "accepted early", "against R_K"],
    );
    let mut push = |threshold: f64, name: &str, seen: &Seen| {
        let [early, wrong] = [seen.early, seen.wrong];
        table.push(row![threshold, name, seen.pairs, early[0], wrong[0], early[1], wrong[1]]);
    };
    let sets = simulate_sets(work, MANY)?;
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        SETS.iter().zip(&sets).for_each(|(set, seen)| push(threshold, set.name(), &seen[at]));
    }
    let mut at_threshold = Vec::new();
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let seen = simulate(work, Law::At(threshold), pairs)?.swap_remove(at);
        push(threshold, "R = T", &seen);
        at_threshold.push(seen);
    }
    let worst = &at_threshold[0];
    let spent = filter(THRESHOLDS[0])?.spent();
    let per_million = |count: u64, of: u64| format!("{:.1}", 1e6 * count as f64 / of as f64);
    let wrong: [u64; 2] = [0, 1].map(|side| sets.iter().flatten().map(|seen| seen.wrong[side]).sum());
    let all: u64 = sets.iter().flatten().map(|seen| seen.pairs).sum();
    let half = by_set(|set| percent(set.share_below(THRESHOLDS[0])));
    let lines = vec![
        Line::new(
            "000-H4",
            "accuracy and recall beside the full comparison, the three models at three thresholds",
            "100 %",
            format!(
                "of a million pairs {} wrongly rejected, {} wrongly accepted",
                per_million(wrong[0], all),
                per_million(wrong[1], all)
            ),
            if wrong == [0; 2] { Verdict::Agrees } else { Verdict::Differs },
            "Nearly: an early look may be wrong, with the probability that the bounds allow.",
        ),
        Line::new(
            "000-H4",
            "pairs of true similarity T = 0.8, rejected / accepted early, of a million",
            "none (100 % accuracy)",
            format!(
                "{} / {}",
                per_million(worst.early[0], worst.pairs),
                per_million(worst.early[1], worst.pairs)
            ),
            Verdict::Differs,
            format!(
                "Each look may err with 1e-5, and there are five: {:.1e} and {:.1e} by exact computation.",
                spent.reject, spent.accept
            ),
        ),
        Line::new(
            "000-H4",
            "the same, those that the full comparison would decide otherwise",
            "none (100 % accuracy)",
            format!(
                "{} / {}",
                per_million(worst.wrong[0], worst.pairs),
                per_million(worst.wrong[1], worst.pairs)
            ),
            if worst.wrong == [0; 2] { Verdict::Agrees } else { Verdict::Differs },
            "All 1000 samples of such a pair often come out on that side too.",
        ),
        Line::new(
            "000-H4",
            "the full comparison itself, pairs of R = T = 0.8 that it accepts",
            "100 %",
            percent(Binomial::new(SIZE, THRESHOLDS[0]).at_least(800)),
            Verdict::Differs,
            format!(
                "About half: no estimate is certain at T, so accuracy can only be meant beside R_K ({half} of the models' pairs are below T)."
            ),
        ),
    ];
    debug_assert!(ERROR < spent.reject, "several looks err more than one");
    Ok(Made { lines, tables: vec![table], plots: Vec::new() })
}
