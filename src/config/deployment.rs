//! A deployment file: what differs between places.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::described::Key;
use super::problem::PlanError;
use super::raw::Settings;
use super::read;
use super::value::Value;
use crate::source::{EpochRule, Speed};

/// Every key of a deployment file.
pub(super) const KEYS: &[Key] = &[
    Key { name: "workers", expected: "a whole number from 1 to 1024, or \"cores\"" },
    Key { name: "shutdown_seconds", expected: "a whole number from 0 to 3600" },
    Key { name: "source.kind", expected: "\"files\"" },
    Key { name: "source.inputs", expected: "a list of paths, at least one; \"-\" is standard input" },
    Key { name: "source.epoch", expected: EpochRule::EXPECTED },
    Key { name: "source.speed", expected: "\"max\", \"real\" or \"Nx\" with N greater than 0" },
    Key { name: "source.dead_letter", expected: "a path, or \"\" for none" },
    Key { name: "sink.kind", expected: "\"lines\"" },
    Key { name: "sink.path", expected: "a path; \"-\" is standard output" },
    Key { name: "sink.emit", expected: "\"deltas\", \"pairs\", \"clusters\" or \"cluster-deltas\"" },
    Key { name: "sink.evidence", expected: "true or false" },
    Key { name: "logging.level", expected: "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"" },
    Key { name: "logging.format", expected: "\"text\" or \"json\"" },
];

/// Keys and tables that other versions have.
const LATER_KEYS: &[&str] = &["state", "monitor"];

/// Where a pipeline runs, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Worker threads; `None` = as many as cores.
    pub workers: Option<NonZeroUsize>,
    /// How long the epochs that have been begun may take after a signal has stopped reading.
    pub shutdown: Duration,
    /// What is read, in this order; `-` is standard input. At least one.
    pub inputs: Vec<PathBuf>,
    /// Where the input is cut.
    pub epoch: EpochRule,
    /// How fast it is played.
    pub speed: Speed,
    /// The file that keeps bad records, if they are kept.
    pub dead_letter: Option<PathBuf>,
    /// Where results go; `None` = standard output.
    pub output: Option<PathBuf>,
    /// What results are.
    pub emit: EmitKind,
    /// Whether pairs carry their evidence.
    pub evidence: bool,
    /// What is logged.
    pub level: LogLevel,
    /// How.
    pub format: LogFormat,
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
        let mut settings = Settings::new(KEYS, LATER_KEYS);
        settings.add_file(name, text, Path::new(""));
        settings.reject_unknown();
        settings.interpolate(environment);

        let path = |value: &Value| value.text().map(PathBuf::from);
        let inputs = settings.read("source.inputs", |v| v.list(path).filter(|inputs| !inputs.is_empty()));
        if inputs.is_none() && settings.sound(&["source.inputs"]) {
            settings.missing("source.inputs");
        }
        settings.choose("source.kind", &[("files", ())], &["kafka"]);
        settings.choose("sink.kind", &[("lines", ())], &["kafka"]);
        let emit = [
            ("deltas", EmitKind::Deltas),
            ("pairs", EmitKind::Pairs),
            ("clusters", EmitKind::Clusters),
            ("cluster-deltas", EmitKind::ClusterDeltas),
        ];
        let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
            .map(|level| (level.name(), level));
        let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        let named = |typed: PathBuf| Some(typed).filter(|typed| !typed.as_os_str().is_empty());
        let deployment = Self {
            workers: settings.read("workers", workers).unwrap_or_default(),
            shutdown: Duration::from_secs(
                settings.read("shutdown_seconds", |v| v.integer(0..=3600)).unwrap_or(10),
            ),
            inputs: inputs.unwrap_or_default(),
            epoch: settings.read("source.epoch", |v| v.text()?.parse().ok()).unwrap_or_default(),
            speed: settings.read("source.speed", |v| v.text()?.parse().ok()).unwrap_or_default(),
            dead_letter: settings.read("source.dead_letter", path).and_then(named),
            output: settings.read("sink.path", path).and_then(named).filter(|path| path != Path::new("-")),
            emit: settings.choose("sink.emit", &emit, &[]).unwrap_or_default(),
            evidence: settings.read("sink.evidence", Value::boolean).unwrap_or_default(),
            level: settings.choose("logging.level", &levels, &[]).unwrap_or_default(),
            format: settings.choose("logging.format", &formats, &[]).unwrap_or_default(),
        };
        let problems = settings.finish();
        if problems.is_empty() { Ok(deployment) } else { Err(PlanError::Problems(problems)) }
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
