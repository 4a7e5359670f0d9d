//! What is known of a record's fields while it is read.

use super::BadRecord;
use dupflow_core::doc::DocId;

/// A further field that is read with the text.
#[derive(Debug)]
pub(super) struct Further {
    pub(super) name: String,
    /// As it stands in the last line; empty if it is absent.
    pub(super) content: String,
    /// Whether it is absent or a string there.
    pub(super) good: bool,
}

impl Further {
    /// Forgets what the last line held.
    pub(super) fn reset(&mut self) {
        self.content.clear();
        self.good = true;
    }

    /// Takes a value: the string, or `None` for any other.
    pub(super) fn set(&mut self, string: Option<&str>) {
        self.content.clear();
        self.content.push_str(string.unwrap_or_default());
        self.good = string.is_some();
    }
}

/// What the fields of a line are called, and what its id may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The field of the id.
    pub id: String,
    /// The field of the text.
    pub text: String,
    /// The field of the time.
    pub ts: String,
    /// Whether an id may be a whole number, which is taken for its digits.
    pub whole_ids: bool,
    /// Whether ids are passed over: records are named otherwise.
    pub no_ids: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            id: "id".to_owned(),
            text: "text".to_owned(),
            ts: "ts".to_owned(),
            whole_ids: false,
            no_ids: false,
        }
    }
}

/// What a field's name means.
pub(super) enum Key {
    Id,
    Op,
    Ts,
    Text,
    /// Which of the further fields.
    Further(usize),
    Other,
}

impl Key {
    /// What this name means where these further fields are read.
    pub(super) fn of(name: &str, names: &Names, further: &[Further]) -> Self {
        match name {
            _ if name == names.id && !names.no_ids => Self::Id,
            _ if name == names.text => Self::Text,
            "op" => Self::Op,
            _ if name == names.ts => Self::Ts,
            _ => further.iter().position(|field| field.name == name).map_or(Self::Other, Self::Further),
        }
    }
}

/// Whether an `op` is an upsert (and not a delete); `None` stands for a value that is no string.
pub(super) fn operation(op: Option<&str>) -> Result<bool, BadRecord> {
    match op {
        Some("upsert") => Ok(true),
        Some("delete") => Ok(false),
        Some(_) => Err(BadRecord::UnknownOp),
        None => Err(BadRecord::BadOp),
    }
}

/// The known fields of an object: outer `None` if absent, then what is wrong with them.
#[derive(Default)]
pub(super) struct Found<'de> {
    pub(super) id: Option<Option<DocId>>,
    pub(super) op: Option<Result<bool, BadRecord>>,
    pub(super) ts: Option<Result<f64, BadRecord>>,
    pub(super) text: Option<Value<'de>>,
}

/// A field's value, as far as the format knows it.
pub(super) enum Value<'de> {
    /// A string without escapes.
    Str(&'de str),
    /// A string with escapes, now resolved in the buffer.
    Buffered,
    Whole(i128),
    Number(f64),
    Other,
}

impl<'de> Value<'de> {
    /// The string, if it is one, from where it was read to.
    pub(super) fn as_str<'b>(&self, buffer: &'b str) -> Option<&'b str>
    where
        'de: 'b,
    {
        match self {
            Self::Str(s) => Some(s),
            Self::Buffered => Some(buffer),
            Self::Whole(_) | Self::Number(_) | Self::Other => None,
        }
    }

    /// The id that it is.
    pub(super) fn id(&self, buffer: &str, names: &Names) -> Option<DocId> {
        match self {
            Self::Whole(id) if names.whole_ids => DocId::new(&id.to_string()),
            string => string.as_str(buffer).and_then(DocId::new),
        }
    }
}
