//! Update: what the events of an epoch do to the texts of documents.

use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::text::Terms;

/// What an event does to a document of this worker.
#[derive(Clone, Debug)]
pub(in crate::dataflow) struct Update {
    /// The document's place in its worker's store; valid within the epoch.
    pub(super) place: u32,
    pub(super) text: TextUpdate,
}

#[derive(Clone, Debug)]
pub(super) enum TextUpdate {
    /// The terms of the text that is in force now, `None` if it has no token; and the fields.
    InForce(DocId, Option<Box<Terms>>, FieldRow),
    /// The document has ended.
    Ended,
}
