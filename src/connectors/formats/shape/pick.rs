//! Picks chosen values from a JSON text in one pass and skips all others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue as RawJson;

use super::super::bad_record::BadRecord;
use super::super::layout::SurrogateRule;
use super::super::nonstandard::StandardJson;
use super::super::rows::id_of_number;
use crate::instant;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::RawValue;

/// A picked value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Leaf<'a> {
    /// The path does not exist.
    #[default]
    Absent,
    /// The word `null`.
    Null,
    /// A string, borrowed if it has no escapes.
    Text(Cow<'a, str>),
    /// A whole number.
    Whole(i128),
    /// A whole number beyond that, by its digits, where an id is asked for.
    Digits(Cow<'a, str>),
    /// Another number.
    Number(f64),
    /// An object.
    Object,
    /// `true` or `false`.
    Flag(bool),
    /// An array, as it is written, where it is asked for.
    List(Cow<'a, str>),
    /// Another array.
    Other,
}

impl Leaf<'_> {
    /// Its numeric value, if it is a number.
    #[expect(clippy::cast_precision_loss, reason = "a time in seconds needs no more than a float's 53 bits")]
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(n) => Some(*n as f64),
            Self::Number(x) => Some(*x),
            Self::Digits(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The value as an id: a string of its length, or a whole number.
    pub(crate) fn id(&self) -> Option<DocId> {
        match self {
            Self::Text(id) => DocId::new(id),
            Self::Whole(id) => DocId::new(&id.to_string()),
            Self::Digits(id) => DocId::new(id),
            Self::Number(id) => id_of_number(&format!("{id:?}")),
            _ => None,
        }
    }

    /// The same without borrowed parts.
    fn owned(self) -> Leaf<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Absent => Leaf::Absent,
            Self::Null => Leaf::Null,
            Self::Text(text) => Leaf::Text(owned(text)),
            Self::Whole(whole) => Leaf::Whole(whole),
            Self::Digits(digits) => Leaf::Digits(owned(digits)),
            Self::Number(number) => Leaf::Number(number),
            Self::Object => Leaf::Object,
            Self::Flag(flag) => Leaf::Flag(flag),
            Self::List(list) => Leaf::List(owned(list)),
            Self::Other => Leaf::Other,
        }
    }

    /// The value as a field of a document.
    pub(crate) fn raw(&self) -> RawValue<'_> {
        match self {
            Self::Absent | Self::Null => RawValue::Absent,
            Self::Text(text) => RawValue::Text(text),
            Self::Whole(whole) => RawValue::Whole(*whole),
            Self::Number(number) => RawValue::Number(*number),
            Self::Digits(digits) => digits.parse().map_or(RawValue::Unusable, RawValue::Number),
            Self::Flag(flag) => RawValue::Flag(*flag),
            Self::Object | Self::List(_) | Self::Other => RawValue::Unusable,
        }
    }

    /// Unix seconds, from a number or an ISO 8601 date.
    pub(crate) fn seconds(&self) -> Option<f64> {
        if let Self::Text(date) = self { instant::of_text(date) } else { self.number() }
    }
}

/// The paths to pick: a tree of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picks {
    root: PickNode,
    wanted: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PickNode {
    name: String,
    wanted: Option<usize>,
    /// Whether an array is picked as it is written.
    takes_lists: bool,
    /// Whether a number is picked by its digits.
    takes_digits: bool,
    below: Vec<PickNode>,
}

impl Picks {
    /// Adds a path; returns its index among the picked values. The empty path is the whole text.
    pub(crate) fn want<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) -> usize {
        self.pick(path, |_| ())
    }

    /// As [`Self::want`]; a whole number there keeps all its digits.
    pub(crate) fn want_id<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) -> usize {
        self.pick(path, |node| node.takes_digits = true)
    }

    /// As [`Self::want`]; an array there is picked as it is written.
    pub(crate) fn want_list<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) -> usize {
        self.pick(path, |node| node.takes_lists = true)
    }

    fn pick<'p>(
        &mut self,
        path: impl IntoIterator<Item = &'p str>,
        set: impl FnOnce(&mut PickNode),
    ) -> usize {
        let mut node = &mut self.root;
        for name in path {
            let at = node.below.iter().position(|below| below.name == name).unwrap_or_else(|| {
                node.below.push(PickNode { name: name.to_owned(), ..PickNode::default() });
                node.below.len() - 1
            });
            node = &mut node.below[at];
        }
        set(node);
        *node.wanted.get_or_insert_with(|| {
            self.wanted += 1;
            self.wanted - 1
        })
    }

    /// The picked values, each at its index. A byte order mark before the text is skipped. Of a repeated name
    /// the last one counts.
    ///
    /// # Errors
    /// If the text is not one complete JSON value, or a picked one has a lone surrogate.
    pub(crate) fn read<'a>(&self, json: &'a str, rule: SurrogateRule) -> Result<Vec<Leaf<'a>>, BadRecord> {
        if let Some(found) = self.standard(json) {
            return Ok(found);
        }
        let form = StandardJson::new(json, rule).ok_or(BadRecord::NotJson)?;
        let found = self.standard(&form.json).ok_or_else(|| form.flaw())?;
        Ok(found.into_iter().map(Leaf::owned).collect())
    }

    /// As [`Self::read`], for a text that does not stay.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_owned(
        &self,
        json: &str,
        rule: SurrogateRule,
    ) -> Result<Vec<Leaf<'static>>, BadRecord> {
        Ok(self.read(json, rule)?.into_iter().map(Leaf::owned).collect())
    }

    /// The picked values of a text as the standard has it.
    fn standard<'a>(&self, json: &'a str) -> Option<Vec<Leaf<'a>>> {
        let mut found = vec![Leaf::Absent; self.wanted];
        let mut reader = serde_json::Deserializer::from_str(json.strip_prefix('\u{feff}').unwrap_or(json));
        ValueSeed { node: &self.root, found: &mut found }.deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(found)
    }
}

