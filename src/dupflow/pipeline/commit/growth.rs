//! Warns when the corpus has more sketches than its blocks are planned for: once, and again at each doubling.

/// The number of sketches at which the next warning is due.
#[derive(Debug)]
pub(in crate::pipeline) struct GrowthWarning {
    planned: u64,
    /// No warning up to this number of distinct sketches, inclusive.
    quiet_up_to: u64,
}

impl GrowthWarning {
    /// For blocks that are planned for `planned` distinct sketches.
    pub(in crate::pipeline) fn new(planned: u64) -> Self {
        Self { planned, quiet_up_to: planned }
    }

    /// Logs a warning if it is due. Returns whether it did.
    pub(in crate::pipeline) fn check(&mut self, sketches: u64) -> bool {
        let is_news = sketches > self.quiet_up_to;
        if is_news {
            self.quiet_up_to = sketches.saturating_mul(2);
            tracing::warn!(
                sketches,
                planned = self.planned,
                "there are more documents than the blocks are planned for, and blocks that get hot lose \
                pairs: `dupflow plan --documents {sketches}` with \
                 this pipeline and its settings says what of the recall is left, and what mends it"
            );
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_per_doubling() {
        let mut outgrown = GrowthWarning::new(100);
        let warned: Vec<u64> = (0..1000).filter(|sketches| outgrown.check(*sketches)).collect();
        assert_eq!(warned, [101, 203, 407, 815]);
        // Documents that are deleted and inserted again cause no second warning.
        assert!(![900, 50, 900, 1600].into_iter().any(|sketches| outgrown.check(sketches)));
        assert!(outgrown.check(1631) && !GrowthWarning::new(u64::MAX).check(u64::MAX));
    }
}
