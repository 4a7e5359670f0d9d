//! Rules that cut the input into epochs.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Decides which record ends an epoch.
///
/// Written `events:N`, `every:T` (T as in `100ms` or `5s`), `events:N,every:T`, `ts` or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochRule {
    /// A new epoch after this number of records, counting bad ones.
    Events(NonZeroU64),
    /// A new epoch at this time after the first records of the previous one. The cuts of this rule and of
    /// [`Self::Within`] depend on reading speed; the pairs at the end do not.
    Every(Duration),
    /// Both rules above: the one that applies first ends the epoch.
    Within(NonZeroU64, Duration),
    /// A new epoch with every record whose `ts` differs from the one before. Records without a readable `ts`,
    /// and files of a folder, stay in the open epoch.
    Ts,
    /// All input is one epoch.
    All,
}

impl EpochRule {
    /// How rules are written.
    pub const EXPECTED: &str =
        "\"events:N\", \"every:T\" with T as in \"100ms\", \"events:N,every:T\", \"ts\" or \"all\"";

    /// `events:1000,every:1s`: the rule of a run without an end, so that slow input is answered too.
    pub const LIVE: Self = Self::Within(NonZeroU64::MIN.saturating_add(999), Duration::from_secs(1));

    /// The time after which an epoch ends, with any number of records.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Self::Every(time) | Self::Within(_, time) => Some(time),
            Self::Events(_) | Self::Ts | Self::All => None,
        }
    }

    /// The number of records after which an epoch ends.
    pub fn events(self) -> Option<NonZeroU64> {
        match self {
            Self::Events(events) | Self::Within(events, _) => Some(events),
            Self::Every(_) | Self::Ts | Self::All => None,
        }
    }
}

/// Parses a time: a whole number of milliseconds or seconds, at least 1, as in `100ms` or `5s`.
pub fn interval(written: &str) -> Option<Duration> {
    let (number, unit) = match written.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (written.strip_suffix('s')?, 1000),
    };
    let milliseconds = number.parse::<u64>().ok()?.checked_mul(unit)?;
    Some(Duration::from_millis(milliseconds)).filter(|time| !time.is_zero())
}

impl Default for EpochRule {
    /// `events:1000`.
    fn default() -> Self {
        Self::Events(NonZeroU64::MIN.saturating_add(999))
    }
}

impl FromStr for EpochRule {
    type Err = String;

    fn from_str(rule: &str) -> Result<Self, String> {
        match rule {
            "ts" => Ok(Self::Ts),
            "all" => Ok(Self::All),
            _ if rule.contains(",every:") => {
                let (events, every) = rule.split_once(',').unwrap_or_default();
                let [events, every] = [events, every].map(str::parse::<Self>);
                match (events?, every?) {
                    (Self::Events(events), Self::Every(time)) => Ok(Self::Within(events, time)),
                    _ => Err(format!("expected {}", Self::EXPECTED)),
                }
            }
            _ if rule.starts_with("every:") => {
                interval(&rule["every:".len()..]).map(Self::Every).ok_or_else(|| {
                    "expected a time above 0 after \"every:\", as in \"100ms\" or \"5s\"".to_owned()
                })
            }
            _ => match rule.strip_prefix("events:").map(str::parse) {
                Some(Ok(events)) => Ok(Self::Events(events)),
                Some(Err(_)) => {
                    Err("expected a whole number of events, 1 or more, after \"events:\"".to_owned())
                }
                None => Err(format!("expected {}", Self::EXPECTED)),
            },
        }
    }
}

impl fmt::Display for EpochRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(events) => write!(f, "events:{events}"),
            Self::Every(time) if time.subsec_millis() == 0 => write!(f, "every:{}s", time.as_secs()),
            Self::Every(time) => write!(f, "every:{}ms", time.as_millis()),
            Self::Within(events, time) => write!(f, "{},{}", Self::Events(*events), Self::Every(*time)),
            Self::Ts => f.write_str("ts"),
            Self::All => f.write_str("all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for rule in
            ["events:1", "events:1000", "every:100ms", "every:5s", "events:7,every:1500ms", "ts", "all"]
        {
            assert_eq!(rule.parse::<EpochRule>().unwrap().to_string(), rule);
        }
        assert_eq!(EpochRule::default().to_string(), "events:1000");
        assert_eq!(EpochRule::LIVE.to_string(), "events:1000,every:1s");
    }

    #[test]
    fn other_rules_are_refused_with_what_was_expected() {
        for rule in ["events:0", "events:", "events:-1", "events:1.5", "events:x"] {
            assert!(rule.parse::<EpochRule>().unwrap_err().contains("1 or more"), "{rule}");
        }
        for rule in ["every:", "every:0s", "every:5", "every:-1s", "every:1.5s", "every:s"] {
            assert!(rule.parse::<EpochRule>().unwrap_err().contains("\"100ms\" or \"5s\""), "{rule}");
        }
        for rule in ["events:0,every:1s", "events:1,every:0s", "ts,every:1s", "every:1s,every:1s"] {
            assert!(rule.parse::<EpochRule>().is_err(), "{rule}");
        }
        for rule in ["", "event:1", "TS", "100"] {
            assert!(rule.parse::<EpochRule>().unwrap_err().contains("\"events:N\", \"every:T\""), "{rule}");
        }
    }
}
