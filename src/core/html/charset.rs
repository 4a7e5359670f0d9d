//! Decodes the bytes of a page.
//!
//! The encoding is the first of these that is given:
//!
//! 1. a byte order mark;
//! 2. the encoding in the HTTP header;
//! 3. `<meta charset>`, or its older form, in the first [`META_BYTES`], or else the XML declaration;
//! 4. UTF-8, if the bytes are valid UTF-8;
//! 5. a guess from [`GUESS_BYTES`], beginning at the first byte that is not ASCII.
//!
//! Names are those of the Encoding Standard; unknown names are ignored. Malformed bytes become U+FFFD.
//!
//! References: the HTML standard, 13.2.3 (determining the character encoding); the Encoding Standard.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::scan::{Attributes, MarkupPiece, Scanner, is_space};

/// A page names its encoding within this many bytes of its beginning.
pub const META_BYTES: usize = 1024;

/// The most bytes that a guess reads: 16 KiB. A guess costs 40 ns a byte.
pub const GUESS_BYTES: usize = 16 << 10;

/// The text of a page. `http` is the encoding label of the HTTP header, if there is one.
pub fn decode<'b>(bytes: &'b [u8], http: Option<&str>) -> Cow<'b, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    let by_http = http.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    if let Some(encoding) = by_http.or_else(|| in_page(&bytes[..bytes.len().min(META_BYTES)])) {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => guess(bytes).decode_without_bom_handling(bytes).0,
    }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    // ASCII is the same in all encodings. The two bytes before the first other one show whether it begins a
    // word.
    let rest = &bytes[Encoding::ascii_valid_up_to(bytes).saturating_sub(2)..];
    let some = &rest[..rest.len().min(GUESS_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(some, some.len() == rest.len());
    // Bytes that are UTF-8 except for errors after the first [`GUESS_BYTES`] are decoded as UTF-8.
    detector.guess(None, Utf8Detection::Allow)
}

/// The encoding that the beginning of a page names.
fn in_page(head: &[u8]) -> Option<&'static Encoding> {
    let mut scanner = Scanner::new(head);
    while let Some(piece) = scanner.next() {
        let MarkupPiece::Start { name, attributes, .. } = piece else { continue };
        match head[name.clone()].to_ascii_lowercase().as_slice() {
            b"meta" => {
                if let Some(encoding) = in_meta(&head[attributes]) {
                    return Some(encoding);
                }
            }
            b"script" => drop(scanner.script()),
            b"style" | b"title" | b"noscript" => drop(scanner.raw(&head[name])),
            b"body" => break,
            _ => {}
        }
    }
    in_xml(head)
}

/// `charset`, or `content` if `http-equiv` is `content-type`.
fn in_meta(attributes: &[u8]) -> Option<&'static Encoding> {
    let (mut charset, mut content, mut is_type) = (None, None, false);
    for (name, value) in Attributes::new(attributes) {
        // Of a repeated attribute the first counts.
        match name.to_ascii_lowercase().as_slice() {
            b"charset" => charset = charset.or(Some(value)),
            b"content" => content = content.or_else(|| value_after(value, b"charset")),
            b"http-equiv" => is_type |= value.eq_ignore_ascii_case(b"content-type"),
            _ => {}
        }
    }
    encoding_for_label(charset.or(content.filter(|_| is_type))?)
}

/// The `encoding` of an XML declaration.
fn in_xml(head: &[u8]) -> Option<&'static Encoding> {
    let inside = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = inside.iter().position(|byte| *byte == b'>')?;
    encoding_for_label(value_after(&inside[..end], b"encoding")?)
}

/// The value after a name and `=`, in quotes or not.
fn value_after<'b>(bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let places = bytes.windows(name.len()).enumerate();
    let mut found = places.filter(|(_, window)| window.eq_ignore_ascii_case(name));
    found.find_map(|(at, _)| {
        let value = bytes[at + name.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        match value.split_first() {
            Some((quote @ (b'"' | b'\''), rest)) => rest.split(|byte| byte == quote).next(),
            _ => value.split(|byte| is_space(*byte) || matches!(byte, b';' | b'?')).next(),
        }
    })
}

/// The encoding of a label in a page. The label was read as ASCII, so the page cannot be UTF-16.
fn encoding_for_label(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label_no_replacement(label)?;
    Some(match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}
