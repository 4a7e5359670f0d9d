//! The staged filter: decides by the sketches alone, look by look, and stops as soon as the error bound
//! allows.
//!
//! In: two sketches. Out: a [`Verdict`]. For an accepted pair it has the estimate from *all* components, so
//! that the reported similarity does not depend on the look that accepted; the remaining components of a pair
//! that is accepted early are read at once, without further looks. Where no similarity is written, only
//! clusters or a list of documents ([`for_membership`](PairFilter::for_membership)), they are not read.
//!
//! Rule: a full comparison accepts iff at least `M0 = ceil(p(T) K)` of K components match. Kind `staged`
//! gives the same answer except with probability at most `error` for wrong accepts and for wrong rejects
//! each, for every pair at any similarity; see [`Schedule::sequential`]. The first word's test is included:
//! it is the first look and has its share of the error (all of it if the next look is at K). With b = 1 it is
//! equal to the look at 64 components; with b > 1 the word holds one bit of each component and has less
//! information. Kinds `paper` and `full` do not test the first word.
//!
//! The guarantee is about pairs, not about candidates: the probability that a pair is a candidate *and* is
//! wrongly rejected is at most `error`, so it adds to the loss of recall by blocking.

use std::sync::Arc;

use super::rejection::{Agreeing, RejectedBy};
use super::schedule::Schedule;
use super::target::Target;
use super::{FilterError, FilterKind, FilterParams, PairFilter, Verdict};
use crate::pair::Similarity;
use crate::sketch::SketchRef;
use crate::sketch::kernel::Kernel;

/// Decides by a schedule of looks at the sketches.
#[derive(Clone, Debug)]
pub struct StagedFilter {
    schedule: Schedule,
    kernel: Kernel,
    /// Whether all components of an accepted pair are read for the estimate.
    estimates: bool,
}

impl StagedFilter {
    /// The filter of `params` for this target; `params.verify` is not read, except for the default error.
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

    /// The looks and their bounds.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

impl PairFilter for StagedFilter {
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

    fn rejected_by(&self, look: u16) -> RejectedBy {
        let is_word = look == 1 && self.schedule.first_word().is_some();
        if is_word { RejectedBy::FirstWord } else { RejectedBy::Look }
    }

    fn agreeing(&self, a: SketchRef<'_>, b: SketchRef<'_>, look: u16) -> Option<Agreeing> {
        self.schedule.agreeing(&self.kernel, a.words, b.words, look)
    }

    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity {
        let target = self.schedule.target();
        let equal = target.size() - self.kernel.differing(a.words, b.words, 0, target.size()) as usize;
        Similarity::clamped(target.agreement().similarity(equal as f64 / target.size() as f64))
    }

    fn for_membership(&self) -> Option<Arc<dyn PairFilter>> {
        Some(Arc::new(Self { estimates: false, ..self.clone() }))
    }
}
