//! Formats of inputs whose records are not lines: one file for each.
//!
//! A file -> its records, in order: a [`Row`], or the damage. The reader of a format only finds documents;
//! ids are checked and texts are decoded elsewhere.

mod ahead;
mod csv;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(test)]
mod samples;
mod stored;
mod warc;
mod whole;

use std::fmt;
use std::io;
use std::io::BufRead;
use std::sync::Arc;

pub(super) use csv::Dialect;
pub(super) use stored::{InMemory, OnDisk};

use super::{InputProgress, Layout, Place, WarcId};
use crate::feed::BadRecord;
use dupflow_core::doc::DocId;
use dupflow_core::time::UnixTime;

/// The wanted columns, as dotted paths: `meta.title` is `title` in the object `meta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The id; `None` if ids are not read. A record without an id is named by its file and its number there.
    pub(super) id: Option<String>,
    /// The text.
    pub(super) text: String,
    /// The time, in unix seconds.
    pub(super) ts: String,
    /// The operation: `upsert` or `delete`.
    pub(super) op: String,
    /// Further fields, in this order.
    pub(super) fields: Vec<String>,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// The id, if the record has one.
    pub(super) id: Option<Vec<u8>>,
    /// The time, in unix seconds.
    pub(super) ts: Option<f64>,
    /// The text, or the delete.
    pub(super) text: Text,
    /// The further fields, one for each wanted name; empty where the record has none.
    pub(super) fields: Vec<Vec<u8>>,
}

impl Row {
    /// Why the row is no event, if its id or its time is wrong, and the value. Checked by the reader of the
    /// format, which still has the whole row for the report.
    fn flaw(&self) -> Option<(BadRecord, Option<String>)> {
        if let Some(id) = &self.id
            && std::str::from_utf8(id).ok().and_then(DocId::new).is_none()
        {
            return Some((BadRecord::BadId, Some(format!("found {}", found(id)))));
        }
        let ts = self.ts.filter(|ts| UnixTime::new(*ts).is_none());
        if let Some(ts) = ts {
            return Some((BadRecord::BadTs, Some(format!("found {ts}"))));
        }
        match (&self.text, &self.id) {
            (Text::Deleted, None) => Some((BadRecord::MissingId, None)),
            (Text::Missing, _) => Some((BadRecord::MissingText, None)),
            _ => None,
        }
    }
}

/// The beginning of a value, in quotes.
fn found(value: &[u8]) -> String {
    const MOST: usize = 80;
    let start = String::from_utf8_lossy(&value[..value.len().min(4 * MOST)]);
    let shown: String = start.chars().take(MOST).collect();
    let more = if shown.len() < value.len() { " …" } else { "" };
    format!("{shown:?}{more}")
}

/// The message for a text that is no time.
fn no_time(text: &[u8]) -> String {
    format!("found {}, which is no date of ISO 8601 either", found(text))
}

/// What a record does to its document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Text {
    /// The record has no text.
    #[default]
    Missing,
    /// The text, as bytes that may not be UTF-8.
    Is(Vec<u8>),
    /// The document is deleted.
    Deleted,
}

