//! Decompression of inputs: detected by first bytes, read as a stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use super::metered::READ_BYTES;
use super::newline::line_length;

/// Opens a file that may be compressed with zstd or gzip.
///
/// # Errors
/// If it cannot be opened or read.
pub fn open(path: &Path) -> io::Result<impl BufRead + use<>> {
    File::open(path).and_then(FeedReader::new).map(|feed| feed.bytes)
}

/// A feed's bytes, decompressed.
pub(crate) struct FeedReader {
    pub(crate) bytes: Box<dyn BufRead + Send>,
    /// Whether it is compressed: then a read error in the middle means damage, otherwise that the input
    /// cannot be read.
    pub(crate) compressed: bool,
}

/// How a file is compressed. Detected by its first bytes, since the name may be missing or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of a file with these first bytes.
    pub(crate) fn detect(head: &[u8]) -> Self {
        match head {
            // A zstd frame, or the skippable frame that parallel compressors write before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::None,
        }
    }

    /// The bytes of a file, decompressed.
    pub(crate) fn decode<'r>(
        self,
        stored: impl BufRead + Send + 'r,
    ) -> io::Result<Box<dyn BufRead + Send + 'r>> {
        Ok(match self {
            Self::None => Box::new(stored),
            Self::Gzip => Box::new(BufReader::with_capacity(READ_BYTES, GzipMembers::new(stored))),
            Self::Zstd => Box::new(BufReader::with_capacity(READ_BYTES, zstd::Decoder::with_buffer(stored)?)),
        })
    }
}

/// The contents of gzip members. Zeros after the last one are ignored, as by `gzip -d`: tapes and copies of
/// whole blocks add them.
struct GzipMembers<R> {
    /// `None` after the last member.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(stored: R) -> Self {
        Self { member: Some(GzDecoder::new(stored)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let length = member.read(out)?;
            if length > 0 || out.is_empty() {
                return Ok(length);
            }
            let next = self.member.take().map(GzDecoder::into_inner).map(skip_zeros).transpose()?;
            self.member = next.flatten();
        }
        Ok(0)
    }
}

/// The next member; `None` if only zeros follow.
fn skip_zeros<R: BufRead>(mut stored: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut are_zeros = false;
    loop {
        let bytes = match stored.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros < bytes.len() {
            if are_zeros || zeros > 0 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "bytes after zeros, between gzip members",
                ));
            }
            return Ok(Some(GzDecoder::new(stored)));
        }
        are_zeros = true;
        stored.consume(zeros);
    }
}

impl FeedReader {
    /// Detects the compression by the first bytes, not by the name: a compressed feed may arrive through a
    /// pipe.
    pub(crate) fn new(mut stored: impl Read + Send + 'static) -> io::Result<Self> {
        let mut head = Vec::new();
        stored.by_ref().take(4).read_to_end(&mut head)?;
        let compression = Compression::detect(&head);
        let stored = BufReader::with_capacity(READ_BYTES, Cursor::new(head).chain(stored));
        Ok(Self { bytes: compression.decode(stored)?, compressed: compression != Compression::None })
    }
}

/// The rest of a line, as a reader that ends before the newline and consumes it.
pub(crate) struct RestOfLine<'r, R> {
    reader: &'r mut R,
    ended: bool,
    /// Bytes consumed so far.
    pub(crate) taken: u64,
    /// The read error in the middle of the line, if there was one. The caller handles it after the line.
    pub(crate) error: Option<io::Error>,
}

impl<'r, R: BufRead> RestOfLine<'r, R> {
    /// The part of the current line that `reader` has not consumed.
    pub(crate) fn new(reader: &'r mut R) -> Self {
        Self { reader, ended: false, taken: 0, error: None }
    }
}

impl<R: BufRead> Read for RestOfLine<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ended || out.is_empty() {
            return Ok(0);
        }
        let available = match self.reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.ended = true;
                self.error = Some(error);
                return Ok(0);
            }
        };
        let window = &available[..available.len().min(out.len())];
        let length = line_length(window);
        let newline = window[..length].ends_with(b"\n");
        let taken = length - usize::from(newline);
        out[..taken].copy_from_slice(&window[..taken]);
        self.ended = newline || length == 0;
        self.taken += length as u64;
        self.reader.consume(length);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn zeros_after_members_are_ignored() {
        let read = |stored: &[u8], room| {
            let mut text = String::new();
            let stored = BufReader::with_capacity(room, Cursor::new(stored.to_vec()));
            let mut bytes = Compression::Gzip.decode(stored).unwrap();
            bytes.read_to_string(&mut text).map(|_| text.clone()).map_err(|_| text)
        };
        let two = [member("one\n"), member(""), member("two\n")].concat();
        for room in [1, 7, 4096] {
            for zeros in [0, 1, 9, 10_000] {
                let padded = [&two[..], &vec![0; zeros]].concat();
                assert_eq!(read(&padded, room).as_deref(), Ok("one\ntwo\n"), "{zeros} zeros");
                let further = [padded, member("three\n")].concat();
                assert_eq!(read(&further, room).is_ok(), zeros == 0, "{zeros} zeros");
            }
            // A member whose end is zeros is damaged.
            let mut zeroed = two.clone();
            let end = zeroed.len();
            zeroed[end - 9..].fill(0);
            assert!(read(&zeroed, room).is_err());
            assert!(read(&[&two[..], b"x"].concat(), room).is_err());
        }
    }
}
