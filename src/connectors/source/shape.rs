//! In which shape a topic's values hold documents. What each is stands in `shapes.rs`, which reads them.

/// How values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As JSON where it has a shape, else as text; what looks like neither is a bad record.
    Auto,
    /// As text.
    #[default]
    Text,
    /// As JSON rows.
    Json,
    /// As envelopes of a change.
    Debezium,
    /// As the text itself, of a row of a file or of a table: an empty one is an empty text, and no value ends
    /// the document.
    Row,
}

/// In which shape values hold documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How values are read.
    pub format: Format,
    /// The names that lead to the text in a row, one or more.
    pub text: Vec<String>,
    /// The names that lead to the time in a row, one or more.
    pub ts: Vec<String>,
    /// The names that lead to the id in a row; `None`: the id is the record's key.
    pub id: Option<Vec<String>>,
    /// Headers that hold the further fields of their names.
    pub headers: Vec<String>,
    /// Whether a record whose own time cannot be is a bad one, as documents leave by their times; else it is
    /// a document without a time.
    pub needs_time: bool,
}

impl Default for Shape {
    /// The value is the text, the key the id.
    fn default() -> Self {
        let [text, ts] = ["text", "ts"].map(|name| vec![name.to_owned()]);
        Self { format: Format::default(), text, ts, id: None, headers: Vec::new(), needs_time: false }
    }
}
