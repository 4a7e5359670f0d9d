//! Times as SQLite writes them.
//!
//! ```text
//! 2026-01-31    2026-01-31 23:59    2026-01-31 23:59:59    2026-01-31T23:59:59.125Z
//! ```
//!
//! -> microseconds since 1970, UTC. Digits beyond the microsecond are cut off. A time before 1970, of another zone, or of a day that is not in the
//! calendar is none.

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;
const DAY_SECONDS: u64 = 86_400;

/// The time of a text.
pub(super) fn micros(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (date, time) = bytes.split_at_checked(10)?;
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    if date[4] != b'-' || date[7] != b'-' || !(1..=12).contains(&month) {
        return None;
    }
    let leaps = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leaps),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let time = time.strip_suffix(b"Z").unwrap_or(time);
    let (hours, minutes, rest) = match time {
        [] => (0, 0, &[][..]),
        [b' ' | b'T', h1, h2, b':', m1, m2, rest @ ..] => (number(&[*h1, *h2])?, number(&[*m1, *m2])?, rest),
        _ => return None,
    };
    let (seconds, fraction) = match rest {
        [] => (0, 0),
        [b':', s1, s2] => (number(&[*s1, *s2])?, 0),
        [b':', s1, s2, b'.', digits @ ..] if !digits.is_empty() => (number(&[*s1, *s2])?, sixth(digits)?),
        _ => return None,
    };
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let since = days(year, month, day).checked_sub(DAYS_TO_1970)? * DAY_SECONDS;
    Some((since + hours * 3600 + minutes * 60 + seconds) * 1_000_000 + fraction)
}

/// A text that is at most that of this time, in whichever way that is written: without its fraction, and as a space comes before a T.
pub(super) fn at_most(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (mut days, second) = (seconds / DAY_SECONDS + DAYS_TO_1970, seconds % DAY_SECONDS);
    // The civil calendar of 400 years, which begins in March (H. Hinnant, chrono-compatible low-level date algorithms).
    let era = days / 146_097;
    days %= 146_097;
    let year = (days - days / 1460 + days / 36_524 - days / 146_096) / 365;
    let day_of_year = days - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = (year + era * 400 + next).min(9999);
    let date = format!("{year:04}-{month:02}-{day:02}");
    // At midnight a date alone may be meant.
    if second == 0 { date } else { format!("{date} {:02}:{:02}", second / 3600, second / 60 % 60) }
}

/// Days from 0000-03-01.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    year / 400 * 146_097 + year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'));
    digits.iter().try_fold(0, digit)
}

/// The first six digits of a fraction, as millionths.
fn sixth(digits: &[u8]) -> Option<u64> {
    let six = digits.iter().chain(&[b'0'; 6]).take(6).copied().collect::<Vec<_>>();
    digits.iter().all(u8::is_ascii_digit).then(|| number(&six))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_hand() {
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

    /// Over 300 years, at every hour and a bit: the text is never greater than that of the time, and less than a minute before it.
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
