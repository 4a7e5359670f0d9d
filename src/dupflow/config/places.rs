//! The tables of a deployment file: where events come from, where results go, and what lies between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::described::Key;
use super::problem::What;
use super::raw::{Settings, without_effect};
use super::settled::{hidden, hidden_file, path, seconds, time};
use super::tables::{self, Database, TablePlace};
use super::value::Value;
use dupflow_connectors::credential::Credential;
use dupflow_connectors::formats::{FileFormat, IdRule, InputLayout, RecordShape, ValueFormat, WarcId};
use dupflow_connectors::inputs::listed;
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::OutputEnvelope;
use dupflow_connectors::kafka::Start;
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::tables::DatabaseTable;

/// Where events come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourcePlace {
    /// Recorded feeds and folders.
    Files {
        /// What is read, in this order; `-` is standard input. At least one.
        inputs: Vec<PathBuf>,
        /// The list that names the last of them, if there is one.
        files_from: Option<PathBuf>,
        /// How records are to be understood.
        layout: InputLayout,
        /// Where the input is cut.
        epoch: EpochRule,
        /// How fast it is played.
        speed: Speed,
        /// Whether the last of them is read on as it grows.
        follow: bool,
    },
    /// A topic.
    Kafka {
        /// Its name.
        topic: String,
        /// Where reading begins if nothing is remembered.
        start: Start,
        /// In which shape its values hold documents.
        shape: RecordShape,
        /// How often new partitions are looked for.
        refresh: Duration,
    },
    /// A table of a database.
    Table(Box<DatabaseTable>),
}

impl SourcePlace {
    /// What of it decides which documents a record makes, where that is not the default; and that files are
    /// read, as a topic names itself in the mark.
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
                    // Both name documents alike.
                    IdRule::Once | IdRule::Last => "",
                    IdRule::File => "file",
                };
                put("source.ids", ids.to_owned(), "");
                put("warc.id", if layout.warc_id == WarcId::Uri { "uri" } else { "" }.to_owned(), "");
            }
            Self::Kafka { shape, .. } => {
                let format = match shape.format {
                    ValueFormat::Auto | ValueFormat::Row => "",
                    ValueFormat::Text => "text",
                    ValueFormat::Json => "json",
                    ValueFormat::Debezium => "debezium",
                };
                put("source.format", format.to_owned(), "");
                put("source.text_path", shape.text.join("."), "text");
                put("source.ts_path", shape.ts.join("."), "ts");
                put("source.id_path", shape.id.as_ref().map_or_else(String::new, |id| id.join(".")), "");
            }
            // A table's names are settings of its own, and its rows are compared with the output at each
            // start.
            Self::Table(_) => {}
        }
        found
    }
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkPlace {
    /// JSON Lines.
    Lines {
        /// The file; `None` = standard output.
        path: Option<PathBuf>,
    },
    /// A topic.
    Kafka {
        /// Its name.
        topic: String,
        /// The topic of marks.
        progress_topic: String,
        /// The name under which one run at a time writes.
        transactional_id: String,
        /// How long a transaction may take.
        transaction: Duration,
        /// What values are.
        envelope: OutputEnvelope,
    },
    /// Tables of a database.
    Tables(TablePlace),
}

/// Where bad records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterPlace {
    /// In a file.
    File(PathBuf),
    /// In a topic, in the transaction of their epoch.
    Topic(String),
}

/// Where documents are kept for a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePlace {
    /// A path or an address.
    pub location: String,
    /// How often at most what has changed is written there.
    pub commit_every: Duration,
}

/// How processes that run together find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// What each must know; `None`: whoever can connect takes part.
    pub secret: Option<Credential>,
    /// How long one waits for the others at the beginning.
    pub connect: Duration,
    /// How long one may be silent until it counts as lost.
    pub lost: Duration,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self { secret: None, connect: Duration::from_secs(60), lost: Duration::from_secs(10) }
    }
}

