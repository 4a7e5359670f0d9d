//! The outputs of a run: the first, `[sink]` or the first `[[output]]`, and those beside it.
//!
//! An `[[output]]` has the keys of `[sink]`, and is read in its place. The first output decides where a run
//! begins: the others are written after it, and corrected to it where they are behind.

use std::path::Path;

use clap::ValueEnum;

use super::answer::OutputAnswer;
use super::format::OutputFormat;
use super::places::{FilePlace, OutputPlace, TablesPlace, TopicPlace};
use super::sides::check_topics;
use crate::config::deployment::source::{DatabaseSource, SourceConfig};
use crate::config::deployment::tables;
use crate::config::settings::{
    ConfigValue, DeploymentKey, FileSettings, ProblemKind, TableRole, without_effect,
};
use dupflow_connectors::kafka::OutputEnvelope;
use dupflow_connectors::sinks::DecisionMode;
use dupflow_connectors::tables::database::Address;

/// The keys of `[sink]` and of `[[output]]`, in the same order.
macro_rules! output_keys {
    ($($of_sink:literal $of_output:literal $expected:expr;)*) => {
        pub(in crate::config::deployment) const SINK_KEYS: &[DeploymentKey] =
            &[$(DeploymentKey { name: concat!("sink.", $of_sink), expected: $expected }),*];
        pub(in crate::config::deployment) const KEYS: &[DeploymentKey] =
            &[$(DeploymentKey { name: concat!("output.#.", $of_output), expected: $expected }),*];
    };
}

output_keys! {
    "kind" "kind" "\"lines\", \"kafka\", \"sqlite\", \"postgres\" or \"null\"";
    "path" "path" "a path; \"-\" is standard output";
    "topic" "topic" "the name of a topic";
    "progress_topic" "progress_topic" "the name of a topic";
    "transactional_id" "transactional_id" "a name";
    "transaction_seconds" "transaction_seconds" "a whole number from 1 to 900";
    "envelope" "envelope" "\"delta\" or \"upsert\"";
    "emit" "answer"
        "\"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\", \"remove\" or \"decisions\"";
    "decisions" "decisions" "\"first\" or \"current\"";
    "format" "format" "\"jsonl\", \"csv\", \"parquet\" or \"arrow\"";
    "evidence" "evidence" "true or false";
    "causes" "causes" "true or false";
    "times" "times" "true or false";
    "on_failure" "on_failure" "\"stop\" or \"wait\"";
    "url" "url" tables::URL;
    "url_file" "url_file" "a path, or \"\" for none";
    "schema" "schema" "the name of a schema, 1 to 63 bytes";
    "prefix" "prefix" "what stands before the names of tables, at most 40 bytes";
}

/// What a failure does, by whether the output waits.
const ON_FAILURE: [(&str, bool); 2] = [("stop", false), ("wait", true)];

/// Most outputs of a run, inclusive.
const MOST_OUTPUTS: usize = 16;

/// An output.
#[derive(Clone, Debug)]
pub struct OutputConfig {
    /// Its table: "sink", or as in "output.2".
    pub table: String,
    /// Where results go.
    pub place: OutputPlace,
    /// What the results are.
    pub answer: OutputAnswer,
    /// When records of a document are written, where the results are decisions.
    pub decisions: DecisionMode,
    /// The file format of the results; a topic has its own.
    pub format: OutputFormat,
    /// Whether each delta carries its cause.
    pub causes: bool,
    /// Whether each change has the times of its epoch.
    pub times: bool,
    /// Whether a failure leaves the output behind; otherwise it ends the run.
    pub waits: bool,
}

/// The table of the first output in a file that has no `[sink]`; `None` if `[sink]` is the first.
pub(in crate::config::deployment) fn first(settings: &FileSettings) -> Option<TableRole> {
    let first = settings.numbers("output").first().copied()?;
    (!settings.has_table("sink")).then(|| role(first))
}

