//! A whole deployment file: inputs, outputs, workers and logging, which differ from one installation to
//! another.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value as Json;

use super::keys::{HIDDEN, KEYS};
use super::logging::{self, LogFormat, LogLevel};
use super::monitor::{self, MonitorConfig};
use super::outputs::{self, AuditConfig, DocumentsConfig, EmitKind, OutputConfig, OutputFormat, SinkConfig};
use super::processes::{self, ProcessConfig};
use super::source::reference::{self, ReferenceConfig};
use super::source::{self, SourceConfig};
use super::storage::{self, DeadLetterConfig, SpillConfig, StateConfig};
use super::tables::TablesConfig;
use super::views::{self, ViewConfig};
use super::watch::{self, WatchConfig};
use super::{broker, values};
use crate::config::settings::{ConfigError, ConfigValue, FileSettings, read_file};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::intake::{EpochLimits, InputFile};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::sinks::{DecisionMode, MarkedFile};
use dupflow_connectors::tables::database::Address;
use dupflow_core::doc::fields::FieldRules;

/// Most worker threads of one process, inclusive. Each has a stack, and a channel to each other worker for
/// every operator.
pub const MOST_WORKERS: usize = 1024;

/// Where a pipeline runs, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Worker threads; `None` = one per core.
    pub workers: Option<NonZeroUsize>,
    /// The memory budget, and where rows are spilled; `None` = everything is in memory.
    pub spill: Option<SpillConfig>,
    /// How long a run may take after a stop signal to finish the epochs that have begun.
    pub shutdown: Duration,
    /// What is read.
    pub source: SourceConfig,
    /// The fields of documents. A run holds those that something asks for.
    pub fields: FieldRules,
    /// When the epochs of a topic or table end: at the first limit that is reached.
    pub commit: EpochLimits,
    /// Where bad records are kept; `None` = nowhere.
    pub dead_letter: Option<DeadLetterConfig>,
    /// The greatest share of bad records, from 0 to 1, inclusive. `None`: any share, but no bad record if the
    /// output is a list of documents to keep or remove.
    pub max_bad: Option<f64>,
    /// The greatest number of files that may be unread, wholly or in part. `None`: none where the output is a
    /// list or `max_bad` is set, else any.
    pub max_unread: Option<u64>,
    /// The table of the first output: "sink", or as in "output.1".
    pub output_table: String,
    /// Where results go.
    pub sink: SinkConfig,
    /// What the results are: deltas, pairs, clusters or lists.
    pub emit: EmitKind,
    /// When records of a document are written, where the results are decisions.
    pub decisions: DecisionMode,
    /// The outputs beside this one, the first.
    pub others: Vec<OutputConfig>,
    /// The reference of a run; `None`: there is none.
    pub reference: Option<ReferenceConfig>,
    /// How many of the first inputs are the reference of a replay, which is compared with the others and
    /// listed nowhere; a file does not set it.
    pub against: usize,
    /// The field that names the benchmark of an item of the reference.
    pub benchmark: Option<String>,
    /// How records of documents are copied, where the results are records; a file does not set it.
    pub documents: DocumentsConfig,
    /// The file format of the results; a topic has its own.
    pub output_format: OutputFormat,
    /// Whether each pair carries its evidence.
    pub evidence: bool,
    /// Whether each delta carries its cause.
    pub causes: bool,
    /// What is recorded for an audit.
    pub audit: AuditConfig,
    /// How brokers are reached.
    pub kafka: Connection,
    /// Where documents are kept for a restart; `None` = nowhere.
    pub state: Option<StateConfig>,
    /// The views that are kept, in the order of the file.
    pub views: Vec<ViewConfig>,
    /// Where the run's page and metrics are served; `None` = nowhere.
    pub monitor: Option<MonitorConfig>,
    /// The watch list and its notices; `None` = none.
    pub watch: Option<WatchConfig>,
    /// How the processes of one run find each other.
    pub processes: ProcessConfig,
    /// The least severe messages that are logged.
    pub level: LogLevel,
    /// How log messages are written.
    pub format: LogFormat,
    /// The settings of the file by key: variables by name, secrets masked.
    pub shown: BTreeMap<String, Json>,
}

impl Deployment {
    /// Loads a file; `environment` looks up environment variables.
    ///
    /// # Errors
    /// If the file cannot be read; otherwise all problems of the file at once.
    pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::parse(&path.to_string_lossy(), &read_file(path)?, environment)
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

