//! How fast a recorded feed is replayed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The speed at which records are pushed, by their `ts`.
///
/// Written `max`, `real` or `Nx` with N greater than 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speed {
    /// As fast as they can be processed.
    #[default]
    Max,
    /// This number of recorded seconds in one second; greater than 0 and finite.
    Times(f64),
}

impl Speed {
    /// At the recorded speed.
    pub const REAL: Self = Self::Times(1.0);
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(speed: &str) -> Result<Self, String> {
        match speed {
            "max" => Ok(Self::Max),
            "real" => Ok(Self::REAL),
            _ => speed
                .strip_suffix('x')
                .and_then(|times| times.parse().ok())
                .filter(|times: &f64| *times > 0.0 && times.is_finite())
                .map(Self::Times)
                .ok_or_else(|| {
                    "expected \"max\", \"real\" or \"Nx\" with N greater than 0, as in \"10x\"".to_owned()
                }),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            _ if *self == Self::REAL => f.write_str("real"),
            Self::Times(times) => write!(f, "{times}x"),
        }
    }
}

/// When each record is due: the first one with a `ts` at once, every other one `(ts - first ts) / times`
/// later.
#[derive(Debug)]
pub(crate) struct ReplayPace {
    times: f64,
    /// The first `ts`, and the time at which it was read.
    origin: Option<(f64, Duration)>,
}

impl ReplayPace {
    /// The pace of a speed; `None` if records never wait.
    pub(crate) fn new(speed: Speed) -> Option<Self> {
        match speed {
            Speed::Max => None,
            Speed::Times(times) => Some(Self { times, origin: None }),
        }
    }

    /// How long the record of time `ts` has to wait at the time `now`; `None` if it is due.
    pub(crate) fn wait(&mut self, ts: f64, now: Duration) -> Option<Duration> {
        let (first, start) = *self.origin.get_or_insert((ts, now));
        // Records with an earlier `ts` are due. A `ts` beyond the range of a duration waits until the run is
        // stopped.
        let after = ((ts - first) / self.times).max(0.0);
        let due = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        start.saturating_add(due).checked_sub(now).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_written_as_they_are_read() {
        for speed in ["max", "real", "10x", "0.5x"] {
            assert_eq!(speed.parse::<Speed>().unwrap().to_string(), speed);
        }
        for speed in ["", "fast", "0x", "-1x", "nanx", "infx", "x", "10"] {
            assert!(speed.parse::<Speed>().unwrap_err().contains("\"max\", \"real\" or \"Nx\""), "{speed}");
        }
    }

    #[test]
    fn records_wait_for_their_time() {
        let seconds = Duration::from_secs;
        let mut pace = ReplayPace::new(Speed::Times(10.0)).unwrap();
        assert_eq!(pace.wait(1000.0, seconds(5)), None);
        assert_eq!(pace.wait(1000.0, seconds(5)), None);
        assert_eq!(pace.wait(1030.0, seconds(5)), Some(seconds(3)));
        assert_eq!(pace.wait(1030.0, seconds(7)), Some(seconds(1)));
        assert_eq!(pace.wait(1030.0, seconds(8)), None, "due exactly now");
        assert_eq!(pace.wait(1030.0, seconds(9)), None, "late");
        assert_eq!(pace.wait(10.0, seconds(9)), None, "time went back");
        assert!(pace.wait(1e300, seconds(9)) > Some(seconds(1 << 40)));
        assert!(ReplayPace::new(Speed::Max).is_none());
    }
}
