//! The HTTP message of a `response` record: status, head, and decoded body.
//!
//! Archives store either the body as it was sent or the decoded body, but always with the original head. So a
//! body that does not have an encoding of its head is used as it is, and an unknown encoding is ignored. The
//! rules for heads are those of browsers.

use std::io::{self, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::body::{chunked, is_binary};
use super::broken::ArchiveError;
use super::fields::{Fields, MAX_HEAD, head_length};

/// Maximum number of encodings of one body, inclusive.
const MAX_ENCODINGS: usize = 4;

/// The encodings that are removed.
const ENCODINGS: [&str; 7] = ["chunked", "gzip", "x-gzip", "deflate", "x-deflate", "br", "zstd"];

/// Bytes that a compressed body may be longer than the text in it, where it is stored uncompressed.
const STORED: usize = 64;

/// An HTTP message.
#[derive(Debug)]
pub(super) struct HttpMessage<'a> {
    /// 0 if it is no number of three digits.
    pub(super) status: u16,
    pub(super) fields: Fields<'a>,
    /// The body as it was stored.
    body: &'a [u8],
}

/// A decoded body.
#[derive(Debug, Default)]
pub(super) struct DecodedBody {
    pub(super) bytes: Vec<u8>,
    /// Whether it ends before its encoding does.
    pub(super) is_cut: bool,
}

/// Where an HTTP message begins: at `HTTP`, in any case, within the first five bytes.
pub(super) fn http_begin(bytes: &[u8]) -> Option<usize> {
    (0..=4).find(|at| bytes.get(*at..at + 4).is_some_and(|name| name.eq_ignore_ascii_case(b"http")))
}

impl<'a> HttpMessage<'a> {
    /// Parses the head of a message. Messages with a status from 100 to 199 before it are skipped.
    pub(super) fn parse(mut bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let broken = || ArchiveError::new(BadRecord::Unreadable, "no HTTP status line");
        loop {
            bytes = http_begin(bytes).map(|at| &bytes[at..]).ok_or_else(broken)?;
            // A head at the end of the record may lack the empty line.
            let all = (bytes.len() <= MAX_HEAD).then_some(bytes.len());
            let too_long = || ArchiveError::new(BadRecord::Unreadable, "an HTTP head longer than 1 MiB");
            let head = head_length(&bytes[..bytes.len().min(MAX_HEAD)]).or(all).ok_or_else(too_long)?;
            let (head, body) = bytes.split_at(head);
            let status = status(head);
            if (100..200).contains(&status) && http_begin(body).is_some() {
                bytes = body;
                continue;
            }
            return Ok(Self { status, fields: Fields::parse(head), body });
        }
    }

    /// The body without its transfer and content encodings, which are removed in reverse order.
    pub(super) fn body(&self) -> Result<DecodedBody, ArchiveError> {
        let named = |name| {
            let values = self.fields.all(name).flat_map(|value| value.split(|byte| *byte == b','));
            let names = values.map(|one| String::from_utf8_lossy(one.trim_ascii()).to_ascii_lowercase());
            names.filter(|one| !matches!(one.as_str(), "" | "identity" | "none")).collect::<Vec<_>>()
        };
        let all: Vec<_> = named("content-encoding").into_iter().chain(named("transfer-encoding")).collect();
        let (encodings, unknown): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| ENCODINGS.contains(&&**one));
        if encodings.len() > MAX_ENCODINGS {
            return Err(ArchiveError::new(BadRecord::Unreadable, "more than four encodings of a body"));
        }
        let mut body = DecodedBody { bytes: self.body.to_vec(), is_cut: false };
        for encoding in encodings.iter().rev() {
            if let Some((bytes, is_cut)) = decode(encoding, &body.bytes)? {
                body = DecodedBody { bytes, is_cut: body.is_cut | is_cut };
            }
        }
        // A body of text does not have the unknown encoding of its head, such as `utf-8` and `aws-chunked`.
        match unknown.first() {
            Some(encoding) if is_binary(&body.bytes) => {
                let cause = format!("the content encoding {encoding:?}");
                Err(ArchiveError::new(BadRecord::Unreadable, cause))
            }
            _ => Ok(body),
        }
    }
}

