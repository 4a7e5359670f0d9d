//! Rules for the lines of an input: the names of their fields, and how documents get their ids.
//!
//! The first line that is an object decides how all records of the input get their ids:
//!
//! ```text
//! {"id":"…",…}     ids are strings
//! {"id":7,…}       ids are whole numbers, used as their decimal digits
//! {"text":"…",…}   no ids: each record is named by the input and its number there, from 0, as in
//!                  pages.jsonl#0; a record with an id keeps it
//! ```
//!
//! So in a feed with ids a line without one is a bad record, while every record of a dataset without ids is a
//! document. If the user set the name of the id field, a record without it is always bad: the name is
//! probably wrong.

use std::sync::Arc;

use super::super::layout::{IdRule, InputLayout, SurrogateRule, named_path};
use super::super::shape::{Leaf, Picks, RecordShape, ValueFormat};
use super::fields::FieldNames;
use super::record::timestamp;
use dupflow_core::doc::DocId;

/// How the lines of one input are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineRules {
    pub(crate) names: FieldNames,
    /// If a field is nested: the shape of the records.
    pub(crate) shape: Option<Arc<RecordShape>>,
    /// Records without an id are named by this input and their number, which counts from this offset.
    pub(crate) numbered: Option<(Arc<str>, u64)>,
    /// All records are numbered, even those with an id. A delete is then a bad record, since it names no
    /// document.
    pub(crate) all_numbered: bool,
}

impl LineRules {
    /// Whether the records are named by their input.
    pub(crate) fn are_numbered(&self) -> bool {
        self.numbered.is_some()
    }

    /// The rules of an input whose first record has the offset `first`, from one of its lines. `None` if the
    /// line decides nothing: it is not an object, or a delete without an id.
    pub(crate) fn from_line(
        layout: &InputLayout,
        fields: &[String],
        name: &Arc<str>,
        line: &[u8],
        first: u64,
    ) -> Option<Self> {
        let all_numbered = layout.ids == IdRule::File;
        let id = if all_numbered { Vec::new() } else { named_path(&layout.id) };
        let (text, ts, op) = (named_path(&layout.text), named_path(&layout.ts), operation(layout));
        let is_nested = [&id, &text, &ts, &op].iter().any(|path| path.len() > 1)
            || fields.iter().any(|field| named_path(field).len() > 1);
        let mut picks = Picks::default();
        let (ids, ops) = (id.iter().map(String::as_str), op.iter().map(String::as_str));
        let places =
            [picks.want([]), if op.is_empty() { usize::MAX } else { picks.want(ops) }, picks.want_id(ids)];
        let found = picks.read(std::str::from_utf8(line).ok()?, layout.surrogates).ok()?;
        let at = |place: usize| found.get(place).unwrap_or(&Leaf::Absent);
        let [Leaf::Object, is, first_id] = places.map(at) else { return None };
        let is_delete = matches!(is, Leaf::Text(is) if is == "delete");
        if is_delete && *first_id == Leaf::Absent && !all_numbered {
            return None;
        }
        Some(Self {
            names: FieldNames {
                id: layout.id.clone(),
                text: layout.text.clone(),
                ts: layout.ts.clone(),
                op: layout.operation().to_owned(),
                whole_ids: !matches!(first_id, Leaf::Text(_)) && first_id.id().is_some(),
                no_ids: all_numbered,
                canonical_url: layout.canonical_url,
                surrogates: layout.surrogates,
                of_path: Vec::new(),
            },
            shape: is_nested.then(|| {
                let id = Some(id).filter(|_| !all_numbered);
                Arc::new(RecordShape {
                    format: ValueFormat::Json,
                    text,
                    ts,
                    op,
                    id,
                    surrogates: layout.surrogates,
                    canonical_url: layout.canonical_url,
                    has_changes: false,
                    ..RecordShape::default()
                })
            }),
            numbered: (all_numbered || *first_id == Leaf::Absent && !layout.needs_id())
                .then(|| (Arc::clone(name), first)),
            all_numbered,
        })
    }

    /// The rules with the further fields that the path of the input has.
    pub(crate) fn with_path(mut self, fields: Vec<(String, Vec<u8>)>) -> Self {
        self.names.of_path = fields;
        self
    }

    /// The time of a line, without parsing the rest; `None` if it has none or is no record.
    pub(crate) fn timestamp(&self, line: &[u8]) -> Option<f64> {
        if self.names.ts == FieldNames::default().ts {
            return timestamp(line);
        }
        let mut picks = Picks::default();
        let path = named_path(&self.names.ts);
        let place = picks.want(path.iter().map(String::as_str));
        picks.read(std::str::from_utf8(line).ok()?, SurrogateRule::Replace).ok()?[place].seconds()
    }

    /// The id of a record without one, by its offset; `None` if records of this input need ids.
    pub(crate) fn id_of(&self, offset: u64) -> Option<DocId> {
        let (name, first) = self.numbered.as_ref()?;
        numbered(name, offset - first)
    }
}

/// The id of a record without one: its input, and its number there from 0. `None` if the name of the input is
/// too long.
pub(crate) fn numbered(input: &str, number: u64) -> Option<DocId> {
    DocId::new(&format!("{input}#{number}"))
}

/// The path to the operation; empty if it is not read.
fn operation(layout: &InputLayout) -> Vec<String> {
    let path = layout.operation();
    if path.is_empty() { Vec::new() } else { named_path(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(id: &str, line: &str) -> Option<LineRules> {
        let layout = InputLayout { id: id.to_owned(), ..InputLayout::default() };
        LineRules::from_line(&layout, &[], &"a.jsonl".into(), line.as_bytes(), 7)
    }

    #[test]
    fn the_first_object_decides_how_ids_are_read() {
        for line in
            [r#"{"id":"a","text":"t"}"#, r#"{"id":null}"#, r#"{"op":"delete","id":"a"}"#, r#"{"id":1.5}"#]
        {
            assert_eq!(rules("id", line), Some(LineRules::default()), "{line}");
        }
        for line in ["", "oops", "[]", "\"text\"", r#"{"op":"delete"}"#, r#"{"id":7"#] {
            assert_eq!(rules("id", line), None, "{line}");
        }
        for line in [r#"{"id":7}"#, r#"{"op":"delete","id":-7}"#] {
            assert!(rules("id", line).unwrap().names.whole_ids, "{line}");
        }
        let none = rules("id", "\u{feff}{\"text\":\"你好\"}").unwrap();
        assert_eq!(none.id_of(9).unwrap().as_str(), "a.jsonl#2");
        assert!(!none.names.whole_ids && none.shape.is_none());
    }

    #[test]
    fn paths_lead_into_objects() {
        let nested = rules("meta.id", r#"{"meta":{"id":"a"},"text":"t"}"#).unwrap();
        assert_eq!(nested.shape.as_ref().unwrap().id.as_ref().unwrap(), &["meta", "id"]);
        assert!(nested.numbered.is_none());
        assert!(
            rules("meta.id", r#"{"meta":{},"text":"t"}"#).unwrap().numbered.is_none(),
            "it was asked for"
        );
    }
}
