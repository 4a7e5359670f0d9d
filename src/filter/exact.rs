//! The filter that decides by exact similarity, after the sketches have turned away what is hopeless.
//!
//! In: two sketches with their features. Out: a [`Verdict`] with the exact Jaccard similarity J = a / u of an accepted pair, a
//! features in common among u. Accepted iff J >= T, inclusive: precision is 1, and recall among candidates of J >= T is at
//! least `1 - error` ([`Schedule::verify`]).
//!
//! Order of the looks: the first word's test; the sizes; the looks of the schedule; the features. With n and m features J >= T
//! holds iff `a >= needed(n + m) = ceil(T / (1 + T) * (n + m))`; since a is at most min(n, m), the sizes alone reject a pair
//! of min / max < T, without error. The merge of the two sorted lists stops as soon as more features of one are
//! missing from the other than may be: features are hashes, so a prefix is a sample, and a pair of J = 0.3 against
//! T = 0.8 ends after about a sixth of its features. Galloping would not help: the sizes are alike by then.

use super::binomial::least_count;
use super::schedule::Schedule;
use super::target::Target;
use super::{FilterError, FilterKind, FilterParams, PairFilter, Verdict};
use crate::pair::Similarity;
use crate::sketch::SketchRef;
use crate::sketch::kernel::Kernel;

/// Rejects by the sketches, accepts by the features.
#[derive(Clone, Debug)]
pub struct Exact {
    schedule: Schedule,
    kernel: Kernel,
}

impl Exact {
    /// The filter of `params` for this target; `params.verify` decides nothing but the default of the error.
    ///
    /// # Errors
    /// If the error or the looks are outside their ranges, or the kind is `paper`.
    pub fn new(target: Target, params: &FilterParams) -> Result<Self, FilterError> {
        let error = params.error()?;
        let schedule = match params.kind {
            FilterKind::Full => Schedule::none(target),
            FilterKind::Paper => return Err(FilterError::PaperExact),
            FilterKind::Staged => {
                let looks = target.looks_after_first_word(params.looks.as_deref())?;
                Schedule::verify(target, &looks, target.has_first_word(), error)
            }
        };
        Ok(Self { schedule, kernel: Kernel::new(target.size(), target.bits()) })
    }

    /// Where it looks before the features, and its bounds.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The least number of common features of two texts with `total` features together, for J >= T.
    fn needed(&self, total: usize) -> usize {
        let threshold = self.schedule.target().threshold();
        least_count(threshold / (1.0 + threshold) * total as f64)
    }
}

impl PairFilter for Exact {
    #[inline]
    fn first_word(&self, a: u64, b: u64) -> bool {
        self.schedule.passes(a, b)
    }

    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        if !self.first_word(a.words[0], b.words[0]) {
            return Verdict::first_word_rejects();
        }
        let total = a.features.len() + b.features.len();
        let needed = self.needed(total);
        if a.features.len().min(b.features.len()) < needed {
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
        let accepted = common(a.features, b.features, needed)
            .map(|common| Similarity::clamped(common as f64 / (total - common) as f64));
        Verdict { accepted, look: stop.look + 2, components: stop.components }
    }

    fn looks(&self) -> usize {
        usize::from(self.schedule.count()) + 2
    }
}

/// Steps of the merge between two questions whether to go on.
const STRIDE: usize = 32;

/// How many elements two strictly ascending lists have in common, if at least `needed`.
fn common(a: &[u64], b: &[u64], needed: usize) -> Option<usize> {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        // All that is left of the shorter rest would not do.
        if common + (a.len() - i).min(b.len() - j) < needed {
            return None;
        }
        // No branch depends on the data: which list moves on is a coin toss for a predictor.
        let steps = STRIDE.min(a.len() - i).min(b.len() - j);
        for _ in 0..steps {
            let (x, y) = (a[i], b[j]);
            common += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
    }
    (common >= needed).then_some(common)
}