/// The status of a message: the number that begins the second word, or 200 if there is no number.
fn status(head: &[u8]) -> u16 {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let digits = |word: &[u8]| word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = words.skip(1).map(|word| &word[..digits(word)]).next().unwrap_or_default();
    if number.is_empty() {
        return 200;
    }
    std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Removes one encoding; returns the body and whether it ends early, or `None` if the body does not have the
/// encoding.
fn decode(encoding: &str, body: &[u8]) -> Result<Option<(Vec<u8>, bool)>, ArchiveError> {
    if body.is_empty() {
        return Ok(None);
    }
    match encoding {
        "chunked" => Ok(chunked(body)),
        "gzip" | "x-gzip" => members(body, encoding, &[0x1f, 0x8b], |rest, bytes| {
            let mut decoder = GzDecoder::new(rest);
            (read_all(&mut decoder, bytes), decoder.into_inner())
        }),
        "zstd" => {
            members(
                body,
                encoding,
                &[0x28, 0xb5, 0x2f, 0xfd],
                |rest, bytes| match zstd::Decoder::with_buffer(rest) {
                    Ok(decoder) => {
                        let mut decoder = decoder.single_frame();
                        (read_all(&mut decoder, bytes), decoder.finish())
                    }
                    Err(error) => (Err(error), rest),
                },
            )
        }
        // With a zlib header as the standard requires, and without one as many servers send it.
        "deflate" | "x-deflate" => {
            let has_header = matches!(body, [first, second, ..]
                if first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0);
            match has_header.then(|| unmarked(body, ZlibDecoder::new(body), encoding)) {
                Some(Ok(Some(found))) => Ok(Some(found)),
                _ => unmarked(body, DeflateDecoder::new(body), encoding),
            }
        }
        _ => unmarked(body, brotli_decompressor::Decompressor::new(body, 4096), encoding),
    }
}

/// Decodes the members of a body, each of which begins with these bytes. Other bytes after a member are
/// ignored: servers append line ends, zeros and comments.
fn members<'b>(
    body: &'b [u8],
    encoding: &str,
    magic: &[u8],
    mut decode: impl FnMut(&'b [u8], &mut Vec<u8>) -> (io::Result<()>, &'b [u8]),
) -> Result<Option<(Vec<u8>, bool)>, ArchiveError> {
    let mut bytes = Vec::new();
    let mut rest = body;
    while rest.starts_with(magic) {
        let (read, after) = decode(rest, &mut bytes);
        if let Some(is_cut) = ending(read, &bytes, encoding)? {
            return Ok(Some((bytes, is_cut)));
        }
        rest = after;
    }
    Ok((rest.len() < body.len()).then_some((bytes, false)))
}

/// Decodes a body of an encoding without magic bytes. `None` if it was stored decoded: it is a text, and no
/// complete text of about its length or more is encoded in it.
fn unmarked(
    body: &[u8],
    mut decoder: impl Read,
    encoding: &str,
) -> Result<Option<(Vec<u8>, bool)>, ArchiveError> {
    let mut bytes = Vec::new();
    let read = read_all(&mut decoder, &mut bytes);
    let is_little = bytes.is_empty() || bytes.len() + STORED < body.len();
    if !is_binary(body) && (read.is_err() || is_little || is_binary(&bytes)) {
        return Ok(None);
    }
    let is_cut = ending(read, &bytes, encoding)?.unwrap_or(false);
    Ok(Some((bytes, is_cut)))
}

/// How decoding has ended: whether the body ends early or is damaged after some of it, or `None` if it is
/// complete.
fn ending(read: io::Result<()>, bytes: &[u8], encoding: &str) -> Result<Option<bool>, ArchiveError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(ArchiveError::new(BadRecord::TooLong, format!("a body decoded from {encoding}")));
    }
    match read {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof || !bytes.is_empty() => Ok(Some(true)),
        Err(error) => Err(ArchiveError::new(BadRecord::Unreadable, format!("{encoding}: {error}"))),
    }
}

/// Appends everything that a decoder returns, up to one byte more than a record may have.
fn read_all(decoder: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let most = (MAX_RECORD_BYTES + 1).saturating_sub(bytes.len());
    decoder.take(most as u64).read_to_end(bytes).map(drop)
}
