//! The keys of `[sink]` that decide what the results are, and in which format.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Deref;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::sink::SinkConfig;
use crate::config::deployment::source::SourceConfig;
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_connectors::formats::{FileFormat, instead_of, promised};
use dupflow_connectors::rewrite::CopyResume;
use dupflow_connectors::sinks::{DecisionMode, DocumentList, ROW_FORMATS, RowFormat};
use dupflow_core::time::UnixTime;
use dupflow_run::missing_feature;

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
    /// In every epoch, what is found of each document that it upserts.
    Decisions,
    /// At the end of the input, the records of the documents to keep, as they were read.
    Documents,
    /// At the end of the input, the records of the documents to remove, as they were read.
    RemovedDocuments,
    /// At the end of the input, what is found of each item of the reference.
    Items,
    /// At the end of the input, this many of the candidates that the filter rejects.
    #[value(skip)]
    Rejected(NonZeroUsize),
}

/// The file format of the results: one of [`ROW_FORMATS`].
#[derive(Clone, Copy, Debug)]
pub struct OutputFormat(&'static RowFormat);

/// A place of results, as far as it decides which it can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultPlace {
    /// A file, or standard output.
    File(OutputFormat),
    /// A topic.
    Topic,
    /// Tables of a database.
    Tables,
}

/// How records of documents are copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentsConfig {
    /// The name of the columns that mark each record, where the records of all documents are copied.
    pub mark: Option<String>,
    /// Bytes of records, before compression, after which a file ends; `None`: files are those of the input.
    pub shard_bytes: Option<NonZeroU64>,
    /// Where a copy that ended early is continued.
    pub resume: Option<CopyResume>,
}

/// What is recorded for an audit, and up to which time events count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuditConfig {
    /// Where the provenance of the result is written.
    pub provenance: ProvenancePlace,
    /// Whether each change has the times of its epoch.
    pub times: bool,
    /// Events after this time are not applied.
    pub until: Option<UnixTime>,
}

/// Where the provenance of a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProvenancePlace {
    /// Nowhere; no digest is computed.
    #[default]
    Nowhere,
    /// With the counts of the run.
    Stats,
    /// With the counts, and in the output or beside it.
    Output,
}

impl Default for OutputFormat {
    fn default() -> Self {
        Self(&ROW_FORMATS[0])
    }
}

impl PartialEq for OutputFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for OutputFormat {}

impl Deref for OutputFormat {
    type Target = RowFormat;

    fn deref(&self) -> &RowFormat {
        self.0
    }
}

impl ValueEnum for OutputFormat {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<OutputFormat>> =
            LazyLock::new(|| ROW_FORMATS.iter().map(OutputFormat).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help))
    }
}

impl OutputFormat {
    /// The name in a deployment file.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The format by a file name; the default if the name says none.
    pub fn of_name(path: Option<&Path>) -> Self {
        path.and_then(Self::named).unwrap_or_default()
    }

    /// The format that the extension of a file name says.
    fn named(path: &Path) -> Option<Self> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let said = promised(path).0.map_or("", FileFormat::name);
        let all = Self::value_variants().iter().copied();
        all.clone()
            .find(|format| ending == *format.name())
            .or_else(|| all.clone().find(|format| said == format.name()))
    }

    /// The names of all, as in a sentence.
    fn names() -> String {
        let names: Vec<_> = ROW_FORMATS.iter().map(|format| format!("\"{}\"", format.name)).collect();
        let (last, others) = names.split_last().expect("there are formats");
        format!("{} or {last}", others.join(", "))
    }

    /// Why a result that is rows cannot have this name, which says another format or a compression. A format
    /// that is set beside it counts more than the name's.
    pub fn misnamed(path: &Path, is_set: bool) -> Option<String> {
        let rows = format!("rows are {}", Self::names());
        match promised(path) {
            (_, Some(end)) => Some(format!(
                "{path:?} is compressed by its name, and rows are written as they are: leave {end} out, or \
                    compress standard output"
            )),
            (None, None) if !is_set && Self::named(path).is_none() => {
                instead_of(path).map(|help| format!("{path:?}: {rows}; {help}"))
            }
            _ if Self::named(path).is_some() => None,
            (None, None) => None,
            (Some(named), None) => (!is_set)
                .then(|| format!("{path:?} is {} by its name: {rows}; name another format", named.name())),
        }
    }

    /// Why this build cannot write the format; `None` if it can.
    pub fn missing(self) -> Option<String> {
        let (what, feature) = self.feature.filter(|_| self.open.is_none())?;
        Some(missing_feature(what, feature))
    }
}

