//! What an input format is to the rest: a name, how its files are known, and what opens them.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::dialect::Dialect;
use super::layout::InputLayout;
use super::pages::SharedPages;
use super::rows::{RowReader, WantedColumns};
use super::storage::{Compression, FeedReader, InMemory, InputProgress, RandomAccess};

/// What is known of a format of inputs.
pub(crate) struct FormatEntry {
    /// Its name in settings.
    pub(crate) name: &'static str,
    /// Other names that are accepted.
    pub(crate) aliases: &'static [&'static str],
    /// What it is, for the help of commands.
    pub(crate) help: &'static str,
    /// What a file of it is called in a message: "a web archive".
    pub(crate) file: &'static str,
    /// What such a file is made of.
    pub(crate) kind: FileKind,
    /// Endings of names, without their point and in lower case.
    pub(crate) endings: &'static [&'static str],
    /// Whether bytes are the beginning of such a file. Of a container this decides, whatever its name is.
    pub(crate) begins: fn(&[u8]) -> bool,
    /// Why a file that begins like this, decompressed, is none of this format.
    pub(crate) doubt: fn(&[u8]) -> Option<String>,
    /// Why a build does not read it: what it lacks, and the feature.
    pub(crate) lacks: Option<(&'static str, &'static str)>,
    /// Opens its records.
    pub(crate) open: fn(StoredFile<'_>) -> io::Result<OpenedRecords>,
    /// Why a local file cannot be read, by more than its first bytes; `None` if it may be readable.
    pub(crate) refuse: fn(StoredFile<'_>) -> Option<String>,
    /// Opens the bytes of its records, for a pass that copies some of them. The pages are those to which
    /// revisits refer.
    pub(crate) copy: fn(StoredFile<'_>, &SharedPages) -> io::Result<RawRecords>,
}

/// What a file of a format is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Records that are text.
    Text,
    /// Rows of text, of which the last one may be completed later.
    Table,
    /// Records in a form that its first bytes tell from all others.
    Container,
    /// One document.
    Document,
}

/// An input of which the first bytes are known, and what it is read from.
pub(crate) struct StoredFile<'s> {
    pub(crate) name: &'s str,
    pub(crate) layout: &'s InputLayout,
    pub(crate) columns: &'s WantedColumns,
    pub(crate) compression: Compression,
    /// Its first bytes, decompressed.
    pub(crate) beginning: &'s [u8],
    /// All stored bytes, in order.
    pub(crate) stored: Box<dyn BufRead + Send>,
    /// Opens it for random access, where that is possible.
    pub(crate) anywhere: Option<&'s OpenStored<'s>>,
    /// Whether random access has no latency.
    pub(crate) is_near: bool,
    /// Counts the bytes read.
    pub(crate) progress: Arc<InputProgress>,
}

/// Opens an input for random access, and counts the bytes read.
pub(crate) type OpenStored<'o> = dyn Fn(Arc<InputProgress>) -> io::Result<Arc<dyn RandomAccess>> + 'o;

impl StoredFile<'_> {
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// The bytes, decompressed.
    pub(crate) fn decoded(self) -> io::Result<Box<dyn BufRead + Send>> {
        if self.is_compressed() { self.compression.decode(self.stored) } else { Ok(self.stored) }
    }

    /// Random access to the bytes, decompressed: in memory, where the input is a stream or is compressed.
    pub(crate) fn at_random(self) -> io::Result<Arc<dyn RandomAccess>> {
        match self.anywhere {
            Some(open) if !self.is_compressed() => open(Arc::clone(&self.progress)),
            _ => Ok(Arc::new(InMemory::read(self.decoded()?)?)),
        }
    }
}

/// The reader of an input's records.
pub(crate) enum OpenedRecords {
    /// The records are lines.
    Lines(FeedReader),
    /// The records are rows.
    Rows(Box<dyn RowReader>),
}

/// The bytes of an input's records.
pub(crate) enum RawRecords {
    /// One after another.
    Bytes(Box<dyn RawReader>),
    /// By row group and column, in a Parquet file.
    #[cfg(feature = "parquet")]
    RowGroups(Arc<dyn RandomAccess>),
}

/// Reads the bytes of a file's records.
pub(crate) trait RawReader: Send {
    /// What the records are made of.
    fn parts(&self) -> RecordParts<'_>;

    /// Reads the next record with what follows it; `None` at the end of the file. Of a record that could not
    /// be read any bytes may be returned, of a revisit whose page is not found none.
    ///
    /// # Errors
    /// If the file cannot be read where the first pass could.
    fn next(&mut self) -> io::Result<Option<&[u8]>>;
}

/// What records are made of: where values can be added to them, or cut in them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordParts<'r> {
    /// An object with members, on one line.
    Members,
    /// Cells, below a header with its line end; the header of an empty table is empty.
    Cells(&'r [u8], Dialect),
    /// Bytes that state their own length and digest: nothing.
    Sealed,
}

impl RecordParts<'_> {
    /// The bytes before the first record.
    pub(crate) fn header(&self) -> &[u8] {
        match self {
            Self::Cells(header, _) => header,
            Self::Members | Self::Sealed => &[],
        }
    }
}

/// A format in which nothing is refused after its first bytes were read.
pub(crate) fn no_refusal(_: StoredFile<'_>) -> Option<String> {
    None
}

/// A format whose files may begin with anything.
pub(crate) fn no_doubt(_: &[u8]) -> Option<String> {
    None
}

/// A format whose files are known by their names alone.
pub(crate) fn any_beginning(_: &[u8]) -> bool {
    false
}

/// Why a file that begins like this does not begin with `magic`, as one that is called `what` does.
pub(crate) fn not_begun(what: &str, magic: &str, beginning: &[u8]) -> Option<String> {
    if beginning.is_empty() {
        return Some(format!("it is empty, which no {what} is: its writer has not finished"));
    }
    let like = match beginning.trim_ascii_start().first() {
        Some(b'{') => ": it begins as JSON Lines do, leave --format out",
        _ => "",
    };
    (!beginning.starts_with(magic.as_bytes()))
        .then(|| format!("it is no {what}, which begins with {magic}{like}"))
}