impl PickNode {
    /// Resets what was found at this node and below.
    fn clear(&self, found: &mut [Leaf<'_>]) {
        if let Some(place) = self.wanted {
            found[place] = Leaf::Absent;
        }
        self.below.iter().for_each(|below| below.clear(found));
    }
}

/// Deserializes one value, with everything that is picked in it.
struct ValueSeed<'n, 'f, 'de> {
    node: &'n PickNode,
    found: &'f mut [Leaf<'de>],
}

impl<'de> ValueSeed<'_, '_, 'de> {
    fn set<E>(self, leaf: Leaf<'de>) -> Result<(), E> {
        if let Some(place) = self.node.wanted {
            self.found[place] = leaf;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        if !self.node.takes_lists && !self.node.takes_digits {
            return json.deserialize_any(self);
        }
        let raw = <&'de RawJson>::deserialize(json)?.get();
        if raw.starts_with('[') && self.node.takes_lists {
            return self.set(Leaf::List(raw.into()));
        }
        let is_long = raw.len() > 18 && raw.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if is_long && self.node.takes_digits {
            return self.set(raw.parse().map_or_else(|_| Leaf::Digits(raw.into()), Leaf::Whole));
        }
        serde_json::Deserializer::from_str(raw).deserialize_any(self).map_err(D::Error::custom)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(at) = map.next_key_seed(NameSeed(&self.node.below))? {
            match at {
                Some(at) => {
                    let node = &self.node.below[at];
                    node.clear(self.found);
                    map.next_value_seed(ValueSeed { node, found: self.found })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        self.set(Leaf::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.set(Leaf::Other)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.set(Leaf::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.set(Leaf::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, n: u64) -> Result<(), E> {
        self.set(Leaf::Whole(n.into()))
    }

    fn visit_i64<E>(self, n: i64) -> Result<(), E> {
        self.set(Leaf::Whole(n.into()))
    }

    fn visit_f64<E>(self, x: f64) -> Result<(), E> {
        self.set(Leaf::Number(x))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.set(Leaf::Flag(flag))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.set(Leaf::Null)
    }
}

/// Deserializes a name: the index of its node, or `None`.
struct NameSeed<'n>(&'n [PickNode]);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|node| node.name == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_at_their_paths() {
        let mut picks = Picks::default();
        let places = [
            picks.want([]),
            picks.want(["a"]),
            picks.want(["a", "b"]),
            picks.want(["c"]),
            picks.want(["a", "b"]),
        ];
        assert_eq!(places, [0, 1, 2, 3, 2]);
        let read = |json| picks.read(json, SurrogateRule::Bad).ok();
        let text = |text: &str| Leaf::Text(text.to_owned().into());
        let found = read(r#" {"x":{"a":1},"a":{"b":"\u00e9t\n","c":2},"c":-3} "#).unwrap();
        assert_eq!(found, [Leaf::Object, Leaf::Object, text("ét\n"), Leaf::Whole(-3)]);
        assert!(matches!(&read(r#"{"c":"plain"}"#).unwrap()[3], Leaf::Text(Cow::Borrowed("plain"))));
        // The last one counts; nothing of the earlier one remains.
        let last = read("\u{feff}{\"a\":{\"b\":1},\"a\":null,\"c\":1.5,\"c\":[{\"b\":1}]}").unwrap();
        assert_eq!(last, [Leaf::Object, Leaf::Null, Leaf::Absent, Leaf::Other]);
        assert_eq!(read("18446744073709551615").unwrap()[0], Leaf::Whole(u64::MAX.into()));
        assert_eq!(read("\"x\"").unwrap()[0], text("x"));
        for json in ["", "{", "{\"a\":}", "{} {}", "{'a':1}", "nul", "{\"a\":\"\\ud800\"}"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
