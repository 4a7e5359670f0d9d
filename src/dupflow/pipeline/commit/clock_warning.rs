//! A warning while the clock of retention is ahead of the machine's, which was ahead once: what is older than
//! `max_age` by that clock is not alive, new documents included.

use std::time::Duration;

use crate::pipeline::restart::AHEAD;
use dupflow_core::doc::retention::{Retention, RetentionClock};

/// The shortest time between two warnings of a kind.
const AGAIN: Duration = Duration::from_secs(600);

/// See the [module](self).
#[derive(Debug)]
pub(in crate::pipeline) struct ClockWarning {
    follows: bool,
    /// When the last warning of each kind was logged.
    ahead: Option<Duration>,
    late: Option<Duration>,
    /// Late upserts that a warning has counted.
    reported: u64,
}

impl ClockWarning {
    /// For a run with this retention.
    pub(in crate::pipeline) fn new(retention: &Retention) -> Self {
        Self { follows: retention.follows(RetentionClock::Wall), ahead: None, late: None, reported: 0 }
    }

    /// Looks at the clock at `now`: it is `ahead` seconds ahead of the machine's, and so many upserts were
    /// late.
    pub(in crate::pipeline) fn check(&mut self, now: Duration, ahead: Option<f64>, late: u64) {
        if !self.follows {
            return;
        }
        let is_due = |last: &mut Option<Duration>| {
            let is_due = last.is_none_or(|last| now.saturating_sub(last) >= AGAIN);
            if is_due {
                *last = Some(now);
            }
            is_due
        };
        if let Some(ahead_seconds) = ahead.filter(|ahead| *ahead > AHEAD) {
            if is_due(&mut self.ahead) {
                warn(ahead_seconds, late);
            }
        } else if late > self.reported && is_due(&mut self.late) {
            self.reported = late;
            tracing::warn!(
                late,
                "upserts were too old for retention.max_age by the clock of this machine: \
                they are not in the corpus"
            );
        }
    }
}

/// Logs that the clock is ahead.
fn warn(ahead_seconds: f64, late: u64) {
    tracing::warn!(
        ahead_seconds = ahead_seconds.round(),
        late,
        "the clock of retention is ahead of the clock of this machine, which was ahead once: documents \
        expire too early, and new ones are late, until the machine has caught up; if its clock is right now, \
        stop the run and start it with --reconcile, which sets the clock back and reads the input again"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When warnings of both kinds were logged.
    fn warned(clock: RetentionClock, checks: &[(u64, f64, u64)]) -> [Option<u64>; 2] {
        let retention = Retention { max_age: Some(AGAIN), max_documents: None, clock };
        let mut warning = ClockWarning::new(&retention);
        for (now, ahead, late) in checks {
            warning.check(Duration::from_secs(*now), Some(*ahead), *late);
        }
        [warning.ahead, warning.late].map(|last| last.map(|last| last.as_secs()))
    }

    #[test]
    fn a_clock_ahead_is_reported_again_and_again() {
        let ahead = [(1, 300.0, 0), (2, 300.5, 0), (601, 300.5, 0)];
        assert_eq!(warned(RetentionClock::Wall, &ahead), [Some(2), None]);
        assert_eq!(warned(RetentionClock::Wall, &[&ahead[..], &[(602, 1e9, 9)]].concat()), [Some(602), None]);
        assert_eq!(warned(RetentionClock::Event, &ahead), [None, None]);
    }

    #[test]
    fn late_upserts_are_reported_once_each() {
        let late = [(1, 0.0, 5), (2, 0.0, 6), (700, 0.0, 6), (701, 0.0, 6)];
        assert_eq!(warned(RetentionClock::Wall, &late), [None, Some(700)]);
    }
}
