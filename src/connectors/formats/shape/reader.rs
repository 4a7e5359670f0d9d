//! Reads the values of records as documents, in one of several formats.
//!
//! A record with a key -> an event, or the reason why it is a bad record. A missing or an empty value (a
//! *tombstone*) is a delete in every format except `row`. Any other value is UTF-8 in one of the formats
//! below. A *row* is an object with the text at the path [`RecordShape::text`], the id at
//! [`RecordShape::id`], and further fields under their names:
//!
//! ```text
//! text      the value is the text. The word null alone is a bad record: some writers mean a tombstone by it.
//!           A web page may have an encoding other than UTF-8, which it names or which is guessed
//! json      {row}                     upsert; with "op":"delete" a delete, which needs no text. So is a row
//!                                     with "__deleted":"true", as Debezium rewrites deletes, and Maxwell's
//!                                     "type":"delete" beside "database", "table" and "data"
//!           {"payload":{row}}         the same with a schema beside it
//!           {"insert":{row}}          upsert; also {"insert":"…"}, the text itself
//!           {"delete":{row}}          delete, for any value except null
//! debezium  {"op":"c","after":{row}}  upsert, for op c, r and u; NULL in a column is an empty string
//!           {"op":"d","before":{row}} delete; before may be null. A row may be a string of JSON, as in
//!                                     changes of MongoDB
//!           {"op":"m"}                skipped: a message, of no row. Any other op is bad, "t" (truncate) too
//!           {"payload":{envelope}}    the same with a schema beside it; {"payload":null} is a delete
//! auto      debezium if the value is such an envelope, json if it is another object, otherwise text. A value
//!           that begins with `{` and is not JSON is a bad record, and so is an object without a text. So is
//!           one that begins with a zero byte: a
//!           schema id and a body encoded by that schema, which is not supported
//! row       the value is the text of a row of a file or a table, also if empty; only a missing value is a
//!           delete
//! ```
//!
//! - **id**: the record's key. With [`RecordShape::id`], the string or whole number at that path in the row.
//!   If the row has none, the same path in the key if that is JSON (also below its `payload`), else the key
//!   itself.
//! - **ts**, unix seconds from 0 to before the year 2100: the row's `ts`, a number or an ISO 8601 date; for
//!   Debezium `source.ts_ms`, then `ts_ms`, in milliseconds. Otherwise the time of the record. An impossible
//!   record time counts as missing, or makes the record a bad one if documents expire by their times
//!   ([`RecordShape::needs_time`]). The time of the record is also kept as [`DocEvent::written`].
//! - **Further fields**: the header of that name if [`RecordShape::headers`] names it and the record has it.
//!   Otherwise the string in the row, `meta.title` below `meta`. A missing field is empty.
//! - **Fields of documents** ([rules](FieldRules)): the columns of the rules as further fields are, and other
//!   values than strings too. A value that cannot be used leaves the field empty.
//! - A column that the database left out of an update (`__debezium_unavailable_value`) makes the record bad
//!   if it is the text. The document keeps its present text, which is what the update means.
//! - Other names are ignored. Of a repeated name the last one counts. A byte order mark before JSON is
//!   skipped.
//!
//! Reasons are checked in the order: too long, UTF-8, JSON, an object, `op`, id, `ts`, text, further fields.
//!
//! References: the envelopes of Debezium's connectors (its documentation, *Data change events*), and
//! insert-delete JSON as Feldera and Materialize have it, without their `update`.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::layout::SurrogateRule;
use super::super::rows::{among, found as found_value};
use super::pick::{Leaf, Picks};
use super::records::KeyedRecord;
use super::settings::{RecordShape, ValueFormat};
use super::values::{KeyPicks, PickedEvent, RowPicks, ValuePicks};
use crate::canonical_url::canonical_id;
use dupflow_core::doc::fields::{EventFields, FieldRules, RawValue};
use dupflow_core::doc::{DocEvent, DocId, FIELD_SEPARATOR, without_separators};
use dupflow_core::html;
use dupflow_core::text::{Given, TextColumns};
use dupflow_core::time::UnixTime;

/// What Debezium writes for a column that the database left out of an update.
const UNAVAILABLE: &str = "__debezium_unavailable_value";