impl EmitKind {
    /// Why these results cannot be written to a place, by a replay or by a run; `None` if they can.
    pub fn refusal(self, place: ResultPlace, is_replay: bool) -> Option<&'static str> {
        let is_of_end = matches!(self, Self::Items | Self::Rejected(_)) || self.copied().is_some();
        match place {
            _ if is_of_end && !is_replay => {
                Some("a run that goes on has no end at which this could be written: take `dupflow replay`")
            }
            ResultPlace::Topic if self.is_list() => Some(
                "a list says at the end which documents stay, and a topic is told what each epoch changes: \
                take \"decisions\", which say of each document which older one it repeats, also when that \
                changes (\"current\"), or write the list to a file",
            ),
            ResultPlace::Topic => (!self.is_of_changes()).then_some(
                "a topic takes changes: set it to \"deltas\", \"cluster-deltas\" or \"decisions\", and \
                sink.envelope to \"upsert\" for the pairs or the clusters as they are",
            ),
            ResultPlace::Tables if matches!(self, Self::Keep | Self::Remove) => Some(
                "a database has both lists as views, kept and removed, of the pairs and documents in its \
                tables: set it to \"pairs\"",
            ),
            ResultPlace::Tables => (!self.has_similarities()).then_some(
                "a database keeps pairs, clusters and documents: set it to \"pairs\", to \"deltas\" for \
                every change of a pair besides, or to \"decisions\" for the decision of each document \
                besides",
            ),
            ResultPlace::File(format) if format.is_of_end && self.is_of_changes() && !is_replay => Some(
                "an Arrow or a Parquet file is whole at its end only, and changes are written as they come: \
                take \"jsonl\" or \"csv\", or another sink.emit",
            ),
            ResultPlace::File(_) => None,
        }
    }

    /// What stands before the size of a sample of rejected candidates.
    pub const REJECTED: &str = "rejected:";

    /// Whether the results are written epoch by epoch, and not at the end.
    pub fn is_of_changes(self) -> bool {
        matches!(self, Self::Deltas | Self::ClusterDeltas | Self::Decisions)
    }

    /// Whether the result is a list of documents to keep or to remove, or their records.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Keep | Self::Remove) || self.copied().is_some()
    }

    /// The list of documents whose records are copied, if the result is records.
    pub fn copied(self) -> Option<DocumentList> {
        match self {
            Self::Documents => Some(DocumentList::Kept),
            Self::RemovedDocuments => Some(DocumentList::Removed),
            _ => None,
        }
    }

    /// Whether rows hold similarities.
    pub fn has_similarities(self) -> bool {
        self.is_of_pairs() || self == Self::Decisions
    }

    /// Whether rows are about pairs, which may carry evidence.
    pub fn is_of_pairs(self) -> bool {
        matches!(self, Self::Deltas | Self::Pairs)
    }
}

impl FromStr for EmitKind {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let Some(most) = typed.strip_prefix(EmitKind::REJECTED) else {
            return <Self as ValueEnum>::from_str(typed, false);
        };
        let most = most.parse().map(Self::Rejected);
        most.map_err(|_| "expected \"rejected:\" and a number of pairs, at least 1".to_owned())
    }
}

impl fmt::Display for EmitKind {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(most) => write!(f, "{}{most}", Self::REJECTED),
            named => f.write_str(named.to_possible_value().as_ref().map_or("", |value| value.get_name())),
        }
    }
}

/// What the results are: as set, or the default of the sink. Reports a kind of result that the sink cannot
/// take.
pub(super) fn emit(settings: &mut FileSettings, sink: &SinkConfig) -> EmitKind {
    // A database keeps current pairs by default; the history of changes only on request.
    let default = if matches!(sink, SinkConfig::Tables(_)) { EmitKind::Pairs } else { EmitKind::Deltas };
    let emit = settings.read("sink.emit", |value| value.text()?.parse().ok()).unwrap_or(default);
    let place = match sink {
        SinkConfig::Kafka { .. } => ResultPlace::Topic,
        SinkConfig::Tables(_) => ResultPlace::Tables,
        SinkConfig::Lines { .. } => ResultPlace::File(OutputFormat::default()),
    };
    if let Some(what) = emit.refusal(place, false)
        && settings.sound(&["sink.emit"])
    {
        settings.problem("sink.emit", ProblemKind::Contradiction(what.to_owned()));
    }
    emit
}

/// When records of a document are written, where the results are decisions.
pub(super) fn decisions(settings: &mut FileSettings, emit: EmitKind) -> DecisionMode {
    let modes = DecisionMode::ALL.map(|mode| (mode.name(), mode));
    let set = settings.choose("sink.decisions", &modes, &[]);
    if set.is_some() && emit != EmitKind::Decisions && settings.sound(&["sink.emit"]) {
        let what = "it has an effect with sink.emit = \"decisions\" only".to_owned();
        settings.problem("sink.decisions", ProblemKind::Contradiction(what));
    }
    set.unwrap_or_default()
}

/// The file format: as set, or else by the extension of the file name.
pub(super) fn output_format(
    settings: &mut FileSettings,
    source: &SourceConfig,
    sink: &SinkConfig,
    emit: EmitKind,
) -> OutputFormat {
    let formats: Vec<_> =
        OutputFormat::value_variants().iter().map(|format| (format.name(), *format)).collect();
    let set = settings.choose("sink.format", &formats, &[]);
    let SinkConfig::Lines { path, .. } = sink else { return OutputFormat::default() };
    let format = set.unwrap_or_else(|| OutputFormat::of_name(path.as_deref()));
    let key = if set.is_some() { "sink.format" } else { "sink.path" };
    // A pipe or a device keeps no marks, so a run cannot continue there.
    let is_kept = path.as_deref().is_some_and(|path| path.metadata().map_or(true, |found| found.is_file()));
    let is_read_back =
        matches!(source, SourceConfig::Table(_)) && format.has_columns && emit.is_of_changes() && is_kept;
    let read_back = "a table cannot be read again as it was, so the next run reads its output back, and \
        comma-separated values are not read back: take \"jsonl\", or tables with another sink.kind";
    let other = emit.refusal(ResultPlace::File(format), false).or(is_read_back.then_some(read_back));
    // That a database which is read would be lost is said elsewhere.
    let is_read = |file: &Path| {
        let SourceConfig::Table(table) = source else { return false };
        let database = table.address.file().and_then(|database| database.canonicalize().ok());
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
    format
}
