//! The tables of a deployment file for the source, the sink, dead letters, brokers, state and processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::described::DeploymentKey;
use super::problem::ProblemKind;
use super::raw::{FileSettings, without_effect};
use super::settled::{hidden, path, seconds, secret_file_value, time};
use super::tables::{self, Database, TablesConfig};
use super::value::ConfigValue;
use dupflow_connectors::broker::{Connection, Secret};
use dupflow_connectors::sink::Envelope;
use dupflow_connectors::source::{
    EpochLimits, EpochRule, FileFormat, Format, IdRule, Layout, Shape, Speed, Start, Table, WarcId, listed,
};

/// Where events are read from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// Feeds, other files and folders.
    Files {
        /// The inputs in reading order, at least one; `-` is standard input.
        inputs: Vec<PathBuf>,
        /// The file that lists the last of the inputs, if there is one.
        files_from: Option<PathBuf>,
        /// How records are mapped to documents.
        layout: Layout,
        /// Where the input is cut into epochs.
        epoch: EpochRule,
        /// How fast the input is played.
        speed: Speed,
        /// Whether the last input is read on as it grows.
        follow: bool,
    },
    /// A Kafka topic.
    Kafka {
        /// Its name.
        topic: String,
        /// Where reading begins if there is no mark.
        start: Start,
        /// How a record's value is mapped to a document.
        shape: Shape,
        /// How often the reader looks for new partitions.
        refresh: Duration,
    },
    /// A table of a database.
    Table(Box<Table>),
}

impl SourceConfig {
    /// The settings of the source that decide which documents a record makes, where they differ from the
    /// default. For files it always has `source.kind`; a topic is named in the mark.
    pub fn description(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut put = |key, value: String, usual: &str| {
            if value != usual {
                found.push((key, value));
            }
        };
        match self {
            Self::Files { layout, .. } => {
                put("source.kind", "files".to_owned(), "");
                put(
                    "source.format",
                    layout.format.map_or_else(String::new, |format| format.name().to_owned()),
                    "",
                );
                put("source.id_path", layout.id.clone(), "id");
                put("source.text_path", layout.text.clone(), "text");
                put("source.ts_path", layout.ts.clone(), "ts");
                let byte =
                    |byte: Option<u8>| byte.map_or_else(String::new, |byte| char::from(byte).to_string());
                put("csv.delimiter", byte(layout.csv_delimiter), "");
                put("csv.escape", byte(layout.csv_escape), "");
                let ids = match layout.ids {
                    // Both rules give a document the same id.
                    IdRule::Once | IdRule::Last => "",
                    IdRule::File => "file",
                };
                put("source.ids", ids.to_owned(), "");
                put("warc.id", if layout.warc_id == WarcId::Uri { "uri" } else { "" }.to_owned(), "");
            }
            Self::Kafka { shape, .. } => {
                let format = match shape.format {
                    Format::Auto | Format::Row => "",
                    Format::Text => "text",
                    Format::Json => "json",
                    Format::Debezium => "debezium",
                };
                put("source.format", format.to_owned(), "");
                put("source.text_path", shape.text.join("."), "text");
                put("source.ts_path", shape.ts.join("."), "ts");
                put("source.id_path", shape.id.as_ref().map_or_else(String::new, |id| id.join(".")), "");
            }
            // The settings of a table are column names, and each start compares its rows with the output.
            Self::Table(_) => {}
        }
        found
    }
}

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
        envelope: Envelope,
    },
    /// Tables of a database.
    Tables(TablesConfig),
}

/// Where bad records are kept.
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
    /// The shortest time between two commits of the state.
    pub commit_every: Duration,
}

/// How the processes of one run find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessConfig {
    /// The shared secret; `None`: any process that can connect takes part.
    pub secret: Option<Secret>,
    /// How long a process waits for the others at the start.
    pub connect: Duration,
    /// How long a process may be silent before it counts as lost.
    pub lost: Duration,
}

impl Default for ProcessConfig {
    fn default() -> Self {
        Self { secret: None, connect: Duration::from_secs(60), lost: Duration::from_secs(10) }
    }
}

