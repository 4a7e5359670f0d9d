//! The records of a file, as every format returns them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::bad_record::{BadRecord, RecordPlace};
use super::layout::{InputLayout, SurrogateRule};
use super::nonstandard::StandardJson;
use super::part::TablePart;
use dupflow_core::doc::DocId;
use dupflow_core::text::Given;
use dupflow_core::time::UnixTime;

/// The wanted columns, as dotted paths: `meta.title` is `title` in the object `meta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedColumns {
    /// The id; `None` if ids are not read. A record without an id is named by its file and its number there.
    pub(crate) id: Option<String>,
    /// The text.
    pub(crate) text: String,
    /// The time, in unix seconds.
    pub(crate) ts: String,
    /// The operation: `upsert` or `delete`; empty: none.
    pub(crate) op: String,
    /// Further fields, in this order.
    pub(crate) fields: Vec<String>,
    /// What the text is, unless it is a text.
    pub(crate) given: Option<Given>,
    /// What a table says of the file, if it is one of a table.
    pub(crate) part: Option<Arc<TablePart>>,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileRow {
    /// The id, if the record has one.
    pub(crate) id: Option<Vec<u8>>,
    /// The time, in unix seconds.
    pub(crate) ts: Option<f64>,
    /// The text, or the delete.
    pub(crate) text: RowText,
    /// The further fields, one for each wanted name; empty where the record has none.
    pub(crate) fields: Vec<Vec<u8>>,
    /// What it is to revisits, if it is of a web archive.
    pub(crate) role: ArchiveRole,
}

impl FileRow {
    /// Why the row is no event, if its id or its time is wrong, and the value. Checked by the reader of the
    /// format, which still has the whole row for the report.
    pub(super) fn flaw(&self) -> Option<(BadRecord, Option<String>)> {
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
            (RowText::Deleted, None) => Some((BadRecord::MissingId, None)),
            (RowText::Missing, _) => Some((BadRecord::MissingText, None)),
            _ => None,
        }
    }
}

/// What a page can be found by, as hashes; 0 for what its record does not state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageKeys {
    pub(super) id: u64,
    /// The address and the second.
    pub(super) visit: u64,
    pub(super) digest: u64,
    pub(super) address: u64,
}

/// What a record of an archive is to revisits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArchiveRole {
    /// None: its id is not an address, or it is of no archive.
    #[default]
    Other,
    /// A page that revisits may refer to.
    Page(PageKeys),
    /// A revisit, whose row has no text.
    Revisit {
        /// The keys of the page that it refers to.
        of: PageKeys,
        /// The keys by which later revisits may refer to that page.
        own: PageKeys,
    },
}

/// Doubles from here on, in absolute value, do not hold every whole number: 2^53.
pub(super) const INEXACT: f64 = 9_007_199_254_740_992.0;

/// A number as an id: its digits if it is written as a whole number, however long; a double by the digits of
/// its value, as 1.0 by `1`. `None` for a fraction, and for a double of [`INEXACT`] or more: several whole
/// numbers are that double.
pub(super) fn id_of_number(written: &str) -> Option<DocId> {
    let digits = written.strip_prefix('-').unwrap_or(written);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return DocId::new(if digits == "0" { digits } else { written });
    }
    let double: f64 = written.parse().ok()?;
    // The sum is without the sign of a zero.
    (double.fract() == 0.0 && double.abs() < INEXACT).then(|| DocId::new(&(double + 0.0).to_string()))?
}

/// The beginning of a value, in quotes.
pub(crate) fn found(value: &[u8]) -> String {
    const MOST: usize = 80;
    let start = String::from_utf8_lossy(&value[..value.len().min(4 * MOST)]);
    let shown: String = start.chars().take(MOST).collect();
    let more = if shown.len() < value.len() { " …" } else { "" };
    format!("{shown:?}{more}")
}

