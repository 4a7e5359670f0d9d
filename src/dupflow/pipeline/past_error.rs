//! Why a run cannot continue from an earlier one: one message per reason, with the remedy.

use thiserror::Error;

use dupflow_connectors::intake::ChangedRecord;
use dupflow_connectors::mark::Topic;
use dupflow_core::description::Difference;
use dupflow_core::time::Epoch;
use dupflow_engine::dataflow::HELD_FIELDS;

/// Why a run cannot continue from an earlier one.
#[derive(Debug, Error)]
pub enum PastError {
    /// Another pipeline has written the output.
    #[error("the output was written by another pipeline: {}; start with --reconcile, which writes the \
        differences as corrections", list(.0))]
    OtherPipeline(Vec<Difference>),
    /// The output, or the state, belongs to another input.
    #[error(
        "{what} belongs to {}, and the input is {}: {}; correct source.topic, or start with --reconcile, \
        which reads the input from source.start, drops stored documents of the other input, and writes the \
        differences as corrections",
        named(.was), named(.is), cause(.was, .is, "source.topic was changed")
    )]
    OtherInput {
        /// What belongs to another input: the output or the state.
        what: &'static str,
        /// The other input's topic.
        was: Option<Topic>,
        /// The topic of this run.
        is: Option<Topic>,
    },
    /// The mark belongs to another output.
    #[error(
        "the mark belongs to {}, and the output is {}: {}; correct sink.topic, or start with --reconcile, \
        which writes what the output does not hold as corrections",
        named(.was), named(.is), cause(.was, .is, "sink.topic was changed")
    )]
    OtherOutput {
        /// The other output's topic.
        was: Option<Topic>,
        /// The topic of this run.
        is: Option<Topic>,
    },
    /// The output was written in the other envelope.
    #[error(
        "the output was written by another pipeline: sink.envelope is {was} there and {is} here: a topic \
        with records of both follows neither contract; set sink.envelope back, or name another sink.topic"
    )]
    OtherEnvelope {
        /// The envelope of its records.
        was: String,
        /// The envelope of this run.
        is: String,
    },
    /// The input holds other records than those that were read.
    #[error(
        "{what} stands for other records than {input} holds: at offset {} of partition {} is not the record \
        that was read; the topic was restored from a copy, or has lost its end, and was written on: start \
        with --reconcile, which reads the input again and corrects the output", .at.offset, .at.partition
    )]
    Rewritten {
        /// What was read: the output or the state.
        what: &'static str,
        /// The topic of the input.
        input: String,
        /// The place of the first such record.
        at: ChangedRecord,
    },
    /// The output holds records but has no mark.
    #[error(
        "{0}, or start with --reconcile, which compares the result with the output and writes the \
        differences as corrections"
    )]
    Unmarked(String),
    /// Deletes of documents in the state may have left the input unread.
    #[error(
        "{input}: the state was stored {hours} hours ago, and the topic is compacted, with \
        delete.retention.ms = {stay_ms}: deletes may have been removed from it before they were read, and it \
        no longer holds all documents; raise delete.retention.ms, and start with --reconcile, which keeps \
        all stored documents, even if such a delete is missing; or move state.path away first, and only \
        documents that the topic still holds count"
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
        "the state was written under another scheme: {}; set another state.path, or start with --reconcile, \
        which rebuilds the state from what the input still holds",
        list(.0)
    )]
    OtherScheme(Vec<Difference>),
    /// The documents of the state were read by other rules.
    #[error(
        "the documents of the state were read by other rules: {}; set the old ones again, or another \
        state.path, or start with --reconcile, which reads the input again (documents whose record it no \
        longer holds stay as they are) and writes the differences as corrections",
        list(.0)
    )]
    OtherRules(Vec<Difference>),
    /// The state is newer than the output.
    #[error(
        "the state is at epoch {kept}, and the output at epoch {output}: the output has lost epochs, or is \
        another one; start with --reconcile, which writes the differences as corrections"
    )]
    Ahead {
        /// The epoch of the state.
        kept: Epoch,
        /// The epoch of the output.
        output: Epoch,
    },
    /// The dead letters were restored with the output, and the state was not.
    #[error(
        "the dead letters in {path} end where the output does, at {here} bytes, and those of the state at \
        {kept}: the letters between the two would not be written again; put back the file that has them, or \
        move state.path away, and the input is read again, or move the file away, to go on without them"
    )]
    LettersBehind {
        /// The file.
        path: String,
        /// Its length in bytes.
        here: u64,
        /// Its length as of the state.
        kept: u64,
    },
    /// An earlier run ended while it corrected the output.
    #[error(
        "an earlier run ended while it corrected the output; start with --reconcile, which repeats the \
        correction"
    )]
    InCorrection,
    /// The table of document frequencies in force is not in the state.
    #[error(
        "the table of document frequencies in force ({0:016x}) is not in the state; start with --reconcile, \
        which computes a new table and writes the differences as corrections"
    )]
    TableLost(u64),
    /// Inputs have changed, and the output cannot be corrected.
    #[error(
        "the inputs are not those that were read, and the output keeps no marks, so it cannot be corrected; \
        set another state.path, and the present inputs are read from their beginning"
    )]
    ForgetsInputs,
    /// The first output is empty, and another one is not.
    #[error(
        "the output holds what an earlier run has written, and the first output is empty: put this one \
        first, and the empty one is filled beside it; or start with --reconcile, which corrects all of them"
    )]
    FirstIsNew,
    /// The first output keeps no marks, and another one does.
    #[error(
        "the output keeps marks, and the first one does not, so that a later run could not go on with both: \
        put this one first"
    )]
    FirstForgets,
    /// An output was not written beside the first one.
    #[error(
        "the output was not written together with the first one: name another place, which is filled, or \
        start with --reconcile, which corrects it to what has been read"
    )]
    OtherLineage,
    /// Any of the others, with the keys of an output as they are typed.
    #[error("{0}")]
    OfTable(String),
    /// The output cannot be corrected, since it has no marks.
    #[error("the output keeps no marks, so --reconcile cannot correct it")]
    Forgets,
}

