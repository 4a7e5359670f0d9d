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
//! json      {row}                     upsert; with "op":"delete" a delete, which needs no text
//!           {"insert":{row}}          upsert; also {"insert":"…"}, the text itself
//!           {"delete":{row}}          delete, for any value except null
//! debezium  {"op":"c","after":{row}}  upsert, for op c, r and u; NULL in a column is an empty string
//!           {"op":"d","before":{row}} delete; before may be null
//!           {"payload":{envelope}}    the same with a schema beside it; {"payload":null} is a delete
//! auto      one of the above if the value is a JSON object of that form, otherwise text. A value that
//!           begins with `{` and is not JSON is a bad record. So is one that begins with a zero byte: a
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
use super::pick::{Leaf, Picks};
use super::records::KeyedRecord;
use super::settings::{RecordShape, ValueFormat};
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
}

/// Indices of the JSON values that are picked from a record value.
#[derive(Debug)]
struct ValuePicks {
    picks: Picks,
    whole: usize,
    plain: RowPicks,
    op: usize,
    insert: RowPicks,
    delete: RowPicks,
    /// The envelope at the top level, and the one below `payload`.
    envelopes: [EnvelopePicks; 2],
}

#[derive(Debug)]
struct EnvelopePicks {
    whole: usize,
    op: usize,
    before: RowPicks,
    after: RowPicks,
    ts: [usize; 2],
}

/// Indices of what is picked from a row.
#[derive(Debug)]
struct RowPicks {
    whole: usize,
    text: usize,
    id: Option<usize>,
    ts: usize,
    fields: Vec<usize>,
    /// By column of the fields of documents.
    columns: Vec<usize>,
}

/// Indices of what is picked from a key: the id, at two paths.
#[derive(Debug)]
struct KeyPicks {
    picks: Picks,
    ids: [usize; 2],
}