/// Notes what cannot be followed, or would be for nothing.
fn note_followed(settings: &mut Settings, inputs: &[PathBuf], epoch: EpochRule) {
    if let Some(last) = inputs.last()
        && !last.is_file()
    {
        let what = format!("{last:?} is the last input, and no file: only a file can be followed");
        settings.problem(FOLLOW_KEY, What::Contradiction(what));
    }
    if epoch == EpochRule::All && settings.sound(&["source.epoch"]) {
        let what = "an input that is followed does not end, and source.epoch = \"all\" waits for its end; as in \"every:1s\"";
        settings.problem(FOLLOW_KEY, What::Contradiction(what.to_owned()));
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
/// A table is followed too.
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
enum Kind {
    Here,
    Kafka,
    Tables(Database),
}

/// Which kind a place is of; a kind that was not built in is noted.
fn kind(settings: &mut Settings, key: &'static str, here: &'static str) -> Kind {
    let kinds = [
        (here, Kind::Here),
        ("kafka", Kind::Kafka),
        ("sqlite", Kind::Tables(Database::Sqlite)),
        ("postgres", Kind::Tables(Database::Postgres)),
    ];
    let kind = settings.choose(key, &kinds, &[]).unwrap_or(Kind::Here);
    let missing = match kind {
        Kind::Kafka if cfg!(not(feature = "kafka")) => {
            Some("this dupflow was built without Kafka: build it with the feature `kafka`".to_owned())
        }
        Kind::Tables(database) => database.missing(),
        Kind::Here | Kind::Kafka => None,
    };
    if let Some(what) = missing {
        settings.problem(key, What::Contradiction(what));
    }
    kind
}

fn names_of<const N: usize>(keys: &[Key; N]) -> [&'static str; N] {
    keys.map(|key| key.name)
}

/// Where events come from.
pub(super) fn source(settings: &mut Settings) -> SourcePlace {
    let kind = kind(settings, "source.kind", "files");
    if let Kind::Tables(database) = kind {
        for keys in [FILES_KEYS, TOPIC_KEYS, RECORD_KEYS] {
            without_effect(settings, "source.kind", database.name(), keys);
        }
        return SourcePlace::Table(Box::new(tables::source(settings, database)));
    }
    if kind == Kind::Here {
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
                    settings.problem("source.files_from", What::Contradiction(what));
                }
            }
        }
        if inputs.is_empty() && settings.sound(&["source.kind", "source.inputs", "source.files_from"]) {
            settings.missing("source.inputs");
        }
        let epoch = settings.read("source.epoch", |v| v.text()?.parse().ok()).unwrap_or(EpochRule::LIVE);
        let follow = settings.read(FOLLOW_KEY, Value::boolean).unwrap_or_default();
        if follow {
            note_followed(settings, &inputs, epoch);
        }
        return SourcePlace::Files {
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
        ("auto", ValueFormat::Auto),
        ("text", ValueFormat::Text),
        ("json", ValueFormat::Json),
        ("debezium", ValueFormat::Debezium),
    ];
    let format = settings.choose("source.format", &formats, &[]).unwrap_or(ValueFormat::Auto);
    if format == ValueFormat::Text && settings.sound(&["source.format"]) {
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
    let name = |value: &Value| value.text().filter(|name| !name.is_empty()).map(str::to_owned);
    let shape = RecordShape {
        format,
        text: text.unwrap_or_else(|| vec!["text".to_owned()]),
        ts: settings.read("source.ts_path", |v| names(v.text()?)).unwrap_or_else(|| vec!["ts".to_owned()]),
        id: id.flatten(),
        headers: settings.read("source.headers", |v| v.list(name)).unwrap_or_default(),
        // The pipeline says so.
        needs_time: false,
    };
    SourcePlace::Kafka {
        topic: topic(settings, "source.topic").unwrap_or_default(),
        start: settings.read("source.start", |v| v.text()?.parse().ok()).unwrap_or_default(),
        shape,
        refresh: seconds(settings, "source.refresh_seconds", 1, 30),
    }
}

/// How the records of files are to be understood.
fn layout(settings: &mut Settings) -> InputLayout {
    let default = InputLayout::default();
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
    let name = |value: &Value| match value.text()? {
        "" => Some(None),
        path => names(path).map(|names| Some(names.join("."))),
    };
    InputLayout {
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

/// A byte that stands between columns, or escapes a quote.
fn separator(value: &Value) -> Option<Option<u8>> {
    match value.text()? {
        "" => Some(None),
        typed => InputLayout::separator(typed).ok().map(Some),
    }
}

/// What it means that one id is in several files.
fn ids(settings: &mut Settings) -> IdRule {
    let rules = [("once", IdRule::Once), ("file", IdRule::File), ("last", IdRule::Last)];
    let ids = settings.choose("source.ids", &rules, &[]).unwrap_or_default();
    if ids == IdRule::File {
        without_effect(settings, "source.ids", "file", &["source.id_path"]);
    }
    ids
}

/// The greatest share of records that may be bad.
pub(super) fn max_bad(settings: &mut Settings) -> Option<f64> {
    let share = |value: &Value| match value.text() {
        Some("") => Some(None),
        _ => value.number().filter(|share| (0.0..=1.0).contains(share)).map(Some),
    };
    settings.read("source.max_bad", share).flatten()
}

/// Where results go.
pub(super) fn sink(settings: &mut Settings) -> SinkPlace {
    let kind = kind(settings, "sink.kind", "lines");
    if let Kind::Tables(database) = kind {
        for keys in [OUTPUT_TOPIC_KEYS, &["sink.format"]] {
            without_effect(settings, "sink.kind", database.name(), keys);
        }
        return SinkPlace::Tables(tables::sink(settings, database));
    }
    if kind == Kind::Here {
        if settings.sound(&["sink.kind"]) {
            for keys in [OUTPUT_TOPIC_KEYS, &names_of(&tables::SINK_KEYS)] {
                without_effect(settings, "sink.kind", "lines", keys);
            }
        }
        let path = settings.read("sink.path", path).filter(|path| !path.as_os_str().is_empty());
        return SinkPlace::Lines { path: path.filter(|path| path != Path::new("-")) };
    }
    for keys in [LINES_KEYS, &names_of(&tables::SINK_KEYS)] {
        without_effect(settings, "sink.kind", "kafka", keys);
    }
    let topic = topic(settings, "sink.topic").unwrap_or_default();
    let progress_topic = settings.read("sink.progress_topic", topic_name);
    let transactional_id = settings
        .read("sink.transactional_id", |v| v.text().filter(|name| !name.is_empty()).map(str::to_owned));
    let envelopes = [("delta", OutputEnvelope::Delta), ("upsert", OutputEnvelope::Upsert)];
    SinkPlace::Kafka {
        progress_topic: progress_topic.unwrap_or_else(|| format!("{topic}-progress")),
        transactional_id: transactional_id.unwrap_or_else(|| format!("dupflow-{topic}")),
        transaction: Duration::from_secs(
            settings.read("sink.transaction_seconds", |v| v.integer(1..=900)).unwrap_or(60),
        ),
        envelope: settings.choose("sink.envelope", &envelopes, &[]).unwrap_or_default(),
        topic,
    }
}

/// When the epochs of a topic end.
pub(super) fn commit(settings: &mut Settings, source: &SourcePlace) -> EpochLimits {
    if matches!(source, SourcePlace::Files { .. }) {
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

/// Where bad records are kept.
pub(super) fn dead_letter(settings: &mut Settings, sink: &SinkPlace) -> Option<LetterPlace> {
    let path = settings.read("dead_letter.path", path).filter(|path| !path.as_os_str().is_empty());
    let topic = settings.read("dead_letter.topic", |v| match v.text()? {
        "" => Some(None),
        _ => topic_name(v).map(Some),
    });
    match (path, topic.flatten()) {
        (Some(_), Some(_)) => {
            let what = "bad records are kept in one place: dead_letter.path is set too";
            settings.problem("dead_letter.topic", What::Contradiction(what.to_owned()));
            None
        }
        (None, Some(topic)) => {
            if let SinkPlace::Kafka { topic: output, progress_topic, .. } = sink
                && (topic == *output || topic == *progress_topic)
            {
                let what = "bad records need a topic of their own";
                settings.problem("dead_letter.topic", What::Contradiction(what.to_owned()));
            }
            Some(LetterPlace::Topic(topic))
        }
        (path, None) => path.map(LetterPlace::File),
    }
}

/// How brokers are reached.
pub(super) fn connection(settings: &mut Settings, source: &SourcePlace, sink: &SinkPlace) -> Connection {
    let default = Connection::default();
    let brokers = settings.read("kafka.brokers", |v| {
        let listed = v.list(|one| one.text().map(str::to_owned)).map(|all| all.join(","));
        listed.or_else(|| v.text().map(str::to_owned)).filter(|brokers| !brokers.trim().is_empty())
    });
    let is_used = matches!(source, SourcePlace::Kafka { .. }) || matches!(sink, SinkPlace::Kafka { .. });
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
            Some(name) => (name.to_owned(), hidden_file(settings, &key)),
            None => (name, hidden(settings, &key)),
        };
        let Some(secret) = secret else { continue };
        if connection.settings.insert(name.clone(), secret).is_some() {
            let what = format!("kafka.settings.{name} and kafka.settings.{name}_file are both set");
            settings.problem(&key, What::Contradiction(what));
        }
    }
    if let (SourcePlace::Kafka { topic: input, .. }, SinkPlace::Kafka { topic, progress_topic, .. }) =
        (source, sink)
        && !input.is_empty()
        && (input == topic || input == progress_topic)
    {
        let what = "the output goes to the topic that is read".to_owned();
        settings.problem(
            if input == topic { "sink.topic" } else { "sink.progress_topic" },
            What::Contradiction(what),
        );
    }
    if let SinkPlace::Kafka { topic, progress_topic, .. } = sink
        && !topic.is_empty()
        && topic == progress_topic
    {
        let what = "marks need a topic of their own".to_owned();
        settings.problem("sink.progress_topic", What::Contradiction(what));
    }
    if is_used {
        for (name, what) in connection.problems() {
            settings.problem(&format!("kafka.settings.{name}"), What::Contradiction(what));
        }
    }
    connection
}

/// Where documents are kept.
pub(super) fn state(settings: &mut Settings) -> Option<StatePlace> {
    let location = settings.read("state.path", |v| v.text().map(str::to_owned));
    let every = time(settings, "state.commit_every", Duration::from_secs(3600));
    let location = location.filter(|location| !location.is_empty())?;
    Some(StatePlace { location, commit_every: every.unwrap_or(Duration::from_secs(5)) })
}

/// How processes find each other.
pub(super) fn processes(settings: &mut Settings) -> ProcessSettings {
    let default = ProcessSettings::default();
    let file = settings.read("processes.secret_file", path).filter(|path| !path.as_os_str().is_empty());
    let typed = hidden(settings, "processes.secret").filter(|secret| !secret.reveal().is_empty());
    if file.is_some() && typed.is_some() {
        let what = "processes.secret and processes.secret_file are both set";
        settings.problem("processes.secret_file", What::Contradiction(what.to_owned()));
    }
    ProcessSettings {
        secret: typed.or_else(|| hidden_file(settings, "processes.secret_file")),
        connect: seconds(settings, "processes.connect_seconds", 1, default.connect.as_secs()),
        lost: seconds(settings, "processes.lost_seconds", 1, default.lost.as_secs()),
    }
}

/// The names of a path, each with something in it.
fn names(path: &str) -> Option<Vec<String>> {
    path.split('.').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty())).collect()
}

/// The name of a topic that has to be set.
fn topic(settings: &mut Settings, key: &'static str) -> Option<String> {
    let kind = if key.starts_with("source") { "source.kind" } else { "sink.kind" };
    let name = settings.read(key, topic_name);
    if name.is_none() && settings.sound(&[kind, key]) {
        settings.missing(key);
    }
    name
}

/// What a broker takes as the name of a topic: 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`,
/// and not only points.
fn topic_name(value: &Value) -> Option<String> {
    let name = value.text()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_name = (1..=249).contains(&name.len()) && name.bytes().all(fits) && !matches!(name, "." | "..");
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
