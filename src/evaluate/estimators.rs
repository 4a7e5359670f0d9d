//! Estimators against theory: the mean square error of each sketch's estimate of J, beside the variance that is known of it.
//!
//! Two texts with `|A ∪ B|` words together and the share J of them in common are sketched as the program sketches texts, under word
//! shingles of one; trials differ in the words and in the seed. The mean of n squared errors, in units of the variance σ², has the
//! standard deviation `sqrt((κ - 1) / n)` with κ the kurtosis of the estimate, `3 + (1 - 6 p q) / (K p q)` for K independent
//! components that match with probability p; an interval is [`SIGMAS`] of these to each side. That of the bias is [`SIGMAS`] times
//! `σ / sqrt(n)`.
//!
//! References: P. Li and A. C. König, *b-bit minwise hashing* (WWW 2010), for [`independent`]; O. Ertl, *SuperMinHash* (2017), theorem
//! 1, for [`sharing`], which holds for fast similarity sketching too as far as is measured.

use super::plot::{Axis, Plot, Series};
use super::table::{Table, Value, row};
use super::{Bench, EvaluateError, Findings, Study, threads};
use crate::hash::mix;
use crate::sketch::estimate::{estimate, match_probability};
use crate::sketch::kernel::Kernel;
use crate::sketch::{Scheme, SketchKind, SketchMaker, SketchParams, VERSION};
use crate::text::{Shingle, TextRules};

/// K.
const SIZES: [usize; 3] = [64, 256, 1024];
/// Features of both texts together.
const UNIONS: [usize; 3] = [60, 300, 2000];
/// J, each a whole number of features of every union.
const SIMILARITIES: [f64; 4] = [0.2, 0.5, 0.8, 0.95];

/// Standard deviations of an interval: 99.9 % of a normal distribution.
const SIGMAS: f64 = 3.29;

/// A sketch with what theory says about its estimate.
#[derive(Clone, Copy, Debug)]
struct Estimator {
    name: &'static str,
    kind: SketchKind,
    /// Stored bits of a component that are tried.
    bits: &'static [usize],
    variance: fn(Case) -> f64,
}

/// What is measured: one line a sketch.
const ESTIMATORS: [Estimator; 2] = [
    Estimator { name: "minhash", kind: SketchKind::MinHash, bits: &[64, 2, 1], variance: independent },
    Estimator { name: "fss", kind: SketchKind::Fss, bits: &[64, 2, 1], variance: sharing },
];

/// The study.
#[derive(Clone, Copy, Debug)]
pub struct Estimators {
    /// Pairs of texts of each case, 2 or more.
    pub trials: usize,
}

/// Pairs of texts of one kind, and the shape of their sketches.
#[derive(Clone, Copy, Debug)]
struct Case {
    size: usize,
    bits: usize,
    union: usize,
    similarity: f64,
}

impl Case {
    /// The probability that a component matches.
    fn p(&self) -> f64 {
        match_probability(self.similarity, self.bits)
    }
}

/// Independent components: `(1 - J) / K (J + 1 / (2^b - 1))`.
fn independent(case: Case) -> f64 {
    by_share(case, 1.0)
}

/// Components that share out the features: `(α J (1 - J) + (1 - J) / (2^b - 1)) / K`.
fn sharing(case: Case) -> f64 {
    by_share(case, alpha(case.size, case.union))
}

fn by_share(case: Case, alpha: f64) -> f64 {
    let (j, accident) = (case.similarity, match_probability(0.0, case.bits));
    (1.0 - j) * (alpha * j + accident / (1.0 - accident)) / case.size as f64
}

/// How much of MinHash's variance a sketch of m components has that shares out u features:
/// `1 - Σ l^u ((l + 1)^u + (l - 1)^u - 2 l^u) / ((m - 1)^(u - 1) m^u (u - 1))` over l = 1 .. m - 1.
fn alpha(size: usize, union: usize) -> f64 {
    let (m, u) = (size as f64, union as f64);
    let term = |l: usize| {
        let l = l as f64;
        let bend = ((l + 1.0) / m).powf(u) + ((l - 1.0) / m).powf(u) - 2.0 * (l / m).powf(u);
        (l / (m - 1.0)).powf(u) * (m - 1.0) / (u - 1.0) * bend
    };
    1.0 - (1..size).map(term).sum::<f64>()
}

/// What the estimates of one case came to.
struct Measured {
    estimator: Estimator,
    case: Case,
    bias: f64,
    /// Mean square error.
    error: f64,
    trials: f64,
}

impl Measured {
    fn theory(&self) -> f64 {
        (self.estimator.variance)(self.case)
    }

    fn ratio(&self) -> f64 {
        self.error / self.theory()
    }

    /// How far the bias may be from 0.
    fn bias_slack(&self) -> f64 {
        SIGMAS * (self.theory() / self.trials).sqrt()
    }