        let deployment = match outputs::first(&settings) {
            None => Self::read(&mut settings, "sink", shown),
            Some(first) => settings.read_as(&first, |settings| Self::read(settings, &first.table, shown)),
        };
        let problems = settings.finish();
        if problems.is_empty() { Ok(deployment) } else { Err(ConfigError::Problems(problems)) }
    }

    /// Reads all tables. The first output is read as `[sink]`, and is typed as `output_table`.
    fn read(settings: &mut FileSettings, output_table: &str, shown: BTreeMap<String, Json>) -> Self {
        let fields = source::fields(settings);
        let source = source::source(settings, &fields);
        let first = OutputConfig::first(settings, &source, output_table);
        let all = [&[first][..], &outputs::others(settings, &source)].concat();
        outputs::check_places(settings, &all);
        let sinks = || all.iter().map(|output| &output.sink);
        let writes_topics = sinks().any(|sink| matches!(sink, SinkConfig::Kafka { .. }));
        let OutputConfig { sink, emit, decisions, format: output_format, causes, times, .. } = all[0].clone();
        let views = views::views(settings, &fields, &sink);
        let watch = watch::watch(settings, &sink);
        let deployment = Self {
            workers: settings.read("workers", workers).unwrap_or_default(),
            spill: storage::spill(settings),
            shutdown: values::seconds(settings, "shutdown_seconds", 0, 10),
            commit: source::commit(settings, &source),
            dead_letter: storage::dead_letter(settings, sinks()),
            kafka: broker::connection(settings, &source, writes_topics),
            max_bad: source::max_bad(settings),
            max_unread: source::max_unread(settings),
            source,
            fields,
            output_table: output_table.to_owned(),
            sink,
            others: all[1..].to_vec(),
            emit,
            decisions,
            output_format,
            evidence: settings.read("sink.evidence", ConfigValue::boolean).unwrap_or_default(),
            causes,
            documents: DocumentsConfig::default(),
            reference: reference::reference(settings),
            against: 0,
            benchmark: None,
            audit: AuditConfig { times, ..AuditConfig::default() },
            state: storage::state(settings),
            views,
            monitor: monitor::monitor(settings),
            watch,
            processes: processes::processes(settings),
            level: logging::level(settings),
            format: logging::format(settings),
            shown,
        };
        storage::check_history(settings, deployment.state.as_ref(), deployment.monitor.as_ref());
        let (names, topics) = (deployment.side_names(), deployment.other_topics());
        outputs::check_side_names(settings, &deployment.sink, &names, &topics);
        deployment
    }
}

impl Deployment {
    /// Whether the corpus is compared with a reference.
    pub fn has_reference(&self) -> bool {
        self.against > 0 || self.reference.is_some()
    }

    /// How records of files are mapped to documents.
    pub fn layout(&self) -> InputLayout {
        match &self.source {
            SourceConfig::Files { layout, .. } => layout.clone(),
            SourceConfig::Kafka { .. } | SourceConfig::Table(_) => InputLayout::default(),
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
            SinkConfig::Lines { path, .. } => path.as_deref(),
            SinkConfig::Tables(TablesConfig { address: Address::Sqlite(path), .. }) => Some(path),
            SinkConfig::Tables(_) | SinkConfig::Kafka { .. } => None,
        }
    }

