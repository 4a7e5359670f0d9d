//! How far a process has read its input, in the time of the events.

use std::sync::atomic::{AtomicU64, Ordering};

use dupflow_core::time::UnixTime;

/// Written by the workers while they read, read by the monitor. Times are stored as one more than the bits of
/// their seconds, which ascend with them; 0 is none.
#[derive(Debug, Default)]
pub struct Reading {
    newest: AtomicU64,
    ended_at: AtomicU64,
}

impl Reading {
    /// An event with this time has been read.
    pub fn event(&self, time: UnixTime) {
        self.newest.fetch_max(encoded(time), Ordering::Relaxed);
    }

    /// The whole input has been read, at this time in unix seconds. Only the first call counts.
    pub fn end(&self, now: f64) {
        let now = UnixTime::new(now).map_or(1, encoded);
        // Fails if it is set already.
        self.ended_at
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_else(|first| first);
    }

    /// The greatest time of an event that was read, in unix seconds: the date of the corpus.
    pub fn newest(&self) -> Option<f64> {
        decoded(&self.newest)
    }

    /// When the whole input had been read, in unix seconds, if the run goes on after that.
    pub fn ended_at(&self) -> Option<f64> {
        decoded(&self.ended_at)
    }
}

fn encoded(time: UnixTime) -> u64 {
    time.seconds().to_bits() + 1
}

fn decoded(time: &AtomicU64) -> Option<f64> {
    time.load(Ordering::Relaxed).checked_sub(1).map(f64::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_time_and_the_first_end_are_kept() {
        let reading = Reading::default();
        let at = |seconds| UnixTime::new(seconds).unwrap();
        assert_eq!((reading.newest(), reading.ended_at()), (None, None));
        for seconds in [0.0, 7.5, 3.0] {
            reading.event(at(seconds));
            reading.end(seconds + 1.0);
        }
        assert_eq!((reading.newest(), reading.ended_at()), (Some(7.5), Some(1.0)));
    }
}
