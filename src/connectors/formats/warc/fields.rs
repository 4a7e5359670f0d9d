//! Heads of WARC records and HTTP messages, and their lines `name: value`.

use std::borrow::Cow;

/// Maximum length of the head of a record and of an HTTP message, in bytes, inclusive.
pub(super) const MAX_HEAD: usize = 1 << 20;

/// The lines of one head. Names are compared without case. Lines end in CRLF or LF. A line that begins with a
/// space continues the previous one. Other lines are ignored.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(&'a [u8], Cow<'a, [u8]>)>);

impl<'a> Fields<'a> {
    /// The lines of a head, without its first line.
    pub(super) fn parse(head: &'a [u8]) -> Self {
        let mut fields = Self::default();
        for line in head.split(|byte| *byte == b'\n') {
            if line.first().is_some_and(|first| matches!(first, b' ' | b'\t')) {
                if let Some((_, value)) = fields.0.last_mut() {
                    let value = value.to_mut();
                    if !value.is_empty() {
                        value.push(b' ');
                    }
                    value.extend_from_slice(line.trim_ascii());
                }
            } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                fields.0.push((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii().into()));
            }
        }
        fields
    }

    /// The value of the first line of this name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The values of all lines of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = self.0.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| &**value)
    }

    /// The value of the first line of this name, if it is UTF-8.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }
}

/// The length of a head including the empty line that ends it; `None` if the end is not in these bytes.
pub(super) fn head_length(bytes: &[u8]) -> Option<usize> {
    lines(bytes, 0).find_map(|at| empty_line(&bytes[at..]).map(|length| at + length))
}

/// The offsets after line ends, except line ends within the first `seen` bytes.
pub(super) fn lines(bytes: &[u8], seen: usize) -> impl Iterator<Item = usize> {
    let ends = bytes.iter().enumerate().skip(seen).filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1)
}

/// The length of the empty line at the beginning of these bytes, if there is one.
pub(super) fn empty_line(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => None,
    }
}

/// The type of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    /// The type and the subtype, in lower case.
    pub(super) name: String,
    pub(super) charset: Option<String>,
}

impl MediaType {
    /// The type that header lines state: the last valid one, with the charset of an earlier one if only that
    /// names it (WHATWG Fetch, "extract a MIME type").
    pub(super) fn from_values<'v>(values: impl Iterator<Item = &'v [u8]>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for value in values {
            let mut is_quoted = false;
            let parts = value.split(|byte| {
                is_quoted ^= *byte == b'"';
                *byte == b',' && !is_quoted
            });
            for one in parts.filter_map(|part| Self::of_value(std::str::from_utf8(part).ok()?)) {
                let before = found.take().filter(|before| before.name == one.name);
                let charset = one.charset.or(before.and_then(|before| before.charset));
                found = Some(Self { name: one.name, charset });
            }
        }
        found
    }

    fn of_value(value: &str) -> Option<Self> {
        let mut parts = value.split(';');
        let name = parts.next()?.trim().to_ascii_lowercase();
        let (kind, subtype) = name.split_once('/')?;
        let is_token = |part: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
            !part.is_empty() && part.bytes().all(is_allowed)
        };
        if !(is_token(kind) && is_token(subtype)) {
            return None;
        }
        let parameters = parts.filter_map(|parameter| parameter.split_once('='));
        let mut charsets = parameters.filter(|(of, _)| of.trim().eq_ignore_ascii_case("charset"));
        let charset = charsets.next().map(|(_, charset)| charset.trim().trim_matches(['"', '\'']).to_owned());
        Some(Self { name, charset })
    }
}

/// The first bytes of every record.
pub(super) const RECORD: &[u8] = b"WARC/";

/// Number of bytes that show whether a record begins: `WARC/0.17`, a line end, `Content-`.
pub(super) const FIRST: usize = RECORD.len() + 4 + 2 + 8;

/// Whether a record begins here: its version, and the first header.
pub(super) fn is_head(bytes: &[u8]) -> bool {
    version(bytes).is_some_and(|rest| {
        let named = |name: &[u8]| rest.get(..name.len()).is_some_and(|here| here.eq_ignore_ascii_case(name));
        named(b"WARC-") || named(b"Content-")
    })
}

/// Whether the line at `at` is the second line of a record that the search would find, other than the one at
/// the beginning of these bytes.
pub(super) fn is_second_line(bytes: &[u8], at: usize) -> bool {
    // The first line has between 9 (`WARC/1.0`, LF) and 11 bytes (`WARC/0.17`, CRLF).
    (RECORD.len() + 4..=RECORD.len() + 6).any(|line| at > line && is_head(&bytes[at - line..]))
}

/// The bytes after the line of a known version.
pub(super) fn version(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(RECORD)?;
    let rest =
        [b"0.17".as_slice(), b"0.18", b"1.0", b"1.1"].iter().find_map(|known| rest.strip_prefix(*known))?;
    rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))
}

pub(super) fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// A value without the angle brackets around it.
pub(super) fn unbracketed(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|inner| inner.strip_suffix(b">")).unwrap_or(value)
}