    /// The file of a long list of inputs, beside the mark of the output; `None` if the output is no file that
    /// keeps marks.
    pub fn input_list(&self) -> Option<PathBuf> {
        let beside = |path: &Path, suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            name.push(InputFile::SUFFIX);
            PathBuf::from(name)
        };
        match &self.sink {
            SinkConfig::Lines { mark: Some(mark), .. } => Some(beside(mark, "")),
            SinkConfig::Lines { path: Some(path), .. } if self.emit.is_of_changes() => {
                Some(beside(path, MarkedFile::COMPANION_SUFFIXES[0]))
            }
            SinkConfig::Tables(TablesConfig { address: Address::Sqlite(path), .. }) => Some(beside(path, "")),
            SinkConfig::Lines { .. } | SinkConfig::Tables(_) | SinkConfig::Kafka { .. } => None,
        }
    }

    /// Suffixes of the files that the sink writes beside the output file.
    pub fn beside_output(&self) -> &'static [&'static str] {
        match &self.sink {
            SinkConfig::Lines { mark: None, .. } if self.emit.is_of_changes() => {
                &MarkedFile::COMPANION_SUFFIXES
            }
            SinkConfig::Tables(_) => &Address::COMPANION_SUFFIXES,
            SinkConfig::Lines { .. } | SinkConfig::Kafka { .. } => &[],
        }
    }

    /// The database file that is read; `None` if the source is no SQLite database.
    pub fn database_file(&self) -> Option<&Path> {
        match &self.source {
            SourceConfig::Table(table) => table.address.file(),
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

    /// Replaces the output by standard output, and drops state, monitor, watches and dead letters.
    pub fn prints_only(&mut self) {
        self.sink = SinkConfig::Lines { path: None, mark: None };
        self.others.clear();
        self.output_format = OutputFormat::default();
        self.state = None;
        self.dead_letter = None;
        self.views.clear();
        self.monitor = None;
        self.watch = None;
    }

    /// The places of all outputs, each with its table.
    pub fn sinks(&self) -> impl Iterator<Item = (&str, &SinkConfig)> {
        let others = self.others.iter().map(|other| (other.table.as_str(), &other.sink));
        [(self.output_table.as_str(), &self.sink)].into_iter().chain(others)
    }

    /// Whether the run needs a broker.
    pub fn has_broker(&self) -> bool {
        matches!(self.source, SourceConfig::Kafka { .. })
            || self.sinks().any(|(_, sink)| matches!(sink, SinkConfig::Kafka { .. }))
            || self.watch.as_ref().is_some_and(|watch| watch.topic.is_some())
    }

    /// The topics that are read, that of bad records, and those of outputs beside the first, each with its
    /// key.
    fn other_topics(&self) -> Vec<(String, &str)> {
        let mut topics = Vec::new();
        if let SourceConfig::Kafka { topic, .. } = &self.source {
            topics.push(("source.topic".to_owned(), topic.as_str()));
        }
        if let Some(DeadLetterConfig::Topic(topic)) = &self.dead_letter {
            topics.push(("dead_letter.topic".to_owned(), topic));
        }
        let watched = self.watch.as_ref().and_then(|watch| watch.topic.as_deref());
        topics.extend(watched.map(|topic| ("watch.topic".to_owned(), topic)));
        for (name, sink) in self.sinks().skip(1) {
            if let SinkConfig::Kafka { topic, progress_topic, .. } = sink {
                topics.push((format!("{name}.topic"), topic));
                topics.push((format!("{name}.progress_topic"), progress_topic));
            }
        }
        topics
    }

    /// The topics or tables of rows beside the deltas, each with its key: those of views, then those of
    /// notices.
    pub fn side_names(&self) -> Vec<(String, &str)> {
        let mut names = Vec::new();
        for (at, view) in self.views.iter().enumerate() {
            names.extend(view.topic.as_deref().map(|topic| (ViewConfig::key(at, "topic"), topic)));
            names.extend(view.table.as_deref().map(|table| (ViewConfig::key(at, "table"), table)));
        }
        if let Some(WatchConfig { notices, .. }) = &self.watch {
            names.extend(notices.topic.as_deref().map(|topic| ("notices.topic".to_owned(), topic)));
            names.extend(notices.table.as_deref().map(|table| ("notices.table".to_owned(), table)));
        }
        names
    }

    /// The dead-letter file; `None` if bad records are not kept in a file.
    pub fn letter_file(&self) -> Option<&Path> {
        match &self.dead_letter {
            Some(DeadLetterConfig::File(path)) => Some(path),
            Some(DeadLetterConfig::Topic(_)) | None => None,
        }
    }
}

impl Deployment {
    /// The same deployment, whose only output is this one.
    #[must_use]
    pub fn with_output(&self, output: &OutputConfig) -> Self {
        let mut one = self.clone();
        one.sink = output.sink.clone();
        (one.emit, one.decisions, one.output_format) = (output.emit, output.decisions, output.format);
        (one.causes, one.audit.times) = (output.causes, output.times);
        one.evidence &= one.emit.is_of_pairs();
        one.dead_letter.take_if(|letters| matches!(letters, DeadLetterConfig::Topic(_)));
        one.output_table.clone_from(&output.table);
        one.others.clear();
        one
    }

    /// The key of what the results of the first output are.
    pub fn emit_key(&self) -> String {
        let key = if self.output_table == "sink" { "emit" } else { "answer" };
        format!("{}.{key}", self.output_table)
    }

    /// A deployment for each output, which is its only one.
    pub fn outputs(&self) -> Vec<Self> {
        let first = Self { others: Vec::new(), ..self.clone() };
        [first].into_iter().chain(self.others.iter().map(|other| self.with_output(other))).collect()
    }

    /// What the results of all outputs are.
    pub fn emits(&self) -> impl Iterator<Item = EmitKind> {
        [self.emit].into_iter().chain(self.others.iter().map(|other| other.emit))
    }

    /// Whether the changes of an output have times.
    pub fn has_times(&self) -> bool {
        self.audit.times || self.others.iter().any(|other| other.times)
    }
}

/// A number of workers, or `None` for as many as cores; the outer `None` if the value is neither.
#[expect(clippy::option_option, reason = "the outer one says whether the value is understood")]
fn workers(value: &ConfigValue) -> Option<Option<NonZeroUsize>> {
    match value.text() {
        Some("cores") => Some(None),
        _ => value.integer(1..=MOST_WORKERS).map(NonZeroUsize::new),
    }
}
