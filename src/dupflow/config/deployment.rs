//! A deployment file: inputs, outputs, workers and logging, which differ from one installation to another.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value as Json;

use super::described::DeploymentKey;
use super::monitor::{self, MonitorConfig};
use super::places::{self, DeadLetterConfig, ProcessConfig, SinkConfig, SourceConfig, StateConfig};
use super::problem::{ConfigError, ProblemKind};
use super::raw::FileSettings;
use super::read;
use super::settled;
use super::tables::{self, TablesConfig};
use super::value::ConfigValue;
use dupflow_connectors::broker::Connection;
use dupflow_connectors::database::Address;
use dupflow_connectors::sink::MarkedFile;
use dupflow_connectors::source::{EpochLimits, EpochRule, Layout, Start};

/// Most worker threads of one process, inclusive. Each has a stack, and a channel to each other worker for
/// every operator.
pub const MOST_WORKERS: usize = 1024;

/// Every key of a deployment file, by module.
pub(super) const KEYS: &[&[DeploymentKey]] =
    &[OWN_KEYS, &tables::SOURCE_KEYS, &tables::SINK_KEYS, &monitor::KEYS];

/// The keys that this module reads.
const OWN_KEYS: &[DeploymentKey] = &[
    DeploymentKey { name: "workers", expected: "a whole number from 1 to 1024, or \"cores\"" },
    DeploymentKey { name: "shutdown_seconds", expected: "a whole number from 0 to 3600" },
    DeploymentKey { name: "source.kind", expected: "\"files\", \"kafka\", \"sqlite\" or \"postgres\"" },
    DeploymentKey {
        name: "source.inputs",
        expected: "a list of paths, at least one; \"-\" is standard input",
    },
    DeploymentKey { name: "source.files_from", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "source.epoch", expected: EpochRule::EXPECTED },
    DeploymentKey { name: "source.speed", expected: "\"max\", \"real\" or \"Nx\" with N greater than 0" },
    DeploymentKey { name: "source.topic", expected: "the name of a topic" },
    DeploymentKey { name: "source.start", expected: Start::EXPECTED },
    DeploymentKey {
        name: "source.format",
        expected: "\"auto\", \"text\", \"json\" or \"debezium\"; of files \"auto\", \"jsonl\", \"csv\", \"tsv\", \"warc\", \"parquet\", \"text\" or \"html\"",
    },
    DeploymentKey {
        name: "source.text_path",
        expected: "names with points between them, as in \"page.body\"",
    },
    DeploymentKey {
        name: "source.id_path",
        expected: "names with points between them, as in \"page.id\", or \"\": the record's key",
    },
    DeploymentKey { name: "source.ts_path", expected: "names with points between them, as in \"page.date\"" },
    DeploymentKey { name: "source.headers", expected: "a list of names" },
    DeploymentKey { name: "source.refresh_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "source.ids", expected: "\"once\", \"file\" or \"last\"" },
    DeploymentKey { name: "source.max_bad", expected: "a number from 0 to 1, or \"\" for any" },
    DeploymentKey {
        name: "csv.delimiter",
        expected: "one character of ASCII that is no quote, or \"tab\"; \"\": that of the format",
    },
    DeploymentKey {
        name: "csv.escape",
        expected: "one character of ASCII that is no quote, or \"\" for none",
    },
    DeploymentKey { name: "warc.id", expected: "\"record\" or \"uri\"" },
    DeploymentKey { name: "commit.interval", expected: "a time from \"1ms\" to \"60s\"" },
    DeploymentKey { name: "commit.records", expected: "a whole number from 1 to 2^53" },
    DeploymentKey { name: "commit.bytes", expected: "a whole number from 1 to 2^53" },
    DeploymentKey { name: "dead_letter.path", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "dead_letter.topic", expected: "the name of a topic, or \"\" for none" },
    DeploymentKey { name: "sink.kind", expected: "\"lines\", \"kafka\", \"sqlite\" or \"postgres\"" },
    DeploymentKey { name: "sink.path", expected: "a path; \"-\" is standard output" },
    DeploymentKey { name: "sink.topic", expected: "the name of a topic" },
    DeploymentKey { name: "sink.progress_topic", expected: "the name of a topic" },
    DeploymentKey { name: "sink.transactional_id", expected: "a name" },
    DeploymentKey { name: "sink.transaction_seconds", expected: "a whole number from 1 to 900" },
    DeploymentKey { name: "sink.envelope", expected: "\"delta\" or \"upsert\"" },
    DeploymentKey {
        name: "sink.emit",
        expected: "\"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\" or \"remove\"",
    },
    DeploymentKey { name: "sink.format", expected: "\"jsonl\", \"csv\" or \"parquet\"" },
    DeploymentKey { name: "sink.evidence", expected: "true or false" },
    DeploymentKey { name: "sink.causes", expected: "true or false" },
    DeploymentKey {
        name: "kafka.brokers",
        expected: "addresses, as in \"host:9092,other:9092\", or a list of them",
    },
    DeploymentKey { name: "kafka.connect_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "kafka.settings.**", expected: "text, a number, true or false" },
    DeploymentKey { name: "state.path", expected: "a path or an address, or \"\" for none" },
    DeploymentKey { name: "state.commit_every", expected: "a time from \"1ms\" to \"3600s\"" },
    DeploymentKey { name: "processes.secret", expected: "text, or \"\" for none" },
    DeploymentKey { name: "processes.secret_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "processes.connect_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey { name: "processes.lost_seconds", expected: "a whole number from 1 to 3600" },
    DeploymentKey {
        name: "logging.level",
        expected: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
    },
    DeploymentKey { name: "logging.format", expected: "\"text\" or \"json\"" },
];

/// Keys, and tables of keys, whose values are secret: they are never printed or served.
const HIDDEN: [&str; 5] = ["monitor.token", "processes.secret", "kafka.settings", "source.url", "sink.url"];

/// Where a pipeline runs, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Worker threads; `None` = one per core.
    pub workers: Option<NonZeroUsize>,
    /// How long a run may take after a stop signal to finish the epochs that have begun.
    pub shutdown: Duration,
    /// What is read.
    pub source: SourceConfig,
    /// When the epochs of a topic or table end: at the first limit that is reached.
    pub commit: EpochLimits,
    /// Where bad records are kept; `None` = nowhere.
    pub dead_letter: Option<DeadLetterConfig>,
    /// The greatest share of bad records, from 0 to 1, inclusive. `None`: any share, but no bad record if the
    /// output is a list of documents to keep or remove.
    pub max_bad: Option<f64>,
    /// Where results go.
    pub sink: SinkConfig,
    /// What the results are: deltas, pairs, clusters or lists.
    pub emit: EmitKind,
    /// The file format of the results; a topic has its own.
    pub output_format: OutputFormat,
    /// Whether each pair carries its evidence.
    pub evidence: bool,
    /// Whether each delta carries its cause.
    pub causes: bool,
    /// How brokers are reached.
    pub kafka: Connection,
    /// Where documents are kept for a restart; `None` = nowhere.
    pub state: Option<StateConfig>,
    /// Where the run's page and metrics are served; `None` = nowhere.
    pub monitor: Option<MonitorConfig>,
    /// How the processes of one run find each other.
    pub processes: ProcessConfig,
    /// The least severe messages that are logged.
    pub level: LogLevel,
    /// How log messages are written.
    pub format: LogFormat,
    /// The settings of the file by key: variables by name, secrets masked.
    pub shown: BTreeMap<String, Json>,
}

/// What the results are.
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
    /// At the end of the input, all other documents, each with the kept document of its cluster.
    Remove,
}