impl PastError {
    /// The same with the keys of an output as they are typed in this table.
    pub(super) fn of_table(self, table: &str) -> Self {
        if table == "sink" {
            return self;
        }
        let typed = self.to_string().replace("sink.emit", &format!("{table}.answer"));
        Self::OfTable(typed.replace("sink.", &format!("{table}.")))
    }
}

fn list(differences: &[Difference]) -> String {
    let said = |one: &Difference| {
        if one.name != HELD_FIELDS {
            return one.to_string();
        }
        let [there, here] = [&one.there, &one.here].map(|fields| fields.as_deref().unwrap_or("none"));
        format!("the fields of source.fields that settings ask for are {there} there and {here} here")
    };
    let (planned, set): (Vec<_>, Vec<_>) = differences.iter().partition(|one| is_planned(&one.name));
    let shown: Vec<_> = if set.is_empty() { &planned } else { &set }.iter().map(|one| said(one)).collect();
    let mut all =
        if shown.is_empty() { "its description cannot be read".to_owned() } else { shown.join("; ") };
    if !set.is_empty() && !planned.is_empty() {
        let names: Vec<_> = planned.iter().map(|one| &*one.name).collect();
        all += &format!(" (and what is planned from that: {})", names.join(", "));
    }
    let earlier = earlier_defaults(differences);
    if earlier.is_empty() {
        return all;
    }
    let lines: Vec<_> = earlier.iter().map(|(key, value)| format!("{key} = {value:?}")).collect();
    let typed: Vec<_> = earlier.iter().map(|(key, value)| format!("--set {key}={value}")).collect();
    format!(
        "{all}; defaults have changed: to go on by those of the version that wrote it, add {} to the \
        pipeline ({})",
        lines.join(", "),
        typed.join(" ")
    )
}

/// Whether a setting is planned from others unless it is set.
fn is_planned(name: &str) -> bool {
    let ends = [".bands", ".rows", ".distance", ".tables", ".common", ".first_word", ".looks"];
    ends.iter().any(|end| name.ends_with(end))
}

/// Settings whose defaults have changed: what a description has for the earlier one, and its value.
const EARLIER_DEFAULTS: [(&str, Option<&str>, &str); 3] = [
    ("text.normalize", Some("\"none\""), "none"),
    ("text.invisible", None, "keep"),
    ("sketch.ties", None, "one"),
];

/// The keys and values that bring back the earlier defaults by which something was written; none if it
/// differs in the kind of its sketch.
fn earlier_defaults(differences: &[Difference]) -> Vec<(&'static str, &'static str)> {
    if differences.iter().any(|one| one.name == "sketch.kind") {
        return Vec::new();
    }
    let is_earlier = |name: &str, there: Option<&str>| {
        differences.iter().any(|one| one.name == name && one.there.as_deref() == there)
    };
    let all = EARLIER_DEFAULTS.into_iter();
    all.filter(|(key, there, _)| is_earlier(key, *there)).map(|(key, _, value)| (key, value)).collect()
}

/// The name of a topic, or "no topic".
fn named(topic: &Option<Topic>) -> String {
    topic.as_ref().map_or_else(|| "no topic".to_owned(), ToString::to_string)
}

/// Why two topics differ: one was deleted and created again, or as in `renamed`.
fn cause(was: &Option<Topic>, is: &Option<Topic>, renamed: &'static str) -> &'static str {
    let same_name = was.as_ref().zip(is.as_ref()).is_some_and(|(was, is)| was.name == is.name);
    if same_name { "it was created again" } else { renamed }
}
