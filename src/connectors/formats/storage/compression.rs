//! Decompression of inputs: detected by first bytes, read as a stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use super::metered::READ_BYTES;
use super::newline::line_length;

/// The greatest window of a zstd frame that is read, as a power of two: 1 GiB. A reader takes as much memory
/// as its window has, once it has read as many bytes.
pub(crate) const WINDOW_LOG_MAX: u32 = 30;

/// Opens a file that may be compressed with zstd or gzip.
///
/// # Errors
/// If it cannot be opened or read.
pub fn open(path: &Path) -> io::Result<impl BufRead + use<>> {
    File::open(path).and_then(FeedReader::new).map(|feed| feed.bytes)
}

/// The bytes of a stream that may be compressed with zstd or gzip.
///
/// # Errors
/// If it cannot be read.
pub fn decompressed(stored: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    FeedReader::new(stored).map(|feed| feed.bytes)
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
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(stored)?;
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Box::new(BufReader::with_capacity(READ_BYTES, Windowed(decoder)))
            }
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

/// A zstd decoder whose error for a window above the bound says so.
struct Windowed<R>(R);

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| match error.to_string() {
            // The library's words for a window above its bound.
            text if text.contains("too much memory") => io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "a frame of zstd has a window above {} bytes, which is not read: decompress the file \
                     first, as zstd -dc --long=31 does",
                    1_u64 << WINDOW_LOG_MAX
                ),
            ),
            _ => error,
        })
    }
}

/// The window in bytes of the first zstd frame with a window above the bound, if it is the first frame with
/// content of a file that begins with these bytes.
///
/// Reference: RFC 8878, sections 3.1.1.1 and 3.1.2.
pub(crate) fn window_above_bound(head: &[u8]) -> Option<u64> {
    let mut rest = head;
    // Skippable frames: a size of four bytes after the magic.
    while let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *rest {
        let size = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        rest = rest.get(8_usize.checked_add(size)?..)?;
    }
    let [0x28, 0xb5, 0x2f, 0xfd, flags, window, ..] = *rest else { return None };
    // A frame in a single segment has no window but its content's size, of 1, 2, 4 or 8 bytes behind the id
    // of a dictionary.
    let bytes = if flags & 0x20 == 0 {
        let base = 1_u64 << (10 + (window >> 3));
        base + base / 8 * u64::from(window & 7)
    } else {
        let at = 5 + [0, 1, 2, 4][usize::from(flags & 3)];
        match flags >> 6 {
            2 => u64::from(u32::from_le_bytes(*rest.get(at..)?.first_chunk()?)),
            3 => u64::from_le_bytes(*rest.get(at..)?.first_chunk()?),
            _ => 0,
        }
    };
    (bytes > 1 << WINDOW_LOG_MAX).then_some(bytes)
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
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

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

    /// A zstd frame of these bytes with a window of `2^log` bytes, though it has few.
    fn frame(bytes: &[u8], log: u32) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(log).unwrap();
        encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap()
    }

    #[test]
    fn windows_up_to_the_bound_are_read() {
        let read = |stored: &[u8]| {
            let mut text = String::new();
            let read = Compression::detect(stored).decode(stored)?.read_to_string(&mut text);
            read.map(|_| text)
        };
        let skippable = [&b"\x51\x2a\x4d\x18\x03\0\0\0abc"[..], &frame(b"text", 31)].concat();
        for log in [20, 27, 28, WINDOW_LOG_MAX] {
            let stored = frame(b"text", log);
            assert_eq!(
                (read(&stored).unwrap().as_str(), window_above_bound(&stored)),
                ("text", None),
                "{log}"
            );
        }
        for stored in [frame(b"text", 31), skippable] {
            assert_eq!(window_above_bound(&stored), Some(1 << 31));
            let error = read(&stored).unwrap_err();
            assert!(error.to_string().contains("a window above 1073741824 bytes"), "{error}");
        }
        // A single segment has its content's size as its window.
        let segment = zstd::bulk::compress(b"text", 1).unwrap();
        assert!(segment[4] & 0x20 != 0 && window_above_bound(&segment).is_none());
        let mut long = b"\x28\xb5\x2f\xfd\xe0".to_vec();
        long.extend(3_u64.pow(20).to_le_bytes());
        assert_eq!(window_above_bound(&long), Some(3_u64.pow(20)));
        // A later frame is found while it is read.
        let later = [frame(b"text", 20), frame(b"more", 31)].concat();
        assert_eq!(window_above_bound(&later), None);
        assert!(read(&later).unwrap_err().to_string().contains("zstd -dc --long=31"));
        assert_eq!(window_above_bound(b"\x50\x2a\x4d\x18\xff\xff\xff\xff"), None);
    }
}
