//! A histogram of durations that any thread can record into.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in microseconds, inclusive, ascending: 1 ms to 60 s. The last bucket is
/// unbounded.
const BOUNDS_MICROS: [u64; 13] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 15_000_000,
    60_000_000,
];

/// Counts by bucket, and the sum of durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each bound, and the unbounded one.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

/// A copy of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Upper bounds in seconds, inclusive, each with the number of durations up to it; the last bound is
    /// infinite.
    pub up_to: Vec<(f64, u64)>,
    /// Sum of all durations, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Copies the counts.
    pub fn read(&self) -> Buckets {
        let bounds = BOUNDS_MICROS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
        let mut all = 0;
        let up_to = bounds.zip(&self.buckets).map(|(bound, n)| {
            all += n.load(Ordering::Relaxed);
            (bound, all)
        });
        Buckets { up_to: up_to.collect(), sum: self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_counts_add_up() {
        let histogram = Histogram::default();
        for micros in [1_000, 1_001, 60_000_000, 60_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let read = histogram.read();
        let at = |bound: f64| read.up_to.iter().find(|(upper, _)| *upper >= bound).map(|(_, n)| *n);
        assert_eq!((at(0.001), at(0.0025), at(15.0), at(60.0)), (Some(1), Some(2), Some(2), Some(3)));
        assert_eq!(read.up_to.last(), Some(&(f64::INFINITY, 4)));
        assert!((read.sum - 120.002_002).abs() < 1e-9, "{}", read.sum);
    }
}
