//! Refused connections, as lines of the log: each line at most once a second, however often it would be said.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;

use dupflow_core::time::{Clock, SystemClock};

/// Between two lines that say the same.
const PAUSE: Duration = Duration::from_secs(1);

/// Different lines that are remembered.
const LINES: usize = 256;

/// What has been said of whom, and when.
#[derive(Debug)]
pub(super) struct Refusals {
    clock: SystemClock,
    said: Mutex<BTreeMap<(IpAddr, String), Said>>,
}

#[derive(Debug)]
struct Said {
    at: Duration,
    /// Times that it was not said since.
    unsaid: u64,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { clock: SystemClock::start(), said: Mutex::default() }
    }

    /// Logs that a connection is refused. `who` is its address, or the process that it is; `why` what it did.
    pub(super) fn note(&self, address: IpAddr, who: &str, why: &str) {
        if let Some(again) = self.due(self.clock.now(), address, why) {
            let times = if again == 0 { String::new() } else { format!(" ({again} times more)") };
            tracing::warn!("refused {who}: {why}{times}");
        }
    }

    /// Whether to say it now, and how often it was not said since it last was.
    fn due(&self, now: Duration, address: IpAddr, why: &str) -> Option<u64> {
        let mut lines = self.said.lock();
        if let Some(said) = lines.get_mut(&(address, why.to_owned())) {
            if now < said.at + PAUSE {
                said.unsaid += 1;
                return None;
            }
            let unsaid = std::mem::take(&mut said.unsaid);
            said.at = now;
            return Some(unsaid);
        }
        lines.retain(|_, said| now < said.at + PAUSE);
        if lines.len() == LINES {
            return None;
        }
        lines.insert((address, why.to_owned()), Said { at: now, unsaid: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_line_is_said_once_a_second() {
        let refusals = Refusals::new();
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
    fn many_different_lines_are_not_all_said() {
        let refusals = Refusals::new();
        let said = |at| {
            let lines = (0..1000).filter(|n: &u32| {
                let address = IpAddr::from(n.to_le_bytes());
                refusals.due(Duration::from_secs(at), address, "x").is_some()
            });
            lines.count()
        };
        assert_eq!((said(0), said(10)), (LINES, LINES));
    }
}
