//! Parses and writes one line of a feed.
//!
//! Parsing is on the hot path. A text without escapes is borrowed from the line. A text with escapes is
//! resolved into a buffer of the [`Parser`], so that only the id is allocated for each record. A
//! [usual](super::usual) line is parsed by hand, any other line by [serde_json](super::json).

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Deserialize;

use super::super::bad_record::BadRecord;
use super::super::layout::SurrogateRule;
use super::super::nonstandard::StandardJson;
use super::fields::{FieldNames, FieldValue, Further, ParsedFields};
use super::{json, usual};
use crate::canonical_url::canonical_id;
use crate::instant;
use dupflow_core::doc::fields::{EventFields, FieldRules, RawValue};
use dupflow_core::doc::{DocEvent, DocId, FIELD_SEPARATOR, without_separators};
use dupflow_core::text::{Given, TextColumns};
use dupflow_core::time::UnixTime;

/// One event of a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedRecord<'a> {
    /// The event.
    pub event: DocEvent<'a>,
    /// Its time, in unix seconds.
    pub ts: Option<f64>,
}

/// Parses lines. Its buffers are reused.
#[derive(Debug, Default)]
pub struct Parser {
    names: FieldNames,
    /// Strings of lines that are parsed by hand.
    usual: usual::UsualBuffers,
    /// Strings of lines that are parsed by serde_json.
    json: json::JsonBuffers,
    /// A line in standard form, if it is not written so.
    standard: Option<StandardJson>,
    /// The fields that are read with the text, then the other columns of the rules.
    further: Vec<Further>,
    /// Number of fields that are read with the text.
    in_text: usize,
    /// What the text is, unless it is a text.
    given: Option<Given>,
    rules: FieldRules,
    /// By column of the rules.
    places: Vec<ColumnPlace>,
    /// The text with its further fields.
    joined: String,
}

/// Where a column of the rules is.
#[derive(Clone, Copy, Debug)]
enum ColumnPlace {
    Id,
    Ts,
    Further(usize),
}

impl Parser {
    /// A parser with empty buffers and without further fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parser with these columns of the text. Their names are distinct, and none is the name of a known
    /// field.
    pub fn with_columns(columns: &TextColumns) -> Self {
        Self::with_names(FieldNames::default(), columns, &FieldRules::default())
    }

    /// A parser for records with these field names; the columns as in [`Self::with_columns`], and the fields
    /// of documents by these rules.
    pub fn with_names(names: FieldNames, columns: &TextColumns, rules: &FieldRules) -> Self {
        let mut further = columns.further.clone();
        let mut place = |column: &String| match column {
            _ if *column == names.id && !names.no_ids => ColumnPlace::Id,
            _ if *column == names.ts => ColumnPlace::Ts,
            _ => ColumnPlace::Further(further.iter().position(|name| name == column).unwrap_or_else(|| {
                further.push(column.clone());
                further.len() - 1
            })),
        };
        Self {
            places: rules.columns().iter().map(&mut place).collect(),
            further: further.iter().map(|name| Further::new(name, &names)).collect(),
            in_text: columns.len(),
            given: columns.given,
            json: json::JsonBuffers::new(columns.given.is_some()),
            rules: rules.clone(),
            names,
            ..Self::default()
        }
    }

    /// Whether further fields are read.
    pub fn has_fields(&self) -> bool {
        self.in_text > 0
    }

