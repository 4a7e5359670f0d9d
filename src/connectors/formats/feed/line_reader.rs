//! Parses the lines of feeds and datasets into events.

use std::sync::Arc;

use super::super::bad_record::BadRecord;
use super::super::rows::among;
use super::super::shape::{KeyedRecord, ShapeReader};
use super::line_rules::LineRules;
use super::record::Parser;
use dupflow_core::doc::DocEvent;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;

/// Parses lines by the rules of their input. Its buffers are reused.
#[derive(Debug)]
pub(crate) struct LineReader {
    columns: TextColumns,
    own: FieldRules,
    rules: Arc<LineRules>,
    parser: Parser,
    /// For records with nested fields.
    shape: Option<ShapeReader>,
    /// Buffer for the id of a record without one.
    id: String,
}

impl LineReader {
    /// A parser with these columns of the text, and fields of documents by these rules.
    pub(crate) fn new(columns: &TextColumns, own: &FieldRules) -> Self {
        let rules = Arc::<LineRules>::default();
        Self {
            columns: columns.clone(),
            own: own.clone(),
            parser: Parser::with_names(rules.names.clone(), columns, own),
            rules,
            shape: None,
            id: String::new(),
        }
    }

    /// Sets the rules for the lines that follow.
    pub(crate) fn set_rules(&mut self, rules: &Arc<LineRules>) {
        if Arc::ptr_eq(&self.rules, rules) {
            return;
        }
        let have_changed = self.rules.names != rules.names;
        if have_changed {
            self.parser = Parser::with_names(rules.names.clone(), &self.columns, &self.own);
        }
        if have_changed || self.rules.shape != rules.shape {
            let new = |shape| {
                ShapeReader::new(shape, &self.columns, &self.own)
                    .with_path(&rules.names.of_path, &self.columns)
            };
            self.shape = rules.shape.as_ref().map(new);
        }
        self.rules = Arc::clone(rules);
    }

    /// For a record that lacks a field, or has it with a wrong type: the name of that field, and the names
    /// that the record has.
    pub(crate) fn cause(&self, reason: BadRecord, line: &[u8]) -> Option<String> {
        let names = &self.rules.names;
        let name = match reason {
            BadRecord::MissingId => &names.id,
            BadRecord::MissingText => &names.text,
            BadRecord::BadText => return Some(format!("the field {:?}", names.text)),
            BadRecord::BadOp => return Some(format!("the field {:?}", names.op)),
            _ => return None,
        };
        Some(format!("no field {name:?}{}", among(line)))
    }

    /// The event of a record's line.
    ///
    /// # Errors
    /// The reason why the record is a bad one.
    pub(crate) fn read<'a>(&'a mut self, line: &'a [u8], offset: u64) -> Result<DocEvent<'a>, BadRecord> {
        let Self { rules, parser, shape, id, .. } = self;
        let Some(shape) = shape else {
            return parser.parse_named(line, || rules.id_of(offset)).map(|record| record.event);
        };
        id.clear();
        id.extend(rules.id_of(offset).as_ref().map(dupflow_core::doc::DocId::as_str));
        let key = Some(id.as_bytes()).filter(|id| !id.is_empty());
        let record = KeyedRecord { offset, ts: None, key, value: Some(line) };
        let event = shape.read(&record, &std::iter::empty())?;
        // The generated id would be the number of the delete itself.
        if rules.all_numbered && event.text.is_none() { Err(BadRecord::MissingId) } else { Ok(event) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::InputLayout;

    /// The texts of these lines, with further fields; a delete as `-`, a bad record as its reason.
    fn texts(fields: &[&str], of_path: &[(&str, &[u8])], lines: &[&str]) -> Vec<String> {
        let fields: Vec<_> = fields.iter().map(|&field| field.to_owned()).collect();
        let of_path = of_path.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect();
        let layout = InputLayout::default();
        let first = lines[0].as_bytes();
        let rules = LineRules::from_line(&layout, &fields, &"a".into(), first, 0).unwrap().with_path(of_path);
        let mut reader = LineReader::new(&fields.into(), &FieldRules::default());
        reader.set_rules(&Arc::new(rules));
        let mut read = |line: &&str| match reader.read(line.as_bytes(), 0) {
            Ok(event) => event.text.map_or("-".to_owned(), |text| text.replace('\u{1e}', "|")),
            Err(bad) => bad.reason().to_owned(),
        };
        lines.iter().map(&mut read).collect()
    }

    /// A name with a point is read by another parser.
    #[test]
    fn a_line_of_a_file_is_no_change_of_a_topic() {
        let lines = [
            r#"{"id":"a","text":"t","m":{"x":"y"},"__deleted":"true"}"#,
            r#"{"id":"a","text":"t","m":{"x":"y"},"database":"d","table":"t","type":"delete","data":{}}"#,
            r#"{"id":"a","text":"t","m":{"x":"y"},"delete":{"id":"b"}}"#,
            r#"{"id":"a","text":"t","m":{"x":"y"},"insert":{"id":"b","text":"u"}}"#,
            r#"{"id":"a","text":"t","m":{"x":"y"},"schema":{},"payload":{"id":"b","text":"u"}}"#,
        ];
        assert_eq!(texts(&[], &[], &lines), ["t"; 5]);
        assert_eq!(texts(&["m.x"], &[], &lines), ["t|y"; 5]);
    }

    #[test]
    fn a_field_that_a_line_lacks_has_the_value_of_its_path() {
        let lines = [
            r#"{"id":"a","text":"t"}"#,
            r#"{"id":"a","text":"t","lang":"fr"}"#,
            r#"{"id":"a","text":"t","m":{"lang":"de"}}"#,
            r#"{"id":"a","text":"t","lang":"fr\n"}"#,
            r#"{"id":"a","text":"t","lang":null}"#,
            r#"{"id":"a","text":"t","lang":""}"#,
            r#"{"id":"a","op":"delete"}"#,
            r#"{"id":"a","text":"t","m":{"lang":"\u0065"}}"#,
        ];
        let path = ("lang", &b"en"[..]);
        let expected = ["t|en", "t|fr", "t|en", "t|fr\n", "bad_field", "t|", "-", "t|en"];
        assert_eq!(texts(&["lang"], &[path], &lines), expected);
        let with_nested = ["t|en|", "t|fr|", "t|en|de", "t|fr\n|", "bad_field", "t", "-", "t|en|e"];
        assert_eq!(texts(&["lang", "m.lang"], &[path], &lines), with_nested);
        for fields in [&["lang"][..], &["lang", "m.lang"]] {
            assert_eq!(texts(fields, &[("lang", b"\xff")], &lines[..2])[0], "bad_field");
        }
    }
}