/// The file format of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// JSON Lines.
    #[default]
    Jsonl,
    /// Comma-separated values with a header line.
    Csv,
    /// A Parquet file. It is complete only at the end of the run.
    Parquet,
}

/// The least severe messages that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Also what may need attention.
    Warn,
    /// Also what the run does.
    #[default]
    Info,
    /// Also how it does it.
    Debug,
    /// Also every single step.
    Trace,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogLevel {
    /// The name in a deployment file.
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
    /// The name in a deployment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// The format by the extension of a file name; JSON Lines if the extension is unknown.
    pub fn of_name(path: Option<&Path>) -> Self {
        let ending = path.and_then(Path::extension).unwrap_or_default().to_ascii_lowercase();
        [Self::Csv, Self::Parquet].into_iter().find(|format| ending == *format.name()).unwrap_or_default()
    }

    /// Why this build cannot write the format; `None` if it can.
    pub fn is_missing(self) -> Option<&'static str> {
        let missing = "this dupflow was built without Parquet files: build it with the feature `parquet`";
        (self == Self::Parquet && !cfg!(feature = "parquet")).then_some(missing)
    }
}

impl EmitKind {
    /// Whether the results are written epoch by epoch, and not at the end.
    pub fn is_of_changes(self) -> bool {
        matches!(self, Self::Deltas | Self::ClusterDeltas)
    }

