//! The rules of a run, and how they read a record.

use super::grammar::{Derivation, FieldRule};
use super::row::FieldRow;
use crate::doc::{DocId, FIELD_SEPARATOR};

/// The longest value, in bytes, inclusive.
pub const MOST_VALUE_BYTES: usize = 256;

/// A value in a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawValue<'a> {
    /// There is none, or `null`.
    Absent,
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(i128),
    /// Another number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// An object, a list, or bytes that are not UTF-8.
    Unusable,
}

/// The number of empty values, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldFlaws {
    /// The record has no value.
    pub missing: u32,
    /// The value is longer than [`MOST_VALUE_BYTES`].
    pub too_long: u32,
    /// The value is neither a text nor a number nor true nor false, or no address where a host is wanted.
    pub unusable: u32,
}

/// The fields of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFields {
    /// The values.
    pub row: FieldRow,
    /// Those that are empty.
    pub flaws: FieldFlaws,
}

/// The fields of documents, in order, with distinct names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRules {
    rules: Vec<FieldRule>,
    /// The distinct columns of the records, without the id and the time.
    columns: Vec<String>,
    /// For each rule, the index of its column.
    places: Vec<Option<usize>>,
}

impl FieldRules {
    /// Rules with distinct names.
    ///
    /// # Errors
    /// A name that two rules have.
    pub fn new(rules: Vec<FieldRule>) -> Result<Self, String> {
        let mut columns: Vec<String> = Vec::new();
        let mut places = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            if rules[..place].iter().any(|other| other.name() == rule.name()) {
                return Err(rule.name().to_owned());
            }
            places.push(rule.column().map(|column| {
                columns.iter().position(|known| known == column).unwrap_or_else(|| {
                    columns.push(column.to_owned());
                    columns.len() - 1
                })
            }));
        }
        Ok(Self { rules, columns, places })
    }

    /// The rules of these names, in the order of this list.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let rules = self.rules.iter().filter(|rule| is_wanted(rule.name())).cloned().collect();
        Self::new(rules).unwrap_or_default()
    }

    /// The rules.
    pub fn rules(&self) -> &[FieldRule] {
        &self.rules
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The place of a field in a [`FieldRow`].
    pub fn place(&self, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.name() == name)
    }

    /// The distinct columns that the rules read, without the id and the time.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// These names, then the [columns](Self::columns) that are not among them.
    #[must_use]
    pub fn with_columns(&self, mut names: Vec<String>) -> Vec<String> {
        let own = self.columns.iter().filter(|column| !names.contains(column)).cloned().collect::<Vec<_>>();
        names.extend(own);
        names
    }

    /// The fields of a document. `value` gives the value of the column at an index of [`Self::columns`].
    pub fn read<'v>(
        &self,
        id: &DocId,
        ts: Option<f64>,
        value: impl Fn(usize) -> RawValue<'v>,
    ) -> EventFields {
        if self.rules.is_empty() {
            return EventFields::default();
        }
        let mut joined = String::new();
        let mut flaws = FieldFlaws::default();
        for (n, (rule, place)) in self.rules.iter().zip(&self.places).enumerate() {
            if n > 0 {
                joined.push(FIELD_SEPARATOR);
            }
            let raw = match place {
                Some(place) => value(*place),
                None if rule.column == "id" => RawValue::Text(id.as_str()),
                None => ts.map_or(RawValue::Absent, RawValue::Number),
            };
            rule.derivation.append(raw, &mut joined, &mut flaws);
        }
        EventFields { row: FieldRow::from_joined(&joined), flaws }
    }
}

impl Derivation {
    /// Appends what is made of a value, or nothing, which is counted.
    fn append(&self, raw: RawValue<'_>, out: &mut String, flaws: &mut FieldFlaws) {
        let number;
        let value = match raw {
            RawValue::Absent => return flaws.missing += 1,
            RawValue::Unusable => return flaws.unusable += 1,
            RawValue::Text(text) => text,
            RawValue::Flag(flag) => ["false", "true"][usize::from(flag)],
            RawValue::Number(seconds) if *self == Self::Day => {
                number = day(seconds);
                &number
            }
            RawValue::Whole(whole) => {
                number = whole.to_string();
                &number
            }
            RawValue::Number(other) => {
                number = decimal(other);
                &number
            }
        };
        if value.is_empty() {
            return flaws.missing += 1;
        }
        let value = match self {
            Self::Value | Self::Day => value,
            Self::Prefix { separator, parts } => prefix(value, separator, *parts),
            Self::Host => match host(value) {
                Some(host) => host,
                None => return flaws.unusable += 1,
            },
        };
        if value.len() > MOST_VALUE_BYTES {
            return flaws.too_long += 1;
        }
        let lower = |c: char| if *self == Self::Host { c.to_ascii_lowercase() } else { c };
        out.extend(value.chars().map(|c| if c == FIELD_SEPARATOR { ' ' } else { lower(c) }));
    }
}

/// The shortest decimal of a number; with an exponent where it would be too long for a value without.
fn decimal(number: f64) -> String {
    let plain = number.to_string();
    if plain.len() > MOST_VALUE_BYTES { format!("{number:e}") } else { plain }
}

/// What is before the given number of separators; everything if there are fewer.
fn prefix<'v>(value: &'v str, separator: &str, parts: usize) -> &'v str {
    let end = value.match_indices(separator).nth(parts - 1).map_or(value.len(), |(at, _)| at);
    &value[..end]
}

