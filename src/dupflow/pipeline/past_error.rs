//! Why a run cannot continue from an earlier one: one message per reason, with the remedy.

use thiserror::Error;

use dupflow_connectors::mark::Topic;
use dupflow_core::description::Difference;
use dupflow_core::time::Epoch;

/// Why a run cannot continue from an earlier one.
#[derive(Debug, Error)]
pub enum PastError {
    /// Another pipeline has written the output.
    #[error("the output was written by another pipeline: {}; with --reconcile, what differs is written as \
        corrections", list(.0))]
    OtherPipeline(Vec<Difference>),
    /// The output, or the state, is of another input.
    #[error(
        "{what} of {}, and the input is {}: {}; name the right one in source.topic, or start with \
        --reconcile: what the input holds is then \
         read from source.start on, without stored documents of the other one, and what differs is written \
         as corrections",
        named(.was), named(.is), anew(.was, .is, "source.topic is another one")
    )]
    OtherInput {
        /// Whether the output or the state is of another input.
        what: &'static str,
        /// The other input's topic.
        was: Option<Topic>,
        /// The topic of this run.
        is: Option<Topic>,
    },
    /// The mark is of another output.
    #[error(
        "the mark is that of {}, and the output is {}: {}; name the right one in sink.topic, or start with \
        --reconcile, which writes what the \
         output lacks as corrections",
        named(.was), named(.is), anew(.was, .is, "sink.topic is another one")
    )]
    OtherOutput {
        /// The other output's topic.
        was: Option<Topic>,
        /// The topic of this run.
        is: Option<Topic>,
    },
    /// The output holds records but has no mark.
    #[error(
        "{0}: the mark is lost, or was written under another id; name the right progress topic and \
        transactional id, take an output topic that \
         is empty, or start with --reconcile, which compares the result with what the output holds and \
         writes what differs as corrections"
    )]
    Unmarked(String),
    /// Deletes of documents in the state may have left the input unread.
    #[error(
        "{input}: the stored documents are as of {hours} hours ago, and the topic is compacted, with \
        delete.retention.ms = {stay_ms}: the ends \
         of some may have gone from it unread, and it does not hold all documents; raise delete.retention.ms \
         for the next time, and start with \
         --reconcile, which keeps all stored documents, those that have ended unseen too (or move state.path \
         away before, and only \
         documents count that the topic still holds)"
    )]
    TooOld {
        /// The topic of the input.
        input: String,
        /// Age of the documents in the state, in hours.
        hours: String,
        /// How long the input keeps a delete.
        stay_ms: u128,
    },
    /// The state is of another sketch scheme.
    #[error(
        "the state was kept under another scheme: {}; take another place for it, or let it be made anew from \
        the input with --reconcile",
        list(.0)
    )]
    OtherScheme(Vec<Difference>),
    /// The state is newer than the output.
    #[error(
        "the state is of epoch {kept}, and the output stands at {output}: the output has lost epochs, or is \
        another one; --reconcile writes \
         what differs as corrections"
    )]
    Ahead {
        /// The epoch of the state.
        kept: Epoch,
        /// The epoch of the output.
        output: Epoch,
    },
    /// An earlier run ended while it corrected the output.
    #[error(
        "an earlier run ended while it corrected the output; --reconcile does that again, and ends exact"
    )]
    InCorrection,
    /// The table of document frequencies in force is not in the state.
    #[error(
        "the table of document frequencies in force ({0:016x}) is not in the state: the output cannot be \
        gone on with as it was; \
         --reconcile makes a new one, and writes what differs as corrections"
    )]
    TableLost(u64),
    /// The output cannot be corrected, since it has no marks.
    #[error("the output keeps no marks: there is nothing to reconcile with")]
    Forgets,
}

fn list(differences: &[Difference]) -> String {
    let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
    if all.is_empty() { "its description cannot be read".to_owned() } else { all.join("; ") }
}

/// The name of a topic, or "no topic".
fn named(topic: &Option<Topic>) -> String {
    topic.as_ref().map_or_else(|| "no topic".to_owned(), ToString::to_string)
}

/// Why two topics differ: one was deleted and made anew, or as in `renamed`.
fn anew(was: &Option<Topic>, is: &Option<Topic>, renamed: &'static str) -> &'static str {
    let same_name = was.as_ref().zip(is.as_ref()).is_some_and(|(was, is)| was.name == is.name);
    if same_name { "it has been made anew" } else { renamed }
}
