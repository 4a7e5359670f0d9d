//! Reads the text of a file that is one document.
//!
//! A file's name and bytes -> its text, or `None` if it is no text. Compression is detected by the first
//! bytes. A file named `.html`, `.htm` or `.xhtml` (in any case) is a page: its bytes are
//! [decoded](dupflow_core::html::with_doctype) by its own encoding, and its text begins with a doctype. Any
//! other file is UTF-8, or UTF-16 with a byte order mark, which is removed; or a page, if its content is one.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use encoding_rs::Encoding;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::containers;
use super::super::storage::Compression;
use dupflow_core::html;

/// Why the text of a file is not read.
#[derive(Debug)]
pub(crate) enum NoText {
    /// It has none: the reason, and the message of the system or the decompressor.
    Bad(BadRecord, Option<String>),
    /// A read failed; another one may succeed.
    Failed(String),
}

/// Whether a file cannot be opened for what it is: it does not exist, or may not be read. Any other error is
/// of the system, which may open it at another time.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Reads the text of a file into a buffer. `stored` is called with its stored bytes: all, or one more than
/// the limit.
///
/// # Errors
/// Why there is none.
pub(crate) fn read_text<'b>(
    path: &Path,
    buffer: &'b mut Vec<u8>,
    stored: impl FnOnce(&[u8]),
) -> Result<Cow<'b, str>, NoText> {
    // One byte more than the limit, to detect a longer file.
    let limit = MAX_RECORD_BYTES as u64 + 1;
    buffer.clear();
    let file = File::open(path).map_err(|error| match is_refusal(&error) {
        true => NoText::Bad(BadRecord::Unreadable, Some(error.to_string())),
        false => NoText::Failed(error.to_string()),
    })?;
    file.take(limit).read_to_end(buffer).map_err(|error| NoText::Failed(error.to_string()))?;
    stored(buffer);
    let mut name = Cow::Borrowed(path);
    let compression = Compression::detect(buffer);
    if compression != Compression::None && buffer.len() <= MAX_RECORD_BYTES {
        let mut whole = Vec::new();
        let decode = compression.decode(&buffer[..]);
        let read = decode.and_then(|bytes| bytes.take(limit).read_to_end(&mut whole));
        read.map_err(|error| NoText::Bad(BadRecord::Truncated, Some(error.to_string())))?;
        *buffer = whole;
        if path
            .extension()
            .is_some_and(|end| ["gz", "zst", "zstd"].iter().any(|one| end.eq_ignore_ascii_case(one)))
        {
            name = Cow::Owned(path.with_extension(""));
        }
    }
    if buffer.len() > MAX_RECORD_BYTES {
        return Err(NoText::Bad(BadRecord::TooLong, None));
    }
    if containers::is_pointer(buffer) {
        return Err(NoText::Bad(BadRecord::Unreadable, containers::binary(buffer)));
    }
    let what = containers::binary(buffer);
    text_of_file(&name, buffer).ok_or(NoText::Bad(BadRecord::NotUtf8, what))
}

/// The text of a file with this name and these bytes.
pub fn text_of_file<'b>(path: &Path, bytes: &'b [u8]) -> Option<Cow<'b, str>> {
    let is_page = path.extension().is_some_and(|extension| {
        ["html", "htm", "xhtml"].iter().any(|page| extension.eq_ignore_ascii_case(page))
    });
    if is_page {
        return Some(html::with_doctype(bytes, None));
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
    fn pages_are_detected_by_name() {
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
    fn compressed_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            read_text(&path, &mut b"of before".to_vec(), |_| ()).map(Cow::into_owned)
        };
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let mut gzip = flate2::read::GzEncoder::new("<p>ไทย 漢字".as_bytes(), flate2::Compression::fast());
        let mut gzipped = Vec::new();
        gzip.read_to_end(&mut gzipped).unwrap();
        assert_eq!(read("a.html.gz", &gzipped).unwrap(), "<!doctype html><p>ไทย 漢字");
        assert_eq!(read("a.txt.GZ", &gzipped).unwrap(), "<p>ไทย 漢字");
        assert_eq!(read("a", &zstd("漢字".as_bytes())).unwrap(), "漢字");
        assert_eq!(read("a.html", b"plain").unwrap(), "<!doctype html>plain");
        let of = |why| match why {
            NoText::Bad(reason, _) => reason,
            NoText::Failed(what) => panic!("{what}"),
        };
        let reason = |name, bytes: &[u8]| of(read(name, bytes).unwrap_err());
        assert_eq!(reason("a.gz", &gzipped[..gzipped.len() - 9]), BadRecord::Truncated);
        assert_eq!(reason("a.gz", &zstd(b"\xff")), BadRecord::NotUtf8);
        assert_eq!(reason("a.zst", &zstd(&vec![b' '; MAX_RECORD_BYTES + 1])), BadRecord::TooLong);
        assert_eq!(
            of(read_text(&folder.path().join("none"), &mut Vec::new(), |_| ()).unwrap_err()),
            BadRecord::Unreadable
        );
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
