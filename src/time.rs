//! Logical and wall-clock time.

use std::time::{Duration, Instant};

/// The number of an epoch, from 1: a cut of the input; the unit of output, commit and replay.
pub type Epoch = u64;

/// Where wall-clock time comes from; the one place that the rest of the program takes it from.
pub trait Clock: Send + Sync {
    /// Time since the clock was made; never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts at zero now.
    #[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
