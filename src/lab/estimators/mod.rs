//! Estimators against theory: the mean square error of every sketch's estimate, beside the variance that is
//! known of it.
//!
//! Two texts with `|A ∪ B|` features together and the share J of them in common are sketched and estimated
//! from as the program does it, features on; trials differ in the hashes of the features and in the seed.
//! What is estimated is known exactly: J; `q J` and its like for sectional sketches; the weighted Jaccard
//! similarity; the cosine.
//!
//! Theory is [`SketchParams::variance`](dupflow_core::sketch::SketchParams::variance), without bias; where the
//! estimate is not linear in the number of places that agree, and places are independent, it is the exact sum
//! over all numbers. The mean of n squared errors, in units of the variance σ², has the standard deviation
//! `sqrt((κ - 1) / n)` with κ the kurtosis of the estimate, `3 + (1 - 6 p q) / (K p q)` for K independent
//! places that agree with probability p; an interval is `SIGMAS` of these to each side. That of the bias is
//! `SIGMAS` times `σ / sqrt(n)`.
//!
//! References: those of [`variance`](dupflow_core::sketch::variance).

mod report;
mod subjects;
mod texts;
mod theory;

use subjects::{SUBJECTS, Subject};
use texts::Texts;
use theory::{SIGMAS, Theory};

use super::{Bench, EvaluateError, Findings, Study, threads};
use dupflow_core::hash::mix;

/// The study of estimates.
#[derive(Clone, Copy, Debug)]
pub struct Estimators {
    /// Pairs of texts of each case, 2 or more; fewer of the slowest sketches.
    pub trials: usize,
}

/// A sketch of one size on texts of one kind.
#[derive(Clone, Copy, Debug)]
struct Case {
    subject: &'static Subject,
    size: usize,
    union: usize,
    jaccard: f64,
}

/// What the estimates of one case came to.
#[derive(Clone, Debug)]
struct Measured {
    case: Case,
    /// What is estimated.
    similarity: f64,
    bias: f64,
    /// Mean square error.
    error: f64,
    trials: usize,
    theory: Option<Theory>,
}

impl Measured {
    /// Mean square error in units of theory's, where that is not 0.
    fn ratio(&self) -> Option<f64> {
        self.theory.filter(|theory| theory.error > 0.0).map(|theory| self.error / theory.error)
    }

    /// Whether the mean square error is where theory has it; without a theory it is.
    fn is_error_within(&self) -> bool {
        self.theory.is_none_or(|theory| match self.ratio() {
            Some(ratio) => (ratio - 1.0).abs() <= theory.ratio_slack(self.trials),
            // Nothing varies: but for rounding, the estimate is exact.
            None => self.error < 1e-20,
        })
    }

    /// The same for the bias.
    fn is_bias_within(&self) -> bool {
        self.theory
            .is_none_or(|theory| (self.bias - theory.bias).abs() <= theory.bias_slack(self.trials) + 1e-10)
    }
}

/// The mean square error of a sketch's estimates, by the sketch's name here, and that which theory has, if it
/// has any: K, |A ∪ B| and J are given.
///
/// # Panics
/// If there is no such sketch.
pub(super) fn errors(
    seed: u64,
    trials: usize,
    name: &str,
    (size, union, jaccard): (usize, usize, f64),
) -> (f64, Option<f64>) {
    let subject =
        SUBJECTS.iter().find(|subject| subject.name == name).expect("one of the sketches of this study");
    let measured = Estimators { trials }.measure(seed, Case { subject, size, union, jaccard });
    (measured.error, measured.theory.map(|theory| theory.error))
}

impl Study for Estimators {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        // The slow ones first, so that no thread is left with one at the end.
        let cases: Vec<Case> = SUBJECTS.iter().flat_map(cases).rev().collect();
        let mut measured = threads::map(bench.threads, cases.len(), |n| self.measure(bench.seed, cases[n]));
        measured.reverse();
        Ok(Findings {
            name: "estimators".to_owned(),
            title: "Estimators".to_owned(),
            about: format!(
                "{} pairs of texts for each case, but a quarter of that for icws and a tenth for cws. Intervals are {SIGMAS} standard \
                 deviations to each side, 99.9 %.",
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
fn cases(subject: &'static Subject) -> impl DoubleEndedIterator<Item = Case> {
    subject.sizes.iter().flat_map(move |&size| {
        subject.unions.iter().flat_map(move |&union| {
            subject.similarities.iter().map(move |&jaccard| Case { subject, size, union, jaccard })
        })
    })
}

impl Estimators {
    fn measure(&self, seed: u64, case: Case) -> Measured {
        let Case { subject, size, union, jaccard } = case;
        let params = |trial| subject.params(size, mix(seed ^ mix(trial)));
        let texts = Texts::new(subject.form, params(0).kind, union, jaccard);
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
        Measured {
            case,
            similarity: texts.similarity,
            bias: errors / trials as f64,
            error: squares / trials as f64,
            trials,
            theory: Theory::of(&params(0), texts.similarity, texts.union),
        }
    }
}
