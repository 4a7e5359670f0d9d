//! A value of a column, as text, as an id, as a time, and as features.

use std::fmt::Write;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::rows::{found, no_time};
use crate::instant;
use dupflow_core::text::Given;

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellValue<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Seconds(f64),
    /// A number, and how many of its digits are after the point.
    Decimal(i128, u32),
    Uuid(u128),
    Bytes(&'a [u8]),
    /// Bytes of a column in which all values have the same length.
    Fixed(&'a [u8]),
    List(Vec<Self>),
    /// A list of more elements than a record has bytes.
    TooLong,
}

impl CellValue<'_> {
    /// A time in this fraction of a second: the number of units in one second.
    #[expect(clippy::cast_precision_loss, reason = "a double has microseconds until the year 2255")]
    pub(crate) fn of_time(value: i64, parts: u32) -> Self {
        let parts = i64::from(parts);
        Self::Seconds(value.div_euclid(parts) as f64 + value.rem_euclid(parts) as f64 / parts as f64)
    }

    /// A decimal with this number of digits after the point; no number for one that needs more than 128 bits.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_decimal(number: i128, scale: i8) -> Self {
        let zeros = || 10_i128.checked_pow(u32::from(scale.unsigned_abs()));
        match u32::try_from(scale) {
            Ok(scale) => Self::Decimal(number, scale),
            Err(_) => zeros()
                .and_then(|zeros| number.checked_mul(zeros))
                .map_or(Self::Float(f64::NAN), |number| Self::Decimal(number, 0)),
        }
    }

    /// The value as text: numbers in decimal, one line for each element of a list; `None` for null.
    pub(crate) fn bytes(&self) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        let mut text = String::new();
        match self {
            Self::Null => return Ok(None),
            Self::TooLong => return Err((BadRecord::TooLong, "a list".to_owned())),
            Self::Bytes(bytes) | Self::Fixed(bytes) => return Ok(Some(bytes.to_vec())),
            Self::List(values) => {
                let mut joined = Vec::new();
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        joined.push(b'\n');
                    }
                    joined.extend_from_slice(&value.bytes()?.unwrap_or_default());
                    // Many elements may refer to the same value of a dictionary.
                    if joined.len() > MAX_RECORD_BYTES {
                        return Err((BadRecord::TooLong, "a list".to_owned()));
                    }
                }
                return Ok(Some(joined));
            }
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Signed(value) => text = value.to_string(),
            Self::Unsigned(value) => text = value.to_string(),
            Self::Decimal(number, scale) => text = decimal(*number, *scale),
            Self::Float(value) | Self::Seconds(value) => text = value.to_string(),
            Self::Uuid(id) => {
                for (shift, digits) in [(96, 8), (80, 4), (64, 4), (48, 4), (0, 12)] {
                    let part = (id >> shift) & ((1 << (4 * digits)) - 1);
                    let dash = if shift == 96 { "" } else { "-" };
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{dash}{part:0digits$x}");
                }
            }
        }
        Ok(Some(text.into_bytes()))
    }

    /// The value as an id: like [`Self::bytes`], but fixed-length bytes that are not UTF-8 in hexadecimal.
    pub(crate) fn id(&self) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        match self {
            Self::Fixed(bytes) if std::str::from_utf8(bytes).is_err() => Ok(Some(hex(bytes))),
            other => other.bytes(),
        }
    }

    /// The value as the id of a record; numbers with a fraction are called `name`, and hold every whole
    /// number below `inexact`.
    ///
    /// # Errors
    /// If it is a number that stands for several whole numbers.
    pub(crate) fn id_of(self, (name, inexact): (&str, f64)) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        match self {
            Self::Float(id) if id.is_nan() || id.abs() >= inexact => {
                let cause = format!(
                    "the ids are {name}, and {id} stands for several whole numbers: write them as integers, \
                     decimals or strings"
                );
                Err((BadRecord::BadId, cause))
            }
            // Without the sign of a zero.
            Self::Float(id) => Self::Float(id + 0.0).id(),
            value => value.id(),
        }
    }

    /// The value as [given](Given) features, in the form of a text: a list, and a number, as a JSON list;
    /// fixed-length bytes with the bits of a fingerprint as hexadecimal digits; other values as
    /// [`Self::bytes`] has them. `None` for null.
    pub(crate) fn given(&self, given: Given) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        let alone = std::slice::from_ref(self);
        let elements = match self {
            Self::Fixed(bytes) if given == Given::Fingerprint(8 * bytes.len()) => {
                return Ok(Some(hex(bytes)));
            }
            Self::Null | Self::Bytes(_) | Self::Fixed(_) | Self::TooLong => return self.bytes(),
            Self::List(elements) => elements,
            _ => alone,
        };
        let mut list = vec![b'['];
        for (place, element) in elements.iter().enumerate() {
            if place > 0 {
                list.push(b',');
            }
            list.extend(element.feature()?.to_string().into_bytes());
            // As in a text.
            if list.len() > MAX_RECORD_BYTES {
                return Err((BadRecord::TooLong, "a list".to_owned()));
            }
        }
        list.push(b']');
        Ok(Some(list))
    }

    /// Whether the value may be [given](Given) features, of which `text` is the [form](Self::given): a
    /// fingerprint is one; each element of a list is a feature. Features in a text are read later.
    pub(crate) fn is_given(&self, given: Given, text: &[u8]) -> bool {
        let Ok(text) = str::from_utf8(text) else { return false };
        match self {
            _ if matches!(given, Given::Fingerprint(_)) => given.reads(text),
            Self::List(elements) => elements.iter().all(Self::is_feature),
            Self::Bytes(_) | Self::Fixed(_) => true,
            alone => alone.is_feature(),
        }
    }

    /// Whether it is a whole number of 64 bits, or bytes.
    fn is_feature(&self) -> bool {
        match self {
            Self::Signed(value) => *value >= 0,
            Self::Decimal(number, scale) => *scale == 0 && u64::try_from(*number).is_ok(),
            Self::Unsigned(_) | Self::Uuid(_) | Self::Bytes(_) | Self::Fixed(_) => true,
            Self::Null
            | Self::Bool(_)
            | Self::Float(_)
            | Self::Seconds(_)
            | Self::List(_)
            | Self::TooLong => false,
        }
    }

    /// A feature as JSON; other types become a value that the feature parser rejects.
    fn feature(&self) -> Result<serde_json::Value, (BadRecord, String)> {
        Ok(match self {
            Self::Null | Self::List(_) | Self::TooLong => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Signed(value) => (*value).into(),
            Self::Unsigned(value) => (*value).into(),
            Self::Float(value) | Self::Seconds(value) => (*value).into(),
            Self::Decimal(number, 0) if let Ok(number) = u64::try_from(*number) => number.into(),
            Self::Decimal(number, scale) => decimal(*number, *scale).parse::<f64>().ok().into(),
            Self::Uuid(_) | Self::Bytes(_) | Self::Fixed(_) => {
                let text = String::from_utf8(self.id()?.unwrap_or_default());
                let not_text = |_| (BadRecord::BadFeatures, "a feature is no text".to_owned());
                text.map_err(not_text)?.into()
            }
        })
    }

    /// The value as JSON, a number or a string; `None` for null.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Signed(value) => (*value).into(),
            Self::Unsigned(value) => (*value).into(),
            Self::Float(value) | Self::Seconds(value) if value.is_finite() => (*value).into(),
            other => String::from_utf8_lossy(&other.bytes().ok()??).into(),
        })
    }

    /// The value as unix seconds: a time, a number of seconds, or a text with an ISO 8601 date or a number.
    pub(crate) fn seconds(&self) -> Result<Option<f64>, (BadRecord, String)> {
        #[expect(clippy::cast_precision_loss, reason = "a double has seconds for ever")]
        let seconds = match self {
            Self::Null => return Ok(None),
            Self::Seconds(seconds) | Self::Float(seconds) => Some(*seconds),
            Self::Signed(seconds) => Some(*seconds as f64),
            Self::Unsigned(seconds) => Some(*seconds as f64),
            Self::Decimal(number, scale) => decimal(*number, *scale).parse().ok(),
            Self::Bytes(text) | Self::Fixed(text) => {
                if text.trim_ascii().is_empty() {
                    return Ok(None);
                }
                let seconds = std::str::from_utf8(text).ok().and_then(instant::of_text);
                return seconds.map(Some).ok_or_else(|| (BadRecord::BadTs, no_time(text)));
            }
            Self::Bool(_) | Self::Uuid(_) | Self::List(_) | Self::TooLong => None,
        };
        let seconds = seconds.filter(|seconds| seconds.is_finite());
        seconds.map(Some).ok_or_else(|| {
            let value = self.bytes().ok().flatten().unwrap_or_default();
            (BadRecord::BadTs, format!("found {}", found(&value)))
        })
    }
}

/// A decimal number as text, without zeros at the end of its fraction: 7.00 is 7.
fn decimal(number: i128, scale: u32) -> String {
    let scale = scale as usize;
    let digits = format!("{:0>1$}", number.unsigned_abs(), scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if number < 0 { "-" } else { "" };
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// Bytes as hexadecimal digits, the highest bit first.
fn hex(bytes: &[u8]) -> Vec<u8> {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
