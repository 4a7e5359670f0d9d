//! One line of a feed: read and written.
//!
//! Reading is on the hot path. A text without escapes is borrowed from the line; a text with escapes is resolved into
//! a buffer that the [`Parser`] keeps, so that nothing is allocated per record but the id.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::BadRecord;
use crate::doc::{DocEvent, DocId, FIELD_SEPARATOR, without_separators};

/// One event as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
    /// What happened.
    pub event: DocEvent<'a>,
    /// When, in unix seconds.
    pub ts: Option<f64>,
}

/// Reads lines; keeps its buffers between them.
#[derive(Debug, Default)]
pub struct Parser {
    text: String,
    short: String,
    further: Vec<Further>,
    /// The text with its further fields.
    joined: String,
}

/// A further field that is read with the text.
#[derive(Debug)]
struct Further {
    name: String,
    /// As it stands in the last line; empty if it is absent.
    content: String,
    /// Whether it is absent or a string there.
    good: bool,
}

impl Parser {
    /// A parser with empty buffers, of records without further fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parser that reads further fields of these names, which are distinct and none that every record knows.
    pub fn with_fields(names: &[String]) -> Self {
        let further = |name: &String| Further { name: name.clone(), content: String::new(), good: true };
        Self { further: names.iter().map(further).collect(), ..Self::default() }
    }

    /// Whether further fields are read.
    pub fn has_fields(&self) -> bool {
        !self.further.is_empty()
    }

    /// Reads one line, with or without its end. The fields are examined in the order id, op, ts, text, further ones.
    ///
    /// # Errors
    /// The first [reason](BadRecord) that applies, in the order of [`BadRecord::ALL`].
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Record<'a>, BadRecord> {
        // Once over the whole line, so that the JSON reader need not look at each string again.
        let line = std::str::from_utf8(line).map_err(|_| BadRecord::NotUtf8)?;
        let mut json = serde_json::Deserializer::from_str(line);
        for field in &mut self.further {
            field.content.clear();
            field.good = true;
        }
        let fields = Fields { text: &mut self.text, short: &mut self.short, further: &mut self.further };
        let found = fields.deserialize(&mut json).and_then(|found| json.end().map(|()| found));
        let found = found.map_err(|_| BadRecord::NotJson)?.ok_or(BadRecord::NotAnObject)?;

        let id = found.id.ok_or(BadRecord::MissingId)?.ok_or(BadRecord::BadId)?;
        let upsert = found.op.unwrap_or(Ok(true))?;
        let ts = found.ts.transpose()?;
        let text = match (upsert, found.text) {
            (false, _) => None,
            (true, None) => return Err(BadRecord::MissingText),
            (true, Some(Value::Str(text))) => Some(text),
            (true, Some(Value::Buffered)) => Some(self.text.as_str()),
            (true, Some(Value::Number(_) | Value::Other)) => return Err(BadRecord::BadText),
        };
        let text = match text {
            Some(text) if !self.further.is_empty() => Some(join(text, &self.further, &mut self.joined)?),
            alone => alone,
        };
        Ok(Record { event: DocEvent { id, ts, text: text.map(Cow::Borrowed) }, ts })
    }
}

/// The text and the further fields, each after a separator, and no separator within any.
fn join<'b>(text: &str, further: &[Further], joined: &'b mut String) -> Result<&'b str, BadRecord> {
    joined.clear();
    joined.push_str(&without_separators(text));
    for Further { content, good, .. } in further {
        if !good {
            return Err(BadRecord::BadField);
        }
        joined.push(FIELD_SEPARATOR);
        joined.push_str(&without_separators(content));
    }
    Ok(joined)
}

/// The `ts` of a line without reading the rest; `None` if the line has none or is no record.
pub fn timestamp(line: &[u8]) -> Option<f64> {
    #[derive(Deserialize)]
    struct Stamp {
        ts: Option<f64>,
    }
    // An array would be taken for the fields in order.
    let object = line.trim_ascii_start().starts_with(b"{");
    object.then(|| serde_json::from_slice::<Stamp>(line).ok()?.ts).flatten()
}

