//! The list of inputs: which files of records a run has read, in which order, and how far.
//!
//! Positions number the records of all inputs in the order in which they were read. The list says which
//! records of which file these are: a [span](InputSpan) is a sequence of consecutive positions. A file that
//! has grown between two runs has several spans. Input without a name (standard input, a pipe) and files that
//! are documents have none.
//!
//! The list only grows at its end. A state stores its spans as it stores documents, and a mark has those that
//! are not stored yet.

use serde::{Deserialize, Serialize};

use dupflow_core::hash;

/// Spans in the mark of an output, at most. More of them, outside the state, are in a file beside the mark.
/// An output without such a place leaves the list out: then a later run reads everything again or is refused.
pub const MOST_SPANS: usize = 512;

/// Consecutive records of one input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSpan {
    /// The name of the input.
    pub name: String,
    /// Number of earlier inputs with this name, where a file is named twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nth: u64,
    /// The position of the first record of the span.
    pub first: u64,
    /// Records of the input before the span.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Records of the span.
    pub records: u64,
    /// Whether the input was damaged or cut off in the last record.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_broken: bool,
    /// Whether the last record is a line without a line end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_unended: bool,
    /// Whether the input was not read to its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_open: bool,
    /// Whether its records are named by the input, so that it is another input under another name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_numbered: bool,
    /// Stored bytes that the input must still begin with: its size when it was opened, or those of the lines
    /// that were read.
    pub bytes: u64,
    /// How many of the last of these bytes are hashed, and their hash; `None` in a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<(u64, u64)>,
    /// When the input was modified: nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
    /// Device and number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(u64, u64)>,
    /// The entity tag of the object, in a store; of a file of a table, a hash of what the table says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Which part of a file beside the mark has the first spans of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedInputs {
    /// Spans of the list before those in the file, and their [hash](digest).
    pub stored: u64,
    /// See [`Self::stored`].
    pub digest: u64,
    /// The first of the bytes that have the spans.
    pub from: u64,
    /// The end of these bytes (exclusive).
    pub to: u64,
}

/// The list up to a position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputList {
    /// Number of the first spans, which are in the state or beside the mark.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stored: u64,
    /// The [hash](digest) of these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub digest: u64,
    /// Where the first spans are, if they are beside the mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ListedInputs>,
    /// The spans after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<InputSpan>,
    /// What was read of an input that has not been read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<InputSpan>,
    /// Whether the spans are left out, since there are too many.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
    /// Number of files that were begun, those that are documents too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files: u64,
    /// Hash of the names of these files in their order; of documents also of size and time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub order: u64,
    /// Sum of the hashes of these names, in whatever order the files were begun.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub names: u64,
    /// Whether some of these files are documents.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_documents: bool,
}

impl InputList {
    /// All spans here, the last one perhaps not complete.
    pub fn all(&self) -> impl Iterator<Item = &InputSpan> {
        self.spans.iter().chain(&self.open)
    }

    /// The same in a size that a mark of an output can have.
    #[must_use]
    pub fn bounded(&self) -> Self {
        if self.spans.len() <= MOST_SPANS {
            return self.clone();
        }
        Self { is_cut: true, spans: Vec::new(), open: None, ..self.clone() }
    }
}

impl InputSpan {
    /// The position after its last record.
    pub fn after(&self) -> u64 {
        self.first + self.records
    }

    /// Whether it is a file of a table: of one the tag is what the table says of it.
    pub fn is_of_table(&self) -> bool {
        self.tag.is_some() && self.end.is_some()
    }

    /// Whether both are of the same input, as far as the names say.
    pub fn is_of(&self, other: &Self) -> bool {
        self.name == other.name && self.nth == other.nth
    }

    /// The hash of the spans up to this one, from that of the spans before it.
    #[must_use]
    pub fn digest(&self, before: u64) -> u64 {
        let mut digest = hash::bytes(before, self.name.as_bytes());
        for number in [self.nth, self.first, self.skipped, self.records, self.bytes] {
            digest = hash::bytes(digest, &number.to_le_bytes());
        }
        digest
    }
}

/// The hash of the first spans of a list.
pub fn digest<'s>(spans: impl IntoIterator<Item = &'s InputSpan>) -> u64 {
    spans.into_iter().fold(0, |before, span| span.digest(before))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
#[expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_small_and_read_as_it_was_written() {
        let span = InputSpan { name: "a.jsonl".to_owned(), records: 7, bytes: 90, ..InputSpan::default() };
        let list = InputList { spans: vec![span.clone()], files: 1, order: 3, ..InputList::default() };
        let json = serde_json::to_string(&list).unwrap();
        let expected =
            r#"{"spans":[{"name":"a.jsonl","first":0,"records":7,"bytes":90}],"files":1,"order":3}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<InputList>(&json).unwrap(), list);
        let tagged = InputSpan { tag: Some("e".to_owned()), file: Some((1, 2)), ..span };
        let json = serde_json::to_string(&tagged).unwrap();
        assert_eq!(serde_json::from_str::<InputSpan>(&json).unwrap(), tagged);
        let long = InputList { spans: vec![tagged; MOST_SPANS + 1], ..list.clone() };
        let left = InputList { spans: Vec::new(), is_cut: true, ..list.clone() };
        assert_eq!((long.bounded(), list.bounded()), (left, list));
    }

    #[test]
    fn the_digest_is_of_names_counts_and_order() {
        let span = |name: &str, records| InputSpan { name: name.to_owned(), records, ..InputSpan::default() };
        let of = |spans: &[InputSpan]| digest(spans);
        assert_eq!(of(&[]), 0);
        assert_ne!(of(&[span("a", 1), span("b", 1)]), of(&[span("b", 1), span("a", 1)]));
        assert_ne!(of(&[span("a", 1)]), of(&[span("a", 2)]));
        let touched = InputSpan { modified: Some(5), ..span("a", 1) };
        assert_eq!(of(&[span("a", 1)]), of(&[touched]), "times are not part of it");
    }
}
