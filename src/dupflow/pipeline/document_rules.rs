//! The rules by which records become documents: those of a mark compared with those of this run.
//!
//! A state is used under the rules that it was read by. Under other rules the run is refused, and the
//! refusal names the fields that differ; with `--reconcile` it [reads again](super::read_again) what the
//! input still holds.

use super::past_error::PastError;
use crate::config::{SOURCE_DATABASE, SOURCE_START};
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::Snapshot;
use dupflow_core::description::{Description, Difference};
use dupflow_engine::dataflow::HELD_FIELDS;

/// The rules of this run, as its marks describe them.
pub(super) struct DocumentRules<'a> {
    /// The encoded description of the pipeline.
    pub(super) pipeline: &'a str,
    /// The encoded settings of the source that the pipeline's description lacks.
    pub(super) source: &'a str,
}

/// How the rules of a mark differ from those of this run.
#[derive(Debug, Default)]
pub(super) struct RuleChange {
    /// The fields that decide documents.
    pub(super) fields: Vec<Difference>,
    /// Other fields: they decide documents only where the input is read again.
    also: Vec<Difference>,
    /// Whether the mark, of an earlier version, lacks some.
    is_unknown: bool,
    /// Whether an earlier run ended while it took documents out of the state.
    is_partial: bool,
}

impl DocumentRules<'_> {
    /// How the rules of a mark differ. Rules of the text are compared with the scheme of the state.
    pub(super) fn change_from(&self, mark: &Mark) -> RuleChange {
        if mark.in_correction && mark.pipeline.is_empty() {
            return RuleChange { is_partial: true, ..RuleChange::default() };
        }
        let mut fields = differences(self.pipeline, &mark.pipeline);
        fields.retain(|one| decides_documents(&one.name));
        fields.extend(self.of_source(mark));
        let mut also = self.all_of_source(mark);
        // A run from the end of the input on has no documents to read again.
        also.retain(|one| !is_main(one) && one.here.as_deref() != Some("\"latest\""));
        RuleChange { fields, also, is_unknown: self.lacks_source(mark), is_partial: false }
    }

    /// The settings of the source that decide documents, that the pipeline's description lacks, and that
    /// differ.
    pub(super) fn of_source(&self, mark: &Mark) -> Vec<Difference> {
        let mut all = self.all_of_source(mark);
        all.retain(is_main);
        all
    }

    fn all_of_source(&self, mark: &Mark) -> Vec<Difference> {
        if self.lacks_source(mark) { Vec::new() } else { differences(self.source, &mark.source) }
    }

    /// Whether a mark, of an earlier version, lacks what this run notes of its source.
    fn lacks_source(&self, mark: &Mark) -> bool {
        mark.source.is_empty() && !self.source.is_empty()
    }
}

/// Whether a setting of the source decides documents, at every start.
fn is_main(one: &Difference) -> bool {
    one.name != SOURCE_START && one.name != SOURCE_DATABASE
}

/// Whether a field of a pipeline's description decides which document a record becomes, or whether it stays
/// in the corpus.
fn decides_documents(name: &str) -> bool {
    let tables = ["source.", "csv.", "json.", "warc.", "retention."];
    name != HELD_FIELDS && tables.iter().any(|table| name.starts_with(table))
}

impl RuleChange {
    /// Whether documents that were read by the rules of the mark have to be read again.
    pub(super) fn needs_reading(&self) -> bool {
        self.is_partial || !(self.fields.is_empty() && self.also.is_empty())
    }

    /// Whether offsets of the mark are of another input, or of another beginning.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_of_other_source() || self.start().is_some()
    }

    /// Whether offsets of the mark are of another input.
    fn is_of_other_source(&self) -> bool {
        let moved = ["source.kind", "source.order", "source.table", "source.query"];
        self.fields.iter().any(|one| moved.contains(&&*one.name))
    }

    /// Where a topic is read from, if that has changed.
    fn start(&self) -> Option<&str> {
        self.also.iter().find(|one| one.name == SOURCE_START)?.here.as_deref()
    }

    /// The documents of a state, as a run reads them again.
    pub(super) fn read_again(&self, snapshot: Snapshot) -> ReadAgain {
        let is_from_first = self.start() == Some("\"earliest\"");
        let keeps_expired = !self.is_of_other_source() && self.start().is_none_or(|_| is_from_first);
        ReadAgain { snapshot, keeps_expired, is_from_first }
    }

    /// Why a run without `--reconcile` does not use a state. What cannot be known is logged for every run.
    pub(super) fn check(&self, reconcile: bool) -> Result<(), PastError> {
        if self.is_unknown {
            tracing::warn!(
                "the state is of an earlier version, which did not note how the source is read: it is used; \
                 if settings of [source] have changed since, set another state.path and start with \
                 --reconcile"
            );
        }
        if reconcile {
            return Ok(());
        }
        if self.is_partial {
            return Err(PastError::InCorrection);
        }
        if !self.fields.is_empty() {
            return Err(PastError::OtherRules(self.fields.clone()));
        }
        for Difference { name, there, here } in &self.also {
            let [there, here] = [there, here].map(|value| value.as_deref().unwrap_or("not set"));
            tracing::warn!(
                there,
                here,
                "{name} has changed, which decides nothing for what has been read: to read again, start with \
                 --reconcile"
            );
        }
        Ok(())
    }
}

/// The documents of a state that are read again.
pub(super) struct ReadAgain {
    pub(super) snapshot: Snapshot,
    /// Whether those stay whose record the input no longer holds.
    pub(super) keeps_expired: bool,
    /// Whether the input is now read from its first record on, and was not before.
    pub(super) is_from_first: bool,
}

/// The differences between two encoded descriptions.
pub(super) fn differences(here: &str, there: &str) -> Vec<Difference> {
    let here = Description::decode(here.as_bytes());
    here.and_then(|here| here.differences(there.as_bytes())).unwrap_or_default()
}