    /// Parses one line, with or without its line end. The fields are checked in the order id, op, ts, text,
    /// further fields.
    ///
    /// # Errors
    /// The first [reason](BadRecord) that applies, in the order of [`BadRecord::ALL`].
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<FeedRecord<'a>, BadRecord> {
        self.parse_named(line, || None)
    }

    /// Like [`Self::parse`]; an upsert without an id gets the id that `other` returns, if any.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_named<'a>(
        &'a mut self,
        line: &'a [u8],
        other: impl FnOnce() -> Option<DocId>,
    ) -> Result<FeedRecord<'a>, BadRecord> {
        self.further.iter_mut().for_each(Further::reset);
        let Self { names, usual, json, standard, further, .. } = self;
        let mut found = match usual::read(line, names, usual, further) {
            Some(found) => found,
            None => json::read(line, names, json, further, standard)?,
        };
        if names.canonical_url
            && let Some(Some(id)) = &mut found.id
        {
            *id = canonical_id(id.as_bytes()).ok_or(BadRecord::BadAddress)?;
        }
        let Self { in_text, given, rules, places, joined, .. } = self;
        let given = *given;
        let examined = Self::examine(found, other, &json.text, &further[..*in_text], joined);
        let mut record = examined.map_err(|why| match why {
            BadRecord::BadText if given.is_some() => BadRecord::BadFeatures,
            why => why,
        })?;
        if let (Some(given), Some(text)) = (given, &record.event.text)
            && !given.reads(text)
        {
            return Err(BadRecord::BadFeatures);
        }
        if record.event.text.is_some() {
            let DocEvent { id, ts, .. } = &record.event;
            record.event.fields = rules.read(id, *ts, |place| match places[place] {
                ColumnPlace::Id => RawValue::Text(id.as_str()),
                ColumnPlace::Ts => ts.map_or(RawValue::Absent, RawValue::Number),
                ColumnPlace::Further(which) => further[which].raw(),
            });
        }
        Ok(record)
    }

    /// The record with these fields, or the reason of the first field that is bad or missing.
    fn examine<'a>(
        found: ParsedFields<'a>,
        other: impl FnOnce() -> Option<DocId>,
        buffered: &'a str,
        further: &[Further],
        joined: &'a mut String,
    ) -> Result<FeedRecord<'a>, BadRecord> {
        let is_upsert = !matches!(found.op, Some(Ok(false)));
        let id = match found.id {
            None if is_upsert => other().ok_or(BadRecord::MissingId)?,
            id => id.ok_or(BadRecord::MissingId)?.ok_or(BadRecord::BadId)?,
        };
        let upsert = found.op.unwrap_or(Ok(true))?;
        let ts = found.ts.transpose()?;
        if ts.is_some_and(|ts| UnixTime::new(ts).is_none()) {
            return Err(BadRecord::BadTs);
        }
        let text = match (upsert, found.text) {
            (false, _) => None,
            (true, None) => return Err(BadRecord::MissingText),
            (true, Some(FieldValue::Str(text))) => Some(text),
            (true, Some(FieldValue::Buffered)) => Some(buffered),
            (true, Some(FieldValue::List(list))) => Some(list),
            (true, Some(_)) => return Err(BadRecord::BadText),
        };
        let text = match text {
            Some(text) if !further.is_empty() => Some(join(text, further, joined)?),
            alone => alone,
        };
        let (text, fields) = (text.map(Cow::Borrowed), EventFields::default());
        Ok(FeedRecord { event: DocEvent { id, ts, written: None, text, fields }, ts })
    }
}

/// The text and the further fields, each after a separator; separators inside them are replaced.
fn join<'b>(text: &str, further: &[Further], joined: &'b mut String) -> Result<&'b str, BadRecord> {
    joined.clear();
    joined.push_str(&without_separators(text));
    for field in further {
        let content = field.text()?;
        joined.push(FIELD_SEPARATOR);
        joined.push_str(&without_separators(content));
    }
    Ok(joined)
}

/// The `ts` of a line, without parsing the rest; `None` if the line has none or is no record.
pub fn timestamp(line: &[u8]) -> Option<f64> {
    #[derive(Deserialize)]
    struct Stamp<'a> {
        #[serde(borrow)]
        ts: Option<Seconds<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds<'a> {
        Number(f64),
        Date(Cow<'a, str>),
    }
    // serde would also accept an array, with the fields in order.
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let seconds = |stamp: Stamp<'_>| match stamp.ts? {
        Seconds::Number(ts) => Some(ts),
        Seconds::Date(text) => instant::of_text(&text),
    };
    match serde_json::from_slice(line) {
        Ok(stamp) => seconds(stamp),
        Err(_) => {
            let form = StandardJson::new(str::from_utf8(line).ok()?, SurrogateRule::Replace)?;
            seconds(serde_json::from_str(&form.json).ok()?)
        }
    }
}

/// Writes one line: `{"id":…,"op":…,"ts":…,"text":…}`, without `ts` if there is none. A whole `ts` is written
/// without a fraction.
///
/// # Errors
/// A write error of `out`.
pub fn write(out: &mut impl Write, record: &FeedRecord<'_>) -> io::Result<()> {
    let FeedRecord { event: DocEvent { id, text, .. }, ts } = record;
    out.write_all(b"{\"id\":")?;
    serde_json::to_writer(&mut *out, id.as_str())?;
    out.write_all(if text.is_some() { b",\"op\":\"upsert\"" } else { b",\"op\":\"delete\"" })?;
    if let Some(ts) = ts {
        // `Display` of a float never writes an exponent, and writes no fraction for a whole number.
        write!(out, ",\"ts\":{ts}")?;
    }
    if let Some(text) = text {
        out.write_all(b",\"text\":")?;
        serde_json::to_writer(&mut *out, text.as_ref())?;
    }
    out.write_all(b"}\n")
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "readers_tests.rs"]
mod readers_tests;