/// Reads the outputs beside the first. If that is an `[[output]]` itself, it is read in the place of `[sink]`
/// meanwhile, and is none of them.
pub(in crate::config::deployment) fn others(
    settings: &mut FileSettings,
    source: &SourceConfig,
) -> Vec<OutputConfig> {
    let numbers = settings.numbers("output");
    if let Some(last) = numbers.last().filter(|_| numbers.len() >= MOST_OUTPUTS) {
        let what = format!("a run has {MOST_OUTPUTS} outputs at most, and there are {}", numbers.len() + 1);
        settings.problem(&format!("output.{last}.kind"), ProblemKind::Contradiction(what));
    }
    let read = |number| {
        let role = role(number);
        settings.read_as(&role, |settings| OutputConfig::other(settings, source, role.table.clone()))
    };
    numbers.into_iter().map(read).collect()
}

fn role(number: usize) -> TableRole {
    TableRole { table: format!("output.{number}"), stands_for: "sink", renamed: ("answer", "emit") }
}

impl OutputConfig {
    /// Reads the table `[sink]` as the first output.
    pub(in crate::config::deployment) fn first(
        settings: &mut FileSettings,
        source: &SourceConfig,
        table: &str,
    ) -> Self {
        let first = Self::read(settings, source, table.to_owned());
        if first.place.as_a::<TopicPlace>().is_none() && settings.sound(&["sink.kind"]) {
            without_effect(settings, "sink.kind", first.place.kind(), &["dead_letter.topic"]);
        }
        if first.waits {
            let what = "the first output decides where a run goes on, so the run waits for it or ends with \
                it: put another output first, or take \"stop\"";
            settings.problem("sink.on_failure", ProblemKind::Contradiction(what.to_owned()));
        }
        first
    }

