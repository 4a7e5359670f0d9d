//! A deployment file: what differs between places.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value as Json;

use super::described::Key;
use super::monitor::{self, MonitorPlace};
use super::places::{self, LetterPlace, ProcessSettings, SinkPlace, SourcePlace, StatePlace};
use super::problem::{PlanError, What};
use super::raw::Settings;
use super::read;
use super::settled;
use super::tables::{self, TablePlace};
use super::value::Value;
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::intake::{EpochLimits, EpochRule};
use dupflow_connectors::kafka::Start;
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::sinks::MarkedFile;
use dupflow_connectors::tables::database::Address;

/// Worker threads of a process at most. Each has a channel to each other for every operator, and a stack.
pub const MOST_WORKERS: usize = 1024;

/// Every key of a deployment file.
pub(super) const KEYS: &[&[Key]] = &[OWN_KEYS, &tables::SOURCE_KEYS, &tables::SINK_KEYS, &monitor::KEYS];

/// Those that no other module knows.
const OWN_KEYS: &[Key] = &[
    Key { name: "workers", expected: "a whole number from 1 to 1024, or \"cores\"" },
    Key { name: "shutdown_seconds", expected: "a whole number from 0 to 3600" },
    Key { name: "source.kind", expected: "\"files\", \"kafka\", \"sqlite\" or \"postgres\"" },
    Key { name: "source.inputs", expected: "a list of paths, at least one; \"-\" is standard input" },
    Key { name: "source.files_from", expected: "a path, or \"\" for none" },
    Key { name: "source.epoch", expected: EpochRule::EXPECTED },
    Key { name: "source.speed", expected: "\"max\", \"real\" or \"Nx\" with N greater than 0" },
    Key { name: "source.topic", expected: "the name of a topic" },
    Key { name: "source.start", expected: Start::EXPECTED },
    Key {
        name: "source.format",
        expected: "\"auto\", \"text\", \"json\" or \"debezium\"; of files \"auto\", \"jsonl\", \"csv\", \"tsv\", \"warc\", \"parquet\", \"text\" or \"html\"",
    },
    Key { name: "source.text_path", expected: "names with points between them, as in \"page.body\"" },
    Key {
        name: "source.id_path",
        expected: "names with points between them, as in \"page.id\", or \"\": the record's key",
    },
    Key { name: "source.ts_path", expected: "names with points between them, as in \"page.date\"" },
    Key { name: "source.headers", expected: "a list of names" },
    Key { name: "source.refresh_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "source.ids", expected: "\"once\", \"file\" or \"last\"" },
    Key { name: "source.max_bad", expected: "a number from 0 to 1, or \"\" for any" },
    Key {
        name: "csv.delimiter",
        expected: "one character of ASCII that is no quote, or \"tab\"; \"\": that of the format",
    },
    Key { name: "csv.escape", expected: "one character of ASCII that is no quote, or \"\" for none" },
    Key { name: "warc.id", expected: "\"record\" or \"uri\"" },
    Key { name: "commit.interval", expected: "a time from \"1ms\" to \"60s\"" },
    Key { name: "commit.records", expected: "a whole number from 1 to 2^53" },
    Key { name: "commit.bytes", expected: "a whole number from 1 to 2^53" },
    Key { name: "dead_letter.path", expected: "a path, or \"\" for none" },
    Key { name: "dead_letter.topic", expected: "the name of a topic, or \"\" for none" },
    Key { name: "sink.kind", expected: "\"lines\", \"kafka\", \"sqlite\" or \"postgres\"" },
    Key { name: "sink.path", expected: "a path; \"-\" is standard output" },
    Key { name: "sink.topic", expected: "the name of a topic" },
    Key { name: "sink.progress_topic", expected: "the name of a topic" },
    Key { name: "sink.transactional_id", expected: "a name" },
    Key { name: "sink.transaction_seconds", expected: "a whole number from 1 to 900" },
    Key { name: "sink.envelope", expected: "\"delta\" or \"upsert\"" },
    Key {
        name: "sink.emit",
        expected: "\"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\" or \"remove\"",
    },
    Key { name: "sink.format", expected: "\"jsonl\", \"csv\" or \"parquet\"" },
    Key { name: "sink.evidence", expected: "true or false" },
    Key { name: "sink.causes", expected: "true or false" },
    Key { name: "kafka.brokers", expected: "addresses, as in \"host:9092,other:9092\", or a list of them" },
    Key { name: "kafka.connect_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "kafka.settings.**", expected: "text, a number, true or false" },
    Key { name: "state.path", expected: "a path or an address, or \"\" for none" },
    Key { name: "state.commit_every", expected: "a time from \"1ms\" to \"3600s\"" },
    Key { name: "processes.secret", expected: "text, or \"\" for none" },
    Key { name: "processes.secret_file", expected: "a path, or \"\" for none" },
    Key { name: "processes.connect_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "processes.lost_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "logging.level", expected: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"" },
    Key { name: "logging.format", expected: "\"text\" or \"json\"" },
];

/// Keys, and tables of keys, whose values nobody is shown.
const HIDDEN: [&str; 5] = ["monitor.token", "processes.secret", "kafka.settings", "source.url", "sink.url"];

/// Where a pipeline runs, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Worker threads; `None` = as many as cores.
    pub workers: Option<NonZeroUsize>,
    /// How long the epochs that have been begun may take after a signal has stopped reading.
    pub shutdown: Duration,
    /// What is read.
    pub source: SourcePlace,
    /// When the epochs of a topic end: by whichever comes first.
    pub commit: EpochLimits,
    /// Where bad records are kept, if they are.
    pub dead_letter: Option<LetterPlace>,
    /// The greatest share of records that may be bad, from 0 to 1; `None`: any, but of lists none.
    pub max_bad: Option<f64>,
    /// Where results go.
    pub sink: SinkPlace,
    /// What results are.
    pub emit: EmitKind,
    /// How they are written, where they do not go to a topic.
    pub output_format: OutputFormat,
    /// Whether pairs carry their evidence.
    pub evidence: bool,
    /// Whether deltas say why they are.
    pub causes: bool,
    /// How brokers are reached.
    pub kafka: Connection,
    /// Where documents are kept for a restart, if they are.
    pub state: Option<StatePlace>,
    /// Where the run shows itself, if it does.
    pub monitor: Option<MonitorPlace>,
    /// How processes that run together find each other.
    pub processes: ProcessSettings,
    /// What is logged.
    pub level: LogLevel,
    /// How.
    pub format: LogFormat,
    /// What the file says, by key: variables by their names, secrets masked.
    pub shown: BTreeMap<String, Json>,
}

