//! The text of a file that is one document.
//!
//! A file's name and bytes -> its text, or none if it is no text. One named `.html`, `.htm` or `.xhtml`, in any case, is a page: its bytes
//! are read by [its encoding](crate::html::marked), and its text says that it is one. Any other is UTF-8, or UTF-16 behind a byte order mark, as
//! it stands and without that mark; or a page by what is in it.

use std::borrow::Cow;
use std::path::Path;

use encoding_rs::Encoding;

use crate::html;

/// The text of a file.
pub fn text_of_file<'b>(path: &Path, bytes: &'b [u8]) -> Option<Cow<'b, str>> {
    let is_page = path.extension().is_some_and(|extension| {
        ["html", "htm", "xhtml"].iter().any(|page| extension.eq_ignore_ascii_case(page))
    });
    if is_page {
        return Some(html::marked(bytes, None));
    }
    let text = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => {
            encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..])
        }
        None => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    };
    text.or_else(|| html::page(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Option<String> {
        text_of_file(Path::new(name), bytes).map(Cow::into_owned)
    }

    fn utf16(text: &str) -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect()
    }

    #[test]
    fn pages_are_told_by_their_names() {
        let shift_jis = b"<p>\x93\xfa\x96{\x8c\xea\x82\xcc\x95\xb6\x8f\x91\x82\xc5\x82\xb7\x81B";
        for name in ["a.html", "folder/a.HTM", "a.b.xhtml"] {
            assert_eq!(read(name, "<p>ไทย".as_bytes()).unwrap(), "<!doctype html><p>ไทย");
            assert_eq!(read(name, shift_jis).unwrap(), "<!doctype html><p>日本語の文書です。");
            assert_eq!(read(name, b"<html>a\xff").unwrap(), "<html>aÿ");
        }
        for name in ["a.txt", "html", "a.html.txt", ".html"] {
            assert_eq!(read(name, "<p>ไทย".as_bytes()).unwrap(), "<p>ไทย");
            assert_eq!(read(name, shift_jis), None);
        }
        let named = [b"<html><meta charset=shift_jis>".as_slice(), shift_jis].concat();
        assert_eq!(read("a.php", &named).unwrap(), "<html><meta charset=shift_jis><p>日本語の文書です。");
    }

    #[test]
    fn other_texts_are_utf_8_or_have_a_mark() {
        for text in ["", "漢字 مرحبا 🎉", "<html>"] {
            assert_eq!(read("a", text.as_bytes()).unwrap(), text);
            assert_eq!(read("a", &utf16(text)).unwrap(), text);
            assert_eq!(read("a", &[b"\xef\xbb\xbf", text.as_bytes()].concat()).unwrap(), text);
        }
        for bad in [&b"a\xff"[..], b"\xff", b"\xfe\xff\xd8\x00", b"\xff\xfea", b"\xef\xbb\xbf\xff"] {
            assert_eq!(read("a", bad), None, "{bad:x?}");
        }
    }
}