    /// Whether the result is a list of documents to keep or to remove.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Keep | Self::Remove)
    }

    /// Whether rows are about pairs, which may carry evidence.
    pub fn is_of_pairs(self) -> bool {
        matches!(self, Self::Deltas | Self::Pairs)
    }
}

impl Deployment {
    /// Loads a file; `environment` looks up environment variables.
    ///
    /// # Errors
    /// If the file cannot be read; otherwise all problems of the file at once.
    pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::parse(&path.to_string_lossy(), &read(path)?, environment)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// All problems of the file at once.
    pub fn parse(
        name: &str,
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut settings = FileSettings::new(KEYS, &[]);
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
        // A database keeps current pairs by default; the history of changes only on request.
        let usual = if matches!(sink, SinkConfig::Tables(_)) { EmitKind::Pairs } else { EmitKind::Deltas };
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
            evidence: settings.read("sink.evidence", ConfigValue::boolean).unwrap_or_default(),
            causes: settings.read("sink.causes", ConfigValue::boolean).unwrap_or_default(),
            state: places::state(&mut settings),
            monitor: monitor::monitor(&mut settings),
            processes: places::processes(&mut settings),
            level: settings.choose("logging.level", &levels, &[]).unwrap_or_default(),
            format: settings.choose("logging.format", &formats, &[]).unwrap_or_default(),
            shown,
        };
        let problems = settings.finish();
        if problems.is_empty() { Ok(deployment) } else { Err(ConfigError::Problems(problems)) }
    }
}

impl Deployment {
    /// How records of files are mapped to documents.
    pub fn layout(&self) -> Layout {
        match &self.source {
            SourceConfig::Files { layout, .. } => layout.clone(),
            SourceConfig::Kafka { .. } | SourceConfig::Table(_) => Layout::default(),
        }
    }

    /// The inputs as the user named them; empty if a topic or a table is read.
    pub fn inputs(&self) -> &[PathBuf] {
        match &self.source {
            SourceConfig::Files { inputs, .. } => inputs,
            SourceConfig::Kafka { .. } | SourceConfig::Table(_) => &[],
        }
    }

    /// The output file; `None` if the output is no file.
    pub fn output(&self) -> Option<&Path> {
        match &self.sink {
            SinkConfig::Lines { path } => path.as_deref(),
            SinkConfig::Tables(TablesConfig { address: Address::Sqlite(path), .. }) => Some(path),
            SinkConfig::Tables(_) | SinkConfig::Kafka { .. } => None,
        }
    }

