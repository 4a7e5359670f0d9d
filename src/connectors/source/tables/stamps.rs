//! Times as SQLite writes them.
//!
//! ```text
//! 2026-01-31    2026-01-31 23:59    2026-01-31 23:59:59    2026-01-31T23:59:59.125Z
//! ```
//!
//! -> microseconds since 1970, UTC. Digits beyond the microsecond are cut off. A time before 1970, of another
//! zone, or of a day that is not in the calendar is none.

use crate::instant;

/// The time of a text.
pub(super) fn micros(text: &str) -> Option<u64> {
    instant::micros_of_utc(text)
}

/// A text that is at most that of this time, in whichever way that is written: without its fraction, and as a
/// space comes before a T.
pub(super) fn at_most(micros: u64) -> String {
    // Beyond the year 9999 no text is.
    instant::minute_of(micros).unwrap_or_else(|| "9999-12-31".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1970-01-01 00:00:00.000001", Some(1)),
            ("2000-02-29 12:34:56", Some(951_827_696_000_000)),
            ("2000-02-29T12:34:56.125Z", Some(951_827_696_125_000)),
            ("2026-11-22 07:10", Some(1_795_331_400_000_000)),
            ("2026-11-22 07:10:00.1234569", Some(1_795_331_400_123_456)),
            ("1969-12-31 23:59:59", None),
            ("2026-02-29 00:00:00", None),
            ("2026-13-01 00:00:00", None),
            ("2026-11-22 24:00:00", None),
            ("2026-11-22 07:10:00+02:00", None),
            ("2026-11-22 07:10:00.", None),
            ("2026-11-22 07:10:00.12x", None),
            ("2026/11/22", None),
            ("yesterday", None),
            ("", None),
            ("二〇二六年", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
    }

    /// Over 300 years, at every hour and a bit: the text is never greater than that of the time, and less
    /// than a minute before it.
    #[test]
    fn a_lower_bound_is_close() {
        for step in 0..60_000_u64 {
            let time = step * (43 * 3600 + 61) * 1_000_000 + step;
            let text = at_most(time);
            let back = micros(&text).unwrap();
            assert!(back <= time && time - back < 60_000_000, "{time} {text}");
        }
        assert_eq!(at_most(951_827_696_125_000), "2000-02-29 12:34");
        assert!(*at_most(951_827_640_000_000) <= *"2000-02-29 12:34");
        assert_eq!(at_most(951_782_400_000_001), "2000-02-29");
    }
}
