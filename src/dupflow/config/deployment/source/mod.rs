//! The tables `[source]`, `[csv]`, `[warc]` and `[commit]` of a deployment file.

pub(super) mod description;
pub(super) mod reference;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::deployment::tables;
use crate::config::deployment::values::{
    System, dotted_names, key_names, path, required_topic, seconds, system, time,
};
use crate::config::settings::{ConfigValue, FileSettings, ProblemKind, without_effect};
use dupflow_connectors::formats::{
    CsvQuote, FileFormat, IdRule, InputLayout, RecordShape, SurrogateRule, ValueFormat, WarcId, named_path,
};
use dupflow_connectors::inputs::{GoneInputs, listed, unreadable};
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::Start;
use dupflow_connectors::tables::DatabaseTable;
use dupflow_core::doc::fields::{FieldRule, FieldRules};

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
        layout: InputLayout,
        /// Where the input is cut into epochs.
        epoch: EpochRule,
        /// How fast the input is played.
        speed: Speed,
        /// Whether the last input is read on as it grows.
        follow: bool,
        /// What a later run does if inputs are gone that were read.
        gone: GoneInputs,
    },
    /// A Kafka topic.
    Kafka {
        /// Its name.
        topic: String,
        /// Where reading begins if there is no mark.
        start: Start,
        /// How a record's value is mapped to a document.
        shape: RecordShape,
        /// How often the reader looks for new partitions.
        refresh: Duration,
    },
    /// A table of a database.
    Table(Box<DatabaseTable>),
}

impl SourceConfig {
    /// The interval at which topics are looked at: of the input, of the output, of watches.
    pub fn topic_refresh(&self) -> Duration {
        match self {
            Self::Kafka { refresh, .. } => *refresh,
            Self::Files { .. } | Self::Table(_) => Duration::from_secs(TOPIC_REFRESH),
        }
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
        let what = "an input that is followed does not end, and source.epoch = \"all\" waits for its end; as \
            in \"every:1s\"";
        settings.problem(FOLLOW_KEY, ProblemKind::Contradiction(what.to_owned()));
    }
}

const FILES_KEYS: &[&str] = &[
    "source.inputs",
    "source.files_from",
    "source.epoch",
    "source.speed",
    "source.max_bad",
    "source.max_unread",
    "source.ids",
    CANONICAL_KEY,
    GONE_KEY,
    "csv.delimiter",
    "csv.escape",
    "csv.quote",
    "warc.id",
];
/// The values of `csv.quote`.
pub(in crate::config::deployment) const QUOTE_EXPECTED: &str =
    "one character of ASCII that is no letter, or \"none\" for a table without quotes; \"\": a double quote";
const CANONICAL_KEY: &str = "source.canonical_url";
const GONE_KEY: &str = "source.gone";
/// Also a key of tables, which are followed too.
const FOLLOW_KEY: &str = "source.follow";

/// The default of `source.refresh_seconds`.
const TOPIC_REFRESH: u64 = 30;

const TOPIC_KEYS: &[&str] = &["source.topic", "source.start", "source.headers", "source.refresh_seconds"];
const RECORD_KEYS: &[&str] = &[
    "source.format",
    "source.text_path",
    "source.id_path",
    "source.ts_path",
    "source.op_path",
    SURROGATES_KEY,
];
const SURROGATES_KEY: &str = "json.surrogates";
const COMMIT_KEYS: &[&str] = &["commit.interval", "commit.records", "commit.bytes"];
/// Reads the tables `[source]`, `[csv]` and `[warc]`.
pub(super) fn source(settings: &mut FileSettings, fields: &FieldRules) -> SourceConfig {
    let source = match system(settings, "source.kind", "files") {
        System::Database(database) => {
            for keys in [FILES_KEYS, TOPIC_KEYS, RECORD_KEYS] {
                without_effect(settings, "source.kind", database.name(), keys);
            }
            SourceConfig::Table(Box::new(tables::source(settings, database, fields)))
        }
        System::Local => files(settings),
        System::Kafka => topic(settings),
    };
    let text = match &source {
        SourceConfig::Files { layout, .. } => layout.text.clone(),
        SourceConfig::Kafka { shape, .. } => shape.text.join("."),
        SourceConfig::Table(table) => table.text.clone(),
    };
    reject_text(settings, fields, &text);
    source
}