/// The host in an address with a scheme (or that begins with `//`), as it is written.
fn host(address: &str) -> Option<&str> {
    let address = address.trim_ascii();
    let behind = match address.split_once("//")? {
        ("", behind) => behind,
        (scheme, behind) => {
            let name = scheme.strip_suffix(':')?;
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
            (name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(fits))
                .then_some(behind)?
        }
    };
    let authority = behind.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let host = &host[..end];
    Some(host.strip_suffix('.').unwrap_or(host)).filter(|host| !host.is_empty())
}

/// The day of a time in unix seconds, in UTC: `YYYY-MM-DD`.
///
/// References: H. Hinnant, *chrono-compatible low-level date algorithms* (2013), `civil_from_days`.
#[expect(clippy::cast_possible_truncation, reason = "a valid time is before the year 2100")]
fn day(seconds: f64) -> String {
    let days = (seconds / 86_400.0).floor() as i64 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(written: &[&str]) -> FieldRules {
        FieldRules::new(written.iter().map(|one| FieldRule::parse(one).unwrap()).collect()).unwrap()
    }

    fn one(written: &str, raw: RawValue<'_>) -> (String, FieldFlaws) {
        let EventFields { row, flaws } = rules(&[written]).read(&DocId::new("x").unwrap(), None, |_| raw);
        (row.joined().to_owned(), flaws)
    }

    #[test]
    fn values_become_texts() {
        let none = FieldFlaws::default();
        let longest = "é".repeat(MOST_VALUE_BYTES / 2);
        for (raw, value) in [
            (RawValue::Text("De-at "), "De-at "),
            (RawValue::Text("a\u{1e}b"), "a b"),
            (RawValue::Text(&longest), &longest),
            (RawValue::Whole(-7), "-7"),
            (RawValue::Whole(u64::MAX.into()), "18446744073709551615"),
            (RawValue::Number(1.0), "1"),
            (RawValue::Number(0.1), "0.1"),
            (RawValue::Number(1e22), "10000000000000000000000"),
            (RawValue::Number(1e300), "1e300"),
            (RawValue::Number(-1.25e-300), "-1.25e-300"),
            (RawValue::Number(f64::MAX), "1.7976931348623157e308"),
            (RawValue::Flag(true), "true"),
        ] {
            assert_eq!(one("lang", raw), (value.to_owned(), none), "{raw:?}");
            if let RawValue::Number(number) = raw {
                assert_eq!(value.parse(), Ok(number), "{value}");
            }
        }
        let longer = longest.clone() + "x";
        for (raw, flaws) in [
            (RawValue::Absent, FieldFlaws { missing: 1, ..none }),
            (RawValue::Text(""), FieldFlaws { missing: 1, ..none }),
            (RawValue::Text(&longer), FieldFlaws { too_long: 1, ..none }),
            (RawValue::Unusable, FieldFlaws { unusable: 1, ..none }),
        ] {
            assert_eq!(one("lang", raw), (String::new(), flaws), "{raw:?}");
        }
    }

    #[test]
    fn hosts_are_those_of_addresses() {
        for (address, expected) in [
            ("https://Example.ORG/a//b", "example.org"),
            ("http://user:p@ss@example.org:8080?q", "example.org"),
            ("HTTPS://example.org.", "example.org"),
            ("//example.org#x", "example.org"),
            (" https://例え.テスト/", "例え.テスト"),
            ("http://[::1]:80/", "[::1]"),
            ("s3+x.y-z://bucket/key", "bucket"),
            ("ftp://a", "a"),
        ] {
            assert_eq!(one("host(url)", RawValue::Text(address)).0, expected, "{address}");
        }
        for none in
            ["example.org/a", "mailto:a@b", "https:///path", "a b://c", "://x", "http://[::1", "7://x"]
        {
            let found = one("host(url)", RawValue::Text(none));
            assert_eq!(found, (String::new(), FieldFlaws { unusable: 1, ..FieldFlaws::default() }), "{none}");
        }
    }

    #[test]
    fn prefixes_end_before_a_separator() {
        for (value, expected) in
            [("a/b/c", "a/b"), ("a/b", "a/b"), ("a", "a"), ("//x", "/"), ("/", "/"), ("a/b/", "a/b")]
        {
            assert_eq!(one("prefix(path, \"/\", 2)", RawValue::Text(value)).0, expected, "{value}");
        }
        assert_eq!(one("prefix(n, \"23\", 1)", RawValue::Whole(12_345)).0, "1");
    }

    #[test]
    fn days_are_of_utc() {
        for (seconds, expected) in [
            (0.0, "1970-01-01"),
            (86_399.9, "1970-01-01"),
            (951_782_400.0, "2000-02-29"),
            (1_714_953_600.0, "2024-05-06"),
            (4_102_444_799.0, "2099-12-31"),
        ] {
            assert_eq!(day(seconds), expected);
        }
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let rules = rules(&["host(url)", "prefix(id, \"/\", 1)", "day(ts)", "at = ts", "lang", "url"]);
        assert_eq!(rules.columns(), ["url", "lang"]);
        let id = DocId::new("site/7").unwrap();
        let columns = [RawValue::Text("http://A/"), RawValue::Text("de")];
        let row = rules.read(&id, Some(86_400.5), |place| columns[place]).row;
        assert_eq!(row, FieldRow::new(["a", "site", "1970-01-02", "86400.5", "de", "http://A/"]));
        assert_eq!(rules.place("day"), Some(2));
        assert_eq!(rules.read(&id, None, |_| RawValue::Absent).flaws.missing, 5);
        let only = rules.only(|name| ["url", "host"].contains(&name));
        assert_eq!(only.read(&id, None, |place| columns[place]).row, FieldRow::new(["a", "http://A/"]));
        let twice = ["host", "host(url)"].map(|one| FieldRule::parse(one).unwrap());
        assert_eq!(FieldRules::new(twice.into()), Err("host".to_owned()));
    }
}
