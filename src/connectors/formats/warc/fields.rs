//! Header lines `name: value`, of WARC records and HTTP messages.

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

/// The type of a `Content-Type`, without its parameters.
pub(super) fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// The `charset` of a `Content-Type`.
pub(super) fn charset(value: &str) -> Option<&str> {
    let named = value.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut found = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    found.next().map(|(_, charset)| charset.trim().trim_matches(['"', '\'']))
}