/// Which event a value is, and where its row is.
enum PickedEvent<'r, 'a> {
    Upsert(&'r RowPicks),
    /// The text itself, without a row.
    Text(Cow<'a, str>),
    Delete(Option<&'r RowPicks>),
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
        }
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
        let row = match &found {
            PickedEvent::Upsert(row) => Some(*row),
            PickedEvent::Delete(row) => *row,
            PickedEvent::Text(_) => None,
        };
        let id = self.id(record, row, &leaves)?;
        let ts = match format {
            ValueFormat::Debezium => self.values.envelope(&leaves).ts(&leaves),
            _ => match row.map_or(&Leaf::Absent, |row| &leaves[row.ts]) {
                Leaf::Absent => None,
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
                Leaf::List(list) => Cow::Borrowed(list),
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
        let leaves = self.values.picks.read(value);
        match format {
            ValueFormat::Auto => {
                let looks_like_json = || value.trim_start_matches('\u{feff}').trim_start().starts_with('{');
                if leaves.is_none() && looks_like_json() {
                    return Err(BadRecord::NotJson);
                }
                let leaves = leaves.unwrap_or_default();
                let shape = if leaves.is_empty() { None } else { self.values.shape(&leaves) };
                Ok(shape.map_or((ValueFormat::Text, Vec::new()), |shape| (shape, leaves)))
            }
            _ => {
                let leaves = leaves.ok_or(BadRecord::NotJson)?;
                let is_object = leaves[self.values.whole] == Leaf::Object;
                if is_object { Ok((format, leaves)) } else { Err(BadRecord::NotAnObject) }
            }
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
            && let Some(found) = self.keys.picks.read(key)
            && let Some(place) = self.keys.ids.iter().find(|place| found[**place] != Leaf::Absent)
        {
            return named(&found[*place]);
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

impl ValuePicks {
    fn new(shape: &RecordShape, columns: &TextColumns, own: &[String]) -> Self {
        let mut picks = Picks::default();
        let mut row = |base: &[&'static str]| RowPicks::new(&mut picks, base, shape, columns, own);
        let rows = [
            &[][..],
            &["insert"],
            &["delete"],
            &["before"],
            &["after"],
            &["payload", "before"],
            &["payload", "after"],
        ];
        let [plain, insert, delete, before, after, before_in, after_in] = rows.map(&mut row);
        let mut envelope = |base: &[&'static str], old, new| {
            let mut want = |path: &[&'static str]| picks.want([base, path].concat());
            EnvelopePicks {
                whole: want(&[]),
                op: want(&["op"]),
                before: old,
                after: new,
                ts: [want(&["source", "ts_ms"]), want(&["ts_ms"])],
            }
        };
        let envelopes = [envelope(&[], before, after), envelope(&["payload"], before_in, after_in)];
        Self { whole: picks.want([]), op: picks.want(["op"]), picks, plain, insert, delete, envelopes }
    }

    /// The format of a JSON value, if it has one.
    fn shape(&self, leaves: &[Leaf<'_>]) -> Option<ValueFormat> {
        if leaves[self.whole] != Leaf::Object {
            return None;
        }
        let envelope = self.envelope(leaves);
        let has = |row: &RowPicks| leaves[row.whole] != Leaf::Absent;
        if matches!(leaves[envelope.op], Leaf::Text(_)) && (has(&envelope.before) || has(&envelope.after)) {
            return Some(ValueFormat::Debezium);
        }
        let is_change = matches!(leaves[self.insert.whole], Leaf::Object | Leaf::Text(_))
            || !matches!(leaves[self.delete.whole], Leaf::Absent | Leaf::Null);
        let is_row = matches!(leaves[self.plain.text], Leaf::Text(_) | Leaf::List(_));
        let is_delete = matches!(&leaves[self.op], Leaf::Text(op) if op == "delete");
        (is_change || is_row || is_delete).then_some(ValueFormat::Json)
    }

    /// The event of a JSON value.
    fn json<'a>(&self, leaves: &mut [Leaf<'a>]) -> Result<PickedEvent<'_, 'a>, BadRecord> {
        let is_set = |row: &RowPicks| !matches!(leaves[row.whole], Leaf::Absent | Leaf::Null);
        match (is_set(&self.insert), is_set(&self.delete)) {
            (true, true) => Err(BadRecord::UnknownOp),
            (false, true) => Ok(PickedEvent::Delete(Some(&self.delete))),
            (true, false) => match std::mem::take(&mut leaves[self.insert.whole]) {
                Leaf::Object => Ok(PickedEvent::Upsert(&self.insert)),
                Leaf::Text(text) => Ok(PickedEvent::Text(text)),
                _ => Err(BadRecord::BadText),
            },
            (false, false) => match &leaves[self.op] {
                Leaf::Absent => Ok(PickedEvent::Upsert(&self.plain)),
                Leaf::Text(op) if op == "upsert" => Ok(PickedEvent::Upsert(&self.plain)),
                Leaf::Text(op) if op == "delete" => Ok(PickedEvent::Delete(Some(&self.plain))),
                Leaf::Text(_) => Err(BadRecord::UnknownOp),
                _ => Err(BadRecord::BadOp),
            },
        }
    }

    /// The envelope of a change: the one below `payload` if there is one.
    fn envelope(&self, leaves: &[Leaf<'_>]) -> &EnvelopePicks {
        let [plain, inner] = &self.envelopes;
        if leaves[inner.whole] == Leaf::Absent { plain } else { inner }
    }
}

impl EnvelopePicks {
    /// The event of an envelope.
    fn found<'a>(&self, leaves: &[Leaf<'a>]) -> Result<PickedEvent<'_, 'a>, BadRecord> {
        if leaves[self.whole] == Leaf::Null {
            return Ok(PickedEvent::Delete(None));
        }
        match &leaves[self.op] {
            Leaf::Text(op) if matches!(&**op, "c" | "r" | "u") => match leaves[self.after.whole] {
                Leaf::Object => Ok(PickedEvent::Upsert(&self.after)),
                _ => Err(BadRecord::MissingText),
            },
            Leaf::Text(op) if op == "d" => Ok(PickedEvent::Delete(Some(&self.before))),
            Leaf::Text(_) => Err(BadRecord::UnknownOp),
            _ => Err(BadRecord::BadOp),
        }
    }

    /// When the change happened, in unix seconds.
    fn ts(&self, leaves: &[Leaf<'_>]) -> Option<f64> {
        self.ts.iter().find_map(|place| Some(leaves[*place].number()? / 1000.0))
    }
}

impl RowPicks {
    fn new(
        picks: &mut Picks,
        base: &[&'static str],
        shape: &RecordShape,
        text_columns: &TextColumns,
        own: &[String],
    ) -> Self {
        fn below<'p>(base: &'p [&'static str], path: &'p [String]) -> impl Iterator<Item = &'p str> {
            base.iter().copied().chain(path.iter().map(String::as_str))
        }
        let whole = picks.want(base.iter().copied());
        let text = below(base, &shape.text);
        let text = if text_columns.given.is_some() { picks.want_list(text) } else { picks.want(text) };
        let id = shape.id.as_ref().map(|id| picks.want(below(base, id)));
        let ts = picks.want(below(base, &shape.ts));
        let mut places = |of: &[String]| -> Vec<usize> {
            of.iter().map(|name| picks.want(base.iter().copied().chain(name.split('.')))).collect()
        };
        Self { whole, text, id, ts, fields: places(text_columns), columns: places(own) }
    }
}

impl KeyPicks {
    fn new(shape: &RecordShape) -> Self {
        let mut picks = Picks::default();
        let id = || shape.id.iter().flatten().map(String::as_str);
        let ids = [picks.want(id()), picks.want(["payload"].into_iter().chain(id()))];
        Self { picks, ids }
    }
}

/// A JSON value as an id.
fn named(leaf: &Leaf<'_>) -> Result<DocId, BadRecord> {
    match leaf {
        Leaf::Text(id) => DocId::new(id),
        Leaf::Whole(id) => DocId::new(&id.to_string()),
        _ => None,
    }
    .ok_or(BadRecord::BadId)
}

/// Rejects an impossible time.
fn time(ts: Option<f64>) -> Result<Option<f64>, BadRecord> {
    if ts.is_some_and(|ts| UnixTime::new(ts).is_none()) { Err(BadRecord::BadTs) } else { Ok(ts) }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
