//! Opens an input: detects its format and returns the reader of its records.
//!
//! The format is the one that the user asked for. Without one, the first rule that applies decides:
//!
//! 1. The content, if it begins as a container does: Parquet, a web archive.
//! 2. The name, without `.gz` or `.zst`; a `.txt` whose first character is `{` has records.
//! 3. JSON Lines.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::folder::{PartitionRows, folder_kinds};
use super::input::{Input, InputPlace, unreadable};
use crate::digest::{DigestedReader, StreamDigest};
use crate::durable::{Durable, DurablePart};
use crate::formats;
use crate::formats::{
    Compression, FeedReader, FileFormat, FileKind, IdRule, InMemory, InputLayout, InputProgress, Metered,
    OnDisk, OpenStored, OpenedRecords, READ_BYTES, RandomAccess, ReadFailure, RowReader, StoredFile,
    WantedColumns,
};
use crate::intake::FileDocument;
use dupflow_core::doc::DocId;
use dupflow_core::text::TextColumns;

/// Bytes that suffice to detect a format: the length of `WARC/`. It is small, so that a pipe is never waited
/// on for more than one line.
const LEAST_BYTES: usize = 5;

/// Decompressed bytes that are examined to detect a format: usually the first line, or the header of a tar
/// archive. 64 KiB.
const SEEN_BYTES: usize = 64 << 10;

/// The reader of an input's records.
pub(crate) enum Opened {
    /// None: the format is not supported; the reason.
    Refused(String),
    /// The records are lines.
    Lines(FeedReader),
    /// The records are rows.
    Rows(Box<dyn RowReader>),
    /// The input is one document.
    Document(FileDocument),
}

/// What is needed to open an input, and where reading is reported.
pub(crate) struct Opening<'o> {
    /// The columns of the text, and further ones that are read with it.
    pub(crate) columns: &'o TextColumns,
    /// Counts the bytes read.
    pub(crate) progress: &'o Arc<InputProgress>,
    /// Set while the next read of the input may block.
    pub(crate) waits: &'o Arc<AtomicBool>,
    /// Keeps the first read error, which is no damage of the content.
    pub(crate) failure: &'o ReadFailure,
    /// Receives the stored bytes that are read in order, if they are to be digested.
    pub(crate) digest: Option<StreamDigest>,
    /// What is durable of it, if it is a journal; no more is read.
    pub(crate) durable: Option<Arc<Durable>>,
}

/// The format of a file, and its compression: "warc, gzip".
///
/// # Errors
/// If it cannot be opened.
pub fn described(input: &Input) -> io::Result<String> {
    let mut head = vec![0; 4096];
    let mut length = 0;
    let name = input.name();
    if let Some(path) = input.path() {
        let mut file = File::open(path)?;
        while let Ok(more @ 1..) = file.read(&mut head[length..]) {
            length += more;
        }
    }
    let compression = Compression::detect(&head[..length]);
    let format = input
        .layout
        .format
        .unwrap_or_else(|| FileFormat::detect(&beginning(compression, &head[..length]), &name));
    Ok(match compression {
        Compression::None => format.name().to_owned(),
        Compression::Gzip => format!("{}, gzip", format.name()),
        Compression::Zstd => format!("{}, zstd", format.name()),
    })
}

impl Opening<'_> {
    /// Opens an input that is not a folder.
    ///
    /// # Errors
    /// If it cannot be opened, or does not begin as its format does.
    pub(crate) fn open(&self, input: &Input) -> io::Result<Opened> {
        match &input.place {
            InputPlace::Stdin => self.stream(input, io::stdin(), false),
            InputPlace::File(path) | InputPlace::Folder(path) => {
                let file = File::open(path).inspect_err(|error| {
                    if !formats::is_refusal(error) {
                        self.failure.note(&input.name(), error);
                    }
                })?;
                let is_file = file.metadata()?.is_file();
                self.stream(input, DurablePart::new(file, self.durable.clone()), is_file)
            }
            InputPlace::Memory(_, bytes) => self.stream(input, io::Cursor::new(Arc::clone(bytes)), true),
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => self.stream(input, object.read(), true),
        }
    }

    /// Opens a stream in its format; `is_anywhere`: random access to the input is possible.
    fn stream(
        &self,
        input: &Input,
        stored: impl Read + Send + 'static,
        is_anywhere: bool,
    ) -> io::Result<Opened> {
        let name = input.name();
        let guarded = |progress| -> io::Result<Arc<dyn RandomAccess>> {
            Ok(Arc::new(self.failure.guard(&name, at_random(input, progress)?)))
        };
        let anywhere = is_anywhere.then_some(&guarded as &OpenStored<'_>);
        let stored = DigestedReader::new(self.failure.guard(&name, stored), self.digest.clone());
        let mut stored = Metered::new(stored, Arc::clone(self.progress), Arc::clone(self.waits));
        let begun = BegunInput::read(input, &mut stored, self.columns)?;
        if let Some(why) = begun.refusal(stored.head(0)?) {
            return Ok(Opened::Refused(why));
        }
        // A worker reads a document by itself if its name implies the same format.
        let page = FileFormat::page();
        let is_named = (FileFormat::of_name(&name) == Some(page)) == (begun.format == page);
        if begun.format.is_document()
            && is_named
            && begun.compression == Compression::None
            && is_anywhere
            && let (Some(path), Some(id)) = (input.path(), DocId::new(&name))
        {
            let bytes = path.metadata()?.len();
            return Ok(Opened::Document(FileDocument { id, path: path.to_owned(), bytes }));
        }
        let file = begun.file(Box::new(stored), anywhere, Arc::clone(self.progress));
        Ok(match begun.format.open(file)? {
            OpenedRecords::Lines(lines) => Opened::Lines(lines),
            OpenedRecords::Rows(rows) => {
                let given = input.part.as_ref().map(|part| part.given(&begun.columns.fields));
                Opened::Rows(PartitionRows::with(rows, &name, &begun.columns.fields, given))
            }
        })
    }
}

