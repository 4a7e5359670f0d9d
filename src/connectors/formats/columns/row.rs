//! A row of columns as a record, and the form in which a bad one is kept.

use serde::Serialize;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::super::rows::{Damage, FileRow, RowText, found};
use super::given::GivenColumn;
use super::value::CellValue;

/// The JSON form of a bad row, or of rows that cannot be read. Once the error is corrected, it is a valid
/// line of a feed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct KeptRow<'a> {
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
    pub(crate) fn new(row: Option<u64>, reason: BadRecord, cause: Option<&'a str>) -> Self {
        Self { row, reason: reason.reason(), cause, ..Self::default() }
    }

    /// As one line of JSON.
    pub(crate) fn line(&self) -> Vec<u8> {
        // Strings and numbers always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The columns that are read, each of a type that has the value of the present row.
pub(crate) struct ReadColumns<C> {
    pub(crate) id: Option<C>,
    pub(crate) text: C,
    /// False if no row has a text: then that column is another one.
    pub(crate) has_text: bool,
    /// What the text is, unless it is a text.
    pub(crate) given: Option<GivenColumn>,
    pub(crate) ts: Option<C>,
    pub(crate) op: Option<C>,
    pub(crate) fields: Vec<Option<C>>,
}

/// A column with the value of the present row.
pub(crate) trait ColumnCursor {
    /// The value of the present row.
    fn value(&self) -> CellValue<'_>;

    /// What its numbers with a fraction are called, and from where on, in absolute value, they do not hold
    /// every whole number.
    fn inexact(&self) -> (&'static str, f64);
}

impl<C: ColumnCursor> ReadColumns<C> {
    /// Reads the present row, which has this number in its file.
    ///
    /// # Errors
    /// If it is no event.
    pub(crate) fn read(&self, row: &mut FileRow, number: u64) -> Result<(), Damage> {
        self.values(row)
            .map_err(|(reason, cause)| (reason, Some(cause)))
            .and_then(|()| row.flaw().map_or(Ok(()), Err))
            .map_err(|(reason, cause)| self.bad_row(number, reason, cause))
    }

    /// The columns besides that of the texts.
    pub(crate) fn others(&mut self) -> impl Iterator<Item = &mut C> {
        [&mut self.id, &mut self.ts, &mut self.op].into_iter().chain(&mut self.fields).flatten()
    }

    /// The damage of a row that is no event.
    fn bad_row(&self, number: u64, reason: BadRecord, cause: Option<String>) -> Damage {
        let text = |value: Result<Option<Vec<u8>>, (BadRecord, String)>| {
            let fits = value.unwrap_or_default().filter(|value| value.len() <= MAX_RECORD_BYTES)?;
            Some(String::from_utf8_lossy(&fits).into_owned())
        };
        let head = KeptRow {
            id: text(self.id()),
            op: text(value_of(self.op.as_ref()).bytes()),
            ts: value_of(self.ts.as_ref()).json(),
            text: text(self.text(&self.text_value())),
            ..KeptRow::new(Some(number), reason, cause.as_deref())
        };
        Damage { reason, head: head.line(), cause, place: RecordPlace::Record(number), ends: false }
    }

    fn text_value(&self) -> CellValue<'_> {
        if self.has_text { self.text.value() } else { CellValue::Null }
    }

    /// The text of a value of the column of texts; `None` for null.
    fn text(&self, value: &CellValue<'_>) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        self.given.as_ref().map_or_else(|| value.bytes(), |column| value.given(column.given))
    }

    /// The id; `None` for null.
    fn id(&self) -> Result<Option<Vec<u8>>, (BadRecord, String)> {
        self.id.as_ref().map_or(Ok(None), |id| id.value().id_of(id.inexact()))
    }

    fn values(&self, row: &mut FileRow) -> Result<(), (BadRecord, String)> {
        let within = |bytes: Option<Vec<u8>>| {
            let fits = bytes.as_ref().is_none_or(|bytes| bytes.len() <= MAX_RECORD_BYTES);
            fits.then_some(bytes).ok_or_else(|| (BadRecord::TooLong, "a value".to_owned()))
        };
        let bytes = |value: CellValue<'_>| within(value.bytes()?);
        let op = bytes(value_of(self.op.as_ref()))?.unwrap_or_default();
        row.text = match op.as_slice() {
            b"" | b"upsert" => {
                let value = self.text_value();
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

fn value_of<C: ColumnCursor>(column: Option<&C>) -> CellValue<'_> {
    column.map_or(CellValue::Null, C::value)
}
