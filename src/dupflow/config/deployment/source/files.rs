//! Feeds, other files and folders as the source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layout::{LayoutKeys, layout};
use super::place::{SourceConfig, SourceKind, SourcePlace, SourceSettings, fields_of};
use crate::config::deployment::values::path;
use crate::config::settings::{ConfigValue, FileSettings, ProblemKind};
use dupflow_connectors::formats::{IdRule, InputLayout, NotFoundRule, SurrogateRule, WarcId};
use dupflow_connectors::inputs::{Files, FollowedTables, GoneInputs, listed, unreadable};
use dupflow_connectors::intake::{EpochRule, Source, Speed};
use dupflow_core::description::Description;

pub(super) const FILES: SourceKind = SourceKind {
    name: "files",
    keys: &[KEYS, &RECORD_KEYS, &[FOLLOW_KEY]],
    missing: || None,
    read: |settings, _| SourceConfig::new(read(settings)),
};

const KEYS: &[&str] = &[
    "source.inputs",
    "source.files_from",
    EPOCH_KEY,
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
    "warc.not_found",
];
pub(super) const EPOCH_KEY: &str = "source.epoch";
pub(super) const CANONICAL_KEY: &str = "source.canonical_url";
pub(super) const GONE_KEY: &str = "source.gone";
/// Also a key of tables, which are followed too.
const FOLLOW_KEY: &str = "source.follow";

/// The keys of records, also of those of a topic.
pub(super) const RECORD_KEYS: [&str; 6] = [
    "source.format",
    "source.text_path",
    "source.id_path",
    "source.ts_path",
    "source.op_path",
    SURROGATES_KEY,
];
pub(super) const SURROGATES_KEY: &str = "json.surrogates";

/// Feeds, other files and folders.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSource {
    /// The inputs in reading order, at least one; `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// The file that lists the last of the inputs, if there is one.
    pub files_from: Option<PathBuf>,
    /// How records are mapped to documents.
    pub layout: InputLayout,
    /// Where the input is cut into epochs.
    pub epoch: EpochRule,
    /// How fast the input is played.
    pub speed: Speed,
    /// Whether the last input is read on as it grows.
    pub follow: bool,
    /// The tables that are followed, at the versions that are read.
    pub tables: FollowedTables,
    /// What a later run does if inputs are missing that were read.
    pub gone: GoneInputs,
    /// If the input is the journal of what clients post: most bytes of bodies that wait for their answers.
    pub posted: Option<usize>,
}

pub(super) const SOURCE_LAYOUT: LayoutKeys = LayoutKeys {
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
    warc_not_found: Some("warc.not_found"),
    ids: "source.ids",
    id_rules: &[("once", IdRule::Once), ("file", IdRule::File), ("last", IdRule::Last)],
    canonical_url: CANONICAL_KEY,
};

impl SourcePlace for FilesSource {
    fn name(&self) -> String {
        match self.inputs.len() {
            1 if self.posted.is_some() => format!("what clients post, by {:?},", self.inputs[0]),
            1 => "1 input".to_owned(),
            inputs => format!("{inputs} inputs"),
        }
    }

    fn text(&self) -> String {
        self.layout.text.clone()
    }

    /// It always has `source.kind`. Every key of the tables `[source]`, `[csv]`, `[json]` and `[warc]` has a
    /// class in `tests/cli/rules.rs`.
    fn description(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut put = |key, value: String, usual: &str| {
            if value != usual {
                found.push((key, value));
            }
        };
        put("source.kind", "files".to_owned(), "");
        put(
            "source.format",
            self.layout.format.map_or_else(String::new, |format| format.name().to_owned()),
            "",
        );
        put("source.id_path", self.layout.id.clone(), "id");
        put("source.text_path", self.layout.text.clone(), "text");
        put("source.ts_path", self.layout.ts.clone(), "ts");
        put("source.op_path", described_operation(&self.layout.op), "op");
        let byte = |byte: Option<u8>| byte.map_or_else(String::new, |byte| char::from(byte).to_string());
        put("csv.delimiter", byte(self.layout.csv_delimiter), "");
        put("csv.escape", byte(self.layout.csv_escape), "");
        put("csv.quote", self.layout.csv_quote.name().unwrap_or_default(), "");
        put("json.surrogates", described_surrogates(self.layout.surrogates), "");
        let ids = match self.layout.ids {
            // Both rules give a document the same id.
            IdRule::Once | IdRule::Last => "",
            IdRule::File => "file",
        };
        put("source.ids", ids.to_owned(), "");
        put("source.canonical_url", if self.layout.canonical_url { "true" } else { "" }.to_owned(), "");
        put("warc.id", if self.layout.warc_id == WarcId::Uri { "uri" } else { "" }.to_owned(), "");
        let deletes = self.layout.warc_not_found == NotFoundRule::Delete;
        put("warc.not_found", if deletes { "delete" } else { "" }.to_owned(), "");
        found
    }