/// An input of which the first bytes are known.
pub(super) struct BegunInput<'i> {
    input: &'i Input,
    name: Arc<str>,
    pub(super) format: FileFormat,
    pub(super) compression: Compression,
    /// Its first bytes, decompressed.
    beginning: Vec<u8>,
    pub(super) columns: WantedColumns,
}

impl<'i> BegunInput<'i> {
    /// Reads no further than it needs. `columns` are those of the text, and further ones.
    pub(super) fn read<R: Read>(
        input: &'i Input,
        stored: &mut Metered<R>,
        columns: &TextColumns,
    ) -> io::Result<Self> {
        let (compression, beginning) = read_beginning(stored)?;
        let (name, layout) = (input.name(), &*input.layout);
        let format = layout.format.unwrap_or_else(|| FileFormat::detect(&beginning, &name));
        let columns = WantedColumns {
            id: (layout.ids != IdRule::File).then(|| layout.id.clone()),
            text: layout.text.clone(),
            ts: layout.ts.clone(),
            op: layout.operation().to_owned(),
            fields: columns.to_vec(),
            given: columns.given,
            part: input.part.clone(),
        };
        Ok(Self { input, name, format, compression, beginning, columns })
    }

    /// Why it cannot be read in its format; `head` are its first stored bytes.
    fn refusal(&self, head: &[u8]) -> Option<String> {
        // A compressed file that is damaged at its first byte also decompresses to nothing; it is not empty.
        let is_known = self.compression == Compression::None || !self.beginning.is_empty();
        formats::refused_window(head, &self.name, self.format).or_else(|| {
            let why = || formats::refused_format(&self.beginning, self.compression, &self.name, self.format);
            is_known.then(why).flatten()
        })
    }

    /// What its format opens it from.
    pub(super) fn file<'s>(
        &'s self,
        stored: Box<dyn BufRead + Send>,
        anywhere: Option<&'s OpenStored<'s>>,
        progress: Arc<InputProgress>,
    ) -> StoredFile<'s> {
        StoredFile {
            name: &self.name,
            layout: &self.input.layout,
            columns: &self.columns,
            compression: self.compression,
            beginning: &self.beginning,
            stored,
            anywhere,
            is_near: matches!(self.input.place, InputPlace::File(_) | InputPlace::Memory(..)),
            progress,
        }
    }
}

/// Why a local input cannot be read: its format is not supported, or a table has no column of a required name
/// (the message lists those that it has). `None` for an input that may be readable, or cannot be examined.
pub(crate) fn refused(input: &Input) -> Option<String> {
    let path = match &input.place {
        InputPlace::File(path) => path,
        InputPlace::Folder(_) => {
            // A folder without its Parquet files would be another corpus.
            let kinds = if cfg!(feature = "parquet") { Vec::new() } else { folder_kinds(input) };
            return kinds.iter().find_map(|kind| unreadable(kind.first.path()?));
        }
        _ => return None,
    };
    // A pipe is opened only once, when it is read.
    let file = path.metadata().ok().filter(Metadata::is_file).and_then(|_| File::open(path).ok())?;
    let mut stored = Metered::new(file, Arc::default(), Arc::default());
    let begun = BegunInput::read(input, &mut stored, &TextColumns::default()).ok()?;
    if let Some(why) = stored.head(0).ok().and_then(|head| begun.refusal(head)) {
        return Some(why);
    }
    let anywhere = |progress| at_random(input, progress);
    begun.format.refuse(begun.file(Box::new(stored), Some(&anywhere), Arc::default()))
}