/// Reports inputs that cannot be followed, and settings that make following useless.
fn note_followed(settings: &mut FileSettings, inputs: &[PathBuf], epoch: EpochRule) {
    if let Some(last) = inputs.last()
        && !last.is_file()
    {
        let what = format!("{last:?} is the last input, and no file: only a file can be followed");
        settings.problem(FOLLOW_KEY, ProblemKind::Contradiction(what));
    }
    if epoch == EpochRule::All && settings.sound(&["source.epoch"]) {
        let what = "an input that is followed does not end, and source.epoch = \"all\" waits for its end; as in \"every:1s\"";
        settings.problem(FOLLOW_KEY, ProblemKind::Contradiction(what.to_owned()));
    }
}

const FILES_KEYS: &[&str] = &[
    "source.inputs",
    "source.files_from",
    "source.epoch",
    "source.speed",
    "source.max_bad",
    "source.ids",
    "csv.delimiter",
    "csv.escape",
    "warc.id",
];
/// Also a key of tables, which are followed too.
const FOLLOW_KEY: &str = "source.follow";
const TOPIC_KEYS: &[&str] = &["source.topic", "source.start", "source.headers", "source.refresh_seconds"];
const RECORD_KEYS: &[&str] = &["source.format", "source.text_path", "source.id_path", "source.ts_path"];
const COMMIT_KEYS: &[&str] = &["commit.interval", "commit.records", "commit.bytes"];
const LINES_KEYS: &[&str] = &["sink.path", "sink.format"];
const OUTPUT_TOPIC_KEYS: &[&str] = &[
    "sink.topic",
    "sink.progress_topic",
    "sink.transactional_id",
    "sink.transaction_seconds",
    "sink.envelope",
    "dead_letter.topic",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Local,
    Kafka,
    Database(Database),
}

/// The kind that `key` chooses; reports a kind that this build lacks.
fn kind(settings: &mut FileSettings, key: &'static str, here: &'static str) -> System {
    let kinds = [
        (here, System::Local),
        ("kafka", System::Kafka),
        ("sqlite", System::Database(Database::Sqlite)),
        ("postgres", System::Database(Database::Postgres)),
    ];
    let kind = settings.choose(key, &kinds, &[]).unwrap_or(System::Local);
    let missing = match kind {
        System::Kafka if cfg!(not(feature = "kafka")) => {
            Some("this dupflow was built without Kafka: build it with the feature `kafka`".to_owned())
        }
        System::Database(database) => database.missing(),
        System::Local | System::Kafka => None,
    };
    if let Some(what) = missing {
        settings.problem(key, ProblemKind::Contradiction(what));
    }
    kind
}

fn names_of<const N: usize>(keys: &[DeploymentKey; N]) -> [&'static str; N] {
    keys.map(|key| key.name)
}

