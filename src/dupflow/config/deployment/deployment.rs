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
use super::outputs::{
    self, AuditConfig, DocumentsConfig, OutputAnswer, OutputConfig, OutputFormat, OutputPlace, TopicPlace,
};
use super::processes::{self, ProcessConfig};
use super::source::reference::{self, ReferenceConfig};
use super::source::{self, DatabaseSource, FilesSource, SourceConfig, TopicSource};
use super::storage::{self, DeadLetterConfig, SpillConfig, StateConfig};
use super::views::{self, ViewConfig};
use super::watch::{self, WatchConfig};
use super::{broker, values};
use crate::config::settings::{ConfigError, ConfigValue, FileSettings, ProblemKind, read_file};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::{FollowedTables, Input};
use dupflow_connectors::intake::{EpochLimits, InputFile, SourceError};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_core::doc::fields::FieldRules;

/// Most worker threads of one process, inclusive. Each has a stack, and a channel to each other worker for
/// every operator.
pub const MOST_WORKERS: usize = 1024;

/// Where a pipeline runs, validated.
#[derive(Clone, Debug)]
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
    /// The first output, which decides where a run goes on.
    pub output: OutputConfig,
    /// The outputs beside it.
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
    /// Whether each pair carries its evidence.
    pub evidence: bool,
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

    /// Reads all tables. The first output is read as `[sink]`, and is of the table `output_table`.
    fn read(settings: &mut FileSettings, output_table: &str, shown: BTreeMap<String, Json>) -> Self {
        let fields = source::fields(settings);
        let source = SourceConfig::read(settings, &fields);
        let first = OutputConfig::first(settings, &source, output_table);
        let others = outputs::others(settings, &source);
        outputs::check_places(settings, &first, &others);
        let written: Vec<&TopicPlace> =
            [&first].into_iter().chain(&others).filter_map(|output| output.place.as_a()).collect();
        let views = views::views(settings, &fields, &first.place);
        let watch = watch::watch(settings, &first.place);
        let deployment = Self {
            workers: settings.read("workers", workers).unwrap_or_default(),
            spill: storage::spill(settings),
            shutdown: values::seconds(settings, "shutdown_seconds", 0, 10),
            commit: source::commit(settings, &source),
            dead_letter: storage::dead_letter(settings, &written),
            kafka: broker::connection(settings, &source, !written.is_empty()),
            max_bad: source::max_bad(settings),
            max_unread: source::max_unread(settings),
            source,
            fields,
            evidence: settings.read("sink.evidence", ConfigValue::boolean).unwrap_or_default(),
            documents: DocumentsConfig::default(),
            reference: reference::reference(settings),
            against: 0,
            benchmark: None,
            audit: AuditConfig::default(),
            state: storage::state(settings),
            views,
            monitor: monitor::monitor(settings),
            watch,
            processes: processes::processes(settings),
            level: logging::level(settings),
            format: logging::format(settings),
            shown,
            output: first,
            others,
        };
        if deployment.files().is_some_and(|files| files.posted.is_some())
            && deployment.monitor.is_none()
            && settings.sound(&["source.kind", "monitor.listen"])
        {
            let what = "documents are posted to the address of the page: set monitor.listen";
            settings.problem("source.kind", ProblemKind::Contradiction(what.to_owned()));
        }
        storage::check_history(settings, deployment.state.as_ref(), deployment.monitor.as_ref());
        let (names, topics) = (deployment.side_names(), deployment.other_topics());
        outputs::check_side_names(settings, &deployment.output.place, &names, &topics);
        deployment
    }
}

impl Deployment {
    /// Whether the corpus is compared with a reference.
    pub fn has_reference(&self) -> bool {
        self.against > 0 || self.reference.is_some()
    }

    /// The files that are read, if the source is some.
    pub fn files(&self) -> Option<&FilesSource> {
        self.source.as_a()
    }

    /// The journal of what clients post, and the most bytes of bodies that wait, if the source is that.
    pub fn posted(&self) -> Option<(&Path, usize)> {
        let files = self.files()?;
        Some((files.inputs.first()?, files.posted?))
    }

    /// The files that are read, as they are found; empty if a topic or a table is. A journal may be missing.
    ///
    /// # Errors
    /// If they cannot be found.
    pub fn resolve(&self) -> Result<Vec<Input>, SourceError> {
        match self.posted() {
            Some((journal, _)) => Ok(vec![Input::file(journal, self.layout())]),
            None => Input::resolve(self.pinned_inputs(), self.layout()),
        }
    }

