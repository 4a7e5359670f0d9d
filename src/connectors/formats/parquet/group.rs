//! The rows of a row group, and the form in which bad ones are kept.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::{ParquetError, Result};
use serde::Serialize;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::super::rows::{Damage, FileRow, NextRow, RowReader, RowText, found};
use super::column::{GivenColumn, LeafColumn, LeafValue};

/// The JSON form of a bad row, or of rows that cannot be read. Once the error is corrected, it is a valid
/// line of a feed.
#[derive(Debug, Default, Serialize)]
pub(super) struct KeptRow<'a> {
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

impl<'a> KeptRow<'a> {
    pub(super) fn new(row: Option<u64>, reason: BadRecord, cause: Option<&'a str>) -> Self {
        Self { row, reason: reason.reason(), cause, ..Self::default() }
    }

    /// As one line of JSON.
    pub(super) fn line(&self) -> Vec<u8> {
        // Strings and numbers always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The rows of one row group. A bad row is reported by its number in the file, from 0.
pub(crate) struct GroupRows {
    pub(super) id: Option<LeafColumn>,
    pub(super) text: LeafColumn,
    /// What the text is, unless it is a text.
    pub(super) given: Option<GivenColumn>,
    pub(super) ts: Option<LeafColumn>,
    pub(super) op: Option<LeafColumn>,
    pub(super) fields: Vec<Option<LeafColumn>>,
    /// Unread rows, according to the footer.
    pub(super) left: u64,
    /// The number of the next row in the file, from 0.
    pub(super) row: u64,
}

impl fmt::Debug for GroupRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupRows").field("row", &self.row).field("left", &self.left).finish_non_exhaustive()
    }
}

impl RowReader for GroupRows {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        *row = FileRow::default();
        if self.left == 0 {
            return Ok(NextRow::End);
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
        put.map(|()| NextRow::Row)
    }
}

impl GroupRows {
    /// The damage where no further row can be read.
    fn damage(&self, reason: BadRecord, cause: String) -> Damage {
        let head = KeptRow::new(Some(self.row), reason, Some(&cause)).line();
        Damage { reason, cause: Some(cause), place: RecordPlace::From(self.row), head, ends: true }
    }

    /// The damage of a row that is no event.
    fn bad_row(&self, reason: BadRecord, cause: Option<String>) -> Damage {
        let text = |value: std::result::Result<Option<Vec<u8>>, (BadRecord, String)>| {
            let fits = value.unwrap_or_default().filter(|value| value.len() <= MAX_RECORD_BYTES)?;
            Some(String::from_utf8_lossy(&fits).into_owned())
        };
        let head = KeptRow {
            id: text(self.id()),
            op: text(value_of(self.op.as_ref()).bytes()),
            ts: value_of(self.ts.as_ref()).json(),
            text: text(self.text(&self.text.value())),
            ..KeptRow::new(Some(self.row), reason, cause.as_deref())
        };
        Damage { reason, head: head.line(), cause, place: RecordPlace::Record(self.row), ends: false }
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

    fn put(&self, row: &mut FileRow) -> Result<(), (BadRecord, Option<String>)> {
        self.values(row).map_err(|(reason, cause)| (reason, Some(cause)))?;
        row.flaw().map_or(Ok(()), Err)
    }

    /// The text of a value of the column of texts; `None` for null.
    fn text(&self, value: &LeafValue<'_>) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        self.given.as_ref().map_or_else(|| value.bytes(), |column| value.given(column.given))
    }

    /// The id; `None` for null.
    fn id(&self) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        self.id.as_ref().map_or(Ok(None), LeafColumn::id)
    }

    fn values(&self, row: &mut FileRow) -> Result<(), (BadRecord, String)> {
        let within = |bytes: Option<Vec<u8>>| {
            let fits = bytes.as_ref().is_none_or(|bytes| bytes.len() <= MAX_RECORD_BYTES);
            fits.then_some(bytes).ok_or_else(|| (BadRecord::TooLong, "a value".to_owned()))
        };
        let bytes = |value: LeafValue<'_>| within(value.bytes()?);
        let op = bytes(value_of(self.op.as_ref()))?.unwrap_or_default();
        row.text = match op.as_slice() {
            b"" | b"upsert" => {
                let value = self.text.value();
                match (within(self.text(&value)?)?, &self.given) {
                    (None, _) => RowText::Missing,
                    (Some(text), Some(column)) if !value.is_given(column.given, &text) => {
                        return Err((BadRecord::BadFeatures, column.expected.to_string()));
                    }
                    (Some(text), _) => RowText::Is(text),
                }
            }
            b"delete" => RowText::Deleted,
            other => {
                return Err((BadRecord::UnknownOp, format!("found {}", found(other))));
            }
        };
        row.ts = value_of(self.ts.as_ref()).seconds()?;
        row.id = within(self.id()?)?;
        for field in &self.fields {
            row.fields.push(bytes(value_of(field.as_ref()))?.unwrap_or_default());
        }
        Ok(())
    }
}

fn value_of(column: Option<&LeafColumn>) -> LeafValue<'_> {
    column.map_or(LeafValue::Null, LeafColumn::value)
}

/// The result of the crate's function; an error or a panic becomes a message.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => {
            let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(format!("the reader of Parquet panicked: {message}"))
        }
    }
}