/// Reads the tables `[source]`, `[csv]` and `[warc]`.
pub(super) fn source(settings: &mut FileSettings) -> SourceConfig {
    let kind = kind(settings, "source.kind", "files");
    if let System::Database(database) = kind {
        for keys in [FILES_KEYS, TOPIC_KEYS, RECORD_KEYS] {
            without_effect(settings, "source.kind", database.name(), keys);
        }
        return SourceConfig::Table(Box::new(tables::source(settings, database)));
    }
    if kind == System::Local {
        if settings.sound(&["source.kind"]) {
            let mut of_tables = names_of(&tables::SOURCE_KEYS).to_vec();
            of_tables.retain(|key| *key != FOLLOW_KEY);
            for keys in [TOPIC_KEYS, COMMIT_KEYS, &of_tables] {
                without_effect(settings, "source.kind", "files", keys);
            }
        }
        let mut inputs = settings.read("source.inputs", |v| v.list(path)).unwrap_or_default();
        let files_from = settings.read("source.files_from", path).filter(|path| !path.as_os_str().is_empty());
        if let Some(list) = &files_from {
            match std::fs::read_to_string(list) {
                Ok(list) => inputs.extend(listed(&list)),
                Err(error) => {
                    let what = format!("cannot read {list:?}: {error}");
                    settings.problem("source.files_from", ProblemKind::Contradiction(what));
                }
            }
        }
        if inputs.is_empty() && settings.sound(&["source.kind", "source.inputs", "source.files_from"]) {
            settings.missing("source.inputs");
        }
        let epoch = settings.read("source.epoch", |v| v.text()?.parse().ok()).unwrap_or(EpochRule::LIVE);
        let follow = settings.read(FOLLOW_KEY, ConfigValue::boolean).unwrap_or_default();
        if follow {
            note_followed(settings, &inputs, epoch);
        }
        return SourceConfig::Files {
            inputs,
            files_from,
            layout: layout(settings),
            epoch,
            follow,
            speed: settings.read("source.speed", |v| v.text()?.parse().ok()).unwrap_or_default(),
        };
    }
    for keys in [FILES_KEYS, &names_of(&tables::SOURCE_KEYS)] {
        without_effect(settings, "source.kind", "kafka", keys);
    }
    let formats = [
        ("auto", Format::Auto),
        ("text", Format::Text),
        ("json", Format::Json),
        ("debezium", Format::Debezium),
    ];
    let format = settings.choose("source.format", &formats, &[]).unwrap_or(Format::Auto);
    if format == Format::Text && settings.sound(&["source.format"]) {
        without_effect(
            settings,
            "source.format",
            "text",
            &["source.text_path", "source.id_path", "source.ts_path"],
        );
    }
    let text = settings.read("source.text_path", |v| names(v.text()?));
    let id = settings.read("source.id_path", |v| match v.text()? {
        "" => Some(None),
        path => names(path).map(Some),
    });
    let name = |value: &ConfigValue| value.text().filter(|name| !name.is_empty()).map(str::to_owned);
    let shape = Shape {
        format,
        text: text.unwrap_or_else(|| vec!["text".to_owned()]),
        ts: settings.read("source.ts_path", |v| names(v.text()?)).unwrap_or_else(|| vec!["ts".to_owned()]),
        id: id.flatten(),
        headers: settings.read("source.headers", |v| v.list(name)).unwrap_or_default(),
        // Set later, from the retention of the pipeline.
        needs_time: false,
    };
    SourceConfig::Kafka {
        topic: topic(settings, "source.topic").unwrap_or_default(),
        start: settings.read("source.start", |v| v.text()?.parse().ok()).unwrap_or_default(),
        shape,
        refresh: seconds(settings, "source.refresh_seconds", 1, 30),
    }
}

/// How records of files are mapped to documents.
fn layout(settings: &mut FileSettings) -> Layout {
    let default = Layout::default();
    let of_files = [
        ("auto", None),
        ("jsonl", Some(FileFormat::Jsonl)),
        ("csv", Some(FileFormat::Csv)),
        ("tsv", Some(FileFormat::Tsv)),
        ("warc", Some(FileFormat::Warc)),
        ("parquet", Some(FileFormat::Parquet)),
        ("text", Some(FileFormat::Text)),
        ("html", Some(FileFormat::Html)),
    ];
    let name = |value: &ConfigValue| match value.text()? {
        "" => Some(None),
        path => names(path).map(|names| Some(names.join("."))),
    };
    Layout {
        format: settings.choose("source.format", &of_files, &[]).flatten(),
        id: settings.read("source.id_path", name).flatten().unwrap_or(default.id),
        text: settings.read("source.text_path", name).flatten().unwrap_or(default.text),
        ts: settings.read("source.ts_path", name).flatten().unwrap_or(default.ts),
        csv_delimiter: settings.read("csv.delimiter", separator).flatten(),
        csv_escape: settings.read("csv.escape", separator).flatten(),
        warc_id: settings
            .choose("warc.id", &[("record", WarcId::Record), ("uri", WarcId::Uri)], &[])
            .unwrap_or_default(),
        ids: ids(settings),
    }
}

