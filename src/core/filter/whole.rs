//! The filter of sketches that are compared as a whole: bottom-k, one permutation hashing with its original
//! estimator, components of two widths.
//!
//! In: two sketches. Out: a [`Verdict`], with the estimate for an accepted pair. Accepted iff the estimate is
//! at least T, inclusive; an estimate less than 1e-9 below T counts as T, because of rounding. The places of
//! such sketches are not exchangeable, so no error bound can be derived from a part of them: there are no
//! early looks and no test of the first word.

use std::sync::Arc;

use super::{FilterError, PairFilter, Verdict};
use crate::pair::{Similarity, Threshold};
use crate::probability::GUARD;
use crate::sketch::{Estimator, SketchParams, SketchRef};

/// Decides by the estimate from the whole sketches.
#[derive(Clone, Debug)]
pub struct WholeFilter {
    threshold: Threshold,
    estimator: Arc<dyn Estimator>,
    /// K; all components are read.
    components: u32,
}

impl WholeFilter {
    /// Similarity at least `threshold` (inclusive; above 0 and at most 1), on sketches of these parameters.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    ///
    /// # Panics
    /// If the sketch has more components than fit into 32 bits, which no pipeline allows.
    pub fn new(threshold: f64, sketch: &SketchParams) -> Result<Self, FilterError> {
        let threshold = Threshold::new(threshold).ok_or(FilterError::Threshold { found: threshold })?;
        let components = u32::try_from(sketch.size).expect("a sketch has at most 32768 components");
        Ok(Self { threshold, estimator: sketch.estimator(), components })
    }

    /// K, the components read of each pair.
    pub fn components(&self) -> u32 {
        self.components
    }
}

impl PairFilter for WholeFilter {
    fn first_word(&self, _a: u64, _b: u64) -> bool {
        true
    }

    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        let estimate = self.estimator.estimate(a.words, b.words);
        let is_pair = self.threshold.admits(estimate, GUARD, || None);
        let accepted = is_pair.then(|| Similarity::clamped(estimate));
        Verdict { accepted, look: 1, components: self.components }
    }

    fn looks(&self) -> usize {
        1
    }

    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity {
        Similarity::clamped(self.estimator.estimate(a.words, b.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::SketchKind;

    /// The estimate, if accepted, for two texts of 20 values each with `common` common values.
    fn verdict(threshold: f64, common: u64) -> Option<f64> {
        let sketch = SketchParams { kind: SketchKind::BottomK, size: 20, bits: 64, wide: 0, seed: 0 };
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..20).collect(), (20 - common..40 - common).collect());
        let filter = WholeFilter::new(threshold, &sketch).unwrap();
        assert!(filter.first_word(0, !0), "nothing is known before the whole is");
        let [a, b] = [&a, &b].map(|words| SketchRef { words, features: &[] });
        let verdict = filter.decide(a, b);
        assert_eq!((verdict.look, verdict.components), (1, 20));
        assert_eq!(verdict, filter.decide(b, a));
        verdict.accepted.map(Similarity::get)
    }

    #[test]
    fn the_threshold_is_inclusive() {
        // The least 20 of the union: those of the first text, of which `common` are in the second too.
        assert_eq!(verdict(0.7, 14), Some(0.7));
        assert_eq!(verdict(0.7, 13), None);
        assert_eq!(verdict(1.0, 20), Some(1.0));
        assert!(
            WholeFilter::new(
                0.0,
                &SketchParams { kind: SketchKind::BottomK, size: 20, bits: 64, wide: 0, seed: 0 }
            )
            .is_err()
        );
    }
}
