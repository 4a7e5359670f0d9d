//! The inputs of a replay: what they are, and how they are opened.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::SourceError;

/// Bytes read from an input at once. Large enough that system calls do not show, small enough for the second-level cache.
pub(super) const READ_BYTES: usize = 128 << 10;

/// One input, in the order of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A feed on standard input.
    Stdin,
    /// A feed in a file, plain or compressed.
    Feed(PathBuf),
    /// A folder whose files are documents.
    Folder(PathBuf),
}

impl Input {
    /// What the arguments name; `-` is standard input.
    ///
    /// # Errors
    /// Every argument that cannot be read, all of them in one error.
    pub fn resolve<P: AsRef<Path>>(arguments: impl IntoIterator<Item = P>) -> Result<Vec<Self>, SourceError> {
        let mut inputs = Vec::new();
        let mut problems = Vec::new();
        for argument in arguments {
            let path = argument.as_ref();
            match Self::of(path) {
                Ok(Self::Stdin) if inputs.contains(&Self::Stdin) => {
                    problems.push("standard input \"-\" is named more than once".to_owned());
                }
                Ok(input) => inputs.push(input),
                Err(error) => problems.push(format!("cannot read \"{}\": {error}", path.display())),
            }
        }
        if problems.is_empty() { Ok(inputs) } else { Err(SourceError::Inputs(problems)) }
    }

    fn of(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdin);
        }
        let kind = path.metadata()?.file_type();
        if kind.is_dir() {
            path.read_dir()?;
            return Ok(Self::Folder(path.to_owned()));
        }
        // A pipe is opened once, when its turn comes: to open and close it here would end its writer.
        if kind.is_file() {
            File::open(path)?;
        }
        Ok(Self::Feed(path.to_owned()))
    }

    /// Its name in messages.
    pub fn name(&self) -> Arc<str> {
        match self {
            Self::Stdin => "-".into(),
            Self::Feed(path) | Self::Folder(path) => path.to_string_lossy().into(),
        }
    }
}

/// Opens a file that may be compressed with zstd or gzip, as a feed may.
///
/// # Errors
/// If it cannot be opened or read.
pub fn open(path: &Path) -> io::Result<impl BufRead + use<>> {
    File::open(path).and_then(FeedReader::new).map(|feed| feed.bytes)
}

/// A feed's bytes, decompressed.
pub(super) struct FeedReader {
    pub(super) bytes: Box<dyn BufRead>,
    /// Then an error in the middle means that the input is damaged, else that it cannot be read.
    pub(super) compressed: bool,
}

impl FeedReader {
    /// Opens a feed by its first bytes, not by its name: a compressed feed may come through a pipe.
    pub(super) fn new(mut raw: impl Read + 'static) -> io::Result<Self> {
        let mut magic = Vec::new();
        raw.by_ref().take(4).read_to_end(&mut magic)?;
        // A frame, or a skippable frame before it, as parallel compressors write.
        let zstd = matches!(magic[..], [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let raw = Cursor::new(magic).chain(raw);
        let bytes: Box<dyn BufRead> = if zstd {
            Box::new(BufReader::with_capacity(READ_BYTES, zstd::Decoder::new(raw)?))
        } else if gzip {
            let raw = BufReader::with_capacity(READ_BYTES, raw);
            Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(raw)))
        } else {
            Box::new(BufReader::with_capacity(READ_BYTES, raw))
        };
        Ok(Self { bytes, compressed: zstd || gzip })
    }
}

/// The rest of a line, as a reader that ends before the newline and consumes it.
pub(super) struct RestOfLine<'r, R> {
    reader: &'r mut R,
    ended: bool,
    /// Bytes that it has consumed.
    pub(super) taken: u64,
    /// What ended the reader in the middle of the line, held back for the one who reads on.
    pub(super) error: Option<io::Error>,
}

impl<'r, R: BufRead> RestOfLine<'r, R> {
    /// What `reader` still holds of its current line.
    pub(super) fn of(reader: &'r mut R) -> Self {
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
        let length = { window }.skip_until(b'\n')?;
        let newline = window[..length].ends_with(b"\n");
        let taken = length - usize::from(newline);
        out[..taken].copy_from_slice(&window[..taken]);
        self.ended = newline || length == 0;
        self.taken += length as u64;
        self.reader.consume(length);
        Ok(taken)
    }
}