/// The result of reading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A record with a document.
    Row,
    /// A valid record without a document; the reason, in one word.
    Skipped(&'static str),
    /// The end of the file.
    End,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Damage {
    /// The reason.
    pub(super) reason: BadRecord,
    /// The message of the decoder.
    pub(super) cause: Option<String>,
    /// Its place in the file.
    pub(super) place: Place,
    /// The bytes of the record, or of as much as is known of it.
    pub(super) head: Vec<u8>,
    /// Whether nothing after it can be read either.
    pub(super) ends: bool,
}

/// Reads the records of one file, in order.
///
/// The same bytes give the same records, in whatever pieces they are read. It is not called again after
/// [`Next::End`], or after damage that [ends](Damage::ends) the file. It has one record in memory at a time,
/// within limits that do not depend on sizes stated in the file.
pub(super) trait Rows: Send {
    /// Reads the next record into `row`, and replaces its contents.
    ///
    /// # Errors
    /// If the record cannot be read; the next call continues after it.
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage>;

    /// Number of rows so far of which the file has only the beginning, according to the file itself.
    fn cut(&self) -> u64 {
        0
    }
}

/// Random access to the stored bytes of an input, from several threads.
pub(super) trait Stored: Send + Sync + fmt::Debug {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Fills a buffer with the bytes from `from` on.
    ///
    /// # Errors
    /// If they cannot be read, or the input has fewer bytes.
    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A whole text or web page, as one record with this id.
pub(super) fn whole(bytes: Box<dyn BufRead + Send>, id: &str, is_html: bool) -> Box<dyn Rows> {
    Box::new(whole::Whole { bytes: Some(bytes), id: id.to_owned(), is_html })
}

/// The pages and texts of a web archive, read as a stream of its stored bytes.
pub(super) fn warc(bytes: Box<dyn BufRead + Send>, columns: &Columns, id: WarcId) -> Box<dyn Rows> {
    Box::new(warc::Warc::new(bytes, columns, id))
}

/// The same for a compressed archive with random access: in parts, by as many threads as the machine has
/// cores. `None` if the archive is too small for several parts.
///
/// # Errors
/// If the threads cannot be started.
pub(super) fn warc_in_parts(
    file: Arc<dyn Stored>,
    columns: &Columns,
    id: WarcId,
    progress: &Arc<InputProgress>,
) -> io::Result<Option<Box<dyn Rows>>> {
    let archive = warc::Archive::new(file, columns, id);
    Ok(if archive.count() > 1 {
        Some(Box::new(warc::InParts::new(archive, cores(), Arc::clone(progress))?))
    } else {
        None
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// The rows of a table with a header.
pub(super) fn csv(bytes: Box<dyn BufRead + Send>, dialect: Dialect, columns: &Columns) -> Box<dyn Rows> {
    Box::new(csv::Csv::new(bytes, columns, dialect))
}

/// Which wanted column the table lacks.
pub(super) fn csv_lacks(
    bytes: Box<dyn BufRead + Send>,
    dialect: Dialect,
    columns: &Columns,
) -> Option<String> {
    csv::Csv::new(bytes, columns, dialect).lacks()
}

/// Which wanted column the file lacks, or which unsupported compression it has.
#[cfg(feature = "parquet")]
pub(super) fn parquet_lacks(file: Arc<dyn Stored>, columns: &Columns) -> Option<String> {
    match parquet::Parquet::open(file, columns) {
        Err(damage) => damage.lack(),
        Ok(file) => {
            let found = file.foreign_codec()?;
            Some(format!("{found}, which is not read: write it with zstd or snappy"))
        }
    }
}

/// Without the feature `parquet` files cannot be examined.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet_lacks(_: Arc<dyn Stored>, _: &Columns) -> Option<String> {
    None
}

impl Damage {
    /// The message, if the damage is a missing column.
    fn lack(self) -> Option<String> {
        self.cause.filter(|_| {
            matches!(self.reason, BadRecord::MissingText | BadRecord::MissingId | BadRecord::BadTs)
        })
    }
}

impl Columns {
    /// What is wrong with a file that has only these columns. The column of texts is required; those of ids
    /// and times are required if the user set their names.
    fn missing(&self, has: impl Fn(&str) -> bool, names: &[String]) -> Option<(BadRecord, String)> {
        let usual = Layout::default();
        let (reason, name) = if !has(&self.text) {
            (BadRecord::MissingText, &self.text)
        } else if let Some(id) = self.id.as_ref().filter(|id| **id != usual.id && !has(id)) {
            (BadRecord::MissingId, id)
        } else if self.ts != usual.ts && !has(&self.ts) {
            (BadRecord::BadTs, &self.ts)
        } else {
            return None;
        };
        Some((reason, format!("no column {name:?} among {}", names.join(", "))))
    }
}

/// Bytes of rows that are read ahead: several row groups, which are large.
#[cfg(feature = "parquet")]
const PARQUET_WAITS: usize = 128 << 20;

/// The rows of a Parquet file. As many threads as the machine has cores read its row groups.
#[cfg(feature = "parquet")]
pub(super) fn parquet(file: Arc<dyn Stored>, columns: &Columns) -> Box<dyn Rows> {
    let read = |parts| {
        ahead::Ahead::new(parts, cores(), PARQUET_WAITS)
            .map_err(|error| failed(BadRecord::Unreadable, error.to_string()))
    };
    match parquet::Parquet::open(file, columns).and_then(|file| read(Arc::new(file))) {
        Ok(rows) => Box::new(rows),
        Err(damage) => Box::new(Failed(damage)),
    }
}

/// Without the feature `parquet`, a file gives only an error.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: Arc<dyn Stored>, _: &Columns) -> Box<dyn Rows> {
    let cause = "this dupflow was built without Parquet: build it with the feature `parquet`";
    Box::new(Failed(failed(BadRecord::Unreadable, cause.to_owned())))
}

/// The damage that a panic of a reader leaves: one bad record, and the rest of the file unread.
pub(super) fn panicked() -> Damage {
    failed(BadRecord::Unreadable, "its reader panicked, which is a fault of this program".to_owned())
}

fn failed(reason: BadRecord, cause: String) -> Damage {
    Damage { reason, cause: Some(cause), place: Place::Whole, head: Vec::new(), ends: true }
}

/// A file that cannot be read at all.
struct Failed(Damage);

impl Rows for Failed {
    fn next(&mut self, _: &mut Row) -> Result<Next, Damage> {
        Err(self.0.clone())
    }
}
