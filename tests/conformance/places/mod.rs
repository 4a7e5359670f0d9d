//! The places: how what an output holds is read back.

mod files;
mod tables;
mod topic;

pub(crate) use files::{File, read as read_file};
pub(crate) use tables::{Database, Tables};
pub(crate) use topic::{Topic, values as topic_values, written as topic_rows};

use crate::cells::Answer;
use crate::model::Question;
use crate::rows::Rows;

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The lines of the feed that have been read.
    pub(crate) lines: usize,
    /// Whether the output is being corrected.
    pub(crate) in_correction: bool,
}

/// What an output holds.
pub(crate) trait Place {
    /// The mark; `None` where there is none.
    fn mark(&self) -> Option<Mark>;

    /// The rows in force, as the mark says if there is one, of the answer and of what is kept beside it.
    ///
    /// # Errors
    /// What is wrong with them whatever the documents are.
    fn rows(&self) -> Result<Vec<(Question, Rows)>, String>;

    /// Changes with what is written.
    fn look(&self) -> String;

    /// Removes all that is there; `false` if that is another matter at this place.
    fn lose(&self) -> bool;
}

/// The mark in this JSON.
fn mark(json: &serde_json::Value) -> Mark {
    let lines = json["progress"]["next"]["0"].as_u64().unwrap_or(0);
    Mark {
        lines: usize::try_from(lines).unwrap(),
        in_correction: json["in_correction"].as_bool().unwrap_or(false),
    }
}

/// Whether an answer is written epoch by epoch.
pub(crate) fn is_of_changes(answer: &Answer) -> bool {
    ["deltas", "cluster-deltas", "decisions"].contains(&&*answer.name)
}
