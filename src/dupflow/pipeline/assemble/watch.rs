//! The watch list of a deployment, and where its notices go.

use std::sync::Arc;
use std::time::Duration;

use super::error::AssembleError;
use super::mode::Mode;
use crate::config::{Deployment, Plan, WatchConfig};
use crate::pipeline::continuity::WatchParts;
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::{Files, Input};
use dupflow_connectors::intake::{EpochRule, Source};
use dupflow_connectors::tables::TableSource;
#[cfg(feature = "webhook")]
use dupflow_connectors::watch::hook::HookSettings;
use dupflow_connectors::watch::{
    GivenList, NoticeBoard, NoticeFile, OpenGiven, WatchJournal, WatchList, WatchedRun,
};
use dupflow_core::time::Clock;

/// Reads the list, and opens the files of its notices.
pub(super) fn parts(
    plan: &Plan,
    deployment: &Deployment,
    watch: &WatchConfig,
    mode: &Mode,
    clock: &Arc<dyn Clock>,
) -> Result<WatchParts, AssembleError> {
    let wrong = |key, what: String| AssembleError::Watch { key, what };
    let journal = watch.path.as_ref().map(|path| WatchJournal::open(path)).transpose();
    let journal = journal.map_err(|error| wrong("watch.path", error.to_string()))?;
    let board = Arc::new(NoticeBoard::new(Arc::clone(clock)));
    let is_new = matches!(mode, Mode::Replay);
    let notices = match &watch.notices.path {
        Some(path) => NoticeFile::open(path, is_new, Arc::clone(&board)),
        None => Ok(NoticeFile::without_file(Arc::clone(&board))),
    };
    let notices = notices.map_err(|error| wrong("notices.path", error.to_string()))?;
    let list = WatchList::new(journal, &plan.scheme.text, board);
    let given = given(plan, deployment, watch);
    if !given.is_empty() {
        let read = given.read();
        if read.is_ok() {
            given.log(&read);
        }
        let watches = read.map_err(|what| wrong("watch", what))?.watches;
        tracing::info!(watches = watches.len(), "the inputs of the watch list are read");
        #[cfg(feature = "kafka")]
        watch.topic.iter().for_each(|topic| warn_of_expiry(deployment, topic));
        // The run has not begun, so it has not ended either.
        list.give(watches).unwrap_or_default();
    }
    let again = Some(given).filter(|given| !given.is_empty() && given.every < Duration::MAX);
    Ok(WatchParts {
        run: WatchedRun { list: Arc::new(list), again },
        notices,
        #[cfg(feature = "webhook")]
        hook: watch.hook.as_ref().zip(watch.notices.path.as_ref()).map(|(hook, queue)| HookSettings {
            url: hook.url.clone(),
            secret: hook.secret.clone(),
            timeout: hook.timeout,
            shutdown: deployment.shutdown,
            notices: queue.clone(),
            cursor: hook.cursor.clone(),
            dead_letter: hook.dead_letter.clone(),
        }),
    })
}

/// The inputs of the list.
fn given(plan: &Plan, deployment: &Deployment, watch: &WatchConfig) -> GivenList {
    let fields = plan.scheme.text.columns();
    let mut inputs: Vec<OpenGiven> = Vec::new();
    if !watch.inputs.is_empty() {
        let (paths, fields) = (watch.inputs.clone(), fields.clone());
        inputs.push(Box::new(move || {
            let files = Input::resolve(&paths, InputLayout::default()).map_err(|error| error.to_string())?;
            Ok(Box::new(Files::new(files, EpochRule::All, fields.clone())) as Box<dyn Source>)
        }));
    }
    if let Some(table) = watch.table.clone() {
        inputs.push(Box::new(move || Ok(Box::new(TableSource::new((*table).clone())) as Box<dyn Source>)));
    }
    #[cfg(feature = "kafka")]
    inputs.extend(watch.topic.clone().map(|topic| topic_of(deployment, topic)));
    #[cfg(not(feature = "kafka"))]
    let _ = deployment;
    GivenList::new(inputs, fields, watch.refresh)
}

/// Warns of a topic whose watches end by themselves.
#[cfg(feature = "kafka")]
fn warn_of_expiry(deployment: &Deployment, topic: &str) {
    use dupflow_connectors::kafka::broker::Admin;
    use dupflow_connectors::kafka::watches_expire;

    match Admin::new(&deployment.kafka).and_then(|admin| admin.expiry(topic)) {
        Ok(None) => {}
        Ok(Some(limits)) => tracing::warn!("{}", watches_expire(topic, &limits)),
        Err(error) => tracing::warn!(%error, topic, "whether its watches expire is not known"),
    }
}

/// Opens a topic of watches at its first record.
#[cfg(feature = "kafka")]
fn topic_of(deployment: &Deployment, topic: String) -> OpenGiven {
    use dupflow_connectors::formats::RecordShape;
    use dupflow_connectors::intake::EpochLimits;
    use dupflow_connectors::kafka::{Kafka, Start};

    let connection = deployment.kafka.clone();
    let refresh = deployment.source.topic_refresh();
    Box::new(move || {
        Ok(Box::new(Kafka {
            connection: connection.clone(),
            topic: topic.clone(),
            start: Start::Earliest,
            share: (0, 1),
            shape: Arc::new(RecordShape::default()),
            limits: EpochLimits::default(),
            refresh,
            as_of: Arc::default(),
            backlog: Arc::default(),
        }))
    })
}
