//! The run's counters over time: one sample each second for ten minutes, one each minute for a day.

use std::collections::VecDeque;

use serde::Serialize;
use utoipa::ToSchema;

/// Seconds between two samples.
pub(crate) const EVERY_SECONDS: u64 = 1;

/// Samples kept at one per second.
const FINE: usize = 600;

/// Samples by the second between two samples by the minute.
const MINUTE: u64 = 60;

/// Samples kept at one per minute.
const COARSE: usize = 24 * 60;

/// The values at a moment; counts are absolute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Sample)]
pub(crate) struct RunSample {
    /// Unix seconds.
    pub(crate) at: f64,
    /// Events read, without invalid records.
    pub(crate) events: u64,
    /// Bytes of text read.
    pub(crate) bytes: u64,
    /// Deltas of diff 1.
    pub(crate) added: u64,
    /// Deltas of diff -1.
    pub(crate) removed: u64,
    /// Live documents.
    pub(crate) documents: u64,
    /// Live pairs.
    pub(crate) pairs: u64,
    /// Resident memory; 0 if the system does not report it.
    pub(crate) resident_bytes: u64,
    /// The last epoch that is computed on all workers.
    pub(crate) closed: u64,
    /// The last epoch that is durable.
    pub(crate) durable: u64,
    /// Duration of the last commit.
    pub(crate) commit_ms: f64,
    /// The greatest time of an event that was read, in unix seconds; null if none has a time.
    pub(crate) event_time: Option<f64>,
}

/// The samples of a run.
#[derive(Debug, Default)]
pub(crate) struct SampleHistory {
    fine: VecDeque<RunSample>,
    coarse: VecDeque<RunSample>,
    applied: u64,
}

impl SampleHistory {
    pub(crate) fn add(&mut self, sample: RunSample) {
        if self.applied.is_multiple_of(MINUTE) {
            push(&mut self.coarse, sample, COARSE);
        }
        self.applied += 1;
        push(&mut self.fine, sample, FINE);
    }

    /// The samples by the second and by the minute, oldest first.
    pub(crate) fn all(&self) -> (Vec<RunSample>, Vec<RunSample>) {
        (self.fine.iter().copied().collect(), self.coarse.iter().copied().collect())
    }
}

fn push(samples: &mut VecDeque<RunSample>, sample: RunSample, most: usize) {
    if samples.len() == most {
        samples.pop_front();
    }
    samples.push_back(sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ten_minutes_and_the_last_day_are_kept() {
        let mut samples = SampleHistory::default();
        for second in 0..100_000_u32 {
            samples.add(RunSample { at: f64::from(second), ..RunSample::default() });
        }
        let (fine, coarse) = samples.all();
        let ends = |of: &[RunSample]| (of.len(), of[0].at.to_bits(), of[of.len() - 1].at.to_bits());
        assert_eq!(ends(&fine), (600, 99_400f64.to_bits(), 99_999f64.to_bits()));
        assert_eq!(ends(&coarse), (1440, f64::from(99_960 - 60 * 1439).to_bits(), 99_960f64.to_bits()));
    }
}
