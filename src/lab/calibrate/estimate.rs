//! Precision and recall of each threshold.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::draw::{Draw, DrawnBand};
use crate::distribution::beta;
use crate::truth::JudgedPairs;

/// Draws of the shares of all bands, for the intervals.
const ROUNDS: usize = 4000;

/// A number in 0.0..=1.0, and the interval that holds it in 95 of 100 cases: `low <= estimate <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// The 2.5th percentile, or the estimate if that is less.
    pub low: f64,
    /// The 97.5th percentile, or the estimate if that is more.
    pub high: f64,
}

/// What judged pairs say of one threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedThreshold {
    /// The threshold: the start of a band.
    pub threshold: f64,
    /// Pairs of the run from it on.
    pub pairs: usize,
    /// The share of duplicates among them.
    pub precision: Interval,
    /// The share of all duplicates of the run that are among them; `None` if there are none.
    pub recall: Option<Interval>,
}

/// What a threshold is chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The greatest harmonic mean of precision and recall.
    F1,
    /// The least threshold whose precision is at least this.
    Precision(f64),
    /// The greatest threshold whose recall is at least this.
    Recall(f64),
}

/// The answers for the pairs of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedBand {
    /// The least similarity, inclusive.
    pub from: f64,
    /// The pairs of the run in it.
    pub pairs: usize,
    /// Those that are drawn and judged.
    pub judged: usize,
    /// Those that are judged to be duplicates.
    pub duplicates: usize,
}

/// What judged pairs say of every threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The bands, ascending.
    pub bands: Vec<JudgedBand>,
    /// By threshold, ascending; empty as long as a band has no judged pair.
    pub thresholds: Vec<CalibratedThreshold>,
}

impl CalibratedThreshold {
    /// The harmonic mean of precision and recall; 0 without a duplicate.
    pub fn f1(&self) -> f64 {
        let (precision, recall) =
            (self.precision.estimate, self.recall.map_or(0.0, |recall| recall.estimate));
        if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 }
    }
}

impl Calibration {
    /// Estimates from the answers for the drawn pairs. Answers for other pairs do not count: they are no
    /// random sample.
    pub fn new(draw: &Draw, judged: &JudgedPairs, seed: u64) -> Self {
        let counted = |band: &DrawnBand| {
            let answers = || band.drawn.iter().filter_map(|found| judged.get(&found.pair));
            JudgedBand {
                from: band.from,
                pairs: band.pairs,
                judged: answers().count(),
                duplicates: answers().filter(|is_duplicate| *is_duplicate).count(),
            }
        };
        let bands: Vec<_> = draw.bands.iter().map(counted).collect();
        let is_whole = bands.iter().all(|band| band.judged > 0);
        let thresholds = if is_whole { estimates(&bands, seed) } else { Vec::new() };
        Self { bands, thresholds }
    }

    /// The threshold that reaches the goal; `None` if none does.
    pub fn chosen(&self, goal: Goal) -> Option<&CalibratedThreshold> {
        let mut all = self.thresholds.iter();
        match goal {
            Goal::F1 => all.filter(|one| one.f1() > 0.0).max_by(|a, b| a.f1().total_cmp(&b.f1())),
            Goal::Precision(least) => all.find(|one| one.precision.estimate >= least),
            Goal::Recall(least) => all.rfind(|one| one.recall.is_some_and(|recall| recall.estimate >= least)),
        }
    }
}