    /// Suffixes of the files that the sink writes beside the output file.
    pub fn beside_output(&self) -> &'static [&'static str] {
        match &self.sink {
            SinkConfig::Lines { .. } if self.emit.is_of_changes() => &MarkedFile::BESIDE,
            SinkConfig::Tables(_) => &Address::BESIDE,
            SinkConfig::Lines { .. } | SinkConfig::Kafka { .. } => &[],
        }
    }

    /// The database file that is read; `None` if the source is no SQLite database.
    pub fn database_file(&self) -> Option<&Path> {
        match &self.source {
            SourceConfig::Table(table) => match &table.address {
                Address::Sqlite(path) => Some(path),
                Address::Postgres(_) => None,
            },
            SourceConfig::Files { .. } | SourceConfig::Kafka { .. } => None,
        }
    }

    /// The file that lists inputs, if there is one.
    pub fn files_from(&self) -> Option<&Path> {
        match &self.source {
            SourceConfig::Files { files_from, .. } => files_from.as_deref(),
            SourceConfig::Kafka { .. } | SourceConfig::Table(_) => None,
        }
    }

    /// Replaces the output by standard output, and drops state, monitor and dead letters.
    pub fn prints_only(&mut self) {
        self.sink = SinkConfig::Lines { path: None };
        self.output_format = OutputFormat::Jsonl;
        self.state = None;
        self.dead_letter = None;
        self.monitor = None;
    }

    /// Whether the run needs a broker.
    pub fn has_broker(&self) -> bool {
        matches!(self.source, SourceConfig::Kafka { .. }) || matches!(self.sink, SinkConfig::Kafka { .. })
    }

    /// The dead-letter file; `None` if bad records are not kept in a file.
    pub fn letter_file(&self) -> Option<&Path> {
        match &self.dead_letter {
            Some(DeadLetterConfig::File(path)) => Some(path),
            Some(DeadLetterConfig::Topic(_)) | None => None,
        }
    }
}

/// Reports a kind of result that the sink cannot take.
fn check_emit(settings: &mut FileSettings, sink: &SinkConfig, emit: EmitKind) {
    if matches!(sink, SinkConfig::Kafka { .. }) && !emit.is_of_changes() && settings.sound(&["sink.emit"]) {
        let what = "a topic takes deltas: set it to \"deltas\" or \"cluster-deltas\", and sink.envelope to \"upsert\" for the pairs or the clusters as they are";
        settings.problem("sink.emit", ProblemKind::Contradiction(what.to_owned()));
    }
    if matches!(sink, SinkConfig::Tables(_)) && !emit.is_of_pairs() && settings.sound(&["sink.emit"]) {
        let what = "a database keeps pairs, clusters and documents: set it to \"pairs\", or to \"deltas\" for every change of a pair besides";
        settings.problem("sink.emit", ProblemKind::Contradiction(what.to_owned()));
    }
}

/// The file format: as set, or else by the extension of the file name.
fn output_format(
    settings: &mut FileSettings,
    source: &SourceConfig,
    sink: &SinkConfig,
    emit: EmitKind,
) -> OutputFormat {
    let formats =
        [OutputFormat::Jsonl, OutputFormat::Csv, OutputFormat::Parquet].map(|format| (format.name(), format));
    let set = settings.choose("sink.format", &formats, &[]);
    let SinkConfig::Lines { path } = sink else { return OutputFormat::Jsonl };
    let format = set.unwrap_or_else(|| OutputFormat::of_name(path.as_deref()));
    let key = if set.is_some() { "sink.format" } else { "sink.path" };
    let is_stream = format == OutputFormat::Parquet && emit.is_of_changes();
    let stream = "a Parquet file is whole at its end only, and changes are written as they come: take \"jsonl\" or \"csv\", or another sink.emit";
    // A pipe or a device keeps no marks, so a run cannot continue there.
    let is_kept = path.as_deref().is_some_and(|path| path.metadata().map_or(true, |found| found.is_file()));
    let is_read_back = matches!(source, SourceConfig::Table(_))
        && format == OutputFormat::Csv
        && emit.is_of_changes()
        && is_kept;
    let read_back = "a table cannot be read again as it was, so the next run reads its output back, and comma-separated values are not read back: take \"jsonl\", or tables with another sink.kind";
    if let Some(what) =
        format.is_missing().or(is_stream.then_some(stream)).or(is_read_back.then_some(read_back))
        && settings.sound(&[key, "sink.format", "sink.emit"])
    {
        settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
    }
    format
}

/// A number of workers, or `None` for as many as cores; the outer `None` if the value is neither.
#[expect(clippy::option_option, reason = "the outer one says whether the value is understood")]
fn workers(value: &ConfigValue) -> Option<Option<NonZeroUsize>> {
    match value.text() {
        Some("cores") => Some(None),
        _ => value.integer(1..=MOST_WORKERS).map(NonZeroUsize::new),
    }
}
