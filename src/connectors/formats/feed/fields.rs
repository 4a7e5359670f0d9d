//! The fields of a record, as they are parsed.

use super::super::bad_record::BadRecord;
use super::super::layout::SurrogateRule;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::RawValue;

/// A further field: it is read with the text, or is a column of the
/// [fields of documents](dupflow_core::doc::fields::FieldRules).
#[derive(Debug)]
pub(super) struct Further {
    name: String,
    kind: FurtherKind,
    /// The last string.
    content: String,
    /// The value in a line without this field: none, or that of the path of its file.
    absent: FurtherKind,
    of_path: String,
}

/// The value of a further field in the last line.
#[derive(Clone, Copy, Debug)]
pub(super) enum FurtherKind {
    Absent,
    /// A string, which is the content.
    Text,
    Whole(i128),
    Number(f64),
    Flag(bool),
    Null,
    Other,
}

impl Further {
    pub(super) fn new(name: &str, names: &FieldNames) -> Self {
        let value = names.of_path.iter().find(|(of, _)| of == name).map(|(_, value)| str::from_utf8(value));
        let (absent, of_path) = match value {
            None => (FurtherKind::Absent, ""),
            Some(Ok(value)) => (FurtherKind::Text, value),
            Some(Err(_)) => (FurtherKind::Other, ""),
        };
        let (name, of_path) = (name.to_owned(), of_path.to_owned());
        Self { name, kind: absent, content: String::new(), absent, of_path }
    }

    /// Resets the value before a new line.
    pub(super) fn reset(&mut self) {
        self.kind = self.absent;
        if !self.of_path.is_empty() {
            self.content.clone_from(&self.of_path);
        }
    }

    /// Sets the value to a string.
    pub(super) fn set_text(&mut self, text: &str) {
        self.content.clear();
        self.content.push_str(text);
        self.kind = FurtherKind::Text;
    }

    /// Sets the value; `buffer` is the buffer given to the reader.
    pub(super) fn set(&mut self, value: &FieldValue<'_>, buffer: &str) {
        self.kind = match value {
            FieldValue::Str(text) => return self.set_text(text),
            FieldValue::Buffered => return self.set_text(buffer),
            FieldValue::Whole(whole) => FurtherKind::Whole(*whole),
            FieldValue::Number(number) => FurtherKind::Number(*number),
            FieldValue::Flag(flag) => FurtherKind::Flag(*flag),
            FieldValue::Null => FurtherKind::Null,
            FieldValue::List(_) | FieldValue::Other => FurtherKind::Other,
        };
    }

    /// The value as a part of the text, empty if it is absent.
    ///
    /// # Errors
    /// If it is no string.
    pub(super) fn text(&self) -> Result<&str, BadRecord> {
        match self.kind {
            FurtherKind::Absent => Ok(""),
            FurtherKind::Text => Ok(&self.content),
            _ => Err(BadRecord::BadField),
        }
    }

    /// The value as a field of the document.
    pub(super) fn raw(&self) -> RawValue<'_> {
        match self.kind {
            FurtherKind::Absent | FurtherKind::Null => RawValue::Absent,
            FurtherKind::Text => RawValue::Text(&self.content),
            FurtherKind::Whole(whole) => RawValue::Whole(whole),
            FurtherKind::Number(number) => RawValue::Number(number),
            FurtherKind::Flag(flag) => RawValue::Flag(flag),
            FurtherKind::Other => RawValue::Unusable,
        }
    }
}

/// The names of a line's fields, and how ids are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldNames {
    /// The field of the id.
    pub id: String,
    /// The field of the text.
    pub text: String,
    /// The field of the time.
    pub ts: String,
    /// The field of the operation; empty: none.
    pub op: String,
    /// Whether an id may be a whole number, which is then used as its decimal digits.
    pub whole_ids: bool,
    /// Whether ids are ignored, since records are numbered.
    pub no_ids: bool,
    /// Whether ids are addresses, as of [`InputLayout`](super::super::layout::InputLayout::canonical_url).
    pub canonical_url: bool,
    /// What lone surrogates mean.
    pub surrogates: SurrogateRule,
    /// Further fields that the path of the input has, with their values, for lines that lack them.
    pub of_path: Vec<(String, Vec<u8>)>,
}

impl Default for FieldNames {
    fn default() -> Self {
        Self {
            id: "id".to_owned(),
            text: "text".to_owned(),
            ts: "ts".to_owned(),
            op: "op".to_owned(),
            whole_ids: false,
            no_ids: false,
            canonical_url: false,
            surrogates: SurrogateRule::Bad,
            of_path: Vec::new(),
        }
    }
}

/// The meaning of a field's name.
pub(super) enum FieldKind {
    Id,
    Op,
    Ts,
    Text,
    /// The further field at this index.
    Further(usize),
    Other,
}

impl FieldKind {
    /// The meaning of this name, given the names of fields and further fields.
    pub(super) fn from_name(name: &str, names: &FieldNames, further: &[Further]) -> Self {
        match name {
            _ if name == names.id && !names.no_ids => Self::Id,
            _ if name == names.text => Self::Text,
            _ if name == names.op && !name.is_empty() => Self::Op,
            _ if name == names.ts => Self::Ts,
            _ => further.iter().position(|field| field.name == name).map_or(Self::Other, Self::Further),
        }
    }
}

/// Whether an `op` is an upsert (true) or a delete; `None` stands for a value that is no string.
pub(super) fn operation(op: Option<&str>) -> Result<bool, BadRecord> {
    match op {
        Some("upsert") => Ok(true),
        Some("delete") => Ok(false),
        Some(_) => Err(BadRecord::UnknownOp),
        None => Err(BadRecord::BadOp),
    }
}

/// The known fields of an object: `None` if absent, otherwise the value or what is wrong with it.
#[derive(Default)]
pub(super) struct ParsedFields<'de> {
    pub(super) id: Option<Option<DocId>>,
    pub(super) op: Option<Result<bool, BadRecord>>,
    pub(super) ts: Option<Result<f64, BadRecord>>,
    pub(super) text: Option<FieldValue<'de>>,
}

/// A field's value, by the types that the format distinguishes.
pub(super) enum FieldValue<'de> {
    /// A string without escapes.
    Str(&'de str),
    /// A string with escapes; the buffer has its content.
    Buffered,
    /// An array, as it is written, where a record brings features.
    List(&'de str),
    Whole(i128),
    Number(f64),
    Flag(bool),
    Null,
    Other,
}

impl<'de> FieldValue<'de> {
    /// The string, if the value is one; `buffer` is the buffer given to the reader.
    pub(super) fn as_str<'b>(&self, buffer: &'b str) -> Option<&'b str>
    where
        'de: 'b,
    {
        match self {
            Self::Str(s) => Some(s),
            Self::Buffered => Some(buffer),
            Self::List(_) | Self::Whole(_) | Self::Number(_) | Self::Flag(_) | Self::Null | Self::Other => {
                None
            }
        }
    }
}
