//! The reasons why a record is bad.

use std::fmt;

/// The reason why a record is not an event. A small fixed set, so that records can be counted by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BadRecord {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// It begins with a zero byte: the framing of a schema registry, with a schema id and a body encoded by
    /// that schema.
    Framed,
    /// The line is not one complete JSON value.
    NotJson,
    /// A string that is read has a lone surrogate: half a character, as `\ud83d`.
    LoneSurrogate,
    /// The line is JSON, but not an object.
    NotAnObject,
    /// There is no `id`.
    MissingId,
    /// The id is not a string of 1 to 1,024 bytes, and no whole number where ids are numbers.
    BadId,
    /// Ids are addresses of web pages, and this one is none.
    BadAddress,
    /// `op` is not a string.
    BadOp,
    /// `op` is a string, but no operation.
    UnknownOp,
    /// `ts` is neither a number of seconds from 0 to before the year 2100 nor a date in that range.
    /// Milliseconds are usually beyond it.
    BadTs,
    /// An upsert has no `text`.
    MissingText,
    /// The text of an upsert is not a string.
    BadText,
    /// A further field of an upsert that is read with its text is not a string.
    BadField,
    /// The features or the fingerprint that an upsert brings are not [of the form](dupflow_core::text::Given)
    /// that the pipeline reads.
    BadFeatures,
    /// A quote opens a cell of a table that holds line ends and what looks like further rows.
    OpenQuote,
    /// The record is longer than [`MAX_RECORD_BYTES`].
    TooLong,
    /// An input ends early or is damaged; the records before count.
    Truncated,
    /// An input, a file or a folder cannot be read.
    Unreadable,
}

impl BadRecord {
    /// Every reason, in the order in which a record is checked.
    pub const ALL: [Self; 19] = [
        Self::Framed,
        Self::NotUtf8,
        Self::NotJson,
        Self::LoneSurrogate,
        Self::NotAnObject,
        Self::MissingId,
        Self::BadId,
        Self::BadAddress,
        Self::BadOp,
        Self::UnknownOp,
        Self::BadTs,
        Self::MissingText,
        Self::BadText,
        Self::BadField,
        Self::BadFeatures,
        Self::OpenQuote,
        Self::TooLong,
        Self::Truncated,
        Self::Unreadable,
    ];

    /// Its name in counts and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::Framed => "framed",
            Self::NotJson => "not_json",
            Self::LoneSurrogate => "lone_surrogate",
            Self::NotAnObject => "not_an_object",
            Self::MissingId => "missing_id",
            Self::BadId => "bad_id",
            Self::BadAddress => "bad_address",
            Self::BadOp => "bad_op",
            Self::UnknownOp => "unknown_op",
            Self::BadTs => "bad_ts",
            Self::MissingText => "missing_text",
            Self::BadText => "bad_text",
            Self::BadField => "bad_field",
            Self::BadFeatures => "bad_features",
            Self::OpenQuote => "open_quote",
            Self::TooLong => "too_long",
            Self::Truncated => "truncated",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "not UTF-8 text",
            Self::Framed => {
                "a zero byte first: a schema registry's framing, which is not read; write JSON or text"
            }
            Self::NotJson => "not a complete JSON value",
            Self::LoneSurrogate => {
                "a string has a lone surrogate, half a character as \"\\ud83d\": --json-surrogates replace \
                 (json.surrogates) reads U+FFFD there"
            }
            Self::NotAnObject => "JSON, but not an object with an \"id\"",
            Self::MissingId => "no id",
            Self::BadId => {
                "the id is not a string of 1 to 1,024 bytes, and no whole number where the first id is one"
            }
            Self::BadAddress => {
                "the id is no address of a web page, as in https://example.org/a (--canonical-url)"
            }
            Self::BadOp => "its operation is not a string",
            Self::UnknownOp => "\"op\" is neither \"upsert\" nor \"delete\"",
            Self::BadTs => {
                "its time is not a number of seconds before the year 2100, and no date of ISO 8601"
            }
            Self::MissingText => "an upsert without a text",
            Self::BadText => "its text is not a string",
            Self::BadField => "a field of \"text.fields\" is not a string",
            Self::BadFeatures => {
                "its text has not the form of text.features = \"given\": a list such as [\"a\", 7] or words \
                 between blanks; of a fingerprint 16 hexadecimal digits for 64 bits, or whole numbers of 64 \
                 bits in a list, as in [14110306431060090639]"
            }
            Self::OpenQuote => "an open quote, and rows in one cell",
            Self::TooLong => "longer than 64 MiB",
            Self::Truncated => "the input ends early or is damaged here",
            Self::Unreadable => "cannot be read",
        })
    }
}

/// The place of a bad record in its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// The line with this number, from 1.
    Line(u64),
    /// The record at this offset.
    Offset(u64),
    /// The record with this number in its file, from 0.
    Record(u64),
    /// The record that begins at this byte of its file, from 0.
    Byte(u64),
    /// The record with this number in its file, from 0, and records behind it.
    From(u64),
    /// The record that begins at this byte of its file, from 0, and records behind it.
    FromByte(u64),
    /// The whole input or file.
    Whole,
}

impl RecordPlace {
    /// The place where records behind it are lost too.
    #[must_use]
    pub fn and_behind(self) -> Self {
        match self {
            Self::Byte(at) => Self::FromByte(at),
            other => other,
        }
    }
}

/// The longest record in bytes, inclusive, without its line end: 64 MiB. A longer one is rejected as
/// `too_long` and skipped in pieces, so that one broken line cannot use up all memory.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_are_distinct_snake_case() {
        let reasons: BTreeSet<_> = BadRecord::ALL.iter().map(|bad| bad.reason()).collect();
        assert_eq!(reasons.len(), BadRecord::ALL.len());
        assert!(reasons.iter().all(|r| r.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))));
    }
}