/// Reads records in one shape.
#[derive(Debug)]
pub(crate) struct ShapeReader {
    shape: Arc<RecordShape>,
    fields: usize,
    given: Option<Given>,
    /// For each header of the shape, the index of the further field that it holds, if any.
    field_of_header: Vec<Option<usize>>,
    /// The fields of documents; for each column of these, the index of its header.
    own: FieldRules,
    header_of_column: Vec<Option<usize>>,
    values: ValuePicks,
    keys: KeyPicks,
    /// The values of picked fields that a row without them has.
    of_path: Vec<(usize, Leaf<'static>)>,
}

impl ShapeReader {
    /// A reader for this shape, with further fields of these names, and fields of documents by these rules.
    pub(crate) fn new(shape: &Arc<RecordShape>, columns: &TextColumns, own: &FieldRules) -> Self {
        let place_of = |column: &String| shape.headers.iter().position(|name| name == column);
        let of_header = |header: &String| columns.iter().position(|field| field == header);
        Self {
            shape: Arc::clone(shape),
            fields: columns.len(),
            given: columns.given,
            field_of_header: shape.headers.iter().map(of_header).collect(),
            header_of_column: own.columns().iter().map(place_of).collect(),
            own: own.clone(),
            values: ValuePicks::new(shape, columns, own.columns()),
            keys: KeyPicks::new(shape),
            of_path: Vec::new(),
        }
    }

    /// The same for the lines of a file whose path has these fields.
    pub(crate) fn with_path(mut self, fields: &[(String, Vec<u8>)], columns: &[String]) -> Self {
        let RowPicks { fields: further, columns: own, .. } = &self.values.plain.row;
        let picked = columns.iter().zip(further).chain(self.own.columns().iter().zip(own));
        let of_path = |(name, place): (&String, &usize)| {
            let (_, value) = fields.iter().find(|(of, _)| of == name)?;
            let text = |text: &str| Leaf::Text(text.to_owned().into());
            Some((*place, str::from_utf8(value).map_or(Leaf::Other, text)))
        };
        self.of_path = picked.filter_map(of_path).collect();
        self
    }

    /// Whether the reader was made for this shape.
    pub(crate) fn reads(&self, shape: &Arc<RecordShape>) -> bool {
        Arc::ptr_eq(&self.shape, shape)
    }

    /// The event of a record.
    ///
    /// # Errors
    /// The reason why the record is a bad one.
    pub(crate) fn read<'a>(
        &self,
        record: &KeyedRecord<'a>,
        headers: &(impl Iterator<Item = (usize, &'a [u8])> + Clone),
    ) -> Result<DocEvent<'a>, BadRecord> {
        let is_row = self.shape.format == ValueFormat::Row;
        let written = time(record.ts).unwrap_or(None);
        let Some(value) = record.value.filter(|value| is_row || !value.is_empty()) else {
            let id = self.id(record, None, &[])?;
            let (ts, fields) = (self.time_of(record)?, EventFields::default());
            return Ok(DocEvent { id, ts, written, text: None, fields });
        };
        if value.len() > MAX_RECORD_BYTES {
            return Err(BadRecord::TooLong);
        }
        if self.shape.format == ValueFormat::Auto && value.starts_with(&[0]) {
            return Err(BadRecord::Framed);
        }
        let (format, mut leaves, value) = match std::str::from_utf8(value) {
            Ok(value) => {
                let (format, leaves) = self.parse(value)?;
                (format, leaves, Cow::Borrowed(value))
            }
            Err(_) if matches!(self.shape.format, ValueFormat::Text | ValueFormat::Auto) => {
                (ValueFormat::Text, Vec::new(), html::page(value).ok_or(BadRecord::NotUtf8)?)
            }
            Err(_) => return Err(BadRecord::NotUtf8),
        };
        let found = match format {
            ValueFormat::Text | ValueFormat::Auto if value.trim_ascii() == "null" => {
                return Err(BadRecord::BadText);
            }
            ValueFormat::Text | ValueFormat::Auto | ValueFormat::Row => PickedEvent::Text(value),
            ValueFormat::Json => self.values.json(&mut leaves)?,
            ValueFormat::Debezium => self.values.envelope(&leaves).found(&leaves)?,
        };
        let changed = match format {
            ValueFormat::Debezium => self.values.envelope(&leaves).ts(&leaves),
            _ => None,
        };
        let found = if format == ValueFormat::Debezium { self.document(found, &mut leaves)? } else { found };
        for (place, of_path) in &self.of_path {
            if leaves[*place] == Leaf::Absent {
                leaves[*place] = of_path.clone();
            }
        }
        let row = found.row();
        let id = self.id(record, row, &leaves)?;
        let ts = match format {
            ValueFormat::Debezium => changed,
            _ => match row.map_or(&Leaf::Absent, |row| &leaves[row.ts]) {
                Leaf::Absent | Leaf::Null => None,
                leaf => Some(leaf.seconds().ok_or(BadRecord::BadTs)?),
            },
        };
        let ts = if ts.is_some() { time(ts)? } else { self.time_of(record)? };
        let is_column = format == ValueFormat::Debezium;
        let text = match found {
            PickedEvent::Delete(_) => {
                return Ok(DocEvent { id, ts, written, text: None, fields: EventFields::default() });
            }
            PickedEvent::Text(text) => text,
            PickedEvent::Upsert(of) => match std::mem::take(&mut leaves[of.text]) {
                Leaf::Text(text) if is_column && text == UNAVAILABLE => return Err(BadRecord::MissingText),
                Leaf::Text(text) => text,
                Leaf::List(list) => list,
                Leaf::Null if is_column => Cow::Borrowed(""),
                Leaf::Absent => return Err(BadRecord::MissingText),
                _ if self.given.is_some() => return Err(BadRecord::BadFeatures),
                _ => return Err(BadRecord::BadText),
            },
        };
        if self.given.is_some_and(|given| !given.reads(&text)) {
            return Err(BadRecord::BadFeatures);
        }
        let text = if self.fields == 0 { text } else { self.join(&text, row, &leaves, headers, is_column)? };
        let fields = self.own_fields(&id, ts, row, &leaves, headers);
        Ok(DocEvent { id, ts, written, text: Some(text), fields })
    }

