//! Where the input is cut into epochs.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// The rule by which a record opens or closes an epoch.
///
/// Written `events:N`, `ts` or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochRule {
    /// A new epoch after every so many records, bad ones included.
    Events(NonZeroU64),
    /// A new epoch with every record whose `ts` differs from the one before. Records without a `ts` that can be read
    /// stay in the epoch that is open. Files of a folder have none.
    Ts,
    /// All input is one epoch.
    All,
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
            _ => match rule.strip_prefix("events:").map(str::parse) {
                Some(Ok(events)) => Ok(Self::Events(events)),
                Some(Err(_)) => {
                    Err("expected a whole number of events, 1 or more, after \"events:\"".to_owned())
                }
                None => Err("expected \"events:N\", \"ts\" or \"all\"".to_owned()),
            },
        }
    }
}

impl fmt::Display for EpochRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(events) => write!(f, "events:{events}"),
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
        for rule in ["events:1", "events:1000", "ts", "all"] {
            assert_eq!(rule.parse::<EpochRule>().unwrap().to_string(), rule);
        }
        assert_eq!(EpochRule::default().to_string(), "events:1000");
    }

    #[test]
    fn other_rules_are_refused_with_what_was_expected() {
        for rule in ["events:0", "events:", "events:-1", "events:1.5", "events:x"] {
            assert!(rule.parse::<EpochRule>().unwrap_err().contains("1 or more"), "{rule}");
        }
        for rule in ["", "event:1", "TS", "100"] {
            assert!(
                rule.parse::<EpochRule>().unwrap_err().contains("\"events:N\", \"ts\" or \"all\""),
                "{rule}"
            );
        }
    }
}
