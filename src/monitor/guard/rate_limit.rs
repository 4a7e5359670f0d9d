//! A token bucket that limits events per second; it holds at most one second's tokens. Callers pass the time.

use std::time::Duration;

use parking_lot::Mutex;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// Tokens added per second; also the capacity.
    per_second: f64,
    /// Tokens, and the time at which they were counted.
    state: Mutex<(f64, Duration)>,
}

impl RateLimit {
    /// A full bucket.
    pub(crate) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, state: Mutex::new((per_second, Duration::ZERO)) }
    }

    /// Takes a token. If there is none, returns the time until there is one.
    pub(crate) fn take(&self, now: Duration) -> Result<(), Duration> {
        self.take_above(0.0, now)
    }

    /// Takes a token if half of the capacity remains for others. If not, returns the time until it would.
    pub(crate) fn take_upper_half(&self, now: Duration) -> Result<(), Duration> {
        self.take_above((self.per_second / 2.0).floor(), now)
    }

    fn take_above(&self, left: f64, now: Duration) -> Result<(), Duration> {
        let mut state = self.state.lock();
        let (tokens, counted) = *state;
        let added = now.saturating_sub(counted).as_secs_f64() * self.per_second;
        let tokens = (tokens + added).min(self.per_second);
        let counted = now.max(counted);
        if tokens >= 1.0 + left {
            *state = (tokens - 1.0, counted);
            return Ok(());
        }
        *state = (tokens, counted);
        Err(Duration::from_secs_f64((1.0 + left - tokens) / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_upper_half_leaves_half_a_second() {
        for (per_second, many) in [(1, 1), (2, 1), (5, 3), (500, 250)] {
            let limit = RateLimit::new(per_second);
            let taken = (0..1000).take_while(|_| limit.take_upper_half(Duration::ZERO).is_ok()).count();
            assert_eq!(taken, many, "{per_second}");
            let others = (0..1000).take_while(|_| limit.take(Duration::ZERO).is_ok()).count();
            assert_eq!(taken + others, per_second as usize);
            let wait = limit.take_upper_half(Duration::ZERO).unwrap_err();
            assert!(
                limit.take_upper_half(wait + Duration::from_nanos(1)).is_ok(),
                "it does not wait for ever"
            );
        }
    }

    #[test]
    fn tokens_refill_at_the_rate() {
        let limit = RateLimit::new(4);
        let at = |ms| limit.take(Duration::from_millis(ms));
        let first: Vec<bool> = (0..6).map(|_| at(0).is_ok()).collect();
        assert_eq!(first, [true, true, true, true, false, false]);
        assert_eq!(at(125), Err(Duration::from_millis(125)));
        assert_eq!((at(250), at(250).is_ok()), (Ok(()), false));
        assert!(at(100).is_err(), "a clock that is read late takes nothing away");
        let later: Vec<bool> = (0..6).map(|_| at(60_000).is_ok()).collect();
        assert_eq!(later, [true, true, true, true, false, false], "no more than a second's are kept");
    }
}
