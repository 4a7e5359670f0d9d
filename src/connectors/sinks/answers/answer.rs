//! What an answer is, and what it is made of.

use std::fmt;

use super::changes::Changes;
use crate::sinks::book::{BookMetrics, DecisionMode};
use crate::sinks::contract::Sink;
use crate::sinks::items::ItemOutput;
use crate::sinks::keep_list::{DocumentList, ListCountsSlot, RemovalRule};
use crate::sinks::rows::pair_json::{PairStyle, StandardError};
use crate::sinks::rows::{Columns, RowWriter};
use dupflow_core::cluster::{Clusters, KeepRule};
use dupflow_core::doc::fields::FieldRules;

/// What the results of a run are: an entry of [`ANSWERS`](super::ANSWERS).
#[derive(Clone, Copy)]
pub struct Answer {
    /// The name in settings.
    pub name: &'static str,
    /// What it is, for help.
    pub help: &'static str,
    /// How it is typed if a number follows the name: "rejected:N".
    pub sized: Option<&'static str>,
    /// What its rows are about.
    pub about: Subject,
    /// How it is written.
    pub written: Written,
    /// The columns of its rows.
    pub columns: fn(&dyn AnswerSettings) -> Columns,
    /// The answer whose changes add up to this one, if there is one.
    pub adds_up: Option<&'static str>,
    /// Whether it can be of units of documents.
    pub takes_units: bool,
}

/// What the rows of an answer are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Pairs, which may carry evidence.
    Pairs,
    /// Clusters.
    Clusters,
    /// Documents to keep or to remove.
    Documents,
    /// What is found of documents as they come.
    Decisions,
    /// Items of a reference.
    Items,
    /// Candidates that are no pairs.
    Candidates,
}

/// Opens a sink of the rows of an answer.
pub(super) type OpenAnswer = fn(&dyn AnswerSettings, BoxedRows) -> Box<dyn Sink + Send>;

/// Rows in some format.
pub type BoxedRows = Box<dyn RowWriter + Send>;

/// How an answer is written.
#[derive(Clone, Copy)]
pub enum Written {
    /// Its changes, epoch by epoch.
    Changes(fn(&dyn AnswerSettings) -> Box<dyn Changes + Send>),
    /// Its rows, at the end of the input.
    AtEnd(OpenAnswer),
    /// The records of the documents in a list, as they were read, after the end of the input.
    Copied(DocumentList),
    /// Rows of a survey of what the run has left, after the end of the input.
    Survey,
}

/// What answers are made of.
pub trait AnswerSettings {
    /// How the standard error of a pair is computed; `None` if pairs are written without evidence.
    fn evidence(&self) -> Option<StandardError>;
    /// What is written of a pair.
    fn style(&self) -> PairStyle;
    /// Whether each delta has its cause.
    fn has_causes(&self) -> bool;
    /// Whether each change has the times of its epoch.
    fn has_times(&self) -> bool;
    /// When decisions of a document are written.
    fn decisions(&self) -> DecisionMode;
    /// Clusters of no pairs.
    fn clusters(&self) -> Clusters;
    /// What lists of documents remove.
    fn removal(&self) -> RemovalRule;
    /// Which document of a cluster is kept.
    fn keep(&self) -> KeepRule;
    /// The fields that documents hold.
    fn fields(&self) -> &FieldRules;
    /// Whether documents are cut into units.
    fn has_units(&self) -> bool;
    /// Where clusters and decisions are counted.
    fn counted(&self) -> BookMetrics;
    /// Where the counts of lists are left.
    fn listed(&self) -> ListCountsSlot;
    /// A sink that finds items, before what is to be written.
    fn items(&self, output: ItemOutput) -> Box<dyn Sink + Send>;
}

impl Answer {
    /// Whether it is written epoch by epoch, and not at the end.
    pub fn is_of_changes(&self) -> bool {
        matches!(self.written, Written::Changes(_))
    }

    /// Whether rows are about pairs, which may carry evidence.
    pub fn is_of_pairs(&self) -> bool {
        self.about == Subject::Pairs
    }

    /// Whether it is a list of documents to keep or to remove, or their records.
    pub fn is_list(&self) -> bool {
        self.about == Subject::Documents
    }

    /// Whether it says when records of a document are written.
    pub fn is_of_decisions(&self) -> bool {
        self.about == Subject::Decisions
    }

    /// Whether rows are of items of a reference.
    pub fn is_of_items(&self) -> bool {
        self.about == Subject::Items
    }

    /// Whether rows hold similarities.
    pub fn has_similarities(&self) -> bool {
        self.is_of_pairs() || self.is_of_decisions()
    }

    /// Whether rows may have the cause of a change.
    pub fn takes_causes(&self) -> bool {
        self.is_of_pairs() && self.is_of_changes()
    }

    /// Whether rows may have the times of their epoch.
    pub fn takes_times(&self) -> bool {
        self.is_of_changes() && !self.is_of_decisions()
    }

    /// Whether it can be of a corpus that is compared with a reference.
    pub fn takes_reference(&self) -> bool {
        matches!(self.about, Subject::Pairs | Subject::Documents | Subject::Items)
    }

    /// Whether only a replay has the end at which it is written.
    pub fn needs_replay(&self) -> bool {
        self.is_of_items() || matches!(self.written, Written::Copied(_) | Written::Survey)
    }

    /// Whether it is held back until the run has met its demands, also where it is no file.
    pub fn is_deferred(&self) -> bool {
        self.is_list() || self.needs_replay()
    }

    /// The list of documents whose records are copied, if it is records.
    pub fn copied(&self) -> Option<DocumentList> {
        if let Written::Copied(list) = self.written { Some(list) } else { None }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changes(_) => "Changes",
            Self::AtEnd(_) => "AtEnd",
            Self::Copied(_) => "Copied",
            Self::Survey => "Survey",
        })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
