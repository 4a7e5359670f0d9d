//! The mark: written to a destination together with the deltas, it says which input they cover, and by which
//! pipeline.
//!
//! A mark and the deltas of an epoch are written atomically. So the deltas before a mark accumulate to D(C)
//! of the events before [`Progress::next`], and a run that finds the mark continues from there.

mod input_list;
mod table_look;

use std::collections::BTreeMap;
use std::fmt;

pub use input_list::{InputList, InputSpan, ListedInputs, MOST_SPANS, digest};
use serde::{Deserialize, Serialize};
pub use table_look::TableLook;

use dupflow_core::time::{Offsets, Progress};

/// A mark, written with the deltas of one or several epochs; `progress` is that of the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The unique name of the run that wrote the mark. A run that finds the name of another run in its
    /// destination has been replaced by that run.
    pub run: String,
    /// The input that the deltas cover.
    pub progress: Progress,
    /// The first offset read of each partition: earlier records are not part of the corpus.
    pub start: Offsets,
    /// All settings that determine the result: an encoded
    /// [`Description`](dupflow_core::description::Description).
    pub pipeline: String,
    /// The settings of the source that decide its documents and that `pipeline` lacks: an encoded
    /// [`Description`](dupflow_core::description::Description). Empty for files, and in marks of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Whether the output is between the results of two pipelines: corrections are being written and are not
    /// complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_correction: bool,
    /// Length in bytes of the file of dead letters up to these epochs, if there is such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<u64>,
    /// The digest of the file of dead letters up to that length. Marks of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters_digest: Option<String>,
    /// In a state: before which offsets the output has all dead letters, where that is beyond `progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters_up_to: Option<Offsets>,
    /// The topic that was read, if the input is a topic. Marks of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Topic>,
    /// The topic of the deltas, if the output is a topic. Marks of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Topic>,
    /// The topic of dead letters, if they are written to one. Marks of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters_topic: Option<Topic>,
    /// All records written to the input before this time have been read: milliseconds since 1970, by the
    /// clock of the writing process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<u64>,
    /// If the input was compacted when it was read: how long it kept deletes, in milliseconds. Marks of
    /// earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes_kept_ms: Option<u64>,
    /// The epoch of the stored state when the mark was written, if one was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<u64>,
    /// Counts of the records up to these epochs, where a replay may be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<RecordTally>,
    /// The list of inputs up to these epochs, if the input is files. Marks of earlier versions do not have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<InputList>,
    /// What the table was that was read, if the input is one. Marks of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableLook>,
    /// The name of the run that was the first to write several outputs; they share it. `None`: there never
    /// were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    /// A random number of the commit, which the outputs share that hold its epochs, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
}

/// Counts of records that decide at the end of a replay whether its result is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTally {
    /// Bad records by reason.
    pub bad: BTreeMap<String, u64>,
    /// Files that were not read, or only in part.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unread: u64,
    /// Documents replaced by another file's document of the same id; of open epochs some may be counted
    /// already.
    pub replaced: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none(files: &u64) -> bool {
    *files == 0
}

/// A topic of a broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Unique id of the topic, also if a topic is created again under the same name; `None` if the broker has
    /// no topic ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Topic {
    /// Whether both are the same topic. Ids are compared only if both have one.
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

/// The state of a destination when a run takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The destination does not store marks: each run starts from the beginning, and deltas that are written
    /// twice are there twice.
    Forgets,
    /// The destination stores marks and is empty.
    New,
    /// The destination stores marks and has records, but no mark that stands for all of them. The text says
    /// where and under which name the mark was looked up, and what to do if the output is not corrected.
    Unmarked(String),
    /// The last mark.
    At(Box<Mark>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::time::LastRecord;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = Mark {
            run: "r".to_owned(),
            progress: Progress {
                epoch: 7,
                next: [(0, 5), (3, u64::MAX)].into(),
                last: [(0, LastRecord { offset: 4, digest: u64::MAX })].into(),
                ..Progress::default()
            },
            start: [(0, 1)].into(),
            pipeline: "{}".to_owned(),
            source: "s".to_owned(),
            in_correction: true,
            letters: Some(9),
            letters_digest: Some("d".to_owned()),
            letters_up_to: Some([(0, 9)].into()),
            input: Some(Topic { name: "in".to_owned(), id: Some("i".to_owned()) }),
            output: Some(Topic { name: "out".to_owned(), id: None }),
            letters_topic: Some(Topic { name: "bad".to_owned(), id: None }),
            as_of: Some(5),
            deletes_kept_ms: Some(3),
            state: Some(6),
            tally: Some(RecordTally { bad: [("not_json".to_owned(), 3)].into(), unread: 0, replaced: 1 }),
            inputs: Some(InputList { stored: 4, digest: u64::MAX, ..InputList::default() }),
            table: Some(TableLook { below: 5, rows: 4, greatest: u64::MAX, ..TableLook::default() }),
            lineage: Some("l".to_owned()),
            commit: Some(u64::MAX),
        };
        let json = serde_json::to_string(&mark).unwrap();
        assert_eq!(serde_json::from_str::<Mark>(&json).unwrap(), mark);
        let earlier = r#"{"run":"r","progress":{"epoch":1,"next":{},"table":null},"start":{},"pipeline":""}"#;
        let earlier: Mark = serde_json::from_str(earlier).unwrap();
        assert_eq!((earlier.input, earlier.output, earlier.as_of), (None, None, None));
        assert_eq!((earlier.tally, earlier.inputs, earlier.table), (None, None, None));
        assert_eq!((earlier.deletes_kept_ms, earlier.progress.last), (None, BTreeMap::new()));
        assert_eq!(earlier.source, "");
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
