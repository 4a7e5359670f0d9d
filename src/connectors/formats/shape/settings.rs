//! How the values of records hold documents: the settings. The formats are described in `reader.rs`, which
//! reads them.

use super::super::layout::SurrogateRule;

/// The format of record values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueFormat {
    /// JSON where the value has one of its forms, otherwise text. A value that looks like JSON and is not is
    /// a bad record.
    Auto,
    /// The value is the text.
    #[default]
    Text,
    /// JSON rows.
    Json,
    /// Change envelopes, as Debezium writes them.
    Debezium,
    /// The text of a row of a file or a table: an empty value is an empty text, and only a missing value
    /// deletes the document.
    Row,
}

/// How record values are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordShape {
    /// The format of values.
    pub format: ValueFormat,
    /// The path to the text in a row: one or more names.
    pub text: Vec<String>,
    /// The path to the time in a row: one or more names.
    pub ts: Vec<String>,
    /// The path to the operation in a row; empty: none.
    pub op: Vec<String>,
    /// The path to the id in a row; `None`: the id is the record's key.
    pub id: Option<Vec<String>>,
    /// Record headers that hold further fields, by field name.
    pub headers: Vec<String>,
    /// Whether a record with an impossible time is a bad one. True where documents expire by their times;
    /// otherwise the record becomes a document without a time.
    pub needs_time: bool,
    /// Whether ids are addresses, as of [`InputLayout`](super::super::layout::InputLayout::canonical_url).
    pub canonical_url: bool,
    /// What lone surrogates mean.
    pub surrogates: SurrogateRule,
    /// Whether a JSON row may be a change as other writers put them into topics: below `insert`, `delete` or
    /// `payload`, with `__deleted`, or as a delete of Maxwell. True for topics only: a record of a file is
    /// the row.
    pub has_changes: bool,
}

impl Default for RecordShape {
    /// A topic's: the value is the text, and the key is the id.
    fn default() -> Self {
        let [text, ts, op] = ["text", "ts", "op"].map(|name| vec![name.to_owned()]);
        Self {
            format: ValueFormat::default(),
            text,
            ts,
            op,
            id: None,
            headers: Vec::new(),
            needs_time: false,
            canonical_url: false,
            surrogates: SurrogateRule::Bad,
            has_changes: true,
        }
    }
}
