//! What a destination remembers beside the deltas: which input they stand for, and by which pipeline.
//!
//! A mark is written together with the deltas of an epoch, both or neither. So a run that finds one knows
//! what the deltas before it accumulate to: D(C) of the events before [`Progress::next`]. It goes on from
//! there.

use std::fmt;

use serde::{Deserialize, Serialize};

use dupflow_core::time::{Offsets, Progress};

/// Written with the deltas of one or several epochs, the last of which is that of `progress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The run that wrote it, by a name that no other run has. A run whose destination shows another one has
    /// been replaced.
    pub run: String,
    /// How far the deltas stand for the input.
    pub progress: Progress,
    /// Where reading began in each partition: what came before is no part of the corpus.
    pub start: Offsets,
    /// All that decides the result, by name: an encoded [`Description`](dupflow_core::description::Description).
    pub pipeline: String,
    /// The output is between the result of one pipeline and that of another: corrections are being written,
    /// and have not all been.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_correction: bool,
    /// Bytes of the file of dead letters that belong to these epochs, if there is such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<u64>,
    /// Which topic was read, if it was one. Marks of earlier versions do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Topic>,
    /// Which topic holds the deltas, if one does. Marks of earlier versions do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Topic>,
    /// Everything that was written to the input before this time has been read: milliseconds since 1970, by
    /// the clock of the process that writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<u64>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// What no other topic has, not even one that is made anew under the name; `None` if the broker has no
    /// ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Topic {
    /// Whether two descriptions are of one topic, as far as they say.
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name && (self.id == other.id || self.id.is_none() || other.id.is_none())
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "topic \"{}\" (id {id})", self.name),
            None => write!(f, "topic \"{}\"", self.name),
        }
    }
}

/// What a destination says when a run takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It keeps no marks: whoever writes to it starts anew, and what is written twice is there twice.
    Forgets,
    /// It keeps marks, and has none yet.
    New,
    /// It keeps marks, has none, and holds records all the same: where and under which name a mark was looked
    /// for.
    Unmarked(String),
    /// The last mark.
    At(Box<Mark>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = Mark {
            run: "r".to_owned(),
            progress: Progress { epoch: 7, next: [(0, 5), (3, u64::MAX)].into(), ..Progress::default() },
            start: [(0, 1)].into(),
            pipeline: "{}".to_owned(),
            in_correction: true,
            letters: Some(9),
            input: Some(Topic { name: "in".to_owned(), id: Some("i".to_owned()) }),
            output: Some(Topic { name: "out".to_owned(), id: None }),
            as_of: Some(5),
        };
        let json = serde_json::to_string(&mark).unwrap();
        assert_eq!(serde_json::from_str::<Mark>(&json).unwrap(), mark);
        let earlier = r#"{"run":"r","progress":{"epoch":1,"next":{},"table":null},"start":{},"pipeline":""}"#;
        let earlier: Mark = serde_json::from_str(earlier).unwrap();
        assert_eq!((earlier.input, earlier.output, earlier.as_of), (None, None, None));
    }

    #[test]
    fn topics_are_compared_by_what_is_known_of_both() {
        let topic = |name: &str, id: Option<&str>| Topic { name: name.to_owned(), id: id.map(str::to_owned) };
        assert!(topic("a", Some("1")).is(&topic("a", Some("1"))));
        assert!(topic("a", Some("1")).is(&topic("a", None)) && topic("a", None).is(&topic("a", Some("2"))));
        assert!(!topic("a", Some("1")).is(&topic("a", Some("2"))));
        assert!(!topic("a", None).is(&topic("b", None)));
    }
}
