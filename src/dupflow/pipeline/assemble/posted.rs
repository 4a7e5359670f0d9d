//! The receiver of documents that clients post, and what answers them.

use std::sync::Arc;

use super::error::AssembleError;
use super::mode::Mode;
use super::sink::SinkParts;
use super::source::columns;
use crate::pipeline::outputs::OtherOutput;
use dupflow_connectors::posted::{PostReceiver, PostReceiverSettings};
use dupflow_connectors::sinks::answers::AnswerSettings;
use dupflow_run::metrics::Metrics;

/// Opens the receiver of a run, if it has one and this process writes its output.
pub(super) fn receiver(
    of: SinkParts<'_>,
    mode: &Mode,
    writes: bool,
) -> Result<Option<PostReceiver>, AssembleError> {
    let SinkParts { plan, deployment, stages, .. } = of;
    let is_open = writes && matches!(mode, Mode::Run { .. }) && deployment.monitor.is_some();
    let Some((path, waiting)) = deployment.posted().filter(|_| is_open) else { return Ok(None) };
    let opened = PostReceiver::open(PostReceiverSettings {
        path,
        layout: deployment.layout(),
        columns: columns(plan, &stages.fields),
        fields: stages.fields.clone(),
        waiting,
        // What is kept by age is renewed by each arrival.
        keeps_times: plan.retention.max_age.is_none() && plan.retention.max_documents.is_none(),
        clusters: of.clusters(),
        // An output of decisions counts them itself.
        metrics: if deployment.answers().any(|answer| answer.is_of_decisions()) {
            Arc::new(Metrics::new(0))
        } else {
            Arc::clone(&of.counted.decisions)
        },
    });
    opened.map(Some).map_err(|source| AssembleError::Journal { path: path.to_owned(), source })
}

/// What answers clients, as an output that is written beside all others.
pub(super) fn output(receiver: &PostReceiver) -> OtherOutput {
    OtherOutput::new("source".to_owned(), Box::new(receiver.sink()), String::new(), None, None).early()
}
