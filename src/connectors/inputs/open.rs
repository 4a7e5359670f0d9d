//! Opens an input: detects its format and returns the reader of its records.
//!
//! The format is the one that the user asked for. Without one, the first rule that applies decides:
//!
//! 1. The content: `PAR1` first, followed by bytes that no text has, is Parquet. `WARC/` first, after
//!    decompression, is a web archive.
//! 2. The name, without `.gz` or `.zst`: `.warc` `.wet`, `.parquet`, `.csv`, `.tsv`, `.jsonl` `.ndjson`
//!    `.json`, `.html` `.htm` `.xhtml`, `.md` `.markdown` `.rst`, and `.txt` if the first character is not
//!    `{`.
//! 3. JSON Lines.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::folder::{PartitionRows, folder_kinds};
use super::input::{Input, InputPlace, unreadable};
use crate::digest::{DigestedReader, StreamDigest};
use crate::formats;
use crate::formats::{
    Compression, CsvQuote, Dialect, FeedReader, FileFormat, IdRule, InputLayout, InputProgress, Metered,
    READ_BYTES, ReadFailure, RowReader, WantedColumns, by_name,
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

/// Opens an input for random access, and counts the bytes read.
type OpenStored<'o> = dyn Fn(Arc<InputProgress>) -> io::Result<Arc<dyn formats::RandomAccess>> + 'o;

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
    let format =
        input.layout.format.unwrap_or_else(|| detect_format(&beginning(compression, &head[..length]), &name));
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
            InputPlace::Stdin => self.stream(input, io::stdin(), None),
            InputPlace::File(path) | InputPlace::Folder(path) => {
                let file = File::open(path).inspect_err(|error| {
                    if !formats::is_refusal(error) {
                        self.failure.note(&input.name(), error);
                    }
                })?;
                let is_file = file.metadata()?.is_file();
                let stored = |progress| -> io::Result<Arc<dyn formats::RandomAccess>> {
                    Ok(Arc::new(formats::OnDisk::open(path, progress)?))
                };
                self.stream(input, file, is_file.then_some(&stored))
            }
            InputPlace::Memory(_, bytes) => {
                let stored = |_| -> io::Result<Arc<dyn formats::RandomAccess>> {
                    Ok(Arc::new(formats::InMemory::new(Arc::clone(bytes))))
                };
                self.stream(input, io::Cursor::new(Arc::clone(bytes)), Some(&stored))
            }
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => {
                let stored = |progress| -> io::Result<Arc<dyn formats::RandomAccess>> {
                    Ok(Arc::new(super::remote::ObjectAccess::new(Arc::clone(object), progress)))
                };
                self.stream(input, object.read(), Some(&stored))
            }
        }
    }

    /// Opens a stream in its format; `anywhere` opens the same input for random access, where that is
    /// possible.
    fn stream(
        &self,
        input: &Input,
        stored: impl Read + Send + 'static,
        anywhere: Option<&OpenStored<'_>>,
    ) -> io::Result<Opened> {
        let InputLayout { format, .. } = &*input.layout;
        let name = input.name();
        let guarded = |progress| -> io::Result<Arc<dyn formats::RandomAccess>> {
            let bytes =
                anywhere.map_or_else(|| Err(io::ErrorKind::Unsupported.into()), |open| open(progress))?;
            Ok(Arc::new(self.failure.guard(&name, bytes)))
        };
        let anywhere = anywhere.map(|_| &guarded as &OpenStored<'_>);
        let stored = DigestedReader::new(self.failure.guard(&name, stored), self.digest.clone());
        let mut stored = Metered::new(stored, Arc::clone(self.progress), Arc::clone(self.waits));
        let (compression, beginning) = read_beginning(&mut stored)?;
        let format = format.unwrap_or_else(|| detect_format(&beginning, &name));
        let columns = columns(&input.layout, self.columns);
        let compressed = compression != Compression::None;
        if let Some(why) = formats::refused_window(stored.head(0)?, &name, format) {
            return Ok(Opened::Refused(why));
        }
        // A compressed file that is damaged at its first byte also decompresses to nothing; it is not empty.
        if !(compressed && beginning.is_empty())
            && let Some(why) = formats::refused_format(&beginning, compression, &name, format)
        {
            return Ok(Opened::Refused(why));
        }
        let opened = match format {
            FileFormat::Jsonl => Opened::Lines(FeedReader { bytes: compression.decode(stored)?, compressed }),
            // The records are compressed one by one.
            FileFormat::Warc => {
                let id = input.layout.warc_id;
                // Only a local file is read in parallel parts: a network read has latency and fetches much at
                // once.
                let is_near = matches!(input.place, InputPlace::File(_) | InputPlace::Memory(..));
                let parts = match anywhere {
                    // The parts overlap where they meet. The reader of the parts counts each byte once, so
                    // this counter is discarded.
                    Some(open) if compressed && is_near => {
                        formats::warc_in_parts(open(Arc::default())?, &columns, id, self.progress)?
                    }
                    _ => None,
                };
                Opened::Rows(parts.unwrap_or_else(|| formats::warc(Box::new(stored), &columns, id)))
            }
            FileFormat::Csv | FileFormat::Tsv => {
                let dialect = dialect(&input.layout, format);
                if dialect.escape.is_none()
                    && dialect.quote.is_some()
                    && has_escapes(&beginning, dialect.delimiter)
                {
                    tracing::warn!(
                        input = &*name,
                        "there are backslashes before quotes, as pandas and Spark may write them: then \
                         --csv-escape '\\' reads the table"
                    );
                }
                Opened::Rows(formats::csv(compression.decode(stored)?, dialect, &columns))
            }
            FileFormat::Parquet => {
                let stored = match anywhere {
                    Some(open) if !compressed => open(Arc::clone(self.progress))?,
                    _ => Arc::new(formats::InMemory::read(compression.decode(stored)?)?),
                };
                Opened::Rows(formats::parquet(stored, &columns))
            }
            FileFormat::Text | FileFormat::Html => {
                let is_html = format == FileFormat::Html;
                // A worker reads the file itself if its name implies the same format.
                let is_named = !compressed && (by_name(&name) == Some(FileFormat::Html)) == is_html;
                match (input.path().filter(|_| is_named && anywhere.is_some()), DocId::new(&name)) {
                    (Some(path), Some(id)) => {
                        let bytes = path.metadata()?.len();
                        Opened::Document(FileDocument { id, path: path.to_owned(), bytes })
                    }
                    _ => Opened::Rows(formats::whole(compression.decode(stored)?, &name, is_html)),
                }
            }
        };
        Ok(match opened {
            Opened::Rows(rows) => Opened::Rows(PartitionRows::with(rows, &name, &columns.fields)),
            other => other,
        })
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
    let bytes = file.metadata().ok()?.len();
    let mut stored = Metered::new(file, Arc::default(), Arc::default());
    let (compression, beginning) = read_beginning(&mut stored).ok()?;
    let columns = columns(&input.layout, &TextColumns::default());
    let format = input.layout.format.unwrap_or_else(|| detect_format(&beginning, &input.name()));
    let window = stored.head(0).ok().and_then(|head| formats::refused_window(head, &input.name(), format));
    if window.is_some() {
        return window;
    }
    // A compressed file that is damaged at its first byte also decompresses to nothing; it is not empty.
    if (bytes == 0 || !beginning.is_empty())
        && let Some(why) = formats::refused_format(&beginning, compression, &input.name(), format)
    {
        return Some(why);
    }
    match format {
        FileFormat::Csv | FileFormat::Tsv => {
            formats::csv_lacks(compression.decode(stored).ok()?, dialect(&input.layout, format), &columns)
        }
        FileFormat::Parquet if compression == Compression::None => {
            let disk = formats::OnDisk::open(path, Arc::default()).ok()?;
            let mut end = [0; 4];
            let is_read = bytes >= 12 && formats::RandomAccess::read_at(&disk, bytes - 4, &mut end).is_ok();
            if bytes < 12 || is_read && ![*b"PAR1", *b"PARE"].contains(&end) {
                let why = "it ends early: a Parquet file ends with PAR1, and this one does not; fetch or \
                 write it again";
                return Some(why.to_owned());
            }
            formats::parquet_lacks(Arc::new(disk), &columns)
        }
        _ => None,
    }
}

/// The CSV dialect of a table in this format.
pub(super) fn dialect(layout: &InputLayout, format: FileFormat) -> Dialect {
    let usual = if format == FileFormat::Tsv { b'\t' } else { b',' };
    let quote = match layout.csv_quote {
        CsvQuote::Usual => Some(b'"'),
        CsvQuote::Named(quote) => Some(quote),
        CsvQuote::None => None,
    };
    Dialect {
        delimiter: layout.csv_delimiter.unwrap_or(usual),
        quote,
        escape: layout.csv_escape,
        is_examined: layout.csv_quote == CsvQuote::Usual,
    }
}

/// Whether quotes are escaped by backslashes: a cell continues after `\"`.
fn has_escapes(beginning: &[u8], delimiter: u8) -> bool {
    let goes_on = |byte: u8| byte != delimiter && !matches!(byte, b'"' | b'\r' | b'\n');
    beginning.windows(3).any(|three| three.starts_with(b"\\\"") && goes_on(three[2]))
}

pub(super) fn columns(layout: &InputLayout, columns: &TextColumns) -> WantedColumns {
    WantedColumns {
        id: (layout.ids != IdRule::File).then(|| layout.id.clone()),
        text: layout.text.clone(),
        ts: layout.ts.clone(),
        op: layout.operation().to_owned(),
        fields: columns.to_vec(),
        given: columns.given,
    }
}

/// The compression of a stream, and its first bytes, decompressed. It reads no further than it needs.
pub(super) fn read_beginning<R: Read>(stored: &mut Metered<R>) -> io::Result<(Compression, Vec<u8>)> {
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
    let window = formats::refused_window(head, "-", layout.format.unwrap_or(FileFormat::Jsonl));
    if window.is_some() {
        return window;
    }
    // An empty stream, or one whose first bytes do not suffice to decompress anything: nothing is known of
    // it.
    if beginning.is_empty() {
        return None;
    }
    let format = layout.format.unwrap_or_else(|| detect_format(&beginning, "-"));
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

/// The format of an input with this beginning and this name.
pub(super) fn detect_format(beginning: &[u8], name: &str) -> FileFormat {
    if formats::is_parquet(beginning) {
        return FileFormat::Parquet;
    }
    if beginning.starts_with(b"WARC/") {
        return FileFormat::Warc;
    }
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    match by_name(name) {
        Some(FileFormat::Text) if beginning.starts_with(b"{") && !is_markup(name) => FileFormat::Jsonl,
        Some(format) => format,
        None => FileFormat::Jsonl,
    }
}

/// Whether an input is a CSV or TSV table that is not compressed, as far as its name or the user says.
pub(super) fn is_plain_table(input: &Input) -> bool {
    let name = input.name().to_ascii_lowercase();
    let format = input.layout.format.or_else(|| by_name(&name));
    matches!(format, Some(FileFormat::Csv | FileFormat::Tsv))
        && !name.ends_with(".gz")
        && !name.ends_with(".zst")
}

/// Whether a named input is one document, and not a file of records.
pub(super) fn is_document(input: &Input) -> bool {
    let is_text = |format: FileFormat| matches!(format, FileFormat::Text | FileFormat::Html);
    let name = input.name();
    if let Some(format) = input.layout.format {
        return is_text(format);
    }
    // Only the content of a text may say that it has records.
    by_name(&name).is_some_and(is_text)
        && match &input.place {
            InputPlace::File(path) if path.metadata().is_ok_and(|found| found.is_file()) => {
                let beginning = File::open(path)
                    .and_then(|file| read_beginning(&mut Metered::new(file, Arc::default(), Arc::default())));
                beginning.is_ok_and(|(_, beginning)| is_text(detect_format(&beginning, &name)))
            }
            _ => true,
        }
}

/// Whether a text file is in some markup language, whose first character may be a brace.
fn is_markup(name: &str) -> bool {
    !name.to_ascii_lowercase().ends_with(".txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_first_bytes_then_by_name() {
        use FileFormat::{Csv, Html, Jsonl, Parquet, Text, Tsv, Warc};
        for (beginning, name, format) in [
            (&b"PAR1\x15\x04"[..], "a.csv", Parquet),
            (b"PAR1,text\n", "a.csv", Csv),
            (b"WARC/1.0\r\n", "-", Warc),
            (b"{\"id\":1}", "feed", Jsonl),
            (b"id,text", "feed", Jsonl),
            (b"id,text", "a.CSV.gz", Csv),
            (b"id\ttext", "a.tsv", Tsv),
            (b"", "x.warc.zst", Warc),
            (b"text", "a.txt", Text),
            (b"\xef\xbb\xbf {\"id\"", "a.txt", Jsonl),
            (b"{% raw %}", "a.md", Text),
            (b"<p>", "日本.htm", Html),
            (b"[", "a.json", Jsonl),
        ] {
            assert_eq!(detect_format(beginning, name), format, "{name}");
        }
    }

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
