//! The source of a deployment.

use std::sync::Arc;

use super::mode::Mode;
use crate::config::{Deployment, Plan, SourceSettings};
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::intake::{Share, Source};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;

/// The source of a deployment, for documents that hold these fields. `places` is filled by the source of
/// files.
pub(super) fn source(
    plan: &Plan,
    deployment: &Deployment,
    held: &FieldRules,
    inputs: Vec<Input>,
    places: Arc<RecordIndex>,
    share: Share,
    mode: &Mode,
) -> Box<dyn Source> {
    let own = plan.scheme.text.columns();
    deployment.source.open(SourceSettings {
        inputs,
        against: deployment.against,
        columns: TextColumns { further: held.with_columns(own.further), ..own },
        share,
        places,
        // A replay that is resumed has a note of its inputs.
        lists: matches!(mode, Mode::Run { .. }) || mode.begins_anew(deployment),
        needs_time: plan.retention.needs_time(),
        limits: deployment.commit,
        connection: &deployment.kafka,
    })
}