/// What leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EmitKind {
    /// The changes of every epoch.
    #[default]
    Deltas,
    /// All pairs at the end of the input.
    Pairs,
    /// All clusters at the end of the input.
    Clusters,
    /// The changes of clusters in every epoch.
    ClusterDeltas,
    /// At the end of the input, one document of each cluster and all that are in none.
    Keep,
    /// At the end of the input, all other documents, each with the one that is kept for it.
    Remove,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// JSON Lines.
    #[default]
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
    /// A Parquet file, which is whole at the end only.
    Parquet,
}

/// The least severe messages that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// And what may need attention.
    Warn,
    /// And what is done.
    #[default]
    Info,
    /// And how.
    Debug,
    /// And every step.
    Trace,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogLevel {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl OutputFormat {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// By the ending of a file's name; JSON Lines if that says nothing.
    pub fn of_name(path: Option<&Path>) -> Self {
        let ending = path.and_then(Path::extension).unwrap_or_default().to_ascii_lowercase();
        [Self::Csv, Self::Parquet].into_iter().find(|format| ending == *format.name()).unwrap_or_default()
    }

    /// Why this program cannot write it, if it cannot.
    pub fn is_missing(self) -> Option<&'static str> {
        let missing = "this dupflow was built without Parquet files: build it with the feature `parquet`";
        (self == Self::Parquet && !cfg!(feature = "parquet")).then_some(missing)
    }
}

impl EmitKind {
    /// Whether it is written epoch by epoch, and not at the end.
    pub fn is_of_changes(self) -> bool {
        matches!(self, Self::Deltas | Self::ClusterDeltas)
    }

    /// Whether it says of each document whether it stays.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Keep | Self::Remove)
    }

    /// Whether lines are about pairs, which may carry evidence.
    pub fn is_of_pairs(self) -> bool {
        matches!(self, Self::Deltas | Self::Pairs)
    }
}