/// Reads the keys of `[source]` for files.
fn files(settings: &mut FileSettings) -> SourceConfig {
    if settings.sound(&["source.kind"]) {
        let mut of_tables = key_names(&tables::SOURCE_KEYS).to_vec();
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
    for missing in inputs.iter().filter_map(|input| unreadable(input)) {
        settings.problem("source.inputs", ProblemKind::Contradiction(missing));
    }
    let epoch = settings.read("source.epoch", |v| v.text()?.parse().ok()).unwrap_or(EpochRule::LIVE);
    let follow = settings.read(FOLLOW_KEY, ConfigValue::boolean).unwrap_or_default();
    if follow {
        note_followed(settings, &inputs, epoch);
    }
    SourceConfig::Files {
        inputs,
        files_from,
        layout: layout(settings, &SOURCE_LAYOUT),
        epoch,
        follow,
        gone: gone(settings),
        speed: settings.read("source.speed", |v| v.text()?.parse().ok()).unwrap_or_default(),
    }
}

/// What is done if inputs are gone that were read. Their documents are only in a state.
fn gone(settings: &mut FileSettings) -> GoneInputs {
    let values = [("refuse", GoneInputs::Refuse), ("keep", GoneInputs::Keep), ("delete", GoneInputs::Delete)];
    let gone = settings.choose(GONE_KEY, &values, &[]).unwrap_or_default();
    let mut has_state = || {
        let path = settings.read("state.path", |path| path.text().map(str::to_owned));
        path.is_some_and(|path| !path.is_empty())
    };
    if gone == GoneInputs::Keep && !has_state() && settings.sound(&["state.path"]) {
        let what = "\"keep\" keeps documents that only a state has; set state.path too";
        settings.problem(GONE_KEY, ProblemKind::Contradiction(what.to_owned()));
    }
    gone
}

/// Reads the keys of `[source]` for a topic.
fn topic(settings: &mut FileSettings) -> SourceConfig {
    for keys in [FILES_KEYS, &key_names(&tables::SOURCE_KEYS)] {
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
            &["source.text_path", "source.id_path", "source.ts_path", "source.op_path", SURROGATES_KEY],
        );
    }
    let text = settings.read("source.text_path", |v| dotted_names(v.text()?));
    let id = settings.read("source.id_path", |v| match v.text()? {
        "" => Some(None),
        path => dotted_names(path).map(Some),
    });
    let name = |value: &ConfigValue| value.text().filter(|name| !name.is_empty()).map(str::to_owned);
    let default = RecordShape::default();
    let shape = RecordShape {
        format,
        text: text.unwrap_or_else(|| vec!["text".to_owned()]),
        ts: settings
            .read("source.ts_path", |v| dotted_names(v.text()?))
            .unwrap_or_else(|| vec!["ts".to_owned()]),
        op: settings.read("source.op_path", operation).map(|op| named_path(&op)).unwrap_or(default.op),
        id: id.flatten(),
        surrogates: surrogates(settings, SURROGATES_KEY),
        headers: settings.read("source.headers", |v| v.list(name)).unwrap_or_default(),
        // Set later, from the retention of the pipeline.
        needs_time: false,
        canonical_url: false,
        has_changes: true,
    };
    SourceConfig::Kafka {
        topic: required_topic(settings, "source.topic").unwrap_or_default(),
        start: settings.read("source.start", |v| v.text()?.parse().ok()).unwrap_or_default(),
        shape,
        refresh: seconds(settings, "source.refresh_seconds", 1, TOPIC_REFRESH),
    }
}

/// The keys of a layout.
pub(super) struct LayoutKeys {
    pub(super) format: &'static str,
    pub(super) id: &'static str,
    pub(super) text: &'static str,
    pub(super) ts: Option<&'static str>,
    pub(super) op: &'static str,
    pub(super) csv_delimiter: &'static str,
    pub(super) csv_escape: &'static str,
    pub(super) csv_quote: &'static str,
    pub(super) surrogates: &'static str,
    pub(super) warc_id: &'static str,
    pub(super) ids: &'static str,
    /// Values of `ids`.
    pub(super) id_rules: &'static [(&'static str, IdRule)],
    pub(super) canonical_url: &'static str,
}

const SOURCE_LAYOUT: LayoutKeys = LayoutKeys {
    format: "source.format",
    id: "source.id_path",
    text: "source.text_path",
    ts: Some("source.ts_path"),
    op: "source.op_path",
    csv_delimiter: "csv.delimiter",
    csv_escape: "csv.escape",
    csv_quote: "csv.quote",
    surrogates: SURROGATES_KEY,
    warc_id: "warc.id",
    ids: "source.ids",
    id_rules: &[("once", IdRule::Once), ("file", IdRule::File), ("last", IdRule::Last)],
    canonical_url: CANONICAL_KEY,
};

