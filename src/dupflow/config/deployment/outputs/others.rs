//! The outputs of a run: the first, `[sink]` or the first `[[output]]`, and those beside it.
//!
//! An `[[output]]` has the keys of `[sink]`, and is read in its place. The first output decides where a run
//! begins: the others are written after it, and corrected to it where they are behind.

use std::path::Path;

use super::results::{self, EmitKind, OutputFormat};
use super::sink::{self, SinkConfig};
use crate::config::deployment::source::SourceConfig;
use crate::config::deployment::tables;
use crate::config::settings::{ConfigValue, DeploymentKey, FileSettings, ProblemKind, TableRole};
use dupflow_connectors::sinks::DecisionMode;
use dupflow_connectors::tables::database::Address;

/// The keys of `[sink]` but for those of databases.
pub(in crate::config::deployment) const SINK_KEYS: [DeploymentKey; 14] = [
    DeploymentKey { name: "sink.kind", expected: "\"lines\", \"kafka\", \"sqlite\" or \"postgres\"" },
    DeploymentKey { name: "sink.path", expected: "a path; \"-\" is standard output" },
    DeploymentKey { name: "sink.topic", expected: "the name of a topic" },
    DeploymentKey { name: "sink.progress_topic", expected: "the name of a topic" },
    DeploymentKey { name: "sink.transactional_id", expected: "a name" },
    DeploymentKey { name: "sink.transaction_seconds", expected: "a whole number from 1 to 900" },
    DeploymentKey { name: "sink.envelope", expected: "\"delta\" or \"upsert\"" },
    DeploymentKey {
        name: "sink.emit",
        expected: "\"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\", \"remove\" or \
            \"decisions\"",
    },
    DeploymentKey { name: "sink.decisions", expected: "\"first\" or \"current\"" },
    DeploymentKey { name: "sink.format", expected: "\"jsonl\", \"csv\", \"parquet\" or \"arrow\"" },
    DeploymentKey { name: "sink.evidence", expected: "true or false" },
    DeploymentKey { name: "sink.causes", expected: "true or false" },
    DeploymentKey { name: "sink.times", expected: "true or false" },
    DeploymentKey { name: "sink.on_failure", expected: "\"stop\" or \"wait\"" },
];

/// The number of keys of an output.
const OUTPUT_KEYS: usize = SINK_KEYS.len() + tables::SINK_KEYS.len();

/// The keys of `[[output]]`: those of `[sink]`, in the same order.
pub(in crate::config::deployment) const KEYS: [DeploymentKey; OUTPUT_KEYS] = {
    const NAMES: [&str; OUTPUT_KEYS] = [
        "output.#.kind",
        "output.#.path",
        "output.#.topic",
        "output.#.progress_topic",
        "output.#.transactional_id",
        "output.#.transaction_seconds",
        "output.#.envelope",
        "output.#.answer",
        "output.#.decisions",
        "output.#.format",
        "output.#.evidence",
        "output.#.causes",
        "output.#.times",
        "output.#.on_failure",
        "output.#.url",
        "output.#.url_file",
        "output.#.schema",
        "output.#.prefix",
    ];
    let mut keys = [DeploymentKey { name: "", expected: "" }; OUTPUT_KEYS];
    let mut at = 0;
    while at < keys.len() {
        let own = at < SINK_KEYS.len();
        let of = if own { SINK_KEYS[at] } else { tables::SINK_KEYS[at - SINK_KEYS.len()] };
        keys[at] = DeploymentKey { name: NAMES[at], expected: of.expected };
        at += 1;
    }
    keys
};

/// What a failure does, by whether the output waits.
const ON_FAILURE: [(&str, bool); 2] = [("stop", false), ("wait", true)];

