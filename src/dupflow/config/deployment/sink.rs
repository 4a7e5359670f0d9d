//! The table `[sink]` of a deployment file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tables::{self, TablesConfig};
use super::values::{System, key_names, path, required_topic, system, topic_name};
use crate::config::settings::{FileSettings, without_effect};
use dupflow_connectors::kafka::OutputEnvelope;

/// Where results are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkConfig {
    /// A file, or standard output.
    Lines {
        /// The file; `None` = standard output.
        path: Option<PathBuf>,
    },
    /// A Kafka topic.
    Kafka {
        /// Its name.
        topic: String,
        /// The topic of marks.
        progress_topic: String,
        /// The transactional id: one run at a time writes under it.
        transactional_id: String,
        /// The transaction timeout.
        transaction: Duration,
        /// The format of the values.
        envelope: OutputEnvelope,
    },
    /// Tables of a database.
    Tables(TablesConfig),
}

const LINES_KEYS: &[&str] = &["sink.path", "sink.format"];
const OUTPUT_TOPIC_KEYS: &[&str] = &[
    "sink.topic",
    "sink.progress_topic",
    "sink.transactional_id",
    "sink.transaction_seconds",
    "sink.envelope",
    "dead_letter.topic",
];

/// Reads the table `[sink]`.
pub(super) fn sink(settings: &mut FileSettings) -> SinkConfig {
    let kind = system(settings, "sink.kind", "lines");
    if let System::Database(database) = kind {
        for keys in [OUTPUT_TOPIC_KEYS, &["sink.format"]] {
            without_effect(settings, "sink.kind", database.name(), keys);
        }
        return SinkConfig::Tables(tables::sink(settings, database));
    }
    if kind == System::Local {
        if settings.sound(&["sink.kind"]) {
            for keys in [OUTPUT_TOPIC_KEYS, &key_names(&tables::SINK_KEYS)] {
                without_effect(settings, "sink.kind", "lines", keys);
            }
        }
        let path = settings.read("sink.path", path).filter(|path| !path.as_os_str().is_empty());
        return SinkConfig::Lines { path: path.filter(|path| path != Path::new("-")) };
    }
    for keys in [LINES_KEYS, &key_names(&tables::SINK_KEYS)] {
        without_effect(settings, "sink.kind", "kafka", keys);
    }
    let topic = required_topic(settings, "sink.topic").unwrap_or_default();
    let progress_topic = settings.read("sink.progress_topic", topic_name);
    let transactional_id = settings
        .read("sink.transactional_id", |v| v.text().filter(|name| !name.is_empty()).map(str::to_owned));
    let envelopes = [("delta", OutputEnvelope::Delta), ("upsert", OutputEnvelope::Upsert)];
    SinkConfig::Kafka {
        progress_topic: progress_topic.unwrap_or_else(|| format!("{topic}-progress")),
        transactional_id: transactional_id.unwrap_or_else(|| format!("dupflow-{topic}")),
        transaction: Duration::from_secs(
            settings.read("sink.transaction_seconds", |v| v.integer(1..=900)).unwrap_or(60),
        ),
        envelope: settings.choose("sink.envelope", &envelopes, &[]).unwrap_or_default(),
        topic,
    }
}
