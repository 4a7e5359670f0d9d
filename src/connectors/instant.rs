//! Parses and formats points in time: dates of ISO 8601 and RFC 3339, with the crate `jiff`.
//!
//! In: a text. Out: unix seconds. Feeds, tables, archives, records of topics and databases all use this
//! module.
//!
//! ```text
//! 2024-05-06T07:08:09.5Z    2024-05-06T09:08:09+02:00    2024-05-06 07:08    2024-05-06    2024-05
//! ```
//!
//! Digits alone are a number of seconds ([`of_text`]): `2024` is 1970-01-01T00:33:44Z. The only exception is
//! a web archive, which has dates only ([`of_iso`]): there `2024` is a year, as the WARC standard defines for
//! `WARC-Date`.
//!
//! A time without a zone is UTC. A day that is not in the calendar is rejected: 31 February is not read as 2
//! March.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

/// The beginning of unix time. UTC times are computed as differences from it, since a `Timestamp` of the
/// crate ends a day before the year 10000.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Unix seconds of a date; four digits alone are a year. `None` for any other text.
pub fn of_iso(text: &str) -> Option<f64> {
    since_epoch(text).map(|since| since.as_secs_f64())
}

/// Unix seconds of a number of seconds (also one of four digits), or of a date as [`of_iso`] reads it.
pub fn of_text(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().filter(|ts: &f64| ts.is_finite()).or_else(|| of_iso(text))
}

/// Microseconds since 1970 of a UTC time, rounded down; `None` for a time before 1970 or with a zone offset.
pub fn micros_of_utc(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let time: DateTime = if text.len() < 10 || has_offset(text) { None } else { text.parse().ok() }?;
    u64::try_from(time.duration_since(EPOCH).as_micros()).ok()
}

/// Formats unix seconds as a date with whole seconds: `2024-05-06T07:08:09Z`.
pub fn date(seconds: f64) -> Option<String> {
    let whole = SignedDuration::try_from_secs_f64(seconds.floor()).ok()?;
    Timestamp::from_duration(whole).ok().map(|time| time.to_string())
}

/// Formats unix milliseconds as a time of UTC with its milliseconds: `2024-05-06T07:08:09.500Z`; the
/// beginning of 1970 if there is no such date.
pub fn millisecond_of(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    time.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Formats microseconds since 1970 as a date and the minute; without the time of day if that is midnight, to
/// the second.
pub fn minute_of(micros: u64) -> Option<String> {
    let time = EPOCH.checked_add(SignedDuration::from_micros(i64::try_from(micros).ok()?)).ok()?;
    let is_midnight = (micros / 1_000_000).is_multiple_of(86_400);
    let format = if is_midnight { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
    Some(time.strftime(format).to_string())
}

/// The time since the beginning of 1970, UTC.
fn since_epoch(text: &str) -> Option<SignedDuration> {
    let text = text.trim();
    let is_part = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    // A year (only in archives), or a month.
    let padded = match text.len() {
        4 if is_part => format!("{text}-01-01"),
        7 if is_part => format!("{text}-01"),
        _ => String::new(),
    };
    let text = if padded.is_empty() { text } else { &padded };
    if text.len() < 10 || !text.is_char_boundary(10) || text.as_bytes()[4] != b'-' {
        return None;
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_duration());
    }
    let time: DateTime = if has_offset(text) { None } else { text.parse().ok() }?;
    Some(time.duration_since(EPOCH))
}

/// Whether the text after the date has a zone, so that it is not a time without one.
fn has_offset(text: &str) -> bool {
    text.get(10..).is_some_and(|time| time.contains(['+', '-', 'Z', 'z', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0.0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600.0)),
            ("2024-05-06T07:08:09Z", Some(1_714_979_289.0)),
            ("2024-05-06t07:08:09z", Some(1_714_979_289.0)),
            ("2024-05-06T07:08:09.25Z", Some(1_714_979_289.25)),
            ("2024-05-06T09:08:09+02:00", Some(1_714_979_289.0)),
            ("2024-05-06T09:08:09+0200", Some(1_714_979_289.0)),
            ("2024-05-06 09:08:09+02", Some(1_714_979_289.0)),
            ("2024-05-06T03:08:09-04:00", Some(1_714_979_289.0)),
            ("2024-05-06 07:08:09", Some(1_714_979_289.0)),
            ("2024-05-06T07:08Z", Some(1_714_979_280.0)),
            ("2024-05-06 07:08", Some(1_714_979_280.0)),
            (" 2024-05-06 ", Some(1_714_953_600.0)),
            ("2024-05", Some(1_714_521_600.0)),
            ("2024", Some(1_704_067_200.0)),
            ("1969-12-31T23:59:59Z", Some(-1.0)),
            ("9999-12-31 00:00:00", Some(253_402_214_400.0)),
            ("2024-02-31", None),
            ("2024-02-31T00:00:00Z", None),
            ("2023-02-29", None),
            ("2024-04-31 10:00", None),
            ("Mon, 06 May 2024 07:08:09 GMT", None),
            ("20240506070809", None),
            ("2024-13-01", None),
            ("2024-05-06T07:08:09.Z", None),
            ("2024-05-06T25:00:00Z", None),
            ("2024-05-06T07:08:09+é", None),
            ("二〇二四年五月六日", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of_iso(text), expected, "{text:?}");
        }
        assert_eq!(of_text(" 1714979289.5 "), Some(1_714_979_289.5));
        assert_eq!(of_text("2024-05-06"), Some(1_714_953_600.0));
        assert_eq!((of_text("nan"), of_text("inf"), of_text("soon")), (None, None, None));
    }

    #[test]
    fn dates_are_written_as_they_are_read() {
        assert_eq!(date(1_714_979_289.75).unwrap(), "2024-05-06T07:08:09Z");
        assert_eq!(date(0.0).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(date(f64::NAN), None);
        assert_eq!(millisecond_of(1_714_979_289_075), "2024-05-06T07:08:09.075Z");
        assert_eq!(millisecond_of(u64::MAX), "1970-01-01T00:00:00.000Z");
        for seconds in [951_825_600.0, 4_102_444_799.0, 1_709_164_800.0] {
            assert_eq!(of_iso(&date(seconds).unwrap()), Some(seconds));
        }
    }
}
