//! Parses the usual line by hand: an object whose known fields have valid values, each at most once.
//!
//! A line -> its known fields, or `None` if the line is not of that form; then [`json`](super::json) parses
//! it. So this parser never rejects a record for its form. Where it returns fields, they equal those of
//! `json`; a test compares both on valid and on damaged lines.
//!
//! Why there are two parsers: most bytes of a feed are texts. A library reads them twice, once to check UTF-8
//! and once to find escapes. This parser reads them in one pass of [64 bytes](super::strings) at a time, and
//! checks UTF-8 only in the text.

use serde::de::IgnoredAny;

use super::super::bad_record::BadRecord;
use super::fields::{FieldKind, FieldNames, FieldValue, Further, ParsedFields, operation};
use super::strings;
use crate::instant;
use dupflow_core::doc::DocId;

/// Buffers for strings with escapes; their contents are not kept between lines.
#[derive(Debug, Default)]
pub(super) struct UsualBuffers {
    text: Vec<u8>,
    short: Vec<u8>,
}

/// The known fields, if the line is a usual one. Further fields may be overwritten in either case.
pub(super) fn read<'a>(
    line: &'a [u8],
    names: &FieldNames,
    buffers: &'a mut UsualBuffers,
    further: &mut [Further],
) -> Option<ParsedFields<'a>> {
    let mut found = ParsedFields::default();
    let mut text = Some(&mut buffers.text);
    let mut at = after(line, 0, b'{')?;
    loop {
        let (name, content, number);
        (name, at) = string(line, at, &mut buffers.short)?;
        let key = FieldKind::from_name(name, names, further);
        at = blank(line, after(line, at, b':')?);
        match key {
            FieldKind::Id if names.whole_ids && line.get(at) != Some(&b'"') => {
                (content, at) = whole(line, at, DocId::MAX_BYTES)?;
                found.id = Some(DocId::new(content));
            }
            FieldKind::Id => {
                (content, at) = string(line, at, &mut buffers.short)?;
                found.id = Some(DocId::new(content));
            }
            FieldKind::Op if line[at..].starts_with(b"null") => (found.op, at) = (None, at + 4),
            FieldKind::Op => {
                (content, at) = string(line, at, &mut buffers.short)?;
                found.op = Some(operation(Some(content)));
            }
            FieldKind::Ts if line.get(at) == Some(&b'"') => {
                (content, at) = string(line, at, &mut buffers.short)?;
                found.ts = Some(instant::of_text(content).ok_or(BadRecord::BadTs));
            }
            FieldKind::Ts if line[at..].starts_with(b"null") => (found.ts, at) = (None, at + 4),
            FieldKind::Ts => {
                (number, at) = seconds(line, at)?;
                found.ts = Some(Ok(number));
            }
            FieldKind::Text => {
                // A second text would need a second buffer.
                let held;
                (held, at) = string(line, at, text.take()?)?;
                found.text = Some(FieldValue::Str(held));
            }
            FieldKind::Further(which) if line.get(at) == Some(&b'"') => {
                (content, at) = string(line, at, &mut buffers.short)?;
                further[which].set_text(content);
            }
            FieldKind::Further(which) => {
                let value;
                (value, at) = scalar(line, at)?;
                further[which].set(&value, "");
            }
            FieldKind::Other => at = any(line, at)?,
        }
        at = blank(line, at);
        match *line.get(at)? {
            b',' => at += 1,
            b'}' => return (blank(line, at + 1) == line.len()).then_some(found),
            _ => return None,
        }
    }
}

/// The offset after white space.
fn blank(line: &[u8], at: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + line[at..].iter().take_while(space).count()
}

/// The offset after white space and this byte.
fn after(line: &[u8], at: usize, byte: u8) -> Option<usize> {
    let at = blank(line, at);
    (line.get(at) == Some(&byte)).then_some(at + 1)
}

/// The content of a string after white space, and the offset after it.
fn string<'s>(line: &'s [u8], at: usize, buffer: &'s mut Vec<u8>) -> Option<(&'s str, usize)> {
    strings::read(line, after(line, at, b'"')?, buffer)
}

/// The digits of a whole number without a sign, at most `most`, and the offset after them.
fn whole(line: &[u8], at: usize, most: usize) -> Option<(&str, usize)> {
    let digits = &line[at..at + line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()];
    let is_usual = matches!(digits, [b'1'..=b'9', ..]) && digits.len() <= most;
    let ends = matches!(line.get(at + digits.len()), Some(b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r'));
    (is_usual && ends).then_some((std::str::from_utf8(digits).ok()?, at + digits.len()))
}

/// A number, and the offset after it.
#[expect(clippy::cast_precision_loss, reason = "a time in seconds needs no more than a float's 53 bits")]
fn seconds(line: &[u8], at: usize) -> Option<(f64, usize)> {
    let part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    let token = &line[at..at + line[at..].iter().take_while(part).count()];
    // Whole seconds: no sign, no leading zero, less than 2^64.
    let whole =
        matches!(token, [b'1'..=b'9', rest @ ..] if rest.len() < 18 && rest.iter().all(u8::is_ascii_digit));
    let value = if whole {
        token.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')) as f64
    } else {
        serde_json::from_slice(token).ok()?
    };
    Some((value, at + token.len()))
}

/// A number, a truth value or null, and the offset after it.
fn scalar(line: &[u8], at: usize) -> Option<(FieldValue<'static>, usize)> {
    for (word, value) in
        [("true", FieldValue::Flag(true)), ("false", FieldValue::Flag(false)), ("null", FieldValue::Null)]
    {
        if line[at..].starts_with(word.as_bytes()) {
            return Some((value, at + word.len()));
        }
    }
    if let Some((digits, behind)) = whole(line, at, 18) {
        return Some((FieldValue::Whole(digits.parse().ok()?), behind));
    }
    let (number, behind) = seconds(line, at)?;
    // Other whole numbers (0, negative ones, long ones) are left to the parser that knows their type.
    line[at..behind].iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')).then_some(())?;
    Some((FieldValue::Number(number), behind))
}

/// The offset after any complete value.
fn any(line: &[u8], at: usize) -> Option<usize> {
    let rest = &line[at..];
    if rest.starts_with(b"NaN") {
        return Some(at + 3);
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    // serde_json does not check the UTF-8 of skipped strings.
    simdutf8::basic::from_utf8(&rest[..length]).ok()?;
    Some(at + length)
}