/// A column separator or an escape character: one byte, or `None` for an empty text.
fn separator(value: &ConfigValue) -> Option<Option<u8>> {
    match value.text()? {
        "" => Some(None),
        typed => Layout::separator(typed).ok().map(Some),
    }
}

/// What an id that occurs in several files means.
fn ids(settings: &mut FileSettings) -> IdRule {
    let rules = [("once", IdRule::Once), ("file", IdRule::File), ("last", IdRule::Last)];
    let ids = settings.choose("source.ids", &rules, &[]).unwrap_or_default();
    if ids == IdRule::File {
        without_effect(settings, "source.ids", "file", &["source.id_path"]);
    }
    ids
}

/// The greatest share of bad records, from 0 to 1, inclusive; `None` for any.
pub(super) fn max_bad(settings: &mut FileSettings) -> Option<f64> {
    let share = |value: &ConfigValue| match value.text() {
        Some("") => Some(None),
        _ => value.number().filter(|share| (0.0..=1.0).contains(share)).map(Some),
    };
    settings.read("source.max_bad", share).flatten()
}

/// Reads the table `[sink]`.
pub(super) fn sink(settings: &mut FileSettings) -> SinkConfig {
    let kind = kind(settings, "sink.kind", "lines");
    if let System::Database(database) = kind {
        for keys in [OUTPUT_TOPIC_KEYS, &["sink.format"]] {
            without_effect(settings, "sink.kind", database.name(), keys);
        }
        return SinkConfig::Tables(tables::sink(settings, database));
    }
    if kind == System::Local {
        if settings.sound(&["sink.kind"]) {
            for keys in [OUTPUT_TOPIC_KEYS, &names_of(&tables::SINK_KEYS)] {
                without_effect(settings, "sink.kind", "lines", keys);
            }
        }
        let path = settings.read("sink.path", path).filter(|path| !path.as_os_str().is_empty());
        return SinkConfig::Lines { path: path.filter(|path| path != Path::new("-")) };
    }
    for keys in [LINES_KEYS, &names_of(&tables::SINK_KEYS)] {
        without_effect(settings, "sink.kind", "kafka", keys);
    }
    let topic = topic(settings, "sink.topic").unwrap_or_default();
    let progress_topic = settings.read("sink.progress_topic", topic_name);
    let transactional_id = settings
        .read("sink.transactional_id", |v| v.text().filter(|name| !name.is_empty()).map(str::to_owned));
    let envelopes = [("delta", Envelope::Delta), ("upsert", Envelope::Upsert)];
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

/// Reads the table `[commit]`: when the epochs of a topic or table end.
pub(super) fn commit(settings: &mut FileSettings, source: &SourceConfig) -> EpochLimits {
    if matches!(source, SourceConfig::Files { .. }) {
        return EpochLimits::default();
    }
    let most = 1_u64 << 53;
    let bound = Duration::from_secs(60);
    EpochLimits {
        interval: Some(time(settings, "commit.interval", bound).unwrap_or(Duration::from_millis(100))),
        records: Some(settings.read("commit.records", |v| v.integer(1..=most)).unwrap_or(10_000)),
        bytes: Some(settings.read("commit.bytes", |v| v.integer(1..=most)).unwrap_or(16 << 20)),
    }
}

/// Reads the table `[dead_letter]`: where bad records are kept.
pub(super) fn dead_letter(settings: &mut FileSettings, sink: &SinkConfig) -> Option<DeadLetterConfig> {
    let path = settings.read("dead_letter.path", path).filter(|path| !path.as_os_str().is_empty());
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

/// Reads the table `[kafka]`: how brokers are reached.
pub(super) fn connection(
    settings: &mut FileSettings,
    source: &SourceConfig,
    sink: &SinkConfig,
) -> Connection {
    let default = Connection::default();
    let brokers = settings.read("kafka.brokers", |v| {
        let listed = v.list(|one| one.text().map(str::to_owned)).map(|all| all.join(","));
        listed.or_else(|| v.text().map(str::to_owned)).filter(|brokers| !brokers.trim().is_empty())
    });
    let is_used = matches!(source, SourceConfig::Kafka { .. }) || matches!(sink, SinkConfig::Kafka { .. });
    if is_used && brokers.is_none() && settings.sound(&["kafka.brokers"]) {
        settings.missing("kafka.brokers");
    }
    let mut connection = Connection {
        brokers: brokers.unwrap_or(default.brokers),
        patience: seconds(settings, "kafka.connect_seconds", 1, 30),
        settings: default.settings,
    };
    for name in settings.names("kafka.settings") {
        let key = format!("kafka.settings.{name}");
        let (name, secret) = match name.strip_suffix("_file") {
            Some(name) => (name.to_owned(), secret_file_value(settings, &key)),
            None => (name, hidden(settings, &key)),
        };
        let Some(secret) = secret else { continue };
        if connection.settings.insert(name.clone(), secret).is_some() {
            let what = format!("kafka.settings.{name} and kafka.settings.{name}_file are both set");
            settings.problem(&key, ProblemKind::Contradiction(what));
        }
    }
    if let (SourceConfig::Kafka { topic: input, .. }, SinkConfig::Kafka { topic, progress_topic, .. }) =
        (source, sink)
        && !input.is_empty()
        && (input == topic || input == progress_topic)
    {
        let what = "the output goes to the topic that is read".to_owned();
        settings.problem(
            if input == topic { "sink.topic" } else { "sink.progress_topic" },
            ProblemKind::Contradiction(what),
        );
    }
    if let SinkConfig::Kafka { topic, progress_topic, .. } = sink
        && !topic.is_empty()
        && topic == progress_topic
    {
        let what = "marks need a topic of their own".to_owned();
        settings.problem("sink.progress_topic", ProblemKind::Contradiction(what));
    }
    if is_used {
        for (name, what) in connection.problems() {
            settings.problem(&format!("kafka.settings.{name}"), ProblemKind::Contradiction(what));
        }
    }
    connection
}

/// Reads the table `[state]`: where documents are kept.
pub(super) fn state(settings: &mut FileSettings) -> Option<StateConfig> {
    let location = settings.read("state.path", |v| v.text().map(str::to_owned));
    let every = time(settings, "state.commit_every", Duration::from_secs(3600));
    let location = location.filter(|location| !location.is_empty())?;
    Some(StateConfig { location, commit_every: every.unwrap_or(Duration::from_secs(5)) })
}

/// Reads the table `[processes]`: how processes find each other.
pub(super) fn processes(settings: &mut FileSettings) -> ProcessConfig {
    let default = ProcessConfig::default();
    let file = settings.read("processes.secret_file", path).filter(|path| !path.as_os_str().is_empty());
    let typed = hidden(settings, "processes.secret").filter(|secret| !secret.reveal().is_empty());
    if file.is_some() && typed.is_some() {
        let what = "processes.secret and processes.secret_file are both set";
        settings.problem("processes.secret_file", ProblemKind::Contradiction(what.to_owned()));
    }
    ProcessConfig {
        secret: typed.or_else(|| secret_file_value(settings, "processes.secret_file")),
        connect: seconds(settings, "processes.connect_seconds", 1, default.connect.as_secs()),
        lost: seconds(settings, "processes.lost_seconds", 1, default.lost.as_secs()),
    }
}

/// The names of a dotted path; `None` if one of them is empty.
fn names(path: &str) -> Option<Vec<String>> {
    path.split('.').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty())).collect()
}

/// The name of a topic; reports a problem if it is not set.
fn topic(settings: &mut FileSettings, key: &'static str) -> Option<String> {
    let kind = if key.starts_with("source") { "source.kind" } else { "sink.kind" };
    let name = settings.read(key, topic_name);
    if name.is_none() && settings.sound(&[kind, key]) {
        settings.missing(key);
    }
    name
}

/// A valid topic name: 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and neither `.` nor `..`.
fn topic_name(value: &ConfigValue) -> Option<String> {
    let name = value.text()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_name = (1..=249).contains(&name.len()) && name.bytes().all(fits) && !matches!(name, "." | "..");
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