/// Random access to an input.
pub(super) fn at_random(input: &Input, progress: Arc<InputProgress>) -> io::Result<Arc<dyn RandomAccess>> {
    Ok(match &input.place {
        InputPlace::File(path) | InputPlace::Folder(path) => Arc::new(OnDisk::open(path, progress)?),
        InputPlace::Memory(_, bytes) => Arc::new(InMemory::new(Arc::clone(bytes))),
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => {
            Arc::new(super::remote::ObjectAccess::new(Arc::clone(object), progress))
        }
        InputPlace::Stdin => return Err(io::ErrorKind::Unsupported.into()),
    })
}

/// The compression of a stream, and its first bytes, decompressed. It reads no further than it needs.
fn read_beginning<R: Read>(stored: &mut Metered<R>) -> io::Result<(Compression, Vec<u8>)> {
    let mut least = LEAST_BYTES;
    loop {
        let head = stored.head(least)?;
        let compression = Compression::detect(head);
        let beginning = beginning(compression, head);
        let is_known = compression == Compression::None || beginning.len() >= LEAST_BYTES;
        if is_known || head.len() < least || head.len() == READ_BYTES {
            return Ok((compression, beginning));
        }
        least = head.len() + 1;
    }
}

/// Why a stream with these first bytes cannot be read. Consumes nothing.
pub fn refused_beginning(head: &[u8], layout: &InputLayout) -> Option<String> {
    let compression = Compression::detect(head);
    let beginning = beginning(compression, head);
    let window = formats::refused_window(head, "-", layout.format.unwrap_or_else(FileFormat::usual));
    if window.is_some() {
        return window;
    }
    // An empty stream, or one whose first bytes do not suffice to decompress anything: nothing is known of
    // it.
    if beginning.is_empty() {
        return None;
    }
    let format = layout.format.unwrap_or_else(|| FileFormat::detect(&beginning, "-"));
    formats::refused_format(&beginning, compression, "-", format)
}

/// The first decompressed bytes of a file, from the stored bytes in `head`.
fn beginning(compression: Compression, head: &[u8]) -> Vec<u8> {
    let mut found = vec![0; SEEN_BYTES];
    let mut length = 0;
    if let Ok(mut bytes) = compression.decode(head) {
        // A compressed stream that ends early is no error here.
        while let Ok(more @ 1..) = bytes.read(&mut found[length..]) {
            length += more;
        }
    }
    found.truncate(length);
    found
}

/// Whether an input is a CSV or TSV table that is not compressed, as far as its name or the user says.
pub(super) fn is_plain_table(input: &Input) -> bool {
    let name = input.name().to_ascii_lowercase();
    let format = input.layout.format.or_else(|| FileFormat::of_name(&name));
    format.is_some_and(|format| format.kind() == FileKind::Table)
        && !name.ends_with(".gz")
        && !name.ends_with(".zst")
}

/// Whether a named input is one document, and not a file of records.
pub(super) fn is_document(input: &Input) -> bool {
    let name = input.name();
    if let Some(format) = input.layout.format {
        return format.is_document();
    }
    // Only the content of a text may say that it has records.
    FileFormat::of_name(&name).is_some_and(FileFormat::is_document)
        && match &input.place {
            InputPlace::File(path) if path.metadata().is_ok_and(|found| found.is_file()) => {
                let beginning = File::open(path)
                    .and_then(|file| read_beginning(&mut Metered::new(file, Arc::default(), Arc::default())));
                beginning.is_ok_and(|(_, beginning)| FileFormat::detect(&beginning, &name).is_document())
            }
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_detected_by_their_content() {
        let warc = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n".repeat(100);
        let zstd = zstd::encode_all(&warc[..], 3).unwrap();
        assert_eq!(beginning(Compression::detect(&zstd), &zstd)[..9], warc[..9]);
        assert_eq!(beginning(Compression::None, &warc), warc);
        assert!(beginning(Compression::Gzip, b"\x1f\x8b damaged").is_empty());
    }

    /// Also if each read returns only a few bytes.
    #[test]
    fn a_compressed_stream_is_read_until_its_format_is_known() {
        struct SlowSlice<'b>(&'b [u8]);
        impl Read for SlowSlice<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let most = out.len().min(3);
                self.0.read(&mut out[..most])
            }
        }
        let mut gzip = flate2::read::GzEncoder::new(&b"WARC/1.0\r\n"[..], flate2::Compression::fast());
        let mut gzipped = Vec::new();
        gzip.read_to_end(&mut gzipped).unwrap();
        let read_slowly = |bytes: &[u8]| {
            let mut stored = Metered::new(SlowSlice(bytes), Arc::default(), Arc::default());
            read_beginning(&mut stored).unwrap()
        };
        for bytes in [gzipped, zstd::encode_all(&b"WARC/1.0\r\n"[..], 3).unwrap()] {
            assert!(read_slowly(&bytes).1.starts_with(b"WARC/"));
            // A stream that is truncated or damaged there gives no bytes.
            assert!(read_slowly(&bytes[..7]).1.is_empty());
        }
        assert_eq!(read_slowly(b"a line\n"), (Compression::None, b"a line".to_vec()));
    }
}
