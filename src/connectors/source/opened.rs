//! An input, opened: in which format it is, and what reads its records.
//!
//! The format is the one that was asked for; else, in this order:
//!
//! 1. `PAR1` first, and bytes behind it that no text has: Parquet; `WARC/` first, decompressed: a web
//!    archive;
//! 2. by the name, without `.gz` or `.zst`: `.warc` `.wet`, `.parquet`, `.csv`, `.tsv`, `.jsonl` `.ndjson`
//!    `.json`, `.html` `.htm` `.xhtml`, `.md` `.markdown` `.rst`, and `.txt` where the first character is no
//!    `{`;
//! 3. JSON Lines.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::batch::FileDocument;
use super::foreign;
use super::formats::{self, Columns, Dialect, Rows};
use super::input::{Compression, FeedReader, InputPlace};
use super::layout::by_name;
use super::metered::{InputProgress, Metered, READ_BYTES};
use super::{FileFormat, IdRule, Input, Layout};
use dupflow_core::doc::DocId;

/// The first bytes that tell a format: those of `WARC/`. No line that a pipe may wait behind has fewer.
const LEAST_BYTES: usize = 5;

/// Bytes that are looked at, decompressed, to recognise an input: a first line mostly, and the head of a
/// tar archive.
const SEEN_BYTES: usize = 64 << 10;

/// What reads the records of an input.
pub(super) enum Opened {
    /// Nothing does: it is of a format that is not read, and why.
    Refused(String),
    /// They are lines.
    Lines(FeedReader),
    /// They are rows.
    Rows(Box<dyn Rows>),
    /// It is a document.
    Document(FileDocument),
}

/// Opens an input to be read at any place, and counts what is read.
type OpenStored<'o> = dyn Fn(Arc<InputProgress>) -> io::Result<Arc<dyn formats::Stored>> + 'o;

/// What opening an input needs to know, and tells.
pub(super) struct Opening<'o> {
    /// Further fields that are read with texts.
    pub(super) fields: &'o [String],
    /// Counts what is read.
    pub(super) progress: &'o Arc<InputProgress>,
    /// Set while the next look at the input may have to wait.
    pub(super) waits: &'o Arc<AtomicBool>,
}

/// The format of a file, and how it is compressed: "warc, gzip".
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
    let compression = Compression::of(&head[..length]);
    let format = input.layout.format.unwrap_or_else(|| told(&beginning(compression, &head[..length]), &name));
    Ok(match compression {
        Compression::None => format.name().to_owned(),
        Compression::Gzip => format!("{}, gzip", format.name()),
        Compression::Zstd => format!("{}, zstd", format.name()),
    })
}