    /// How far the ratio may be from 1.
    fn ratio_slack(&self) -> f64 {
        let pq = self.case.p() * (1.0 - self.case.p());
        let kurtosis = 3.0 + (1.0 - 6.0 * pq) / (self.case.size as f64 * pq);
        SIGMAS * ((kurtosis - 1.0) / self.trials).sqrt()
    }
}

impl Study for Estimators {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        let mut cases = Vec::new();
        for estimator in ESTIMATORS {
            for size in SIZES {
                for union in UNIONS {
                    cases.extend(SIMILARITIES.map(|similarity| (estimator, size, union, similarity)));
                }
            }
        }
        // The slow ones first, so that no thread is left with one at the end.
        cases.reverse();
        let measured = threads::map(bench.threads, cases.len(), |n| {
            let (estimator, size, union, similarity) = cases[n];
            self.measure(bench.seed, estimator, size, union, similarity)
        });
        let measured: Vec<Measured> = measured.into_iter().rev().flatten().collect();
        Ok(Findings {
            title: "Estimators".to_owned(),
            about: format!(
                "{} pairs of texts for each case. Intervals are {SIGMAS} standard deviations to each side, 99.9 %. Theory for \
                 minhash is (1 - J) (J + 1 / (2^b - 1)) / K, the variance of independent components of b bits; for fss the \
                 first J is multiplied by α(K, |A ∪ B|) of SuperMinHash.",
                self.trials
            ),
            tables: vec![summary(&measured), against_minhash(&measured), every_case(&measured)],
            plots: vec![by_size(&measured)],
        })
    }
}

impl Estimators {
    /// The estimates of one kind of pair, at each number of bits.
    fn measure(
        &self,
        seed: u64,
        estimator: Estimator,
        size: usize,
        union: usize,
        similarity: f64,
    ) -> Vec<Measured> {
        let widths: Vec<_> = estimator.bits.iter().map(|&bits| (bits, Kernel::new(size, bits))).collect();
        let mut sums = vec![(0.0, 0.0); widths.len()];
        for trial in 0..self.trials as u64 {
            let (a, b) = texts(union, similarity, trial);
            let scheme = Scheme {
                version: VERSION,
                text: TextRules { shingle: Shingle::Words(1), ..TextRules::default() },
                sketch: SketchParams {
                    kind: estimator.kind,
                    size,
                    bits: 64,
                    wide: 0,
                    seed: mix(seed ^ mix(trial)),
                },
                blocks: None,
                exact: false,
            };
            let mut maker = SketchMaker::new(&scheme);
            let mut sketch = |text: &str| maker.sketch(text).expect("the text has words").1;
            let (a, b) = (sketch(&a), sketch(&b));
            for ((bits, kernel), (errors, squares)) in widths.iter().zip(&mut sums) {
                // The first planes of a wide sketch are the narrow one.
                let planes = ..bits * size.div_ceil(64);
                let matches = size - kernel.differing(&a.words[planes], &b.words[planes], 0, size) as usize;
                let error = estimate(matches, size, *bits) - similarity;
                *errors += error;
                *squares += error * error;
            }
        }
        let trials = self.trials as f64;
        let measured = widths.iter().zip(sums).map(|((bits, _), (errors, squares))| Measured {
            estimator,
            case: Case { size, bits: *bits, union, similarity },
            bias: errors / trials,
            error: squares / trials,
            trials,
        });
        measured.collect()
    }
}

/// Two texts of `union` words together, the share `similarity` of them in both.
fn texts(union: usize, similarity: f64, trial: u64) -> (String, String) {
    let common = (1..=union).find(|n| *n as f64 >= similarity * union as f64 - 1e-9).expect("J is at most 1");
    let half = common + (union - common) / 2;
    let text = |own: std::ops::Range<usize>| {
        let words: Vec<_> = (0..common).chain(own).map(|word| format!("{trial}x{word}")).collect();
        words.join(" ")
    };
    (text(common..half), text(half..union))
}

/// The measured cases of each sketch at each number of bits.
fn by_sketch(measured: &[Measured]) -> impl Iterator<Item = (&'static str, usize, Vec<&Measured>)> {
    let sketches = ESTIMATORS.iter().flat_map(|e| e.bits.iter().map(|bits| (e.name, *bits)));
    sketches.map(|(name, bits)| {
        let is = |m: &&Measured| m.estimator.name == name && m.case.bits == bits;
        (name, bits, measured.iter().filter(is).collect())
    })
}

