//! Times in SQLite's text format.
//!
//! ```text
//! 2026-01-31    2026-01-31 23:59    2026-01-31 23:59:59    2026-01-31T23:59:59.125Z
//! ```
//!
//! -> microseconds since 1970, UTC. Digits beyond microseconds are truncated. A time before 1970, with
//! another time zone, or on a day that is not in the calendar is rejected.

use crate::instant;

/// The time of a text.
pub(super) fn micros(text: &str) -> Option<u64> {
    instant::micros_of_utc(text)
}

/// A text that sorts at or before every notation of this time: without its fraction, and with a space, which
/// sorts before `T`.
pub(super) fn at_most(micros: u64) -> String {
    // No text is later than the year 9999.
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

    /// Over 300 years, at intervals of 43 hours and 61 seconds: the text never sorts after the time, and is
    /// less than a minute before it.
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