/// What an object has: the first 20 names of its fields, in quotes, after " among "; empty if there are none.
pub(crate) fn among(object: &[u8]) -> String {
    const MOST: usize = 20;
    let object = object.strip_prefix(b"\xef\xbb\xbf").unwrap_or(object);
    let form = str::from_utf8(object).ok().and_then(|json| StandardJson::new(json, SurrogateRule::Replace));
    let object = form.as_ref().map_or(object, |form| form.json.as_bytes());
    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_slice(object).unwrap_or_default();
    let more = (fields.len() > MOST).then(|| format!("{} more", fields.len() - MOST));
    let names: Vec<_> = fields.keys().take(MOST).map(|name| format!("{name:?}")).chain(more).collect();
    if names.is_empty() { String::new() } else { format!(" among {}", names.join(", ")) }
}

/// The message for a text that is no time.
pub(super) fn no_time(text: &[u8]) -> String {
    format!("found {}, which is no date of ISO 8601 either", found(text))
}

/// What a record does to its document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum RowText {
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
pub(crate) enum NextRow {
    /// A record with a document.
    Row,
    /// A valid record without a document; the reason, in one word.
    Skipped(&'static str),
    /// The end of the file.
    End,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Damage {
    /// The reason.
    pub(crate) reason: BadRecord,
    /// The message of the decoder.
    pub(crate) cause: Option<String>,
    /// Its place in the file.
    pub(crate) place: RecordPlace,
    /// The bytes of the record, or of as much as is known of it.
    pub(crate) head: Vec<u8>,
    /// Whether nothing after it can be read either.
    pub(crate) ends: bool,
}

/// Reads the records of one file, in order.
///
/// The same bytes give the same records, in whatever pieces they are read. It is not called again after
/// [`NextRow::End`], or after damage that [ends](Damage::ends) the file. It has one record in memory at a
/// time, within limits that do not depend on sizes stated in the file.
pub(crate) trait RowReader: Send {
    /// Reads the next record into `row`, and replaces its contents.
    ///
    /// # Errors
    /// If the record cannot be read; the next call continues after it.
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage>;

    /// Number of rows so far of which the file has only the beginning, according to the file itself.
    fn cut(&self) -> u64 {
        0
    }

    /// What is to be said of the file at its end, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Damage {
    /// The message, if the damage is a missing column.
    pub(super) fn lack(self) -> Option<String> {
        self.cause.filter(|_| {
            use BadRecord::{BadOp, BadTs, MissingId, MissingText};
            matches!(self.reason, MissingText | MissingId | BadTs | BadOp)
        })
    }
}

impl WantedColumns {
    /// What is wrong with a file that has only these columns. The column of texts is required; those of ids
    /// and times are required if the user set their names.
    pub(super) fn missing(
        &self,
        has: impl Fn(&str) -> bool,
        names: &[String],
    ) -> Option<(BadRecord, String)> {
        let usual = InputLayout::default();
        // A column may have been added to a table behind the file.
        let is_known = |name: &str| has(name) || self.part.as_ref().is_some_and(|part| part.is_column(name));
        let (reason, name) = if !is_known(&self.text) {
            (BadRecord::MissingText, &self.text)
        } else if let Some(id) = self.id.as_ref().filter(|id| **id != usual.id && !is_known(id)) {
            (BadRecord::MissingId, id)
        } else if self.ts != usual.ts && !is_known(&self.ts) {
            (BadRecord::BadTs, &self.ts)
        } else if self.op != usual.op && !self.op.is_empty() && !is_known(&self.op) {
            (BadRecord::BadOp, &self.op)
        } else {
            return None;
        };
        Some((reason, format!("no column {name:?} among {}", names.join(", "))))
    }
}

/// The damage that a panic of a reader leaves: one bad record, and the rest of the file unread.
pub(crate) fn panicked() -> Damage {
    failed(BadRecord::Unreadable, "its reader panicked, which is a fault of this program".to_owned())
}

pub(super) fn failed(reason: BadRecord, cause: String) -> Damage {
    Damage { reason, cause: Some(cause), place: RecordPlace::Whole, head: Vec::new(), ends: true }
}

/// A file that cannot be read at all.
#[cfg(feature = "parquet")]
pub(super) struct Failed(pub(super) Damage);

#[cfg(feature = "parquet")]
impl RowReader for Failed {
    fn next(&mut self, _: &mut FileRow) -> Result<NextRow, Damage> {
        Err(self.0.clone())
    }
}
