//! Reads Parquet files, column by column.
//!
//! A file -> its row groups, each read independently, so that several threads can read them and damage is
//! limited to one group. A column is a leaf of the schema, named by its dotted path. The levels `list` and
//! `element` between a list and its elements may be omitted in a path. The elements of a list are joined by
//! line ends.
//!
//! A bad row is kept as a JSON object: its number in the file, the values that could be read, and the reason.
//!
//! Damage inside a page of text is noticed only if its compression notices it, since files rarely have
//! checksums. A panic of the `parquet` crate counts as damage that ends the row group.
//!
//! The crate allocates memory for the sizes stated in a file. Therefore those sizes are checked against the
//! file's bytes first: by `footer` for the metadata, and by `pages` for page headers and the counts inside
//! pages (`lengths`), both over `thrift`. `codec` decompresses no more than the stated size.

mod codec;
mod column;
mod footer;
mod lengths;
mod pages;
mod thrift;

use std::fmt;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use serde::Serialize;

use self::codec::Codec;
use self::column::{Column, Value};
use self::pages::Held;
use super::Stored;
use super::bad_record::{BadRecord, MAX_RECORD_BYTES, Place};
use super::parallel::{Parts, Record, each_record};
use super::rows::{Columns, Damage, Next, Row, Rows, Text, found};

/// Rows that are read at once.
const STEP: usize = 256;

/// A file whose footer has been read.
pub(crate) struct Parquet {
    file: Arc<Chunks>,
    about: ParquetMetaData,
    leaves: Leaves,
}

/// The JSON form of a bad row, or of rows that cannot be read. Once the error is corrected, it is a valid
/// line of a feed.
#[derive(Debug, Default, Serialize)]
struct Kept<'a> {
    /// Its number in the file, from 0; the first of several rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

impl<'a> Kept<'a> {
    fn new(row: Option<u64>, reason: BadRecord, cause: Option<&'a str>) -> Self {
        Self { row, reason: reason.reason(), cause, ..Self::default() }
    }

    /// As one line of JSON.
    fn line(&self) -> Vec<u8> {
        // Strings and numbers always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The indices of the wanted columns.
#[derive(Clone, Debug)]
struct Leaves {
    id: Option<usize>,
    text: usize,
    ts: Option<usize>,
    op: Option<usize>,
    fields: Vec<Option<usize>>,
}

impl fmt::Debug for Parquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parquet").field("leaves", &self.leaves).finish_non_exhaustive()
    }
}

impl Parquet {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or lacks a required column; the message lists the leaves that it has.
    pub(crate) fn open(file: Arc<dyn Stored>, columns: &Columns) -> Result<Self, Damage> {
        let damage = |reason, cause: String| Damage {
            reason,
            head: Kept::new(None, reason, Some(&cause)).line(),
            cause: Some(cause),
            place: Place::Whole,
            ends: true,
        };
        let file = Arc::new(Chunks(file));
        let about = caught(|| footer::read(&file)).map_err(|cause| damage(BadRecord::Unreadable, cause))?;
        let schema = about.file_metadata().schema_descr();
        let find = |name: &str| column::find(schema, name);
        let names: Vec<_> =
            schema.columns().iter().map(|leaf| format!("{:?}", leaf.path().string())).collect();
        if let Some((reason, cause)) = columns.missing(|name| find(name).is_some(), &names) {
            return Err(damage(reason, cause));
        }
        let text = find(&columns.text).unwrap_or(0);
        let fields = columns.fields.iter().map(|field| find(field)).collect();
        let id = columns.id.as_deref().and_then(find);
        let leaves = Leaves { id, text, ts: find(&columns.ts), op: find(&columns.op), fields };
        Ok(Self { file, about, leaves })
    }

    /// The unsupported compression of a wanted column, if there is one; judged by the first row group.
    pub(crate) fn foreign_codec(&self) -> Option<String> {
        let group = self.about.row_groups().first()?;
        let Leaves { id, text, ts, op, fields } = &self.leaves;
        let mut leaves = [id, ts, op].into_iter().chain(fields).flatten().chain([text]);
        leaves.find_map(|leaf| {
            let codec = group.columns().get(*leaf)?.compression_codec();
            (!Codec::is_read(codec)).then(|| format!("it is compressed with {codec}"))
        })
    }

    /// Number of rows of each row group, according to the footer.
    pub(crate) fn groups(&self) -> Vec<u64> {
        let rows =
            |group: &parquet::file::metadata::RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        self.about.row_groups().iter().map(rows).collect()
    }

    /// The rows of the row group at this index.
    ///
    /// # Errors
    /// If it cannot be read at all.
    pub(crate) fn group(&self, place: usize) -> Result<Group, Damage> {
        let opened = caught(|| {
            let group = self.about.row_groups().get(place);
            let group = group.ok_or_else(|| ParquetError::General("it is not in the file".to_owned()))?;
            let left = u64::try_from(group.num_rows()).unwrap_or(0);
            let Leaves { id, text, ts, op, fields } = &self.leaves;
            let others = [id, ts, op].into_iter().chain(fields).flatten();
            let held = Held::among(1 + others.count());
            let column = |leaf: usize| Column::open(&self.file, group.column(leaf), left, &held);
            let all = |leaf: &Option<usize>| leaf.map(column).transpose();
            Ok(Group {
                id: all(id)?,
                text: column(*text)?,
                ts: all(ts)?,
                op: all(op)?,
                fields: fields.iter().map(all).collect::<Result<_>>()?,
                left,
                row: before(&self.groups(), place),
            })
        });
        opened.map_err(|cause| {
            let (reason, row) = (BadRecord::Unreadable, before(&self.groups(), place));
            let cause = format!("row group {place}: {cause}");
            let head = Kept::new(Some(row), reason, Some(&cause)).line();
            Damage { reason, cause: Some(cause), place: Place::Record(row), head, ends: true }
        })
    }
}

