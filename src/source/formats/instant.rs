//! Points in time as files write them.

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Unix seconds of a date of ISO 8601: `2024-05-06T07:08:09.5Z`; `+02:00` in place of `Z`, which may be absent; a space in place of `T`; the
/// time, its seconds, or the day and the month may be absent. `None` for anything else.
pub(super) fn of_iso(text: &str) -> Option<f64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4, 9999)?;
    let month = parts.next().map_or(Some(1), |month| digits(month, 2, 12)).filter(|month| *month > 0)?;
    let day = parts.next().map_or(Some(1), |day| digits(day, 2, 31)).filter(|day| *day > 0)?;
    if parts.next().is_some() {
        return None;
    }
    let days = f64::from(days(year, month, day));
    if time.is_empty() {
        return Some(days * DAY);
    }
    let (time, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let offset = match zone.split_at(1) {
        ("Z" | "z", "") => 0.0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':').or_else(|| offset.split_at_checked(2))?;
            let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2, 59)? };
            let seconds = f64::from(digits(hours, 2, 23)? * 3600 + minutes * 60);
            if sign == "-" { -seconds } else { seconds }
        }
    };
    let mut of_day = time.split(':');
    let hours = digits(of_day.next()?, 2, 24)?;
    let minutes = digits(of_day.next()?, 2, 59)?;
    let seconds = match of_day.next() {
        None => 0.0,
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
            if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            f64::from(digits(whole, 2, 60)?) + format!("0.{fraction}").parse::<f64>().ok()?
        }
    };
    let whole = of_day.next().is_none();
    whole.then_some(days * DAY + f64::from(hours * 3600 + minutes * 60) + seconds - offset)
}

/// Unix seconds: a number of them, or a date as [`of_iso`] reads it.
pub(super) fn of_text(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|ts: &f64| ts.is_finite()).or_else(|| of_iso(text))
}

/// A number of so many digits, up to `most`, inclusive.
fn digits(text: &str, count: usize, most: i32) -> Option<i32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?.filter(|number| *number <= most)
}

/// Days since 1970-01-01 of the proleptic Gregorian calendar.
///
/// Years are counted from March on, so that a leap day is the last of its year (H. Hinnant, `chrono`-Compatible Low-Level Date Algorithms,
/// 2013).
fn days(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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
            ("2024-05-06T07:08:09.25Z", Some(1_714_979_289.25)),
            ("2024-05-06T09:08:09+02:00", Some(1_714_979_289.0)),
            ("2024-05-06 07:08:09", Some(1_714_979_289.0)),
            ("2024-05-06T07:08Z", Some(1_714_979_280.0)),
            ("2024-05-06", Some(1_714_953_600.0)),
            ("2024", Some(1_704_067_200.0)),
            ("1969-12-31T23:59:59Z", Some(-1.0)),
            ("Mon, 06 May 2024 07:08:09 GMT", None),
            ("20240506070809", None),
            ("2024-13-01", None),
            ("2024-05-06T07:08:09.Z", None),
            ("2024-05-06T07:08:09+é", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of_iso(text), expected, "{text:?}");
        }
        assert_eq!(of_text(" 1714979289.5 "), Some(1_714_979_289.5));
        assert_eq!((of_text("nan"), of_text("inf"), of_text("soon")), (None, None, None));
    }
}
