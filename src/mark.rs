//! What a destination remembers beside the deltas: which input they stand for, and by which pipeline.
//!
//! A mark is written together with the deltas of an epoch, both or neither. So a run that finds one knows what the deltas before it
//! accumulate to: D(C) of the events before [`Progress::next`]. It goes on from there.

use serde::{Deserialize, Serialize};

use crate::time::{Offsets, Progress};

/// Written with the deltas of one or several epochs, the last of which is that of `progress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The run that wrote it, by a name that no other run has. A run whose destination shows another one has been replaced.
    pub run: String,
    /// How far the deltas stand for the input.
    pub progress: Progress,
    /// Where reading began in each partition: what came before is no part of the corpus.
    pub start: Offsets,
    /// All that decides the result, by name: an encoded [`Description`](crate::description::Description).
    pub pipeline: String,
    /// The output is between the result of one pipeline and that of another: corrections are being written, and have not all been.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_correction: bool,
    /// Bytes of the file of dead letters that belong to these epochs, if there is such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<u64>,
}

/// What a destination says when a run takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It keeps no marks: whoever writes to it starts anew, and what is written twice is there twice.
    Forgets,
    /// It keeps marks, and has none yet.
    New,
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
        };
        let json = serde_json::to_string(&mark).unwrap();
        assert_eq!(serde_json::from_str::<Mark>(&json).unwrap(), mark);
    }
}