impl Deployment {
    /// Loads a file; `environment` gives the values of variables.
    ///
    /// # Errors
    /// If the file cannot be read, and everything that is wrong with it.
    pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, PlanError> {
        Self::parse(&path.to_string_lossy(), &read(path)?, environment)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(
        name: &str,
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, PlanError> {
        let mut settings = Settings::new(KEYS, &[]);
        settings.add_file(name, text, Path::new(""));
        settings.reject_unknown();
        let shown = settings.shown(&HIDDEN);
        settings.interpolate(environment);

        let emit = [
            ("deltas", EmitKind::Deltas),
            ("pairs", EmitKind::Pairs),
            ("clusters", EmitKind::Clusters),
            ("cluster-deltas", EmitKind::ClusterDeltas),
            ("keep", EmitKind::Keep),
            ("remove", EmitKind::Remove),
        ];
        let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
            .map(|level| (level.name(), level));
        let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        let source = places::source(&mut settings);
        let sink = places::sink(&mut settings);
        // A database keeps what is, and what was only if it is asked to.
        let usual = if matches!(sink, SinkPlace::Tables(_)) { EmitKind::Pairs } else { EmitKind::Deltas };
        let emit = settings.choose("sink.emit", &emit, &[]).unwrap_or(usual);
        check_emit(&mut settings, &sink, emit);
        let output_format = output_format(&mut settings, &source, &sink, emit);
        let deployment = Self {
            workers: settings.read("workers", workers).unwrap_or_default(),
            shutdown: settled::seconds(&mut settings, "shutdown_seconds", 0, 10),
            commit: places::commit(&mut settings, &source),
            dead_letter: places::dead_letter(&mut settings, &sink),
            kafka: places::connection(&mut settings, &source, &sink),
            max_bad: places::max_bad(&mut settings),
            source,
            sink,
            emit,
            output_format,
            evidence: settings.read("sink.evidence", Value::boolean).unwrap_or_default(),
            causes: settings.read("sink.causes", Value::boolean).unwrap_or_default(),
            state: places::state(&mut settings),
            monitor: monitor::monitor(&mut settings),
            processes: places::processes(&mut settings),
            level: settings.choose("logging.level", &levels, &[]).unwrap_or_default(),
            format: settings.choose("logging.format", &formats, &[]).unwrap_or_default(),
            shown,
        };
        let problems = settings.finish();
        if problems.is_empty() { Ok(deployment) } else { Err(PlanError::Problems(problems)) }
    }
}

impl Deployment {
    /// How the records of files are to be understood.
    pub fn layout(&self) -> InputLayout {
        match &self.source {
            SourcePlace::Files { layout, .. } => layout.clone(),
            SourcePlace::Kafka { .. } | SourcePlace::Table(_) => InputLayout::default(),
        }
    }

    /// The inputs that are read, as they were named; none if a topic is.
    pub fn inputs(&self) -> &[PathBuf] {
        match &self.source {
            SourcePlace::Files { inputs, .. } => inputs,
            SourcePlace::Kafka { .. } | SourcePlace::Table(_) => &[],
        }
    }

    /// The file that is written to, if it is one.
    pub fn output(&self) -> Option<&Path> {
        match &self.sink {
            SinkPlace::Lines { path } => path.as_deref(),
            SinkPlace::Tables(TablePlace { address: Address::Sqlite(path), .. }) => Some(path),
            SinkPlace::Tables(_) | SinkPlace::Kafka { .. } => None,
        }
    }

    /// What stands behind the name of the output in the names of the files that are written beside it.
    pub fn beside_output(&self) -> &'static [&'static str] {
        match &self.sink {
            SinkPlace::Lines { .. } if self.emit.is_of_changes() => &MarkedFile::COMPANION_SUFFIXES,
            SinkPlace::Tables(_) => &Address::COMPANION_SUFFIXES,
            SinkPlace::Lines { .. } | SinkPlace::Kafka { .. } => &[],
        }
    }

    /// The database that is read, if it is a file.
    pub fn database_file(&self) -> Option<&Path> {
        match &self.source {
            SourcePlace::Table(table) => match &table.address {
                Address::Sqlite(path) => Some(path),
                Address::Postgres(_) => None,
            },
            SourcePlace::Files { .. } | SourcePlace::Kafka { .. } => None,
        }
    }

    /// The list that names inputs, if there is one.
    pub fn files_from(&self) -> Option<&Path> {
        match &self.source {
            SourcePlace::Files { files_from, .. } => files_from.as_deref(),
            SourcePlace::Kafka { .. } | SourcePlace::Table(_) => None,
        }
    }

    /// From now on results are printed, and nothing is kept.
    pub fn prints_only(&mut self) {
        self.sink = SinkPlace::Lines { path: None };
        self.output_format = OutputFormat::Jsonl;
        self.state = None;
        self.dead_letter = None;
        self.monitor = None;
    }

    /// Whether it needs a broker.
    pub fn has_broker(&self) -> bool {
        matches!(self.source, SourcePlace::Kafka { .. }) || matches!(self.sink, SinkPlace::Kafka { .. })
    }

    /// The file that keeps bad records, if it is one.
    pub fn letter_file(&self) -> Option<&Path> {
        match &self.dead_letter {
            Some(LetterPlace::File(path)) => Some(path),
            Some(LetterPlace::Topic(_)) | None => None,
        }
    }
}

/// Notes a result that does not fit its place.
fn check_emit(settings: &mut Settings, sink: &SinkPlace, emit: EmitKind) {
    if matches!(sink, SinkPlace::Kafka { .. }) && !emit.is_of_changes() && settings.sound(&["sink.emit"]) {
        let what = "a topic takes deltas: set it to \"deltas\" or \"cluster-deltas\", and sink.envelope to \"upsert\" for the pairs or the clusters as they are";
        settings.problem("sink.emit", What::Contradiction(what.to_owned()));
    }
    if matches!(sink, SinkPlace::Tables(_)) && !emit.is_of_pairs() && settings.sound(&["sink.emit"]) {
        let what = "a database keeps pairs, clusters and documents: set it to \"pairs\", or to \"deltas\" for every change of a pair besides";
        settings.problem("sink.emit", What::Contradiction(what.to_owned()));
    }
}

/// In which form results are written, as it is set, or else as the name of the file ends.
fn output_format(
    settings: &mut Settings,
    source: &SourcePlace,
    sink: &SinkPlace,
    emit: EmitKind,
) -> OutputFormat {
    let formats =
        [OutputFormat::Jsonl, OutputFormat::Csv, OutputFormat::Parquet].map(|format| (format.name(), format));
    let set = settings.choose("sink.format", &formats, &[]);
    let SinkPlace::Lines { path } = sink else { return OutputFormat::Jsonl };
    let format = set.unwrap_or_else(|| OutputFormat::of_name(path.as_deref()));
    let key = if set.is_some() { "sink.format" } else { "sink.path" };
    let is_stream = format == OutputFormat::Parquet && emit.is_of_changes();
    let stream = "a Parquet file is whole at its end only, and changes are written as they come: take \"jsonl\" or \"csv\", or another sink.emit";
    // A pipe and a device keep no marks: nothing is gone on with.
    let is_kept = path.as_deref().is_some_and(|path| path.metadata().map_or(true, |found| found.is_file()));
    let is_read_back = matches!(source, SourcePlace::Table(_))
        && format == OutputFormat::Csv
        && emit.is_of_changes()
        && is_kept;
    let read_back = "a table cannot be read again as it was, so the next run reads its output back, and comma-separated values are not read back: take \"jsonl\", or tables with another sink.kind";
    if let Some(what) =
        format.is_missing().or(is_stream.then_some(stream)).or(is_read_back.then_some(read_back))
        && settings.sound(&[key, "sink.format", "sink.emit"])
    {
        settings.problem(key, What::Contradiction(what.to_owned()));
    }
    format
}

/// A number, or as many as cores.
#[expect(clippy::option_option, reason = "the outer one says whether the value is understood")]
fn workers(value: &Value) -> Option<Option<NonZeroUsize>> {
    match value.text() {
        Some("cores") => Some(None),
        _ => value.integer(1..=MOST_WORKERS).map(NonZeroUsize::new),
    }
}