    /// Why a record of a topic is bad: what it has instead of its text, or what its operation means.
    pub(crate) fn cause(&self, reason: BadRecord, value: &[u8]) -> Option<String> {
        let found = self.values.picks.read(str::from_utf8(value).ok()?, SurrogateRule::Replace).ok()?;
        let is_auto = self.shape.format == ValueFormat::Auto;
        match (reason, &found[self.values.envelope(&found).op]) {
            (BadRecord::MissingText | BadRecord::BadText, _) => {
                let advice = if is_auto { "; source.format = \"text\" reads values as texts" } else { "" };
                Some(format!("no text at {:?}{}{advice}", self.shape.text.join("."), among(value)))
            }
            (BadRecord::UnknownOp, Leaf::Text(op)) if op == "t" => {
                Some("\"t\" empties a table, and the documents of its rows stay".to_owned())
            }
            (BadRecord::UnknownOp, Leaf::Text(op)) => Some(format!("found {}", found_value(op.as_bytes()))),
            _ => None,
        }
    }

    /// Why a value is no event of a document and not bad: in one word.
    pub(crate) fn skipped(&self, value: &[u8]) -> Option<&'static str> {
        let found = self.values.picks.read(str::from_utf8(value).ok()?, SurrogateRule::Replace).ok()?;
        // A message of the log of PostgreSQL, which is of no row.
        let is_message = matches!(&found[self.values.envelope(&found).op], Leaf::Text(op) if op == "m");
        let is_change = match self.shape.format {
            ValueFormat::Debezium => true,
            ValueFormat::Auto => found[self.values.row(&found).row.text] == Leaf::Absent,
            _ => false,
        };
        (is_message && is_change).then_some("message")
    }

    /// The event with the rows that MongoDB's changes hold as strings.
    fn document<'r, 'a>(
        &'r self,
        found: PickedEvent<'r, 'a>,
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Result<PickedEvent<'r, 'a>, BadRecord> {
        let Some(Leaf::Text(document)) = found.row().map(|row| &leaves[row.whole]) else { return Ok(found) };
        *leaves = self.values.picks.read_owned(document, self.shape.surrogates)?;
        let row = &self.values.plain.row;
        Ok(match found {
            PickedEvent::Delete(_) => PickedEvent::Delete(Some(row)),
            _ => PickedEvent::Upsert(row),
        })
    }

    /// The time of the record itself. In a row it is a column; in a topic's record it is the clock of the
    /// writer or of the broker.
    fn time_of(&self, record: &KeyedRecord<'_>) -> Result<Option<f64>, BadRecord> {
        let is_said = self.shape.format == ValueFormat::Row;
        if is_said || self.shape.needs_time { time(record.ts) } else { Ok(time(record.ts).unwrap_or(None)) }
    }

    /// The format of a value, and the values picked from it.
    fn parse<'a>(&self, value: &'a str) -> Result<(ValueFormat, Vec<Leaf<'a>>), BadRecord> {
        let format = self.shape.format;
        if matches!(format, ValueFormat::Text | ValueFormat::Row) {
            return Ok((format, Vec::new()));
        }
        let is_object = || value.trim_start_matches('\u{feff}').trim_start().starts_with('{');
        if format == ValueFormat::Auto && !is_object() {
            return Ok((ValueFormat::Text, Vec::new()));
        }
        let leaves = self.values.picks.read(value, self.shape.surrogates)?;
        match format {
            ValueFormat::Auto => Ok((self.values.shape(&leaves), leaves)),
            _ if leaves[self.values.whole] == Leaf::Object => Ok((format, leaves)),
            _ => Err(BadRecord::NotAnObject),
        }
    }

