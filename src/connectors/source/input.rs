//! The inputs of a replay: what they are, and how they are opened.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::layout::{FileFormat, Layout, by_name};
use super::metered::READ_BYTES;
#[cfg(feature = "object-store")]
use super::remote::Object;

/// One input, in the order of the command line, and how its records are to be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub(super) place: InputPlace,
    pub(super) layout: Arc<Layout>,
}

/// Where an input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InputPlace {
    /// Standard input.
    Stdin,
    /// A file, or a pipe.
    File(PathBuf),
    /// A folder.
    Folder(PathBuf),
    /// A file's bytes, under a name.
    Memory(Arc<str>, Arc<[u8]>),
    /// An object of a store, or a file behind an address.
    #[cfg(feature = "object-store")]
    Object(Arc<Object>),
}

impl Input {
    /// A file of records, in JSON Lines unless it says otherwise, or a folder.
    pub fn of_records(path: &Path) -> Self {
        let is_document =
            matches!(by_name(&path.to_string_lossy()), Some(FileFormat::Text | FileFormat::Html));
        let format = Some(FileFormat::Jsonl).filter(|_| is_document && !path.is_dir());
        Self { layout: Arc::new(Layout { format, ..Layout::default() }), ..Self::at(path) }
    }

    /// The bytes of a file of this name.
    pub fn of_bytes(name: &str, bytes: impl Into<Arc<[u8]>>, layout: Layout) -> Self {
        Self { place: InputPlace::Memory(name.into(), bytes.into()), layout: Arc::new(layout) }
    }

    /// A file or a folder, read as it asks for by itself.
    pub fn at(path: &Path) -> Self {
        let place = if path.is_dir() {
            InputPlace::Folder(path.to_owned())
        } else {
            InputPlace::File(path.to_owned())
        };
        Self { place, layout: Arc::default() }
    }

    /// Whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.place == InputPlace::Stdin
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self.place, InputPlace::Folder(_))
    }

    /// The file or folder that it is.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            InputPlace::File(path) | InputPlace::Folder(path) => Some(path),
            InputPlace::Stdin | InputPlace::Memory(..) => None,
            #[cfg(feature = "object-store")]
            InputPlace::Object(_) => None,
        }
    }

    /// Its name in messages, and the first part of the ids of its records that have none.
    pub fn name(&self) -> Arc<str> {
        match &self.place {
            InputPlace::Stdin => "-".into(),
            InputPlace::Memory(name, _) => Arc::clone(name),
            InputPlace::File(path) | InputPlace::Folder(path) => name_of(path).into(),
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => object.name(),
        }
    }

    /// Its size in bytes as it is stored, if that can be told.
    pub fn bytes(&self) -> Option<u64> {
        match &self.place {
            InputPlace::File(path) => {
                path.metadata().ok().filter(|found| found.is_file()).map(|found| found.len())
            }
            InputPlace::Stdin | InputPlace::Folder(_) => None,
            InputPlace::Memory(_, bytes) => Some(bytes.len() as u64),
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => Some(object.bytes()),
        }
    }
}

/// A path as a name: bytes that are no UTF-8 as `%FF`, so that different paths have different names.
fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        name.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    name
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
    pub(super) bytes: Box<dyn BufRead + Send>,
    /// Then an error in the middle means that the input is damaged, else that it cannot be read.
    pub(super) compressed: bool,
}

/// How a file is compressed, by its first bytes: its name may be missing, or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// That of a file which begins so.
    pub(super) fn of(head: &[u8]) -> Self {
        match head {
            // A frame, or a skippable frame before it, as parallel compressors write.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::None,
        }
    }

    /// The bytes of a file, decompressed.
    pub(super) fn decode<'r>(
        self,
        stored: impl BufRead + Send + 'r,
    ) -> io::Result<Box<dyn BufRead + Send + 'r>> {
        Ok(match self {
            Self::None => Box::new(stored),
            Self::Gzip => Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(stored))),
            Self::Zstd => Box::new(BufReader::with_capacity(READ_BYTES, zstd::Decoder::with_buffer(stored)?)),
        })
    }
}

impl FeedReader {
    /// Opens a feed by its first bytes, not by its name: a compressed feed may come through a pipe.
    pub(super) fn new(mut stored: impl Read + Send + 'static) -> io::Result<Self> {
        let mut head = Vec::new();
        stored.by_ref().take(4).read_to_end(&mut head)?;
        let compression = Compression::of(&head);
        let stored = BufReader::with_capacity(READ_BYTES, Cursor::new(head).chain(stored));
        Ok(Self { bytes: compression.decode(stored)?, compressed: compression != Compression::None })
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
