//! The HTTP message of a `response` record: status, head, and decoded body.
//!
//! Archives store either the body as it was sent or the decoded body, but always with the original head. So a
//! body that does not begin as its encoding requires is used as it is.

use std::io::{self, BufRead, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::broken::ArchiveError;
use super::fields::{Fields, MAX_HEAD, head_length};

/// Maximum number of encodings of one body, inclusive.
const MAX_ENCODINGS: usize = 4;

/// An HTTP message.
#[derive(Debug)]
pub(super) struct HttpMessage<'a> {
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

impl<'a> HttpMessage<'a> {
    /// Parses the head of a message.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let broken = || ArchiveError::new(BadRecord::Unreadable, "no HTTP status line");
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(&line[..line.len().min(16)]).map_err(|_| broken())?;
        let mut words = line.split_ascii_whitespace();
        let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/"));
        let status = words.next().and_then(|status| status.get(..3)?.parse().ok());
        let status = status.filter(|_| is_http).ok_or_else(broken)?;
        // A head at the end of the record may lack the empty line.
        let all = (bytes.len() <= MAX_HEAD).then_some(bytes.len());
        let too_long = || ArchiveError::new(BadRecord::Unreadable, "an HTTP head longer than 1 MiB");
        let head = head_length(&bytes[..bytes.len().min(MAX_HEAD)]).or(all).ok_or_else(too_long)?;
        Ok(Self { status, fields: Fields::parse(&bytes[..head]), body: &bytes[head..] })
    }

    /// The body without its transfer and content encodings, which are removed in reverse order.
    pub(super) fn body(&self) -> Result<DecodedBody, ArchiveError> {
        let named = |name| {
            let values = self.fields.all(name).flat_map(|value| value.split(|byte| *byte == b','));
            let names = values.map(|one| String::from_utf8_lossy(one.trim_ascii()).to_ascii_lowercase());
            names.filter(|one| !matches!(one.as_str(), "" | "identity" | "none")).collect::<Vec<_>>()
        };
        let encodings: Vec<_> =
            named("content-encoding").into_iter().chain(named("transfer-encoding")).collect();
        if encodings.len() > MAX_ENCODINGS {
            return Err(ArchiveError::new(BadRecord::Unreadable, "more than four encodings of a body"));
        }
        let mut body = DecodedBody { bytes: self.body.to_vec(), is_cut: false };
        for encoding in encodings.iter().rev() {
            if let Some((bytes, is_cut)) = decode(encoding, &body.bytes)? {
                body = DecodedBody { bytes, is_cut: body.is_cut | is_cut };
            }
        }
        Ok(body)
    }
}

/// Removes one encoding; returns the body and whether it ends early, or `None` if the body does not have the
/// encoding.
fn decode(encoding: &str, body: &[u8]) -> Result<Option<(Vec<u8>, bool)>, ArchiveError> {
    if body.is_empty() {
        return Ok(None);
    }
    match encoding {
        "chunked" => Ok(chunked(body)),
        "gzip" | "x-gzip" => match body {
            [0x1f, 0x8b, ..] => all(MultiGzDecoder::new(body), encoding).map(Some),
            _ => Ok(None),
        },
        // With a zlib header as the standard requires, and without one as many servers send it.
        "deflate" | "x-deflate" => match body {
            [first, second, ..] if first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0 => {
                all(ZlibDecoder::new(body), encoding).map(Some)
            }
            _ => unless_plain(body, all(DeflateDecoder::new(body), encoding)),
        },
        "br" => unless_plain(body, all(brotli_decompressor::Decompressor::new(body, 4096), encoding)),
        "zstd" => match body {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => all(zstd::Decoder::new(body)?, encoding).map(Some),
            _ => Ok(None),
        },
        _ => Err(ArchiveError::new(BadRecord::Unreadable, format!("the content encoding {encoding:?}"))),
    }
}

/// For encodings without magic bytes: a body that is plain markup was stored decoded.
fn unless_plain(
    body: &[u8],
    decoded: Result<(Vec<u8>, bool), ArchiveError>,
) -> Result<Option<(Vec<u8>, bool)>, ArchiveError> {
    let is_plain = body.trim_ascii_start().starts_with(b"<") && std::str::from_utf8(body).is_ok();
    match decoded {
        Ok((bytes, is_cut)) if !(is_plain && (is_cut || bytes.is_empty())) => Ok(Some((bytes, is_cut))),
        Err(broken) if !is_plain => Err(broken),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Everything that a decoder returns, and whether its input ends early.
fn all(decoder: impl Read, encoding: &str) -> Result<(Vec<u8>, bool), ArchiveError> {
    let mut bytes = Vec::new();
    let read = decoder.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes);
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(ArchiveError::new(BadRecord::TooLong, format!("a body decoded from {encoding}")));
    }
    match read {
        Ok(_) => Ok((bytes, false)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok((bytes, true)),
        Err(error) => Err(ArchiveError::new(BadRecord::Truncated, format!("{encoding}: {error}"))),
    }
}

/// Removes the sizes of chunks; also returns whether a chunk is missing. `None` if the body is not chunked.
fn chunked(mut body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut is_first = true;
    loop {
        let from = body;
        let length = body.skip_until(b'\n').unwrap_or(0);
        let line = &from[..length];
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let size = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        match size {
            Some(0) => return Some((bytes, false)),
            Some(size) if line.ends_with(b"\n") => {
                bytes.extend_from_slice(&body[..size.min(body.len())]);
                if size > body.len() {
                    return (!is_first || size <= MAX_RECORD_BYTES).then_some((bytes, true));
                }
                body = &body[size..];
                body = body.strip_prefix(b"\r\n").or_else(|| body.strip_prefix(b"\n")).unwrap_or(body);
            }
            _ => return (!is_first).then_some((bytes, true)),
        }
        is_first = false;
    }
}
