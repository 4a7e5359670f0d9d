//! The source of a deployment.

use std::sync::Arc;

use super::mode::Mode;
use crate::config::{Deployment, Plan, SourceConfig};
#[cfg(feature = "kafka")]
use dupflow_connectors::formats::RecordShape;
use dupflow_connectors::inputs::{Files, Input, RecordIndex};
use dupflow_connectors::intake::{Share, Source};
use dupflow_connectors::tables::{DatabaseTable, TableSource};
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
    let columns = TextColumns { further: held.with_columns(own.further), ..own };
    match &deployment.source {
        SourceConfig::Files { epoch, speed, follow, gone, .. } => {
            let files = Files::new(inputs, *epoch, columns).shared(share).with_reference(deployment.against);
            // A replay that is resumed has a note of its inputs.
            let lists = matches!(mode, Mode::Run { .. }) || mode.begins_anew(deployment);
            let mut files = if lists { files.continued(*gone) } else { files };
            (files.speed, files.follow, files.places) = (*speed, *follow, places);
            Box::new(files)
        }
        #[cfg(feature = "kafka")]
        SourceConfig::Kafka { topic, start, shape, refresh } => {
            let part = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            Box::new(dupflow_connectors::kafka::Kafka {
                connection: deployment.kafka.clone(),
                topic: topic.clone(),
                start: start.clone(),
                share: (part(share.index), part(share.count)),
                shape: Arc::new(RecordShape { needs_time: plan.retention.needs_time(), ..shape.clone() }),
                limits: deployment.commit,
                refresh: *refresh,
                as_of: Arc::default(),
                backlog: Arc::default(),
            })
        }
        #[cfg(not(feature = "kafka"))]
        SourceConfig::Kafka { .. } => unreachable!("a deployment without the feature names no topic"),
        SourceConfig::Table(table) => Box::new(TableSource::new(DatabaseTable {
            limits: deployment.commit,
            is_here: share.index == 0,
            ..(**table).clone()
        })),
    }
}