fn estimates(bands: &[JudgedBand], seed: u64) -> Vec<CalibratedThreshold> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let estimated = |band: &JudgedBand| (band.pairs * band.duplicates) as f64 / band.judged as f64;
    let duplicates: Vec<f64> = bands.iter().map(estimated).collect();
    let sides = |of_bands: &[f64], from: usize| {
        let (below, above) = of_bands.split_at(from);
        [below, above].map(|side| side.iter().sum::<f64>())
    };
    (0..bands.len())
        .map(|from| {
            let (below, above) = bands.split_at(from);
            let priors = [priors(below), priors(above)].concat();
            // The duplicates below the threshold, and from it on: of each round.
            let rounds: Vec<[f64; 2]> = (0..ROUNDS)
                .map(|_| {
                    let simulated = |(band, [some, others]): (&JudgedBand, &[f64; 2])| {
                        let (yes, no) = (band.duplicates as f64, (band.judged - band.duplicates) as f64);
                        yes + (band.pairs - band.judged) as f64 * beta(&mut rng, yes + some, no + others)
                    };
                    let of_round: Vec<f64> = bands.iter().zip(&priors).map(simulated).collect();
                    sides(&of_round, from)
                })
                .collect();
            let interval = |of: &dyn Fn([f64; 2]) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(|round| of(*round)).collect();
                values.sort_by(f64::total_cmp);
                let [low, high] = [ROUNDS / 40, ROUNDS - 1 - ROUNDS / 40].map(|place| values[place]);
                let estimate = of(sides(&duplicates, from));
                Interval { estimate, low: low.min(estimate), high: high.max(estimate) }
            };
            let pairs: usize = above.iter().map(|band| band.pairs).sum();
            let recall = |[missed, found]: [f64; 2]| found / (missed + found);
            CalibratedThreshold {
                threshold: bands[from].from,
                pairs,
                precision: interval(&|[_, found]| found / pairs as f64),
                recall: (duplicates.iter().sum::<f64>() > 0.0).then(|| interval(&recall)),
            }
        })
        .collect()
}

