//! Lines of feeds and datasets, as events.

use std::sync::Arc;

use super::LineRules;
use super::batch::KeyedRecord;
use super::shapes::ShapeReader;
use crate::feed::{BadRecord, Parser};
use dupflow_core::doc::DocEvent;

/// Reads lines by the rules of their input; keeps its buffers between them.
#[derive(Debug)]
pub(super) struct LineReader {
    fields: Vec<String>,
    rules: Arc<LineRules>,
    parser: Parser,
    /// For records whose fields are not at the top.
    shape: Option<ShapeReader>,
    /// The name of a record without an id.
    id: String,
}

impl LineReader {
    /// A reader that reads further fields of these names.
    pub(super) fn new(fields: &[String]) -> Self {
        Self {
            fields: fields.to_vec(),
            rules: Arc::default(),
            parser: Parser::with_fields(fields),
            shape: None,
            id: String::new(),
        }
    }

    /// What follows is understood so.
    pub(super) fn understand(&mut self, rules: &Arc<LineRules>) {
        if Arc::ptr_eq(&self.rules, rules) {
            return;
        }
        if self.rules.names != rules.names {
            self.parser = Parser::of(rules.names.clone(), &self.fields);
        }
        if self.rules.shape != rules.shape {
            self.shape = rules.shape.as_ref().map(|shape| ShapeReader::new(shape, &self.fields));
        }
        self.rules = Arc::clone(rules);
    }

    /// Which field a record lacks, if that is what is wrong with it, and which it has.
    pub(super) fn missing(&self, reason: BadRecord, line: &[u8]) -> Option<String> {
        let names = &self.rules.names;
        let name = match reason {
            BadRecord::MissingId => &names.id,
            BadRecord::MissingText => &names.text,
            _ => return None,
        };
        let there = names_in(line);
        let among = if there.is_empty() { String::new() } else { format!(" among {}", there.join(", ")) };
        Some(format!("no field {name:?}{among}"))
    }

    /// The event of the line of a record.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn read<'a>(&'a mut self, line: &'a [u8], offset: u64) -> Result<DocEvent<'a>, BadRecord> {
        let Self { rules, parser, shape, id, .. } = self;
        let Some(shape) = shape else {
            return parser.parse_named(line, || rules.id_of(offset)).map(|record| record.event);
        };
        id.clear();
        id.extend(rules.id_of(offset).as_ref().map(dupflow_core::doc::DocId::as_str));
        let key = Some(id.as_bytes()).filter(|id| !id.is_empty());
        let record = KeyedRecord { offset, ts: None, key, value: Some(line) };
        let event = shape.read(&record, &std::iter::empty())?;
        // The number is that of the delete itself.
        if rules.all_numbered && event.text.is_none() { Err(BadRecord::MissingId) } else { Ok(event) }
    }
}

/// The names of an object's fields, in quotes: the first ones.
fn names_in(line: &[u8]) -> Vec<String> {
    const MOST: usize = 20;
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).unwrap_or_default();
    let more = (fields.len() > MOST).then(|| format!("{} more", fields.len() - MOST));
    fields.keys().take(MOST).map(|name| format!("{name:?}")).chain(more).collect()
}
