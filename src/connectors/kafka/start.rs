//! Where reading a log begins.

use std::fmt;
use std::str::FromStr;

use dupflow_core::time::Offsets;

/// Where reading begins if no position is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first available record.
    #[default]
    Earliest,
    /// After the last available record.
    Latest,
    /// At the first record of this time or later, in milliseconds since 1970; after the last one if there is
    /// none.
    Timestamp(i64),
    /// At these offsets; a partition that is not named begins with its first record.
    Offsets(Offsets),
}

impl Start {
    /// How starts are written.
    pub const EXPECTED: &str =
        "\"earliest\", \"latest\", \"timestamp:S\" in unix seconds, or \"offsets:P=O,…\"";
}

impl FromStr for Start {
    type Err = String;

    fn from_str(start: &str) -> Result<Self, String> {
        let number = |(partition, offset): (&str, &str)| {
            Some((partition.trim().parse().ok()?, offset.trim().parse().ok()?))
        };
        let found = match start.split_once(':') {
            None if start == "earliest" => Some(Self::Earliest),
            None if start == "latest" => Some(Self::Latest),
            Some(("timestamp", seconds)) => milliseconds(seconds).map(Self::Timestamp),
            Some(("offsets", list)) => {
                let each = list.split(',').map(|one| one.split_once('=').and_then(number));
                each.collect::<Option<Offsets>>().map(Self::Offsets)
            }
            _ => None,
        };
        found.ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

/// Parses seconds with up to three decimals.
fn milliseconds(seconds: &str) -> Option<i64> {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 3 || !digits(part) || !digits(whole) {
        return None;
    }
    let part: i64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(part)
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::Timestamp(ms) => write!(f, "timestamp:{}.{:03}", ms / 1000, ms % 1000),
            Self::Offsets(offsets) => {
                let all: Vec<_> = offsets.iter().map(|(p, offset)| format!("{p}={offset}")).collect();
                write!(f, "offsets:{}", all.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_read_as_they_are_written() {
        for (written, start) in [
            ("earliest", Start::Earliest),
            ("latest", Start::Latest),
            ("timestamp:1700000000.500", Start::Timestamp(1_700_000_000_500)),
            ("offsets:0=5,7=0", Start::Offsets([(0, 5), (7, 0)].into())),
        ] {
            assert_eq!((written.parse(), start.to_string().as_str()), (Ok(start), written));
        }
        assert_eq!("timestamp:7".parse(), Ok(Start::Timestamp(7_000)));
        for wrong in [
            "",
            "first",
            "timestamp:",
            "timestamp:1.2345",
            "timestamp:-1",
            "offsets:",
            "offsets:0",
            "offsets:a=1",
        ] {
            assert_eq!(wrong.parse::<Start>(), Err(format!("expected {}", Start::EXPECTED)), "{wrong}");
        }
    }
}