    /// The id of a record with this row.
    fn id(
        &self,
        record: &KeyedRecord<'_>,
        row: Option<&RowPicks>,
        leaves: &[Leaf<'_>],
    ) -> Result<DocId, BadRecord> {
        if let Some(place) = row.and_then(|row| row.id)
            && !matches!(leaves[place], Leaf::Absent | Leaf::Null)
        {
            let id = named(&leaves[place])?;
            let canonical = self.shape.canonical_url.then(|| canonical_id(id.as_bytes()));
            return canonical.unwrap_or(Some(id)).ok_or(BadRecord::BadAddress);
        }
        let key = record.key.ok_or(BadRecord::MissingId)?;
        let key = std::str::from_utf8(key).map_err(|_| BadRecord::BadId)?;
        if self.shape.id.is_some()
            && let Ok(found) = self.keys.picks.read(key, self.shape.surrogates)
        {
            let at =
                |places: &[usize; 2]| places.iter().find(|place| found[**place] != Leaf::Absent).copied();
            if let Some(place) = at(&self.keys.ids) {
                return named(&found[place]);
            }
            if let Some(path) = self.shape.id.as_ref().and_then(|path| path.strip_prefix(&["_id".to_owned()]))
                && let Some(Leaf::Text(id)) = at(&self.keys.documents).map(|place| &found[place])
            {
                let mut picks = Picks::default();
                let place = picks.want_id(path.iter().map(String::as_str));
                return named(&picks.read(id, self.shape.surrogates)?[place]);
            }
        }
        DocId::new(key).ok_or(BadRecord::BadId)
    }

    /// The fields of the document: from the headers, otherwise from the row.
    fn own_fields<'a>(
        &self,
        id: &DocId,
        ts: Option<f64>,
        row: Option<&RowPicks>,
        leaves: &[Leaf<'_>],
        headers: &(impl Iterator<Item = (usize, &'a [u8])> + Clone),
    ) -> EventFields {
        self.own.read(id, ts, |column| {
            let of_column = |(which, _): &(usize, &[u8])| self.header_of_column[column] == Some(*which);
            match headers.clone().filter(of_column).last() {
                Some((_, value)) => str::from_utf8(value).map_or(RawValue::Unusable, RawValue::Text),
                None => row.map_or(RawValue::Absent, |row| leaves[row.columns[column]].raw()),
            }
        })
    }

    /// The text and its further fields, each after a separator; only the text if all of them are empty.
    fn join<'t, 'a>(
        &self,
        text: &str,
        row: Option<&RowPicks>,
        leaves: &[Leaf<'_>],
        headers: &(impl Iterator<Item = (usize, &'a [u8])> + Clone),
        is_column: bool,
    ) -> Result<Cow<'t, str>, BadRecord> {
        let mut joined = without_separators(text).into_owned();
        let alone = joined.len();
        for field in 0..self.fields {
            joined.push(FIELD_SEPARATOR);
            let of_field = |(which, _): &(usize, &[u8])| self.field_of_header[*which] == Some(field);
            let content = if let Some((_, value)) = headers.clone().filter(of_field).last() {
                std::str::from_utf8(value).map_err(|_| BadRecord::BadField)?
            } else {
                match row.map_or(&Leaf::Absent, |row| &leaves[row.fields[field]]) {
                    Leaf::Text(content) => content,
                    Leaf::Absent => "",
                    Leaf::Null if is_column => "",
                    _ => return Err(BadRecord::BadField),
                }
            };
            joined.push_str(&without_separators(content));
        }
        if joined.len() == alone + self.fields {
            joined.truncate(alone);
        }
        Ok(joined.into())
    }
}

/// A JSON value as an id.
fn named(leaf: &Leaf<'_>) -> Result<DocId, BadRecord> {
    leaf.id().ok_or(BadRecord::BadId)
}

/// Rejects an impossible time.
fn time(ts: Option<f64>) -> Result<Option<f64>, BadRecord> {
    if ts.is_some_and(|ts| UnixTime::new(ts).is_none()) { Err(BadRecord::BadTs) } else { Ok(ts) }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