    /// Reads the table `[sink]` as an output beside the first.
    fn other(settings: &mut FileSettings, source: &SourceConfig, table: String) -> Self {
        if settings.is_set("sink.evidence") {
            let what = "all outputs of pairs have their evidence, or none: set it in the first".to_owned();
            settings.problem("sink.evidence", ProblemKind::Contradiction(what));
        }
        let output = Self::read(settings, source, table);
        let file = output.place.as_a::<FilePlace>().and_then(|file| file.path.as_deref());
        if file.is_some() && output.answer.is_of_changes() && output.format.has_columns {
            let what = "an output beside the first is read back where it is behind, and only JSON Lines \
                are: take \"jsonl\", or put this output first";
            let key = if settings.is_set("sink.format") { "sink.format" } else { "sink.path" };
            settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
        }
        if output.answer.is_of_decisions() && output.decisions == DecisionMode::First {
            let what = "decisions of the kind \"first\" are of each upsert, and an output beside the first \
                one misses those of the epochs by which it is behind after a kill: take \"current\", or put \
                this output first";
            settings.problem("sink.decisions", ProblemKind::Contradiction(what.to_owned()));
        }
        let is_pipe = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file());
        if output.waits && (!output.keeps_marks() || file.is_some_and(is_pipe)) {
            let what = "an output that waits is read back and corrected once it can be written again, and \
                standard output, pipes and results of the end of a run are not: take \"stop\"";
            settings.problem("sink.on_failure", ProblemKind::Contradiction(what.to_owned()));
        }
        output
    }

    fn read(settings: &mut FileSettings, source: &SourceConfig, table: String) -> Self {
        let mut output = Self { table, ..Self::at(OutputPlace::read(settings)) };
        check_topics(settings, &output.place, source);
        let answer = settings.read("sink.emit", |value| value.text()?.parse().ok());
        output.answer = answer.unwrap_or_else(|| output.place.default_answer());
        if let Some(what) = output.refusal(false)
            && settings.sound(&["sink.emit"])
        {
            settings.problem("sink.emit", ProblemKind::Contradiction(what.to_owned()));
        }
        output.decisions = decisions(settings, output.answer);
        output.read_format(settings, source);
        output.causes = settings.read("sink.causes", ConfigValue::boolean).unwrap_or_default();
        output.times = settings.read("sink.times", ConfigValue::boolean).unwrap_or_default();
        output.waits = settings.choose("sink.on_failure", &ON_FAILURE, &[]).unwrap_or_default();
        output
    }

    /// Reads the file format: as set, or else by the extension of the file name.
    fn read_format(&mut self, settings: &mut FileSettings, source: &SourceConfig) {
        let formats: Vec<_> =
            OutputFormat::value_variants().iter().map(|format| (format.name(), *format)).collect();
        let set = settings.choose("sink.format", &formats, &[]);
        let Some(FilePlace { path, .. }) = self.place.as_a().cloned() else { return };
        self.format = set.unwrap_or_else(|| OutputFormat::of_name(path.as_deref()));
        let Self { answer, format, .. } = *self;
        let key = if set.is_some() { "sink.format" } else { "sink.path" };
        // A pipe or a device keeps no marks, so a run cannot continue there.
        let is_kept =
            path.as_deref().is_some_and(|path| path.metadata().map_or(true, |found| found.is_file()));
        let table = source.as_a::<DatabaseSource>();
        let is_read_back = table.is_some() && format.has_columns && answer.is_of_changes() && is_kept;
        let read_back = "a table cannot be read again as it was, so the next run reads its output back, and \
            comma-separated values are not read back: take \"jsonl\", or tables with another sink.kind";
        let other = self.refusal(false).or(is_read_back.then_some(read_back));
        // That a database which is read would be lost is said elsewhere.
        let is_read = |file: &Path| {
            let database = table.and_then(|table| table.0.address.file()?.canonicalize().ok());
            database.is_some() && database == file.canonicalize().ok()
        };
        let misnamed = || {
            let written = path.as_deref().filter(|file| is_kept && !is_read(file))?;
            OutputFormat::misnamed(written, set.is_some())
        };
        if let Some(what) = format.missing().or(other.map(str::to_owned)).or_else(misnamed)
            && settings.sound(&[key, "sink.format", "sink.emit"])
        {
            settings.problem(key, ProblemKind::Contradiction(what));
        }
    }

    /// The output at a place that is typed as `--output` of a replay. A topic holds pairs and clusters as
    /// they are, by their changes.
    ///
    /// # Errors
    /// Why there is no such place.
    pub fn from_typed(
        typed: &Path,
        answer: OutputAnswer,
        decisions: Option<DecisionMode>,
        format: Option<OutputFormat>,
    ) -> Result<Self, String> {
        let mut output = Self { answer, ..Self::at(OutputPlace::typed(typed)?) };
        output.table = format!("--output {}", output.place);
        output.decisions = decisions.unwrap_or_default();
        if let Some(file) = output.place.as_a::<FilePlace>().filter(|_| answer.copied().is_none()) {
            output.format = OutputFormat::of_name(file.path.as_deref());
        }
        if let Some(topic) = output.place.as_a::<TopicPlace>().cloned() {
            output.decisions = decisions.unwrap_or(DecisionMode::Current);
            if let Some(changes) = answer.adds_up {
                output.answer = OutputAnswer::named(changes);
                output.place = OutputPlace::new(TopicPlace { envelope: OutputEnvelope::Upsert, ..topic });
            }
        }
        output.format = format.unwrap_or(output.format);
        Ok(output)
    }

    /// An output of deltas at this place.
    pub fn at(place: OutputPlace) -> Self {
        Self {
            table: "sink".to_owned(),
            place,
            answer: OutputAnswer::default(),
            decisions: DecisionMode::default(),
            format: OutputFormat::default(),
            causes: false,
            times: false,
            waits: false,
        }
    }

    /// Why the results cannot be written there, by a replay or by a run; `None` if they can.
    pub fn refusal(&self, is_replay: bool) -> Option<&'static str> {
        if self.answer.needs_replay() && !is_replay {
            return Some(
                "a run that goes on has no end at which this could be written: take `dupflow replay`",
            );
        }
        self.place.refusal(self.answer, self.format, is_replay)
    }

    /// Why these cannot be the outputs of one replay.
    pub fn conflict(outputs: &[Self], answer: OutputAnswer) -> Option<String> {
        if outputs.len() > MOST_OUTPUTS {
            return Some(format!(
                "a replay has {MOST_OUTPUTS} outputs at most, and there are {}",
                outputs.len()
            ));
        }
        if outputs.len() > 1 && answer.needs_replay() {
            return Some(
                "records of documents, items and rejected candidates go to one place: copy the file".into(),
            );
        }
        let corrected = outputs.iter().filter(|output| output.place.is_corrected()).count();
        if answer.is_of_changes() && corrected > 0 && corrected < outputs.len() {
            let what = "a file gets changes epoch by epoch, and a topic and tables in one step at the end: \
                take --emit pairs or clusters, or one replay for each";
            return Some(what.to_owned());
        }
        outputs.iter().enumerate().find_map(|(at, output)| {
            let (_, what) = outputs[..at].iter().find_map(|other| shared(&other.place, &output.place))?;
            Some(format!("{what} is named twice"))
        })
    }

    /// Whether the output has a mark from which a run can go on.
    fn keeps_marks(&self) -> bool {
        self.place.keeps_marks(self.answer)
    }

    /// The key of what the results are.
    pub fn answer_key(&self) -> String {
        let key = if self.table == "sink" { "emit" } else { "answer" };
        format!("{}.{key}", self.table)
    }
}