    /// The inputs, the tables that are followed as of the versions that are read.
    fn pinned_inputs(&self) -> Vec<PathBuf> {
        self.files().map_or_else(Vec::new, |files| files.tables.pinned(&files.inputs))
    }

    /// Whether tables are followed: then the inputs end when one of them has another version.
    pub fn follows_tables(&self) -> bool {
        self.files().is_some_and(|files| !files.tables.is_empty())
    }

    /// Goes on to the newest versions of the tables that are followed.
    ///
    /// # Errors
    /// Why these are not known, in one line.
    pub fn follow_on(&mut self) -> Result<(), String> {
        if let Some(files) = self.files() {
            let tables = FollowedTables::now(&files.inputs)?;
            self.source = SourceConfig::new(FilesSource { tables, ..files.clone() });
        }
        Ok(())
    }

    /// How records of files are mapped to documents.
    pub fn layout(&self) -> InputLayout {
        self.files().map(|files| files.layout.clone()).unwrap_or_default()
    }

    /// The inputs as the user named them; empty if a topic or a table is read.
    pub fn inputs(&self) -> &[PathBuf] {
        self.files().map_or(&[], |files| &files.inputs)
    }

    /// The output file; `None` if the output is no file.
    pub fn output_file(&self) -> Option<&Path> {
        self.output.place.file()
    }

    /// The file of a long list of inputs, beside the mark of the output; `None` if the output is no file that
    /// keeps marks.
    pub fn input_list(&self) -> Option<PathBuf> {
        let mut name = self.output.place.mark_file(self.output.answer)?.into_os_string();
        name.push(InputFile::SUFFIX);
        Some(name.into())
    }

    /// The database file that is read; `None` if the source is no SQLite database.
    pub fn database_file(&self) -> Option<&Path> {
        self.source.as_a::<DatabaseSource>()?.0.address.file()
    }

    /// The file that lists inputs, if there is one.
    pub fn files_from(&self) -> Option<&Path> {
        self.files()?.files_from.as_deref()
    }

    /// Replaces the output by standard output, and drops state, monitor, watches and dead letters. A table is
    /// not followed.
    pub fn prints_only(&mut self) {
        if let Some(files) = self.files().filter(|files| !files.tables.is_empty()) {
            let files = FilesSource { follow: false, tables: FollowedTables::default(), ..files.clone() };
            self.source = SourceConfig::new(files);
        }
        self.output.place = OutputPlace::stdout();
        self.output.format = OutputFormat::default();
        self.others.clear();
        self.state = None;
        self.dead_letter = None;
        self.views.clear();
        self.monitor = None;
        self.watch = None;
    }

    /// All outputs.
    pub fn all_outputs(&self) -> impl Iterator<Item = &OutputConfig> {
        [&self.output].into_iter().chain(&self.others)
    }

    /// Whether the run needs a broker.
    pub fn has_broker(&self) -> bool {
        self.source.as_a::<TopicSource>().is_some()
            || self.all_outputs().any(|output| output.place.as_a::<TopicPlace>().is_some())
            || self.watch.as_ref().is_some_and(|watch| watch.topic.is_some())
    }

    /// The topics that are read, that of bad records, and those of outputs beside the first, each with its
    /// key.
    fn other_topics(&self) -> Vec<(String, &str)> {
        let mut topics = Vec::new();
        if let Some(TopicSource { topic, .. }) = self.source.as_a() {
            topics.push(("source.topic".to_owned(), topic.as_str()));
        }
        if let Some(DeadLetterConfig::Topic(topic)) = &self.dead_letter {
            topics.push(("dead_letter.topic".to_owned(), topic));
        }
        let watched = self.watch.as_ref().and_then(|watch| watch.topic.as_deref());
        topics.extend(watched.map(|topic| ("watch.topic".to_owned(), topic)));
        for OutputConfig { table, place, .. } in &self.others {
            if let Some(TopicPlace { topic, progress_topic, .. }) = place.as_a() {
                topics.push((format!("{table}.topic"), topic));
                topics.push((format!("{table}.progress_topic"), progress_topic));
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
        one.output = output.clone();
        one.evidence &= output.answer.is_of_pairs();
        one.dead_letter.take_if(|letters| matches!(letters, DeadLetterConfig::Topic(_)));
        one.others.clear();
        one
    }

    /// What the results of all outputs are.
    pub fn answers(&self) -> impl Iterator<Item = OutputAnswer> {
        self.all_outputs().map(|output| output.answer)
    }

    /// Whether the changes of an output have times.
    pub fn has_times(&self) -> bool {
        self.all_outputs().any(|output| output.times)
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