    fn shared(&self) -> Description {
        let names = self.inputs.iter().map(|input| input.to_string_lossy().into_owned());
        Description::new()
            .with("source.inputs", names.collect::<Vec<_>>().join("\n").as_str())
            .with("source.layout", fields_of(&self.layout).as_str())
            .with("source.epoch", self.epoch.to_string().as_str())
    }

    fn is_cut_by_limits(&self) -> bool {
        false
    }

    fn is_cut_by_clock(&self) -> bool {
        self.epoch.interval().is_some()
    }

    fn open(&self, of: SourceSettings<'_>) -> Box<dyn Source> {
        let files = Files::new(of.inputs, self.epoch, of.columns).shared(of.share).with_reference(of.against);
        let mut files = if of.lists { files.continued(self.gone) } else { files };
        (files.speed, files.follow, files.places) = (self.speed, self.follow, of.places);
        files.tables = self.tables.clone();
        files.durable = of.durable;
        if self.follow {
            files.progress = Arc::default();
        }
        Box::new(files)
    }
}

/// The field of the operation; one that is not read is an empty name in quotes.
pub(super) fn described_operation(path: &str) -> String {
    if path.is_empty() { "\"\"".to_owned() } else { path.to_owned() }
}

/// What lone surrogates mean; empty for the default.
pub(super) fn described_surrogates(rule: SurrogateRule) -> String {
    if rule == SurrogateRule::Replace { "replace".to_owned() } else { String::new() }
}

/// Reads the keys of `[source]`.
fn read(settings: &mut FileSettings) -> FilesSource {
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
    let epoch = settings.read(EPOCH_KEY, |v| v.text()?.parse().ok()).unwrap_or(EpochRule::LIVE);
    let follow = settings.read(FOLLOW_KEY, ConfigValue::boolean).unwrap_or_default();
    let gone = gone(settings);
    let tables =
        if follow { note_followed(settings, &inputs, epoch, gone) } else { FollowedTables::default() };
    FilesSource {
        inputs,
        files_from,
        layout: layout(settings, &SOURCE_LAYOUT),
        epoch,
        follow,
        tables,
        gone,
        posted: None,
        speed: settings.read("source.speed", |v| v.text()?.parse().ok()).unwrap_or_default(),
    }
}

/// What is done if inputs are missing that were read. Their documents are only in a state.
pub(super) fn gone(settings: &mut FileSettings) -> GoneInputs {
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

/// Whether it is there, and neither a file nor a folder.
fn is_pipe(input: &Path) -> bool {
    input.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Reports inputs that cannot be followed, and settings that make following useless. Returns the tables that
/// are followed; if there is one, no file is.
fn note_followed(
    settings: &mut FileSettings,
    inputs: &[PathBuf],
    epoch: EpochRule,
    gone: GoneInputs,
) -> FollowedTables {
    let mut note = |key, what: String| settings.problem(key, ProblemKind::Contradiction(what));
    let tables = FollowedTables::now(inputs).unwrap_or_else(|why| {
        note(FOLLOW_KEY, why);
        FollowedTables::default()
    });
    if !tables.is_empty() {
        if gone != GoneInputs::Delete {
            let what = "a table that is followed replaces files by others: \"delete\" takes the documents of \
                those that have left it";
            note(GONE_KEY, what.to_owned());
        }
        let is_read_once = |input: &&PathBuf| *input == Path::new("-") || is_pipe(input);
        if let Some(once) = inputs.iter().find(is_read_once) {
            let what = format!(
                "{once:?} can be read once, and all inputs are read again with a table's next version"
            );
            note(FOLLOW_KEY, what);
        }
        if epoch.interval().is_none() && epoch != EpochRule::All {
            let what = "a table that is followed does not end, and its last epoch waits for more records: \
                say after which time too, as in \"events:1000,every:1s\"";
            note(EPOCH_KEY, what.to_owned());
        }
    } else if let Some(last) = inputs.last()
        && !last.is_file()
    {
        let what = format!(
            "{last:?} is the last input, and no file: only a file can be followed, or a table of Delta Lake \
             that is named without a version"
        );
        note(FOLLOW_KEY, what);
    }
    if epoch == EpochRule::All && settings.sound(&["source.epoch"]) {
        let what = "an input that is followed does not end, and source.epoch = \"all\" waits for its end; as \
            in \"every:1s\"";
        settings.problem(FOLLOW_KEY, ProblemKind::Contradiction(what.to_owned()));
    }
    tables
}