/// Reports outputs at one place, and outputs that a run could not go on with after the first.
pub(in crate::config::deployment) fn check_places(
    settings: &mut FileSettings,
    first: &OutputConfig,
    others: &[OutputConfig],
) {
    for (at, output) in others.iter().enumerate() {
        let key = |key: &str| format!("{}.{key}", output.table);
        if output.keeps_marks() && !first.keeps_marks() {
            let what = "the first output decides where a run goes on, and has no mark there: standard output \
                and results of the end of a run come after those of changes, topics and tables";
            settings.problem(&key("kind"), ProblemKind::Contradiction(what.to_owned()));
        }
        for earlier in [first].into_iter().chain(&others[..at]) {
            if let Some((of, what)) = shared(&earlier.place, &output.place) {
                let what = format!("{what} is that of {} too: each output has its own", earlier.table);
                settings.problem(&key(of), ProblemKind::Contradiction(what));
            }
        }
    }
}

/// What two outputs share and must not: the key, and its name in a message. Files are compared where all
/// files are.
fn shared(one: &OutputPlace, other: &OutputPlace) -> Option<(&'static str, String)> {
    if one.is_stdout() && other.is_stdout() {
        return Some(("path", "standard output".to_owned()));
    }
    if let (Some(one), Some(other)) = (one.as_a::<TopicPlace>(), other.as_a::<TopicPlace>()) {
        // Marks of several outputs may be in one topic: their keys are the transactional ids.
        let TopicPlace { topic, progress_topic, transactional_id, .. } = other;
        let shared = [
            ("topic", topic, topic == &one.topic || topic == &one.progress_topic),
            ("progress_topic", progress_topic, *progress_topic == one.topic),
            ("transactional_id", transactional_id, *transactional_id == one.transactional_id),
        ];
        let shared = shared.into_iter().find(|(.., is_shared)| *is_shared);
        return shared.map(|(key, name, _)| (key, format!("\"{name}\"")));
    }
    let (one, other) = (one.as_a::<TablesPlace>()?, other.as_a::<TablesPlace>()?);
    match (&one.address, &other.address) {
        (Address::Sqlite(one), Address::Sqlite(other)) => {
            (one == other).then(|| ("path", "this database".to_owned()))
        }
        _ => (one == other).then(|| ("prefix", "the place of these tables".to_owned())),
    }
}

/// When records of a document are written, where the results are decisions.
fn decisions(settings: &mut FileSettings, answer: OutputAnswer) -> DecisionMode {
    let modes = DecisionMode::ALL.map(|mode| (mode.name(), mode));
    let set = settings.choose("sink.decisions", &modes, &[]);
    if set.is_some() && !answer.is_of_decisions() && settings.sound(&["sink.emit"]) {
        let what = "it has an effect with sink.emit = \"decisions\" only".to_owned();
        settings.problem("sink.decisions", ProblemKind::Contradiction(what));
    }
    set.unwrap_or_default()
}
