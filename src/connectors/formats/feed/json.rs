//! Parses any line with serde_json: the reference for the meaning of a line, and the fallback of
//! [`usual`](super::usual).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::bad_record::BadRecord;
use super::super::nonstandard::StandardJson;
use super::super::rows::id_of_number;
use super::fields::{FieldKind, FieldNames, FieldValue, Further, ParsedFields, operation};
use crate::instant;
use dupflow_core::doc::DocId;

/// Buffers for strings with escapes, and how the text is read.
#[derive(Debug, Default)]
pub(super) struct JsonBuffers {
    /// The text, if it is [`FieldValue::Buffered`].
    pub(super) text: String,
    /// Any other string.
    short: String,
    /// Whether the text may be an array.
    takes_lists: bool,
}

impl JsonBuffers {
    pub(super) fn new(takes_lists: bool) -> Self {
        Self { takes_lists, ..Self::default() }
    }
}

/// The known fields of a line; `standard` is for one that is not written as the standard has it.
///
/// # Errors
/// If it is not UTF-8, not JSON or not an object.
pub(super) fn read<'a>(
    line: &'a [u8],
    names: &FieldNames,
    buffers: &mut JsonBuffers,
    further: &mut [Further],
    standard: &'a mut Option<StandardJson>,
) -> Result<ParsedFields<'a>, BadRecord> {
    // Checked once for the whole line, so that the parser does not check each string.
    let line = std::str::from_utf8(line).map_err(|_| BadRecord::NotUtf8)?;
    let found = parsed(line, names, buffers, further);
    if matches!(found, Err(BadRecord::NotJson))
        && let Some(form) = StandardJson::new(line, names.surrogates)
    {
        let form = &*standard.insert(form);
        return parsed(&form.json, names, buffers, further)
            .map_err(|why| if why == BadRecord::NotJson { form.flaw() } else { why });
    }
    found
}

fn parsed<'a>(
    line: &'a str,
    names: &FieldNames,
    buffers: &mut JsonBuffers,
    further: &mut [Further],
) -> Result<ParsedFields<'a>, BadRecord> {
    let mut json = serde_json::Deserializer::from_str(line);
    further.iter_mut().for_each(Further::reset);
    let found = ObjectSeed { names, buffers, further }.deserialize(&mut json);
    let found = found.and_then(|found| json.end().map(|()| found));
    found.map_err(|_| BadRecord::NotJson)?.ok_or(BadRecord::NotAnObject)
}

/// Deserializes any value into a [`FieldValue`].
struct AnyValue<'b>(&'b mut String);

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = FieldValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<FieldValue<'de>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = FieldValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, s: &'de str) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Str(s))
    }

    fn visit_str<E>(self, s: &str) -> Result<FieldValue<'de>, E> {
        self.0.clear();
        self.0.push_str(s);
        Ok(FieldValue::Buffered)
    }

    fn visit_f64<E>(self, x: f64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Number(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Whole(x.into()))
    }

    fn visit_i64<E>(self, x: i64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Whole(x.into()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Flag(flag))
    }

    fn visit_unit<E>(self) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<FieldValue<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldValue<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }
}

/// Deserializes a field's name into a [`FieldKind`].
struct AnyKey<'b>(&'b FieldNames, &'b [Further]);

impl<'de> DeserializeSeed<'de> for AnyKey<'_> {
    type Value = FieldKind;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<FieldKind, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for AnyKey<'_> {
    type Value = FieldKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<FieldKind, E> {
        Ok(FieldKind::from_name(name, self.0, self.1))
    }
}

/// Deserializes an object into [`ParsedFields`]; any other complete JSON value into `None`.
struct ObjectSeed<'b> {
    names: &'b FieldNames,
    buffers: &'b mut JsonBuffers,
    further: &'b mut [Further],
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = Option<ParsedFields<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = Option<ParsedFields<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    #[expect(clippy::cast_precision_loss, reason = "a time in seconds needs no more than a float's 53 bits")]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = ParsedFields::default();
        while let Some(key) = map.next_key_seed(AnyKey(self.names, self.further))? {
            match key {
                FieldKind::Id => {
                    let raw = map.next_value::<&RawValue>()?.get();
                    found.id =
                        Some(if raw.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
                            Some(raw).filter(|_| self.names.whole_ids).and_then(id_of_number)
                        } else {
                            let mut value = serde_json::Deserializer::from_str(raw);
                            let id = AnyValue(&mut self.buffers.short).deserialize(&mut value);
                            let id = id.map_err(A::Error::custom)?;
                            id.as_str(&self.buffers.short).and_then(DocId::new)
                        });
                }
                FieldKind::Op => {
                    let op = map.next_value_seed(AnyValue(&mut self.buffers.short))?;
                    let is_absent = matches!(op, FieldValue::Null);
                    found.op = (!is_absent).then(|| operation(op.as_str(&self.buffers.short)));
                }
                FieldKind::Ts => {
                    found.ts = match map.next_value_seed(AnyValue(&mut self.buffers.short))? {
                        FieldValue::Null => None,
                        FieldValue::Number(ts) => Some(Ok(ts)),
                        FieldValue::Whole(ts) => Some(Ok(ts as f64)),
                        other => {
                            let date = other.as_str(&self.buffers.short).and_then(instant::of_text);
                            Some(date.ok_or(BadRecord::BadTs))
                        }
                    };
                }
                FieldKind::Text if self.buffers.takes_lists => {
                    let raw = map.next_value::<&RawValue>()?.get();
                    found.text = Some(if raw.starts_with('[') {
                        FieldValue::List(raw)
                    } else {
                        let mut value = serde_json::Deserializer::from_str(raw);
                        let text = AnyValue(&mut self.buffers.text).deserialize(&mut value);
                        text.map_err(A::Error::custom)?
                    });
                }
                FieldKind::Text => found.text = Some(map.next_value_seed(AnyValue(&mut self.buffers.text))?),
                FieldKind::Further(which) => {
                    let value = map.next_value_seed(AnyValue(&mut self.buffers.short))?;
                    self.further[which].set(&value, &self.buffers.short);
                }
                FieldKind::Other => {
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