/// Writes one line: `{"id":…,"op":…,"ts":…,"text":…}`, without `ts` if there is none; a whole `ts` has no fraction.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, record: &Record<'_>) -> io::Result<()> {
    let Record { event: DocEvent { id, text, .. }, ts } = record;
    out.write_all(b"{\"id\":")?;
    serde_json::to_writer(&mut *out, id.as_str())?;
    out.write_all(if text.is_some() { b",\"op\":\"upsert\"" } else { b",\"op\":\"delete\"" })?;
    if let Some(ts) = ts {
        // `Display` of a float never has an exponent, and no fraction where there is none.
        write!(out, ",\"ts\":{ts}")?;
    }
    if let Some(text) = text {
        out.write_all(b",\"text\":")?;
        serde_json::to_writer(&mut *out, text.as_ref())?;
    }
    out.write_all(b"}\n")
}

/// The known fields of an object: outer `None` if absent, then what is wrong with them.
#[derive(Default)]
struct Found<'de> {
    id: Option<Option<DocId>>,
    op: Option<Result<bool, BadRecord>>,
    ts: Option<Result<f64, BadRecord>>,
    text: Option<Value<'de>>,
}

/// A field's value, as far as the format knows it.
enum Value<'de> {
    /// A string without escapes.
    Str(&'de str),
    /// A string with escapes, now resolved in the buffer.
    Buffered,
    Number(f64),
    Other,
}

/// Reads a value into a [`Value`], whatever it is.
struct AnyValue<'b>(&'b mut String);

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value<'de>, D::Error> {
        json.deserialize_any(self)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time in seconds needs no more than a float's 53 bits")]
impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Str(s))
    }

    fn visit_str<E>(self, s: &str) -> Result<Value<'de>, E> {
        self.0.clear();
        self.0.push_str(s);
        Ok(Value::Buffered)
    }

    fn visit_f64<E>(self, x: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(x as f64))
    }

    fn visit_i64<E>(self, x: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(x as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value<'de>, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

/// A field's name, as far as the format knows it.
enum Key {
    Id,
    Op,
    Ts,
    Text,
    /// Which of the further fields.
    Further(usize),
    Other,
}

/// Reads a field's name into a [`Key`].
struct AnyKey<'b>(&'b [Further]);

impl<'de> DeserializeSeed<'de> for AnyKey<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Key, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for AnyKey<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(match name {
            "id" => Key::Id,
            "op" => Key::Op,
            "ts" => Key::Ts,
            "text" => Key::Text,
            _ => self.0.iter().position(|field| field.name == name).map_or(Key::Other, Key::Further),
        })
    }
}

/// Reads an object into [`Found`]; any other complete JSON value is `None`.
struct Fields<'b> {
    text: &'b mut String,
    short: &'b mut String,
    further: &'b mut [Further],
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Option<Found<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Option<Found<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Found::default();
        while let Some(key) = map.next_key_seed(AnyKey(self.further))? {
            match key {
                Key::Id => {
                    let id = map.next_value_seed(AnyValue(self.short))?;
                    found.id = Some(id.as_str(self.short).and_then(DocId::new));
                }
                Key::Op => {
                    let op = map.next_value_seed(AnyValue(self.short))?;
                    found.op = Some(match op.as_str(self.short) {
                        Some("upsert") => Ok(true),
                        Some("delete") => Ok(false),
                        Some(_) => Err(BadRecord::UnknownOp),
                        None => Err(BadRecord::BadOp),
                    });
                }
                Key::Ts => {
                    found.ts = Some(match map.next_value_seed(AnyValue(self.short))? {
                        Value::Number(ts) => Ok(ts),
                        _ => Err(BadRecord::BadTs),
                    });
                }
                Key::Text => found.text = Some(map.next_value_seed(AnyValue(self.text))?),
                Key::Further(which) => {
                    let value = map.next_value_seed(AnyValue(self.short))?;
                    let Further { content, good, .. } = &mut self.further[which];
                    let string = value.as_str(self.short);
                    content.clear();
                    content.push_str(string.unwrap_or_default());
                    *good = string.is_some();
                }
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Some(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

impl<'de> Value<'de> {
    /// The string, if it is one, from where it was read to.
    fn as_str<'b>(&self, buffer: &'b str) -> Option<&'b str>
    where
        'de: 'b,
    {
        match self {
            Self::Str(s) => Some(s),
            Self::Buffered => Some(buffer),
            Self::Number(_) | Self::Other => None,
        }
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
