//! The door for documents that clients post, and what answers them.

use super::error::AssembleError;
use super::mode::Mode;
use super::sink::SinkParts;
use super::source::columns;
use crate::pipeline::outputs::OtherOutput;
use dupflow_connectors::posted::{Door, DoorSettings};
use dupflow_connectors::sinks::answers::AnswerSettings;

/// Opens the door of a run, if it has one and this process writes its output.
pub(super) fn door(of: SinkParts<'_>, mode: &Mode, writes: bool) -> Result<Option<Door>, AssembleError> {
    let SinkParts { plan, deployment, stages, .. } = of;
    let is_open = writes && matches!(mode, Mode::Run { .. }) && deployment.monitor.is_some();
    let Some((path, waiting)) = deployment.posted().filter(|_| is_open) else { return Ok(None) };
    let opened = Door::open(DoorSettings {
        path,
        layout: deployment.layout(),
        columns: columns(plan, &stages.fields),
        fields: stages.fields.clone(),
        waiting,
    });
    opened.map(Some).map_err(|source| AssembleError::Journal { path: path.to_owned(), source })
}

/// What answers clients, as an output that is written after all others.
pub(super) fn output(door: &Door, of: SinkParts<'_>) -> OtherOutput {
    OtherOutput::new("source".to_owned(), Box::new(door.sink(of.clusters())), String::new(), None, None)
}
