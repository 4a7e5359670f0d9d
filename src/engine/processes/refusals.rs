//! Refused connections as lines of the log: equal lines at most once a second.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;

use dupflow_core::time::{Clock, SystemClock};

/// Time between two equal lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Different lines that are remembered.
const LINES: usize = 256;

/// The lines logged, and when.
#[derive(Debug)]
pub(super) struct RefusalLog {
    clock: SystemClock,
    lines: Mutex<BTreeMap<(IpAddr, String), LoggedLine>>,
}

#[derive(Debug)]
struct LoggedLine {
    at: Duration,
    /// Equal lines suppressed since.
    suppressed: u64,
}

impl RefusalLog {
    pub(super) fn new() -> Self {
        Self { clock: SystemClock::start(), lines: Mutex::default() }
    }

    /// Logs that a connection is refused. `who` is its address or its process, `why` the reason.
    pub(super) fn note(&self, address: IpAddr, who: &str, why: &str) {
        if let Some(again) = self.due(self.clock.now(), address, why) {
            let times = if again == 0 { String::new() } else { format!(" ({again} times more)") };
            tracing::warn!("refused {who}: {why}{times}");
        }
    }

    /// Whether to log the line now: if so, how many equal lines were suppressed.
    fn due(&self, now: Duration, address: IpAddr, why: &str) -> Option<u64> {
        let mut lines = self.lines.lock();
        if let Some(lines) = lines.get_mut(&(address, why.to_owned())) {
            if now < lines.at + PAUSE {
                lines.suppressed += 1;
                return None;
            }
            let suppressed = std::mem::take(&mut lines.suppressed);
            lines.at = now;
            return Some(suppressed);
        }
        lines.retain(|_, lines| now < lines.at + PAUSE);
        if lines.len() == LINES {
            return None;
        }
        lines.insert((address, why.to_owned()), LoggedLine { at: now, suppressed: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_logged_once_a_second() {
        let refusals = RefusalLog::new();
        let (a, b) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let ms = Duration::from_millis;
        assert_eq!(refusals.due(ms(0), a, "x"), Some(0));
        assert_eq!(refusals.due(ms(10), a, "x"), None);
        assert_eq!(refusals.due(ms(999), a, "x"), None);
        assert_eq!(refusals.due(ms(20), b, "x"), Some(0), "another address");
        assert_eq!(refusals.due(ms(20), a, "y"), Some(0), "another line");
        assert_eq!(refusals.due(ms(1000), a, "x"), Some(2));
        assert_eq!(refusals.due(ms(1001), a, "x"), None);
    }

    #[test]
    fn the_number_of_remembered_lines_is_limited() {
        let refusals = RefusalLog::new();
        let lines = |at| {
            let lines = (0..1000).filter(|n: &u32| {
                let address = IpAddr::from(n.to_le_bytes());
                refusals.due(Duration::from_secs(at), address, "x").is_some()
            });
            lines.count()
        };
        assert_eq!((lines(0), lines(10)), (LINES, LINES));
    }
}
