//! The formats of inputs whose records are not lines: one file each.
//!
//! A file -> its records, in order: a [`Row`], or what is wrong with it. A reader of a format finds documents
//! and no more: ids are checked, texts decoded and compared elsewhere.

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

/// What of a record is wanted, by dotted paths: `meta.title` is the `title` of the object `meta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The document's id; `None` where none is to be read. A record without one is named by its file and its
    /// number there.
    pub(super) id: Option<String>,
    /// Its text.
    pub(super) text: String,
    /// When it happened, in unix seconds.
    pub(super) ts: String,
    /// `upsert` or `delete`.
    pub(super) op: String,
    /// Further fields, in this order.
    pub(super) fields: Vec<String>,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// The id, if the record has one.
    pub(super) id: Option<Vec<u8>>,
    /// When it happened, in unix seconds.
    pub(super) ts: Option<f64>,
    /// What is said of the document.
    pub(super) text: Text,
    /// The further fields, as many as are wanted; empty where one is absent.
    pub(super) fields: Vec<Vec<u8>>,
}

impl Row {
    /// Why it is no event, if its id or its time say so, and what was found: its reader can still tell all of
    /// it.
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

/// A text in the place of a time.
fn no_time(text: &[u8]) -> String {
    format!("found {}, which is no date of ISO 8601 either", found(text))
}

/// What a record says of its document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Text {
    /// Nothing: the record has no text.
    #[default]
    Missing,
    /// Its text, UTF-8 or not.
    Is(Vec<u8>),
    /// It ends.
    Deleted,
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A record with a document.
    Row,
    /// A sound record that holds no document, and why: one word.
    Skipped(&'static str),
    /// Nothing.
    End,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Damage {
    /// What is wrong.
    pub(super) reason: BadRecord,
    /// What the decoder says.
    pub(super) cause: Option<String>,
    /// Where in the file.
    pub(super) place: Place,
    /// The record, or what is known of it, if anything is.
    pub(super) head: Vec<u8>,
    /// Nothing behind it can be read either.
    pub(super) ends: bool,
}

/// The records of one file, in order.
///
/// The same bytes give the same records, however they come. After [`Next::End`] and after damage that
/// [ends](Damage::ends) the file it is not called again. It holds one record at a time, within bounds that do
/// not depend on what the file says of itself.
pub(super) trait Rows: Send {
    /// Reads the next record into `row`, whose contents are of the last one, and are replaced.
    ///
    /// # Errors
    /// If it cannot be read; the next call goes on behind it.
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage>;

    /// Rows so far of which the file holds the beginning only, as it says itself.
    fn cut(&self) -> u64 {
        0
    }
}

/// A file that is read at any place, by several threads.
pub(super) trait Stored: Send + Sync + fmt::Debug {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Fills a buffer with the bytes from there on.
    ///
    /// # Errors
    /// If they cannot be read, or there are not so many.
    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A whole text, or web page, as one record of this id.
pub(super) fn whole(bytes: Box<dyn BufRead + Send>, id: &str, is_html: bool) -> Box<dyn Rows> {
    Box::new(whole::Whole { bytes: Some(bytes), id: id.to_owned(), is_html })
}

/// The pages and texts of a web archive, whose bytes come as they are stored.
pub(super) fn warc(bytes: Box<dyn BufRead + Send>, columns: &Columns, id: WarcId) -> Box<dyn Rows> {
    Box::new(warc::Warc::new(bytes, columns, id))
}

/// The same of a compressed archive that is read at any place: in parts, by as many threads as the machine
/// has cores. `None` if it is too small to be parted.
///
/// # Errors
/// If they cannot be started.
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

/// What the table lacks of the columns that are wanted.
pub(super) fn csv_lacks(
    bytes: Box<dyn BufRead + Send>,
    dialect: Dialect,
    columns: &Columns,
) -> Option<String> {
    csv::Csv::new(bytes, columns, dialect).lacks()
}

/// What the file lacks of the columns that are wanted, or with what they are compressed, if that is not read.
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

/// What the file lacks of the columns that are wanted: that cannot be told.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet_lacks(_: Arc<dyn Stored>, _: &Columns) -> Option<String> {
    None
}

impl Damage {
    /// Of a file without a column that is wanted: which one.
    fn lack(self) -> Option<String> {
        self.cause.filter(|_| {
            matches!(self.reason, BadRecord::MissingText | BadRecord::MissingId | BadRecord::BadTs)
        })
    }
}

impl Columns {
    /// What is wrong with a file that has only these columns: a text is needed, and an id and a time that
    /// were asked for by another name than the usual one.
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

/// Bytes of rows that are read ahead: of several row groups, which are large.
#[cfg(feature = "parquet")]
const PARQUET_WAITS: usize = 128 << 20;

/// The rows of a Parquet file. Its row groups are read by as many threads as the machine has cores.
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

/// What cannot be read.
#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: Arc<dyn Stored>, _: &Columns) -> Box<dyn Rows> {
    let cause = "this dupflow was built without Parquet: build it with the feature `parquet`";
    Box::new(Failed(failed(BadRecord::Unreadable, cause.to_owned())))
}

/// What a reader that panics leaves: one bad record, and the rest of its file unread.
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