/// Most outputs of a run, inclusive.
pub(super) const MOST_OUTPUTS: usize = 16;

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputConfig {
    /// Its table: "sink", or as in "output.2".
    pub table: String,
    /// Where results go.
    pub sink: SinkConfig,
    /// What the results are.
    pub emit: EmitKind,
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
        let sink = sink::sink(settings);
        let first = Self::read(settings, source, sink, table.to_owned());
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
        let sink = sink::place(settings);
        let output = Self::read(settings, source, sink, table);
        let is_read_back = matches!(output.sink, SinkConfig::Lines { path: Some(_), .. });
        if is_read_back && output.emit.is_of_changes() && output.format.has_columns {
            let what = "an output beside the first is read back where it is behind, and only JSON Lines \
                are: take \"jsonl\", or put this output first";
            let key = if settings.is_set("sink.format") { "sink.format" } else { "sink.path" };
            settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
        }
        if output.emit == EmitKind::Decisions && output.decisions == DecisionMode::First {
            let what = "decisions of the kind \"first\" are of each upsert, and an output beside the first \
                one misses those of the epochs by which it is behind after a kill: take \"current\", or put \
                this output first";
            settings.problem("sink.decisions", ProblemKind::Contradiction(what.to_owned()));
        }
        let is_pipe = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file());
        let is_pipe = matches!(&output.sink, SinkConfig::Lines { path: Some(path), .. } if is_pipe(path));
        if output.waits && (!output.keeps_marks() || is_pipe) {
            let what = "an output that waits is read back and corrected once it can be written again, and \
                standard output, pipes and results of the end of a run are not: take \"stop\"";
            settings.problem("sink.on_failure", ProblemKind::Contradiction(what.to_owned()));
        }
        output
    }

    fn read(settings: &mut FileSettings, source: &SourceConfig, sink: SinkConfig, table: String) -> Self {
        sink::check_topics(settings, &sink, source);
        let emit = results::emit(settings, &sink);
        Self {
            table,
            decisions: results::decisions(settings, emit),
            format: results::output_format(settings, source, &sink, emit),
            causes: settings.read("sink.causes", ConfigValue::boolean).unwrap_or_default(),
            times: settings.read("sink.times", ConfigValue::boolean).unwrap_or_default(),
            waits: settings.choose("sink.on_failure", &ON_FAILURE, &[]).unwrap_or_default(),
            sink,
            emit,
        }
    }

    /// Whether the output has a mark from which a run can go on.
    fn keeps_marks(&self) -> bool {
        match &self.sink {
            SinkConfig::Lines { path, .. } => path.is_some() && self.emit.is_of_changes(),
            SinkConfig::Kafka { .. } | SinkConfig::Tables(_) => true,
        }
    }
}

/// Reports outputs at one place, and outputs that a run could not go on with after the first.
pub(in crate::config::deployment) fn check_places(settings: &mut FileSettings, outputs: &[OutputConfig]) {
    for (at, output) in outputs.iter().enumerate().skip(1) {
        let key = |key: &str| format!("{}.{key}", output.table);
        if output.keeps_marks() && !outputs[0].keeps_marks() {
            let what = "the first output decides where a run goes on, and has no mark there: standard output \
                and results of the end of a run come after those of changes, topics and tables";
            settings.problem(&key("kind"), ProblemKind::Contradiction(what.to_owned()));
        }
        for earlier in &outputs[..at] {
            if let Some((of, what)) = shared(&earlier.sink, &output.sink) {
                let what = format!("{what} is that of {} too: each output has its own", earlier.table);
                settings.problem(&key(of), ProblemKind::Contradiction(what));
            }
        }
    }
}

/// What two outputs share and must not: the key, and its name in a message. Files are compared where all
/// files are.
pub(super) fn shared(one: &SinkConfig, other: &SinkConfig) -> Option<(&'static str, String)> {
    match (one, other) {
        (SinkConfig::Lines { path, .. }, SinkConfig::Lines { path: other, .. })
            if is_stdout(path.as_deref()) && is_stdout(other.as_deref()) =>
        {
            Some(("path", "standard output".to_owned()))
        }
        (
            SinkConfig::Kafka { topic, progress_topic, transactional_id, .. },
            SinkConfig::Kafka { topic: other, progress_topic: marks, transactional_id: id, .. },
        ) => {
            // Marks of several outputs may be in one topic: their keys are the transactional ids.
            let shared = [
                ("topic", other, other == topic || other == progress_topic),
                ("progress_topic", marks, marks == topic),
                ("transactional_id", id, id == transactional_id),
            ];
            let shared = shared.into_iter().find(|(.., is_shared)| *is_shared);
            shared.map(|(key, name, _)| (key, format!("\"{name}\"")))
        }
        (SinkConfig::Tables(one), SinkConfig::Tables(other)) => match (&one.address, &other.address) {
            (Address::Sqlite(one), Address::Sqlite(other)) => {
                (one == other).then(|| ("path", "this database".to_owned()))
            }
            _ => (one == other).then(|| ("prefix", "the place of these tables".to_owned())),
        },
        _ => None,
    }
}

/// Whether a place is standard output, by one of its names.
fn is_stdout(path: Option<&Path>) -> bool {
    path.is_none_or(|path| ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&path))
}