impl Opening<'_> {
    /// Opens an input that is no folder.
    ///
    /// # Errors
    /// If it cannot be opened, or begins with what is not its format.
    pub(super) fn open(&self, input: &Input) -> io::Result<Opened> {
        match &input.place {
            InputPlace::Stdin => self.stream(input, io::stdin(), None),
            InputPlace::File(path) | InputPlace::Folder(path) => {
                let file = File::open(path)?;
                let is_file = file.metadata()?.is_file();
                let stored = |progress| -> io::Result<Arc<dyn formats::Stored>> {
                    Ok(Arc::new(formats::OnDisk::open(path, progress)?))
                };
                self.stream(input, file, is_file.then_some(&stored))
            }
            InputPlace::Memory(_, bytes) => {
                let stored = |_| -> io::Result<Arc<dyn formats::Stored>> {
                    Ok(Arc::new(formats::InMemory::of(Arc::clone(bytes))))
                };
                self.stream(input, io::Cursor::new(Arc::clone(bytes)), Some(&stored))
            }
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => {
                let stored = |progress| -> io::Result<Arc<dyn formats::Stored>> {
                    Ok(Arc::new(super::remote::Anywhere::new(Arc::clone(object), progress)))
                };
                self.stream(input, object.read(), Some(&stored))
            }
        }
    }

    /// Reads a stream in its format; `anywhere` opens it to be read at any place, if that can be.
    fn stream(
        &self,
        input: &Input,
        stored: impl Read + Send + 'static,
        anywhere: Option<&OpenStored<'_>>,
    ) -> io::Result<Opened> {
        let Layout { format, .. } = &*input.layout;
        let mut stored = Metered::new(stored, Arc::clone(self.progress), Arc::clone(self.waits));
        let (compression, beginning) = recognised(&mut stored)?;
        let name = input.name();
        let format = format.unwrap_or_else(|| told(&beginning, &name));
        let columns = columns(&input.layout, self.fields);
        let compressed = compression != Compression::None;
        // What is damaged at its very beginning is not empty.
        if !(compressed && beginning.is_empty())
            && let Some(why) = foreign::refused(&beginning, compressed, &name, format)
        {
            return Ok(Opened::Refused(why));
        }
        Ok(match format {
            FileFormat::Jsonl => Opened::Lines(FeedReader { bytes: compression.decode(stored)?, compressed }),
            // Its records are compressed one by one.
            FileFormat::Warc => {
                let id = input.layout.warc_id;
                // A network is waited for, and asked for much at once.
                let is_near = matches!(input.place, InputPlace::File(_) | InputPlace::Memory(..));
                let parts = match anywhere {
                    // What is read twice, where parts meet, is counted once.
                    Some(open) if compressed && is_near => {
                        formats::warc_in_parts(open(Arc::default())?, &columns, id, self.progress)?
                    }
                    _ => None,
                };
                Opened::Rows(parts.unwrap_or_else(|| formats::warc(Box::new(stored), &columns, id)))
            }
            FileFormat::Csv | FileFormat::Tsv => {
                let dialect = dialect(&input.layout, format);
                if dialect.escape.is_none() && has_escapes(&beginning, dialect.delimiter) {
                    tracing::warn!(
                        input = &*name,
                        "there are backslashes before quotes, as pandas and Spark may write them: then --csv-escape '\\' reads the table"
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
                // The workers read it, if its name says what it is.
                let is_told = !compressed && (by_name(&name) == Some(FileFormat::Html)) == is_html;
                match (input.path().filter(|_| is_told && anywhere.is_some()), DocId::new(&name)) {
                    (Some(path), Some(id)) => {
                        let bytes = path.metadata()?.len();
                        Opened::Document(FileDocument { id, path: path.to_owned(), bytes })
                    }
                    _ => Opened::Rows(formats::whole(compression.decode(stored)?, &name, is_html)),
                }
            }
        })
    }
}

/// Why an input on a disk is not read: it is of a format that is none of those, or a table that lacks a
/// column that is wanted, with those that it has. `None` of what may be read, and of what cannot be looked
/// at.
pub(super) fn refused(input: &Input) -> Option<String> {
    let InputPlace::File(path) = &input.place else { return None };
    // A pipe is opened once.
    let file = path.metadata().ok().filter(Metadata::is_file).and_then(|_| File::open(path).ok())?;
    let bytes = file.metadata().ok()?.len();
    let mut stored = Metered::new(file, Arc::default(), Arc::default());
    let (compression, beginning) = recognised(&mut stored).ok()?;
    let columns = columns(&input.layout, &[]);
    let format = input.layout.format.unwrap_or_else(|| told(&beginning, &input.name()));
    let is_packed = compression != Compression::None;
    // What is damaged at its very beginning is not empty.
    if (bytes == 0 || !beginning.is_empty())
        && let Some(why) = foreign::refused(&beginning, is_packed, &input.name(), format)
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
            let is_read = bytes >= 12 && formats::Stored::read_at(&disk, bytes - 4, &mut end).is_ok();
            if bytes < 12 || is_read && ![*b"PAR1", *b"PARE"].contains(&end) {
                let why = "it ends early: a Parquet file ends with PAR1, and this one does not; fetch or write it again";
                return Some(why.to_owned());
            }
            formats::parquet_lacks(Arc::new(disk), &columns)
        }
        _ => None,
    }
}

/// How a table of this format is written.
fn dialect(layout: &Layout, format: FileFormat) -> Dialect {
    let usual = if format == FileFormat::Tsv { b'\t' } else { b',' };
    Dialect { delimiter: layout.csv_delimiter.unwrap_or(usual), escape: layout.csv_escape }
}

/// Whether quotes are escaped by backslashes: behind such a one a cell does not end.
fn has_escapes(beginning: &[u8], delimiter: u8) -> bool {
    let goes_on = |byte: u8| byte != delimiter && !matches!(byte, b'"' | b'\r' | b'\n');
    beginning.windows(3).any(|three| three.starts_with(b"\\\"") && goes_on(three[2]))
}

