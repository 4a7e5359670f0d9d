//! The table `[sink]` of a deployment file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::deployment::source::SourceConfig;
use crate::config::deployment::tables::{self, TablesConfig};
use crate::config::deployment::values::{System, key_names, path, required_topic, system, topic_name};
use crate::config::settings::{FileSettings, ProblemKind, without_effect};
use dupflow_connectors::kafka::OutputEnvelope;
use dupflow_connectors::tables::TableOutput;
use dupflow_connectors::tables::database::Address;

/// The longest name on a PostgreSQL server, in bytes, inclusive. It cuts a longer one.
const MOST_NAME: usize = 63;

/// Where results are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkConfig {
    /// A file, or standard output.
    Lines {
        /// The file; `None` = standard output.
        path: Option<PathBuf>,
        /// The file of its mark; `None` = beside it.
        mark: Option<PathBuf>,
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
];

impl SinkConfig {
    /// The name of its kind.
    fn kind(&self) -> &'static str {
        match self {
            Self::Lines { .. } => "lines",
            Self::Kafka { .. } => "kafka",
            Self::Tables(TablesConfig { address: Address::Sqlite(_), .. }) => "sqlite",
            Self::Tables(_) => "postgres",
        }
    }
}

impl fmt::Display for SinkConfig {
    /// The place, without a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines { path: None, .. } => f.write_str("standard output"),
            Self::Lines { path: Some(path), .. } => write!(f, "{path:?}"),
            Self::Kafka { topic, .. } => write!(f, "topic \"{topic}\""),
            Self::Tables(tables) => write!(f, "tables of {}", tables.address.name()),
        }
    }
}

/// Reads the table `[sink]` as that of the first output.
pub(super) fn sink(settings: &mut FileSettings) -> SinkConfig {
    let sink = place(settings);
    if !matches!(sink, SinkConfig::Kafka { .. }) && settings.sound(&["sink.kind"]) {
        without_effect(settings, "sink.kind", sink.kind(), &["dead_letter.topic"]);
    }
    sink
}

/// Reads the table `[sink]`.
pub(super) fn place(settings: &mut FileSettings) -> SinkConfig {
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
        return SinkConfig::Lines { path: path.filter(|path| path != Path::new("-")), mark: None };
    }
    for keys in [LINES_KEYS, &key_names(&tables::SINK_KEYS)] {
        without_effect(settings, "sink.kind", "kafka", keys);
    }
    let topic = required_topic(settings, "sink.topic").unwrap_or_default();
    let progress_topic = settings.read("sink.progress_topic", topic_name);
    let transactional_id = settings
        .read("sink.transactional_id", |v| v.text().filter(|name| !name.is_empty()).map(str::to_owned));
    let envelopes = OutputEnvelope::ALL.map(|envelope| (envelope.name(), envelope));
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

/// Reports topics of the output that are read, or that hold its marks too.
pub(super) fn check_topics(settings: &mut FileSettings, sink: &SinkConfig, source: &SourceConfig) {
    let SinkConfig::Kafka { topic, progress_topic, .. } = sink else { return };
    if let SourceConfig::Kafka { topic: input, .. } = source
        && !input.is_empty()
        && (input == topic || input == progress_topic)
    {
        let what = "the output goes to the topic that is read".to_owned();
        let key = if input == topic { "sink.topic" } else { "sink.progress_topic" };
        settings.problem(key, ProblemKind::Contradiction(what));
    }
    if !topic.is_empty() && topic == progress_topic {
        let what = "marks need a topic of their own".to_owned();
        settings.problem("sink.progress_topic", ProblemKind::Contradiction(what));
    }
}

/// Reports a topic or a table of rows beside the deltas, each by its key and whether it is named, that this
/// sink does not have.
pub(in crate::config::deployment) fn check_side(
    settings: &mut FileSettings,
    sink: &SinkConfig,
    (topic, has_topic): (&str, bool),
    (table, has_table): (&str, bool),
) {
    let mut refuse = |key: &str, what: &str, kinds: &str| {
        let what =
            format!("{what} is written in the transaction of the sink, which has to be sink.kind = {kinds}");
        settings.problem(key, ProblemKind::Contradiction(what));
    };
    if has_topic && !matches!(sink, SinkConfig::Kafka { .. }) {
        refuse(topic, "a topic", "\"kafka\"");
    }
    if has_table && !matches!(sink, SinkConfig::Tables(_)) {
        refuse(table, "a table", "\"sqlite\" or \"postgres\"");
    }
}

/// Reports topics and tables of rows beside the deltas that hold something else, too. Views may share theirs
/// with each other; notices have their own. `names` are all of them, each with its key; `topics` are those
/// that the deployment names elsewhere.
pub(in crate::config::deployment) fn check_side_names(
    settings: &mut FileSettings,
    sink: &SinkConfig,
    names: &[(String, &str)],
    topics: &[(String, &str)],
) {
    let mut taken = Vec::new();
    if let SinkConfig::Kafka { topic, progress_topic, .. } = sink {
        let own = [("sink.topic", topic), ("sink.progress_topic", progress_topic)];
        taken.extend(own.map(|(key, name)| (key.to_owned(), name.as_str())));
        taken.extend_from_slice(topics);
    }
    for (key, name) in names {
        let of_views = names.iter().filter(|(other, _)| key.starts_with("notices.") && other != key);
        let other = taken.iter().chain(of_views).find(|(_, other)| other == name);
        let what = match (other, sink) {
            (Some((other, _)), _) => format!("\"{name}\" is that of {other}: these rows need their own"),
            (None, _) if key.ends_with(".table") && TableOutput::NAMES.contains(name) => {
                format!("\"{name}\" is a name of the sink itself")
            }
            (None, SinkConfig::Tables(TablesConfig { address: Address::Sqlite(_), prefix, .. }))
                if format!("{prefix}{name}").starts_with("sqlite_") =>
            {
                "names that begin with \"sqlite_\" are those of SQLite itself".to_owned()
            }
            (None, SinkConfig::Tables(TablesConfig { address: Address::Postgres(_), prefix, .. }))
                if prefix.len() + name.len() > MOST_NAME =>
            {
                let length = prefix.len() + name.len();
                format!(
                    "it has {length} bytes with sink.prefix, and a name on the server has {MOST_NAME} at most"
                )
            }
            _ => continue,
        };
        settings.problem(key, ProblemKind::Contradiction(what));
    }
}
