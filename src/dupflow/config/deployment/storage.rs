//! The tables `[dead_letter]` and `[state]` of a deployment file: where bad records are written, and where
//! documents are stored for a restart.

use std::path::PathBuf;
use std::time::Duration;

use super::monitor::MonitorConfig;
use super::sink::SinkConfig;
use super::values::{path, time, topic_name};
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_core::doc::retention;
use dupflow_core::run::missing_feature;

/// The most that `state.commit_every` may be, inclusive.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// The default of `state.commit_every`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// Where bad records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterConfig {
    /// In a file.
    File(PathBuf),
    /// In a topic, in the transaction of their epoch.
    Topic(String),
}

/// Where documents are kept for a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// A path or a URL.
    pub location: String,
    /// The shortest time between two commits of the state: at most an hour, default 5 s.
    pub commit_every: Duration,
    /// How long the past of pairs and clusters is kept; `None` = in memory only.
    pub history: Option<Duration>,
}

/// Reads the table `[dead_letter]`: where bad records are kept.
pub(super) fn dead_letter(settings: &mut FileSettings, sink: &SinkConfig) -> Option<DeadLetterConfig> {
    let path = settings.read("dead_letter.path", path).filter(|path| !path.as_os_str().is_empty());
    // Empty text is a valid value, and means that no topic is set.
    let topic = settings.read("dead_letter.topic", |v| match v.text()? {
        "" => Some(None),
        _ => topic_name(v).map(Some),
    });
    match (path, topic.flatten()) {
        (Some(_), Some(_)) => {
            let what = "bad records are kept in one place: dead_letter.path is set too";
            settings.problem("dead_letter.topic", ProblemKind::Contradiction(what.to_owned()));
            None
        }
        (None, Some(topic)) => {
            if let SinkConfig::Kafka { topic: output, progress_topic, .. } = sink
                && (topic == *output || topic == *progress_topic)
            {
                let what = "bad records need a topic of their own";
                settings.problem("dead_letter.topic", ProblemKind::Contradiction(what.to_owned()));
            }
            Some(DeadLetterConfig::Topic(topic))
        }
        (path, None) => path.map(DeadLetterConfig::File),
    }
}

/// Reads the table `[state]`: where documents are kept.
pub(super) fn state(settings: &mut FileSettings) -> Option<StateConfig> {
    let location = settings.read("state.path", |v| v.text().map(str::to_owned));
    let every = time(settings, "state.commit_every", MAX_INTERVAL);
    let history = settings.read("state.history", |v| match v.text()? {
        "" => Some(None),
        age => retention::age(age).map(Some),
    });
    let history = history.flatten();
    let Some(location) = location.filter(|location| !location.is_empty()) else {
        if history.is_some() {
            let what = "the history is stored beside the documents: it needs state.path";
            settings.problem("state.history", ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    };
    let is_remote = location.contains("://") && !location.starts_with("file://");
    if is_remote && cfg!(not(feature = "object-store")) {
        settings.problem(
            "state.path",
            ProblemKind::Contradiction(missing_feature("object stores", "object-store")),
        );
    }
    Some(StateConfig { location, commit_every: every.unwrap_or(DEFAULT_INTERVAL), history })
}

/// Reports a history of a run without a monitor, or of one that holds no pairs: only it records the history.
pub(super) fn check_history(
    settings: &mut FileSettings,
    state: Option<&StateConfig>,
    monitor: Option<&MonitorConfig>,
) {
    if state.is_none_or(|state| state.history.is_none()) {
        return;
    }
    let what = match monitor {
        None => "the history is that of the monitor: it needs monitor.listen",
        Some(monitor) if !monitor.pairs => "the history is that of pairs in memory: it needs monitor.pairs",
        Some(_) => return,
    };
    if settings.sound(&["monitor.listen", "monitor.pairs"]) {
        settings.problem("state.history", ProblemKind::Contradiction(what.to_owned()));
    }
}