fn summary(measured: &[Measured]) -> Table {
    let mut table = Table::new(
        "estimators",
        "Mean square error against theory",
        "Over all K, |A ∪ B| and J. Of sound estimators, one case in a thousand is outside of its interval.",
        &[
            "sketch",
            "b",
            "cases",
            "least MSE / theory",
            "mean",
            "greatest",
            "MSE outside its interval",
            "bias outside",
        ],
    );
    for (name, bits, cases) in by_sketch(measured) {
        let ratios = || cases.iter().map(|m| m.ratio());
        let outside = |is: fn(&Measured) -> bool| cases.iter().filter(|m| is(m)).count();
        table.push(row![
            name,
            bits,
            cases.len(),
            ratios().fold(f64::MAX, f64::min),
            ratios().sum::<f64>() / cases.len() as f64,
            ratios().fold(0.0, f64::max),
            outside(|m| (m.ratio() - 1.0).abs() > m.ratio_slack()),
            outside(|m| m.bias.abs() > m.bias_slack()),
        ]);
    }
    table
}

fn against_minhash(measured: &[Measured]) -> Table {
    let mut table = Table::new(
        "estimators_minhash",
        "Mean square error against MinHash's variance",
        "Divided by J (1 - J) / K; the mean over all J, full-width components.",
        &["sketch", "|A ∪ B|", "K = 64", "K = 256", "K = 1024"],
    );
    for estimator in ESTIMATORS {
        for union in UNIONS {
            let mut row = row![estimator.name, union];
            row.extend(SIZES.map(|size| {
                let is = |m: &&Measured| {
                    (m.estimator.name, m.case.bits, m.case.union, m.case.size)
                        == (estimator.name, 64, union, size)
                };
                let ratios: Vec<f64> =
                    measured.iter().filter(is).map(|m| m.error / independent(m.case)).collect();
                Value::from(ratios.iter().sum::<f64>() / ratios.len() as f64)
            }));
            table.push(row);
        }
    }
    table
}

fn every_case(measured: &[Measured]) -> Table {
    let mut table = Table::new(
        "estimators_cases",
        "Every case",
        "± is the interval around no bias, and around a ratio of 1.",
        &["sketch", "b", "K", "|A ∪ B|", "J", "bias", "bias ±", "MSE", "theory", "MSE / theory", "ratio ±"],
    );
    for m in measured {
        let Case { size, bits, union, similarity } = m.case;
        let (name, ratio, slack) = (m.estimator.name, m.ratio(), m.ratio_slack());
        table.push(row![
            name,
            bits,
            size,
            union,
            similarity,
            m.bias,
            m.bias_slack(),
            m.error,
            m.theory(),
            ratio,
            slack,
        ]);
    }
    table
}

/// Mean square error by K, measured beside theory.
fn by_size(measured: &[Measured]) -> Plot {
    let (union, similarity) = (UNIONS[1], SIMILARITIES[2]);
    let mut series = Vec::new();
    for (name, bits, cases) in by_sketch(measured) {
        let of_plot =
            |m: &&&Measured| m.case.union == union && m.case.similarity.total_cmp(&similarity).is_eq();
        let line = |of: fn(&Measured) -> f64| {
            let points = cases.iter().filter(of_plot).map(|m| (m.case.size as f64, of(m)));
            let mut points: Vec<_> = points.collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        series.push(Series { name: format!("{name}, b = {bits}"), points: line(|m| m.error) });
        series.push(Series { name: format!("{name}, b = {bits}, theory"), points: line(Measured::theory) });
    }
    Plot {
        name: "estimators_by_size".to_owned(),
        title: format!("Mean square error, |A ∪ B| = {union}, J = {similarity}"),
        x: Axis::log("K, components"),
        y: Axis::log("mean square error"),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Featurizer;

    /// Evaluated in whole numbers: 0.4879 for 20 features in 448 components, 0.7815 for 2000.
    #[test]
    fn alpha_by_hand() {
        assert!((alpha(448, 20) - 0.4879).abs() < 1e-4 && (alpha(448, 2000) - 0.7815).abs() < 1e-4);
    }

    /// J = 1/2, K = 100: 1/400 at full width, and at one bit (1 - J²) / K = 3/400.
    #[test]
    fn variance_by_hand() {
        let case = |bits| Case { size: 100, bits, union: 60, similarity: 0.5 };
        assert!((independent(case(64)) - 0.0025).abs() < 1e-15);
        assert!((independent(case(1)) - 0.0075).abs() < 1e-15);
        assert!((sharing(case(64)) / alpha(100, 60) - 0.0025).abs() < 1e-15);
    }

    #[test]
    fn texts_have_the_similarity() {
        let rules = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
        let mut featurizer = Featurizer::new(rules);
        let mut set =
            |text: &str| std::collections::BTreeSet::from_iter(featurizer.features(text).iter().copied());
        for union in UNIONS {
            for similarity in SIMILARITIES {
                let (a, b) = texts(union, similarity, 3);
                let (a, b) = (set(&a), set(&b));
                assert_eq!(a.union(&b).count(), union);
                let exact = a.intersection(&b).count() as f64 / union as f64;
                assert!((exact - similarity).abs() < 1e-12, "{exact} for {similarity}");
            }
        }
    }
}
