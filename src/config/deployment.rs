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
use super::value::Value;
use crate::broker::Connection;
use crate::source::{EpochLimits, EpochRule, Start};

/// Every key of a deployment file.
pub(super) const KEYS: &[Key] = &[
    Key { name: "workers", expected: "a whole number from 1 to 1024, or \"cores\"" },
    Key { name: "shutdown_seconds", expected: "a whole number from 0 to 3600" },
    Key { name: "source.kind", expected: "\"files\" or \"kafka\"" },
    Key { name: "source.inputs", expected: "a list of paths, at least one; \"-\" is standard input" },
    Key { name: "source.epoch", expected: EpochRule::EXPECTED },
    Key { name: "source.speed", expected: "\"max\", \"real\" or \"Nx\" with N greater than 0" },
    Key { name: "source.topic", expected: "the name of a topic" },
    Key { name: "source.start", expected: Start::EXPECTED },
    Key { name: "source.format", expected: "\"auto\", \"text\", \"json\" or \"debezium\"" },
    Key { name: "source.text_path", expected: "names with points between them, as in \"page.body\"" },
    Key {
        name: "source.id_path",
        expected: "names with points between them, as in \"page.id\", or \"\": the record's key",
    },
    Key { name: "source.headers", expected: "a list of names" },
    Key { name: "source.refresh_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "commit.interval", expected: "a time from \"1ms\" to \"60s\"" },
    Key { name: "commit.records", expected: "a whole number from 1 to 2^53" },
    Key { name: "commit.bytes", expected: "a whole number from 1 to 2^53" },
    Key { name: "dead_letter.path", expected: "a path, or \"\" for none" },
    Key { name: "dead_letter.topic", expected: "the name of a topic, or \"\" for none" },
    Key { name: "sink.kind", expected: "\"lines\" or \"kafka\"" },
    Key { name: "sink.path", expected: "a path; \"-\" is standard output" },
    Key { name: "sink.topic", expected: "the name of a topic" },
    Key { name: "sink.progress_topic", expected: "the name of a topic" },
    Key { name: "sink.transactional_id", expected: "a name" },
    Key { name: "sink.transaction_seconds", expected: "a whole number from 1 to 900" },
    Key { name: "sink.envelope", expected: "\"delta\" or \"upsert\"" },
    Key { name: "sink.emit", expected: "\"deltas\", \"pairs\", \"clusters\" or \"cluster-deltas\"" },
    Key { name: "sink.evidence", expected: "true or false" },
    Key { name: "sink.causes", expected: "true or false" },
    Key { name: "kafka.brokers", expected: "addresses, as in \"host:9092,other:9092\", or a list of them" },
    Key { name: "kafka.connect_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "kafka.settings.**", expected: "text, a number, true or false" },
    Key { name: "state.path", expected: "a path or an address, or \"\" for none" },
    Key { name: "state.commit_every", expected: "a time from \"1ms\" to \"3600s\"" },
    monitor::KEYS[0],
    monitor::KEYS[1],
    monitor::KEYS[2],
    monitor::KEYS[3],
    monitor::KEYS[4],
    monitor::KEYS[5],
    monitor::KEYS[6],
    monitor::KEYS[7],
    monitor::KEYS[8],
    Key { name: "processes.secret", expected: "text, or \"\" for none" },
    Key { name: "processes.secret_file", expected: "a path, or \"\" for none" },
    Key { name: "processes.connect_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "processes.lost_seconds", expected: "a whole number from 1 to 3600" },
    Key { name: "logging.level", expected: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"" },
    Key { name: "logging.format", expected: "\"text\" or \"json\"" },
];

/// Keys, and tables of keys, whose values nobody is shown.
const HIDDEN: [&str; 3] = ["monitor.token", "processes.secret", "kafka.settings"];

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
    /// Where results go.
    pub sink: SinkPlace,
    /// What results are.
    pub emit: EmitKind,
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

impl EmitKind {
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
        ];
        let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
            .map(|level| (level.name(), level));
        let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        let source = places::source(&mut settings);
        let sink = places::sink(&mut settings);
        let emit = settings.choose("sink.emit", &emit, &[]).unwrap_or_default();
        check_emit(&mut settings, &sink, emit);
        let deployment = Self {
            workers: settings.read("workers", workers).unwrap_or_default(),
            shutdown: places::seconds(&mut settings, "shutdown_seconds", 0, 10),
            commit: places::commit(&mut settings, &source),
            dead_letter: places::dead_letter(&mut settings, &sink),
            kafka: places::connection(&mut settings, &source, &sink),
            source,
            sink,
            emit,
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
    /// The files that are read; none if a topic is.
    pub fn inputs(&self) -> &[PathBuf] {
        match &self.source {
            SourcePlace::Files { inputs, .. } => inputs,
            SourcePlace::Kafka { .. } => &[],
        }
    }

    /// The file that is written to, if it is one.
    pub fn output(&self) -> Option<&Path> {
        match &self.sink {
            SinkPlace::Lines { path } => path.as_deref(),
            SinkPlace::Kafka { .. } => None,
        }
    }

    /// From now on results are printed, and nothing is kept.
    pub fn prints_only(&mut self) {
        self.sink = SinkPlace::Lines { path: None };
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
    let is_of_changes = matches!(emit, EmitKind::Deltas | EmitKind::ClusterDeltas);
    if matches!(sink, SinkPlace::Kafka { .. }) && !is_of_changes && settings.sound(&["sink.emit"]) {
        let what = "a topic takes deltas: set it to \"deltas\" or \"cluster-deltas\", and sink.envelope to \"upsert\" for the pairs or the clusters as they are";
        settings.problem("sink.emit", What::Contradiction(what.to_owned()));
    }
}

/// A number, or as many as cores.
#[expect(clippy::option_option, reason = "the outer one says whether the value is understood")]
fn workers(value: &Value) -> Option<Option<NonZeroUsize>> {
    match value.text() {
        Some("cores") => Some(None),
        _ => value.integer(1..=1024).map(NonZeroUsize::new),
    }
}