/// Number of rows before a row group, according to the footer, whose numbers may be wrong.
fn before(groups: &[u64], place: usize) -> u64 {
    groups.iter().take(place).fold(0, |sum, rows| sum.saturating_add(*rows))
}

impl Parts for Parquet {
    type Piece = Record;

    fn count(&self) -> usize {
        self.about.num_row_groups()
    }

    fn read(&self, part: usize, each: &mut dyn FnMut(Record) -> bool) {
        match self.group(part) {
            Ok(mut group) => each_record(&mut group, each),
            Err(damage) => drop(each(Err(damage))),
        }
    }
}

/// The rows of one row group. A bad row is reported by its number in the file, from 0.
pub(crate) struct Group {
    id: Option<Column>,
    text: Column,
    ts: Option<Column>,
    op: Option<Column>,
    fields: Vec<Option<Column>>,
    /// Unread rows, according to the footer.
    left: u64,
    /// The number of the next row in the file, from 0.
    row: u64,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("row", &self.row).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Rows for Group {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        *row = Row::default();
        if self.left == 0 {
            return Ok(Next::End);
        }
        let read = caught(AssertUnwindSafe(|| self.advance()));
        match read {
            Ok(true) => {}
            Ok(false) => {
                let cause = format!("its row group ends {} rows early", self.left);
                return Err(self.damage(BadRecord::Truncated, cause));
            }
            Err(cause) => return Err(self.damage(BadRecord::Unreadable, cause)),
        }
        self.left -= 1;
        let put = self.put(row).map_err(|(reason, cause)| self.bad_row(reason, cause));
        self.row += 1;
        put.map(|()| Next::Row)
    }
}

impl Group {
    /// The damage where no further row can be read.
    fn damage(&self, reason: BadRecord, cause: String) -> Damage {
        let head = Kept::new(Some(self.row), reason, Some(&cause)).line();
        Damage { reason, cause: Some(cause), place: Place::Record(self.row), head, ends: true }
    }

    /// The damage of a row that is no event.
    fn bad_row(&self, reason: BadRecord, cause: Option<String>) -> Damage {
        let text = |value: std::result::Result<Option<Vec<u8>>, (BadRecord, String)>| {
            let fits = value.unwrap_or_default().filter(|value| value.len() <= MAX_RECORD_BYTES)?;
            Some(String::from_utf8_lossy(&fits).into_owned())
        };
        let head = Kept {
            id: text(value_of(self.id.as_ref()).id()),
            op: text(value_of(self.op.as_ref()).bytes()),
            ts: value_of(self.ts.as_ref()).json(),
            text: text(self.text.value().bytes()),
            ..Kept::new(Some(self.row), reason, cause.as_deref())
        };
        Damage { reason, head: head.line(), cause, place: Place::Record(self.row), ends: false }
    }

    /// Moves all columns to the next row; false if there is none.
    fn advance(&mut self) -> Result<bool> {
        if !self.text.advance(self.left)? {
            return Ok(false);
        }
        let others = [&mut self.id, &mut self.ts, &mut self.op].into_iter().chain(&mut self.fields);
        for column in others.flatten() {
            if !column.advance(self.left)? {
                return Err(ParquetError::General("a column ends before that of the texts".to_owned()));
            }
        }
        Ok(true)
    }

    fn put(&self, row: &mut Row) -> Result<(), (BadRecord, Option<String>)> {
        self.values(row).map_err(|(reason, cause)| (reason, Some(cause)))?;
        row.flaw().map_or(Ok(()), Err)
    }

    fn values(&self, row: &mut Row) -> Result<(), (BadRecord, String)> {
        let within = |bytes: Option<Vec<u8>>| {
            let fits = bytes.as_ref().is_none_or(|bytes| bytes.len() <= MAX_RECORD_BYTES);
            fits.then_some(bytes).ok_or_else(|| (BadRecord::TooLong, "a value".to_owned()))
        };
        let bytes = |value: Value<'_>| within(value.bytes()?);
        let op = bytes(value_of(self.op.as_ref()))?.unwrap_or_default();
        row.text = match op.as_slice() {
            b"" | b"upsert" => bytes(self.text.value())?.map_or(Text::Missing, Text::Is),
            b"delete" => Text::Deleted,
            other => {
                return Err((BadRecord::UnknownOp, format!("found {}", found(other))));
            }
        };
        row.ts = value_of(self.ts.as_ref()).seconds()?;
        row.id = within(value_of(self.id.as_ref()).id()?)?;
        for field in &self.fields {
            row.fields.push(bytes(value_of(field.as_ref()))?.unwrap_or_default());
        }
        Ok(())
    }
}

fn value_of(column: Option<&Column>) -> Value<'_> {
    column.map_or(Value::Null, Column::value)
}

/// The result of the crate's function; an error or a panic becomes a message.
fn caught<T>(read: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(format!("the reader of Parquet panicked: {said}"))
        }
    }
}

/// Access to the byte ranges of a file.
#[derive(Debug)]
struct Chunks(Arc<dyn Stored>);

impl Chunks {
    fn bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Checked before memory is allocated, since lengths are read from the file.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.bytes()) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from {start} on, in a file of {}",
                self.0.bytes()
            )));
        }
        let mut bytes = vec![0; length];
        self.0.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads a file from an offset on.
#[derive(Debug)]
struct Piece {
    file: Arc<dyn Stored>,
    at: u64,
}

impl Read for Piece {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.file.bytes().saturating_sub(self.at);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        self.file.read_at(self.at, &mut out[..count])?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