fn columns(layout: &Layout, fields: &[String]) -> Columns {
    Columns {
        id: (layout.ids != IdRule::File).then(|| layout.id.clone()),
        text: layout.text.clone(),
        ts: layout.ts.clone(),
        op: "op".to_owned(),
        fields: fields.to_vec(),
    }
}

/// How a stream is compressed, and how it begins, decompressed; it is read as far as that needs.
fn recognised<R: Read>(stored: &mut Metered<R>) -> io::Result<(Compression, Vec<u8>)> {
    let mut least = LEAST_BYTES;
    loop {
        let head = stored.head(least)?;
        let compression = Compression::of(head);
        let beginning = beginning(compression, head);
        let is_known = compression == Compression::None || beginning.len() >= LEAST_BYTES;
        if is_known || head.len() < least || head.len() == READ_BYTES {
            return Ok((compression, beginning));
        }
        least = head.len() + 1;
    }
}

/// Why a stream that begins so is not read, by the bytes that are there: nothing is taken from it.
pub fn refused_beginning(head: &[u8], layout: &Layout) -> Option<String> {
    let compression = Compression::of(head);
    let beginning = beginning(compression, head);
    // Of an empty stream, and of one whose first bytes do not suffice to decompress any, nothing is known.
    if beginning.is_empty() {
        return None;
    }
    let format = layout.format.unwrap_or_else(|| told(&beginning, "-"));
    foreign::refused(&beginning, compression != Compression::None, "-", format)
}

/// The first bytes of a file, decompressed, of those that are there.
fn beginning(compression: Compression, head: &[u8]) -> Vec<u8> {
    let mut found = vec![0; SEEN_BYTES];
    let mut length = 0;
    if let Ok(mut bytes) = compression.decode(head) {
        // What is cut off is no error here.
        while let Ok(more @ 1..) = bytes.read(&mut found[length..]) {
            length += more;
        }
    }
    found.truncate(length);
    found
}

/// The format of an input that begins so and has this name.
fn told(beginning: &[u8], name: &str) -> FileFormat {
    if foreign::is_parquet(beginning) {
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

/// Whether a text is one that is written in some markup, which may begin with a brace.
fn is_markup(name: &str) -> bool {
    !name.to_ascii_lowercase().ends_with(".txt")
}

/// Whether a file of a folder holds records by its name, so that it is no document.
pub(super) fn holds_records(name: &str) -> bool {
    !matches!(by_name(name), Some(FileFormat::Text | FileFormat::Html) | None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_first_bytes_and_then_by_name() {
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
            assert_eq!(told(beginning, name), format, "{name}");
        }
    }

    #[test]
    fn compressed_files_are_told_by_what_is_in_them() {
        let warc = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n".repeat(100);
        let zstd = zstd::encode_all(&warc[..], 3).unwrap();
        assert_eq!(beginning(Compression::of(&zstd), &zstd)[..9], warc[..9]);
        assert_eq!(beginning(Compression::None, &warc), warc);
        assert!(beginning(Compression::Gzip, b"\x1f\x8b damaged").is_empty());
    }

    /// However little of it comes at once.
    #[test]
    fn a_compressed_stream_is_read_until_it_tells() {
        struct Slow<'b>(&'b [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let most = out.len().min(3);
                self.0.read(&mut out[..most])
            }
        }
        let mut gzip = flate2::read::GzEncoder::new(&b"WARC/1.0\r\n"[..], flate2::Compression::fast());
        let mut gzipped = Vec::new();
        gzip.read_to_end(&mut gzipped).unwrap();
        let told = |bytes: &[u8]| {
            let mut stored = Metered::new(Slow(bytes), Arc::default(), Arc::default());
            recognised(&mut stored).unwrap()
        };
        for bytes in [gzipped, zstd::encode_all(&b"WARC/1.0\r\n"[..], 3).unwrap()] {
            assert!(told(&bytes).1.starts_with(b"WARC/"));
            // What ends or is damaged there tells nothing.
            assert!(told(&bytes[..7]).1.is_empty());
        }
        assert_eq!(told(b"a line\n"), (Compression::None, b"a line".to_vec()));
    }

    #[test]
    fn files_of_records_are_told_from_documents() {
        for (name, holds) in [
            ("a.jsonl", true),
            ("a.json", true),
            ("a.json.gz", true),
            ("a.csv", true),
            ("a.TSV", true),
            ("a.csv.zst", true),
            ("a.warc", true),
            ("a.md", false),
            ("a", false),
        ] {
            assert_eq!(holds_records(name), holds, "{name}");
        }
    }
}