/// Of the bands on one side of a threshold, what Jeffreys' prior adds to the duplicates and to the other
/// pairs of each: a half. Those without a duplicate share one half, by the pairs that an answer in them
/// stands for; so do those with nothing but duplicates. With a half in each of them, many bands without a
/// duplicate would outweigh what was judged.
fn priors(bands: &[JudgedBand]) -> Vec<[f64; 2]> {
    let stands_for = |band: &JudgedBand| band.pairs as f64 / band.judged as f64;
    let counts: [fn(&JudgedBand) -> usize; 2] =
        [|band| band.duplicates, |band| band.judged - band.duplicates];
    let without = counts.map(|of| bands.iter().filter(|band| of(band) == 0).map(stands_for).sum::<f64>());
    let prior = |band: &JudgedBand, side: usize| match counts[side](band) {
        0 => 0.5 * stands_for(band) / without[side],
        _ => 0.5,
    };
    bands.iter().map(|band| [prior(band, 0), prior(band, 1)]).collect()
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::super::draw::tests::found;
    use super::*;

    fn band(from: f64, pairs: usize, judged: usize, duplicates: usize) -> JudgedBand {
        JudgedBand { from, pairs, judged, duplicates }
    }

    /// A draw of all pairs with these similarities, each with its answer.
    fn judged(answers: &[(f64, Option<bool>)]) -> (Draw, JudgedPairs) {
        let all = found(answers.iter().map(|(similarity, _)| *similarity));
        let mut judged = JudgedPairs::default();
        for (pair, (_, answer)) in all.iter().zip(answers) {
            judged.judge(pair.pair.clone(), *answer);
        }
        (Draw::new(all, 0.5, answers.len(), 1), judged)
    }

    /// From 0.5 four pairs with one duplicate, from 0.7 two pairs with both, all judged: the shares are
    /// exact.
    #[test]
    fn shares_by_hand() {
        let (no, yes) = (Some(false), Some(true));
        let (draw, answers) = judged(&[(0.5, no), (0.5, yes), (0.5, no), (0.5, no), (0.7, yes), (0.7, yes)]);
        let calibration = Calibration::new(&draw, &answers, 1);
        assert_eq!(calibration.bands, [band(0.5, 4, 4, 1), band(0.7, 2, 2, 2)]);
        let exactly = |share: f64| Interval { estimate: share, low: share, high: share };
        let [low, high] = &calibration.thresholds[..] else { panic!("{calibration:?}") };
        assert_eq!((low.pairs, low.precision, low.recall), (6, exactly(0.5), Some(exactly(1.0))));
        assert_eq!((high.pairs, high.precision, high.recall), (2, exactly(1.0), Some(exactly(2.0 / 3.0))));
        let threshold = |goal| calibration.chosen(goal).map(|one| one.threshold);
        assert_eq!((threshold(Goal::F1), threshold(Goal::Precision(0.5))), (Some(0.7), Some(0.5)));
        assert_eq!((threshold(Goal::Precision(0.9)), threshold(Goal::Recall(0.9))), (Some(0.7), Some(0.5)));
        assert_eq!(threshold(Goal::Recall(0.6)), Some(0.7));
    }

    #[test]
    fn a_band_without_an_answer_has_no_estimate() {
        let (draw, answers) = judged(&[(0.5, None), (0.7, Some(true))]);
        let calibration = Calibration::new(&draw, &answers, 1);
        assert_eq!(calibration.bands, [band(0.5, 1, 0, 0), band(0.7, 1, 1, 1)]);
        assert!(calibration.thresholds.is_empty() && calibration.chosen(Goal::F1).is_none());
    }

    #[test]
    fn without_a_duplicate_no_threshold_reaches_a_goal() {
        let (draw, answers) = judged(&[(0.5, Some(false)), (0.7, Some(false))]);
        let calibration = Calibration::new(&draw, &answers, 1);
        assert_eq!(calibration.thresholds[0].recall, None);
        for goal in [Goal::F1, Goal::Precision(0.1), Goal::Recall(0.1)] {
            assert_eq!(calibration.chosen(goal), None, "{goal:?}");
        }
    }

    /// Eight low bands with 40 answers and no duplicate: the estimate is the share of what was found, and is
    /// in its interval, and so is any share that the lowest bands leave open.
    #[test]
    fn an_estimate_is_in_its_interval() {
        let lower = (0..8).map(|n| band(0.3 + 0.05 * n as f64, 2000 - 200 * n, 40, 0));
        let upper = [band(0.7, 120, 40, 30), band(0.75, 100, 40, 40), band(1.0, 60, 40, 40)];
        let bands: Vec<_> = lower.chain(upper).collect();
        let thresholds = estimates(&bands, 1);
        for one in &thresholds {
            for Interval { estimate, low, high } in [one.precision, one.recall.unwrap()] {
                assert!(low <= estimate && estimate <= high, "{one:?}");
            }
        }
        let recall = thresholds[9].recall.unwrap();
        assert!((recall.estimate - 160.0 / 250.0).abs() < 1e-9, "{recall:?}");
        assert!(recall.low < 0.58 && recall.high > 0.65 && recall.high < 0.8, "{recall:?}");
        let below = priors(&bands[..8]);
        assert!((below.iter().map(|[some, _]| some).sum::<f64>() - 0.5).abs() < 1e-9, "{below:?}");
    }

    /// 200 corpora of 2,000 pairs in equal bands, of which 30 in each are judged: the true precision and
    /// recall are in at least 176 of 200 intervals. With a coverage of 95 % fewer are as likely as 3e-5
    /// (binomial, 200 of 0.95). Others have few duplicates in low bands, most often none among those judged,
    /// and few other pairs in high ones.
    #[test]
    fn intervals_hold_what_they_say() {
        held(&[0.1, 0.4, 0.8, 0.97]);
    }

    #[test]
    fn intervals_of_few_duplicates_hold_what_they_say() {
        held(&[0.0, 0.0, 0.0, 0.05, 0.9, 0.9]);
    }

    fn held(shares: &[f64]) {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut counts = [0; 2];
        let start = |band: usize| (60 + 5 * band) as f64 / 100.0;
        let (least, middle) = (start(0), start(shares.len() - 2));
        for round in 0..200 {
            let pairs: Vec<(f64, bool)> = (0..1000)
                .map(|_| {
                    let band = rng.random_range(0..shares.len());
                    (start(band), rng.random_bool(shares[band]))
                })
                .collect();
            let all = found(pairs.iter().map(|(similarity, _)| *similarity));
            let mut answers = JudgedPairs::default();
            for (pair, (_, is_duplicate)) in all.iter().zip(&pairs) {
                answers.judge(pair.pair.clone(), Some(*is_duplicate));
            }
            let draw = Draw::new(all, least, 30 * shares.len(), round);
            let calibration = Calibration::new(&draw, &answers, round);
            let count = |from: f64, only: bool| {
                pairs.iter().filter(|(similarity, is)| *similarity >= from && (*is || !only)).count() as f64
            };
            let at = calibration.thresholds.iter().find(|one| one.threshold >= middle).unwrap();
            let truths =
                [count(middle, true) / count(middle, false), count(middle, true) / count(least, true)];
            for ((held, interval), truth) in
                counts.iter_mut().zip([at.precision, at.recall.unwrap()]).zip(truths)
            {
                *held += usize::from((interval.low..=interval.high).contains(&truth));
            }
        }
        assert!(counts.iter().all(|held| *held >= 176), "{counts:?} of 200 for {shares:?}");
    }
}
