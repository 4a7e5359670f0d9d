//! The filter that decides by the sketches alone: look by look, and stop as soon as the outcome is certain
//! enough.
//!
//! In: two sketches. Out: a [`Verdict`], with the estimate from *all* components for an accepted pair, so
//! that the reported similarity does not depend on where the filter stopped. What is left of a pair that is
//! accepted early is therefore read in one go, without further looks. Where no similarity is written, only
//! clusters or a list of documents ([`for_membership`](PairFilter::for_membership)), it is not read at all.
//!
//! Rule: a full comparison accepts iff at least `M0 = ceil(p(T) K)` of K components match. Kind `staged`
//! reaches the same answer with probability at least `1 - error` each way, for every pair, whatever its
//! similarity; see [`Schedule::sequential`]. The first word's test is part of that: it is the first look and
//! has its share of the error (all of it, where the next look is at K). With b = 1 it is nothing but the look
//! at 64 components; with b > 1 the word holds one bit of each and says less. Kinds `paper` and `full` pass
//! every first word.
//!
//! The guarantee is about pairs, not about candidates: the probability that a pair is a candidate *and* is
//! wrongly rejected is at most `error`, which therefore adds to the loss of recall by blocking.

use std::sync::Arc;

use super::schedule::Schedule;
use super::target::Target;
use super::{FilterError, FilterKind, FilterParams, PairFilter, Verdict};
use crate::pair::Similarity;
use crate::sketch::SketchRef;
use crate::sketch::kernel::Kernel;

/// Decides by a schedule of looks at the sketches.
#[derive(Clone, Debug)]
pub struct Staged {
    schedule: Schedule,
    kernel: Kernel,
    /// Whether an accepted pair is read to its end.
    estimates: bool,
}

impl Staged {
    /// The filter of `params` for this target; `params.verify` has no part in it.
    ///
    /// # Errors
    /// If the error or the looks are outside their ranges.
    pub fn new(target: Target, params: &FilterParams) -> Result<Self, FilterError> {
        let error = params.error()?;
        let looks = params.looks.as_deref();
        let schedule = match params.kind {
            FilterKind::Full => Schedule::full(target),
            FilterKind::Hamming => Schedule::within_radius(target),
            FilterKind::Paper => Schedule::per_look(target, &target.looks(looks)?, error),
            FilterKind::Staged => {
                let looks = target.looks_after_first_word(looks, error)?;
                Schedule::sequential(target, &looks, target.has_first_word(), error)
            }
        };
        Ok(Self::from_schedule(schedule))
    }

    /// The filter of a given schedule.
    pub fn from_schedule(schedule: Schedule) -> Self {
        let kernel = Kernel::new(schedule.target().size(), schedule.target().bits());
        Self { schedule, kernel, estimates: true }
    }

    /// Where it looks, and its bounds.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

impl PairFilter for Staged {
    #[inline]
    fn first_word(&self, a: u64, b: u64) -> bool {
        self.schedule.passes(a, b)
    }

    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        let (a, b) = (a.words, b.words);
        let stop = self.schedule.walk(&self.kernel, a, b);
        let accepted = (!stop.rejected).then(|| {
            let read = stop.components as usize;
            let size = if self.estimates { self.schedule.target().size() } else { read };
            let rest = size - read - self.kernel.differing(a, b, read, size) as usize;
            let agreement = (stop.matches as usize + rest) as f64 / size as f64;
            Similarity::clamped(self.schedule.target().agreement().similarity(agreement))
        });
        Verdict { accepted, look: stop.look, components: stop.components }
    }

    fn looks(&self) -> usize {
        usize::from(self.schedule.count())
    }

    fn for_membership(&self) -> Option<Arc<dyn PairFilter>> {
        Some(Arc::new(Self { estimates: false, ..self.clone() }))
    }
}
