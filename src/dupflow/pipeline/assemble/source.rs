//! The source of a deployment.

use std::sync::Arc;

use super::mode::Mode;
use crate::config::{Deployment, Plan, SourceSettings};
use dupflow_connectors::durable::Durable;
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::intake::{Share, Source};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;

/// What a source reads.
pub(super) struct SourceParts {
    pub(super) inputs: Vec<Input>,
    /// Filled by the source of files.
    pub(super) places: Arc<RecordIndex>,
    pub(super) share: Share,
    /// What is durable of a journal, if this process writes it.
    pub(super) durable: Option<Arc<Durable>>,
}

/// The source of a deployment, for documents that hold these fields.
pub(super) fn source(
    plan: &Plan,
    deployment: &Deployment,
    mode: &Mode,
    held: &FieldRules,
    SourceParts { inputs, places, share, durable }: SourceParts,
) -> Box<dyn Source> {
    deployment.source.open(SourceSettings {
        inputs,
        against: deployment.against,
        columns: columns(plan, held),
        share,
        durable,
        places,
        // A replay that is resumed has a note of its inputs.
        lists: matches!(mode, Mode::Run { .. }) || mode.begins_anew(deployment),
        needs_time: plan.retention.needs_time(),
        limits: deployment.commit,
        connection: &deployment.kafka,
    })
}

/// The columns of the text, and of the fields that documents hold.
pub(super) fn columns(plan: &Plan, held: &FieldRules) -> TextColumns {
    let own = plan.scheme.text.columns();
    TextColumns { further: held.with_columns(own.further), ..own }
}
