//! The exact filter: decides by the exact similarity of the features, after the sketches have rejected most
//! candidates.
//!
//! In: two sketches with their features. Out: a [`Verdict`] with the exact Jaccard similarity J = a / u of an
//! accepted pair (a common features, u features in the union). Accepted iff J >= T, inclusive, [by whole
//! numbers](crate::pair::Threshold), and no look rejects. So precision is 1, and a pair with J >= T is
//! wrongly rejected with probability at most `error` ([`Schedule::verify`]), independent of blocking.
//!
//! Order of the looks: the first word's test; the sizes; the looks of the schedule; the features. With n and
//! m features J >= T holds iff `a >= needed(n + m) = ceil(T / (1 + T) * (n + m))`. Since a is at most min(n,
//! m), the sizes alone reject a pair with min / max < T, without error. The [merge](super::merge) of the two
//! lists stops as soon as `needed` can no longer be reached.
//!
//! [Measures](crate::text::measures) other than plain Jaccard similarity need the weights of the features and
//! are computed in [`weighted`], with masses in place of sizes.

use super::merge::shared_features;
use super::rejection::{Agreeing, RejectedBy};
use super::schedule::Schedule;
use super::target::Target;
use super::weighted;
use super::{FilterError, FilterKind, FilterParams, PairFilter, Verdict};
use crate::pair::Similarity;
use crate::sketch::SketchRef;
use crate::sketch::kernel::Kernel;
use crate::text::measures::Measure;

/// Rejects by the sketches, accepts by the features.
#[derive(Clone, Debug)]
pub struct ExactFilter {
    schedule: Schedule,
    kernel: Kernel,
    measure: Measure,
}

impl ExactFilter {
    /// The filter of `params` for this target; `params.verify` is not read, except for the default error.
    ///
    /// # Errors
    /// If the error or the looks are outside their ranges, or the kind is `paper`.
    pub fn new(target: Target, params: &FilterParams) -> Result<Self, FilterError> {
        let error = params.error()?;
        let schedule = match params.kind {
            FilterKind::Full | FilterKind::Hamming => Schedule::none(target),
            FilterKind::Paper => return Err(FilterError::PaperExact),
            FilterKind::Staged => {
                let looks = target.looks_after_first_word(params.looks.as_deref(), error)?;
                Schedule::verify(target, &looks, target.has_first_word(), error)
            }
        };
        let kernel = Kernel::new(target.size(), target.bits());
        Ok(Self { schedule, kernel, measure: Measure::Jaccard })
    }

    /// The same filter by another measure, for sketches that store the features this measure needs.
    #[must_use]
    pub fn by(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    /// The filter that reads only the features: similarity at least `threshold`, inclusive.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn features_only(threshold: f64) -> Result<Self, FilterError> {
        // Without looks the shape of the sketches is not used.
        let target = Target::new(threshold, 1, 1)?;
        Ok(Self { schedule: Schedule::none(target), kernel: Kernel::new(1, 1), measure: Measure::Jaccard })
    }

    /// The looks at the sketches, before the features are read, and their bounds.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Whether the sizes of two texts alone rule out the threshold.
    fn is_hopeless(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> bool {
        let (n, m) = (a.features.len(), b.features.len());
        let threshold = self.schedule.target().threshold();
        match self.measure {
            Measure::Jaccard => n.min(m) < threshold.least_common(n + m),
            measure => weighted::is_hopeless(measure, a, b, threshold),
        }
    }

    /// The similarity of two texts, if it is at least the threshold.
    fn similarity_above(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Option<f64> {
        let threshold = self.schedule.target().threshold();
        match self.measure {
            Measure::Jaccard => jaccard(a, b, threshold.least_common(a.features.len() + b.features.len())),
            measure => weighted::similarity_above(measure, a, b, threshold),
        }
    }
}

impl PairFilter for ExactFilter {
    #[inline]
    fn first_word(&self, a: u64, b: u64) -> bool {
        self.schedule.passes(a, b)
    }

    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        if self.is_hopeless(a, b) {
            let look = 1 + u16::from(self.schedule.first_word().is_some());
            return Verdict {
                accepted: None,
                look,
                components: self.schedule.first_word().map_or(0, |_| 64),
            };
        }
        let stop = self.schedule.walk(&self.kernel, a.words, b.words);
        if stop.rejected {
            return Verdict { accepted: None, look: stop.look + 1, components: stop.components };
        }
        let accepted = self.similarity_above(a, b).map(Similarity::clamped);
        Verdict { accepted, look: stop.look + 2, components: stop.components }
    }

    fn looks(&self) -> usize {
        usize::from(self.schedule.count()) + 2
    }

    fn rejected_by(&self, look: u16) -> RejectedBy {
        let has_word = self.schedule.first_word().is_some();
        match look {
            1 if has_word => RejectedBy::FirstWord,
            _ if look == 1 + u16::from(has_word) => RejectedBy::Sizes,
            _ if usize::from(look) == self.looks() => RejectedBy::Features,
            _ => RejectedBy::Look,
        }
    }

    fn agreeing(&self, a: SketchRef<'_>, b: SketchRef<'_>, look: u16) -> Option<Agreeing> {
        let look = match self.rejected_by(look) {
            RejectedBy::FirstWord => look,
            // The sizes are a look of their own, before those of the schedule.
            RejectedBy::Look => look - 1,
            _ => return None,
        };
        self.schedule.agreeing(&self.kernel, a.words, b.words, look)
    }

    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity {
        Similarity::clamped(match self.measure {
            Measure::Jaccard => jaccard(a, b, 0).unwrap_or(0.0),
            measure => measure.similarity(a.weighted(), b.weighted()),
        })
    }
}

/// The Jaccard similarity of two texts with at least `needed` common features.
fn jaccard(a: SketchRef<'_>, b: SketchRef<'_>, needed: usize) -> Option<f64> {
    let common = shared_features(a.features, b.features, needed)?;
    Some(common as f64 / (a.features.len() + b.features.len() - common) as f64)
}
