//! Estimators against theory: the mean square error of every sketch's estimate, compared with the variance
//! known from the literature.
//!
//! A trial sketches two texts with `|A ∪ B|` features together, of which the fraction J is common, and
//! estimates their similarity with the program's own code, from features on. Trials differ in the hashes of
//! the features and in the seed. The estimated quantity is known exactly: J; for sectional sketches `q J` and
//! its variants; the weighted Jaccard similarity; the cosine.
//!
//! Theory is [`SketchParams::variance`](dupflow_core::sketch::SketchParams::variance), without bias. If the
//! estimate is not linear in the number of agreeing places, and places are independent, theory is the exact
//! sum over all numbers.
//!
//! The mean of n squared errors, in units of the variance σ², has the standard deviation `sqrt((κ - 1) / n)`.
//! Here κ is the kurtosis of the estimate, `3 + (1 - 6 p q) / (K p q)` for K independent places that agree
//! with probability p. An interval is `SIGMAS` of these to each side. The interval of the bias is `SIGMAS`
//! times `σ / sqrt(n)`.
//!
//! References: those of [`variance`](dupflow_core::sketch::variance).

mod report;
mod subjects;
mod texts;
mod theory;

use subjects::{MeasuredSketch, SUBJECTS};
use texts::TextPair;
use theory::{SIGMAS, Theory};

use super::{EvaluateError, Findings, Study, StudyContext, threads};
use dupflow_core::hash::mix;

/// The study of estimates.
#[derive(Clone, Copy, Debug)]
pub struct Estimators {
    /// Trials of each case, 2 or more; the slowest sketches have fewer.
    pub trials: usize,
}

/// A sketch of one size on texts of one kind.
#[derive(Clone, Copy, Debug)]
struct EstimatorCase {
    subject: &'static MeasuredSketch,
    size: usize,
    union: usize,
    jaccard: f64,
}

/// The statistics of the estimates of one case.
#[derive(Clone, Debug)]
struct CaseResult {
    case: EstimatorCase,
    /// The estimated quantity.
    similarity: f64,
    bias: f64,
    /// Mean square error.
    error: f64,
    trials: usize,
    theory: Option<Theory>,
}

impl CaseResult {
    /// Mean square error divided by that of theory, unless that is 0.
    fn ratio(&self) -> Option<f64> {
        self.theory.filter(|theory| theory.error > 0.0).map(|theory| self.error / theory.error)
    }

    /// Whether the mean square error is within the interval of theory; true without a theory.
    fn is_error_within(&self) -> bool {
        self.theory.is_none_or(|theory| match self.ratio() {
            Some(ratio) => (ratio - 1.0).abs() <= theory.ratio_slack(self.trials),
            // Nothing varies: the estimate is exact up to rounding.
            None => self.error < 1e-20,
        })
    }

    /// The same for the bias.
    fn is_bias_within(&self) -> bool {
        self.theory
            .is_none_or(|theory| (self.bias - theory.bias).abs() <= theory.bias_slack(self.trials) + 1e-10)
    }
}

/// The mean square error of the estimates of a sketch, named as in the tables, for given K, |A ∪ B| and J;
/// and that of theory, if there is one.
///
/// # Panics
/// If there is no such sketch.
pub(super) fn errors(
    seed: u64,
    trials: usize,
    name: &str,
    size: usize,
    union: usize,
    jaccard: f64,
) -> (f64, Option<f64>) {
    let subject =
        SUBJECTS.iter().find(|subject| subject.name == name).expect("one of the sketches of this study");
    let measured = Estimators { trials }.measure(seed, EstimatorCase { subject, size, union, jaccard });
    (measured.error, measured.theory.map(|theory| theory.error))
}

impl Study for Estimators {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        // The slowest cases first, so that no thread starts one at the end.
        let cases: Vec<EstimatorCase> = SUBJECTS.iter().flat_map(cases).rev().collect();
        let mut measured = threads::map(bench.threads, cases.len(), |n| self.measure(bench.seed, cases[n]));
        measured.reverse();
        Ok(Findings {
            name: "estimators".to_owned(),
            title: "Estimators".to_owned(),
            about: format!(
                "{} pairs of texts for each case, but a quarter of that for icws and a tenth for cws. \
                    Intervals are {SIGMAS} standard deviations to each side, 99.9 %.",
                self.trials
            ),
            tables: vec![
                report::summary(&measured),
                report::against_minhash(&measured),
                report::every_case(&measured),
            ],
            plots: report::by_size(&measured),
        })
    }
}

/// All cases of one sketch.
fn cases(subject: &'static MeasuredSketch) -> impl DoubleEndedIterator<Item = EstimatorCase> {
    subject.sizes.iter().flat_map(move |&size| {
        subject.unions.iter().flat_map(move |&union| {
            subject.similarities.iter().map(move |&jaccard| EstimatorCase { subject, size, union, jaccard })
        })
    })
}

impl Estimators {
    fn measure(&self, seed: u64, case: EstimatorCase) -> CaseResult {
        let EstimatorCase { subject, size, union, jaccard } = case;
        let params = |trial| subject.params(size, mix(seed ^ mix(trial)));
        let texts = TextPair::new(subject.form, params(0).kind, union, jaccard);
        let estimator = params(0).estimator();
        let trials = (self.trials / subject.slowness).max(2);
        let (mut errors, mut squares) = (0.0, 0.0);
        for trial in 0..trials as u64 {
            let mut sketcher = params(trial).sketcher();
            let [a, b] = texts.trial(mix(seed) ^ trial).map(|text| {
                let mut words = Vec::new();
                sketcher.sketch(text.features(), &mut words);
                words
            });
            let error = estimator.estimate(&a, &b) - texts.similarity;
            errors += error;
            squares += error * error;
        }
        CaseResult {
            case,
            similarity: texts.similarity,
            bias: errors / trials as f64,
            error: squares / trials as f64,
            trials,
            theory: Theory::for_sketch(&params(0), texts.similarity, texts.union),
        }
    }
}