/// How records of files are mapped to documents.
pub(super) fn layout(settings: &mut FileSettings, keys: &LayoutKeys) -> InputLayout {
    let default = InputLayout::default();
    let named = FileFormat::all().iter().map(|format| (format.name(), Some(*format)));
    let of_files: Vec<_> = std::iter::once(("auto", None)).chain(named).collect();
    let name = |value: &ConfigValue| match value.text()? {
        "" => Some(None),
        path => dotted_names(path).map(|names| Some(names.join("."))),
    };
    InputLayout {
        format: settings.choose(keys.format, &of_files, &[]).flatten(),
        id: settings.read(keys.id, name).flatten().unwrap_or(default.id),
        text: settings.read(keys.text, name).flatten().unwrap_or(default.text),
        ts: keys.ts.and_then(|ts| settings.read(ts, name).flatten()).unwrap_or(default.ts),
        op: settings.read(keys.op, operation).unwrap_or(default.op),
        csv_delimiter: settings.read(keys.csv_delimiter, separator).flatten(),
        csv_escape: settings.read(keys.csv_escape, separator).flatten(),
        csv_quote: settings.read(keys.csv_quote, quote).unwrap_or_default(),
        surrogates: surrogates(settings, keys.surrogates),
        warc_id: settings
            .choose(keys.warc_id, &[("record", WarcId::Record), ("uri", WarcId::Uri)], &[])
            .unwrap_or_default(),
        ids: ids(settings, keys),
        canonical_url: settings.read(keys.canonical_url, ConfigValue::boolean).unwrap_or_default(),
    }
}

/// The field of the operation; empty for none.
fn operation(value: &ConfigValue) -> Option<String> {
    match value.text()? {
        "" => Some(String::new()),
        path => dotted_names(path).map(|names| names.join(".")),
    }
}

/// What encloses cells; an empty text is what is usual.
fn quote(value: &ConfigValue) -> Option<CsvQuote> {
    match value.text()? {
        "" => Some(CsvQuote::Usual),
        typed => CsvQuote::parse(typed).ok(),
    }
}

/// What lone surrogates mean.
fn surrogates(settings: &mut FileSettings, key: &'static str) -> SurrogateRule {
    let rules = [("bad", SurrogateRule::Bad), ("replace", SurrogateRule::Replace)];
    settings.choose(key, &rules, &[]).unwrap_or_default()
}

/// A column separator or an escape character: one byte, or `None` for an empty text.
fn separator(value: &ConfigValue) -> Option<Option<u8>> {
    match value.text()? {
        "" => Some(None),
        typed => InputLayout::separator(typed).ok().map(Some),
    }
}

/// What an id that occurs in several files means.
fn ids(settings: &mut FileSettings, keys: &LayoutKeys) -> IdRule {
    let ids = settings.choose(keys.ids, keys.id_rules, &[]).unwrap_or_default();
    if ids == IdRule::File {
        without_effect(settings, keys.ids, "file", &[keys.id, keys.canonical_url]);
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

/// The greatest number of unread files; `None` for the default.
pub(super) fn max_unread(settings: &mut FileSettings) -> Option<u64> {
    let files = |value: &ConfigValue| match value.text() {
        Some("") => Some(None),
        _ => value.integer(0..=1 << 53).map(Some),
    };
    settings.read("source.max_unread", files).flatten()
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

const FIELDS_KEY: &str = "source.fields";

/// Reads the fields; reports each that is no field, and a name that two have.
pub(super) fn fields(settings: &mut FileSettings) -> FieldRules {
    let text = |value: &ConfigValue| value.text().map(str::to_owned);
    let typed = settings.read(FIELDS_KEY, |value| value.list(text)).unwrap_or_default();
    let mut rules = Vec::new();
    for one in typed {
        match FieldRule::parse(&one) {
            Ok(rule) => rules.push(rule),
            Err(error) => settings.problem(FIELDS_KEY, ProblemKind::Contradiction(error.to_string())),
        }
    }
    FieldRules::new(rules).unwrap_or_else(|name| {
        let what = format!("two fields are named {name:?}; name one of them, as in \"other = {name}\"");
        settings.problem(FIELDS_KEY, ProblemKind::Contradiction(what));
        FieldRules::default()
    })
}

/// Reports a field whose column is that of the text.
fn reject_text(settings: &mut FileSettings, fields: &FieldRules, text: &str) {
    if fields.columns().iter().any(|column| column == text) {
        let what = format!("{text:?} is the text of the documents, which is no field");
        settings.problem(FIELDS_KEY, ProblemKind::Contradiction(what));
    }
}
