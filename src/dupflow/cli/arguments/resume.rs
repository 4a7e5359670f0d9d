//! A replay that goes on after it was killed.
//!
//! A folder holds what a later process needs: a *note* with everything that decides the result, the state of
//! the documents, and how far the copy of records is. The same command continues it; another one is
//! refused, and so is one of changed inputs. One process at a time uses the folder: a lock is held until the
//! process ends, however it does. When the replay has ended, that is noted, and then the folder is removed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::problems::Problems;
use super::written;
use crate::config::{Deployment, FilePlace, OutputPlace, Plan, StateConfig};
use crate::pipeline::Provenance;
use dupflow_connectors::failpoint;
use dupflow_connectors::inputs::{Input, files_of, stamp};
use dupflow_connectors::intake::{EpochRule, interval};
use dupflow_connectors::owned::replace;
use dupflow_connectors::rewrite::{CopyResume, CopySettings, CopyTarget, DocumentsCopy};

/// Whether and where the replay notes how far it is.
#[derive(Clone, Debug, clap::Args)]
pub struct ResumeArgs {
    /// Save progress in this folder, to go on after a kill.
    ///
    /// If the replay is killed, the same command goes on where it was, and the result is that of an
    /// undisturbed replay. The folder is removed when the replay has ended.
    #[arg(long, value_name = "FOLDER")]
    pub resume: Option<PathBuf>,

    /// With --resume: the shortest time between two notes, as in 500ms.
    #[arg(long, value_name = "TIME", requires = "resume", default_value = "5s", value_parser = every)]
    pub resume_every: Duration,
}

/// A replay that can be continued.
#[derive(Debug)]
pub(in crate::cli) struct ResumableReplay {
    /// The folder as it is named, and without links.
    named: PathBuf,
    folder: PathBuf,
    every: Duration,
    /// A name that all processes of the replay share.
    name: String,
    /// What an earlier process has noted.
    found: Option<ReplayNote>,
    /// The lock on the folder, if it has a note.
    lock: Option<File>,
}

/// What is noted of a replay when it begins.
#[derive(Debug, Serialize, Deserialize)]
struct ReplayNote {
    name: String,
    /// Everything that decides the result, by name.
    settings: BTreeMap<String, String>,
    /// Whether the result is written, and only the folder is left.
    #[serde(default)]
    has_ended: bool,
}

fn every(typed: &str) -> Result<Duration, String> {
    interval(typed).ok_or_else(|| "expected a time, as in \"500ms\" or \"5s\"".to_owned())
}

impl ResumeArgs {
    /// The replay in the folder, begun or not; `None` without a folder.
    pub(in crate::cli) fn open(&self, problems: &mut Problems) -> Option<ResumableReplay> {
        let typed = self.resume.as_deref()?;
        let unread = |error| format!("--resume: the folder {typed:?} cannot be read: {error}");
        let folder = written::resolved(typed).map_err(unread).map_err(|what| problems.note(what)).ok()?;
        let mut lock = None;
        if folder.join(NOTE).exists() {
            match locked(&folder) {
                Ok(file) => lock = Some(file),
                Err(error) => problems.note(format_args!("--resume: {typed:?}: {error}")),
            }
        }
        let found = match fs::read(folder.join(NOTE)) {
            Ok(json) => problems.take(
                serde_json::from_slice(&json)
                    .with_context(|| format!("--resume: {typed:?} has no whole note")),
            )?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A process that was killed when it began leaves a lock and a note in progress.
                let is_other = |entry: io::Result<fs::DirEntry>| {
                    entry.is_ok_and(|one| [LOCK, NEW].iter().all(|own| one.file_name() != *own))
                };
                if folder.read_dir().is_ok_and(|mut entries| entries.any(is_other)) {
                    problems.note(format_args!(
                        "--resume: the folder {typed:?} has files and no replay: name another one"
                    ));
                }
                None
            }
            Err(error) => {
                problems.note(unread(error));
                None
            }
        };
        let new = || format!("{:016x}", rand::random::<u64>());
        let name = found.as_ref().map_or_else(new, |note: &ReplayNote| note.name.clone());
        Some(ResumableReplay { named: typed.to_owned(), folder, every: self.resume_every, name, found, lock })
    }
}

/// What names the pipeline in a note.
const PIPELINE: &str = "pipeline";

/// The most files of folders that are noted by name.
const NAMED_FILES: usize = 1_000;

/// The file of the note.
const NOTE: &str = "replay.json";

/// The file that is locked.
const LOCK: &str = "lock";

/// The state of the documents.
const STATE: &str = "state";

/// The complete files of a copy.
const COPIED: &str = "copied.jsonl";

/// How much of the output is durable.
const MARK: &str = "output.mark";

/// The note while it is written.
const NEW: &str = "replay.json.new";

/// Locks the folder, until the file is dropped.
fn locked(folder: &Path) -> io::Result<File> {
    let file = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another process is at this replay")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl ResumableReplay {
    /// Adds the places in the folder to a deployment.
    pub(in crate::cli) fn place(&self, deployment: &mut Deployment, problems: &mut Problems) {
        let Some(location) = self.folder.join(STATE).to_str().map(ToOwned::to_owned) else {
            problems.note(format_args!("--resume: {:?} is no text", self.named));
            return;
        };
        deployment.state = Some(StateConfig { location, commit_every: self.every, history: None });
        let file = self.folder.join(COPIED);
        deployment.documents.resume = Some(CopyResume { file, name: self.name.clone() });
        if let Some(FilePlace { path, .. }) = deployment.output.place.as_a().cloned() {
            let mark = Some(self.folder.join(MARK));
            deployment.output.place = OutputPlace::new(FilePlace { path, mark });
        }
    }

    /// Reports files that would be written into the folder, which is removed at the end, and a folder of
    /// records that would hold it.
    pub(in crate::cli) fn note_places<'a>(
        &self,
        written: impl IntoIterator<Item = (&'a str, &'a Path)>,
        records: Option<&'a Path>,
        problems: &mut Problems,
    ) {
        let Self { named, folder, .. } = self;
        for (option, path) in written.into_iter().chain(records.map(|path| ("--output", path))) {
            if written::resolved(path).is_ok_and(|place| place.starts_with(folder)) {
                problems.note(format_args!(
                    "{option}: {path:?} is in the folder {named:?} of --resume, which is removed at the end"
                ));
            }
        }
        let holds = |place: PathBuf| folder.starts_with(place);
        if let Some(path) = records.filter(|path| written::resolved(path).is_ok_and(holds)) {
            problems.note(format_args!(
                "--resume: {named:?} is in the folder {path:?}, which appears at the end as a whole"
            ));
        }
    }

    /// Reports what cannot be continued: `others` are options, each with whether it is set.
    pub(in crate::cli) fn note_conflicts(
        &self,
        deployment: &Deployment,
        epoch: EpochRule,
        inputs: &[Input],
        others: &[(&str, bool)],
        problems: &mut Problems,
    ) {
        for (option, _) in others.iter().filter(|(_, is_set)| *is_set) {
            problems.note(format_args!("--resume: does not go with {option}"));
        }
        if epoch == EpochRule::All || epoch.interval().is_some() {
            problems.note(format_args!(
                "--resume: needs epochs that are the same each time, such as --epoch events:1000; this is \
                {epoch}"
            ));
        }
        if deployment.output.answer.is_of_changes() && deployment.output.format.is_of_end {
            problems.note(
                "--resume: an Arrow or a Parquet file of changes is complete only at the end: take JSON \
                Lines or CSV",
            );
        }
        if deployment.output_file().is_none() {
            problems.note("--resume: standard output cannot be continued: name a file with --output");
        }
        for input in inputs.iter().filter(|input| stamp(input).is_none()) {
            problems.note(format_args!(
                "--resume: \"{}\" is no file or folder, so a change of it would not be noticed",
                input.name()
            ));
        }
        written::check_folder("--resume", &self.named, inputs, problems);
    }

    /// Reports in what this replay differs from the one in the folder.
    pub(in crate::cli) fn note_differences(
        &self,
        settings: &BTreeMap<String, String>,
        problems: &mut Problems,
    ) {
        let Some(ReplayNote { settings: found, .. }) = &self.found else { return };
        let folder = &self.named;
        let differs = |name: &String| found.get(name) != settings.get(name);
        let is_other_pipeline = differs(&PIPELINE.to_owned());
        // Of another pipeline the keys say nothing more.
        let is_said = |name: &String| {
            !is_other_pipeline || name == PIPELINE || name.starts_with("--") || name.starts_with("input ")
        };
        let names = found.keys().chain(settings.keys().filter(|name| !found.contains_key(*name)));
        let mut is_other = false;
        for name in names.filter(|name| differs(name) && is_said(name)) {
            let said =
                |of: &BTreeMap<String, String>| of.get(name).map_or("not set", |value| value).to_owned();
            problems.note(format_args!(
                "--resume: {folder:?} is of another replay, whose {name} was {}; it is {} now",
                said(found),
                said(settings)
            ));
            is_other = true;
        }
        if is_other {
            problems.note(format_args!("--resume: name another folder, or remove {folder:?} to begin anew"));
        }
    }

    /// Whether an earlier process has published the result, and only its folder is left.
    pub(in crate::cli) fn is_published(&self, deployment: &Deployment, problems: &mut Problems) -> bool {
        if self.has_ended() {
            if let Some(path) = deployment.output_file().filter(|path| !path.exists()) {
                problems.note(format_args!(
                    "--resume: the replay in {:?} has ended, and its output {path:?} is not there any more: \
                     remove the folder to begin anew",
                    self.named
                ));
            }
            return true;
        }
        let documents = &deployment.documents;
        let target = || CopyTarget::new(deployment.output_file(), documents.shard_bytes).ok();
        let target = deployment.output.answer.copied().and_then(|_| target());
        let Some(target) = target.filter(|_| self.found.is_some()) else { return false };
        let settings = CopySettings {
            resume: documents.resume.clone(),
            mark: documents.mark.clone(),
            of_units: false,
            target,
        };
        let published = DocumentsCopy::is_published(&settings);
        problems.take(published.with_context(|| format!("--resume: {:?}", self.named))).unwrap_or_default()
    }

    /// Whether an earlier process has written everything, the counts too.
    pub(in crate::cli) fn has_ended(&self) -> bool {
        self.found.as_ref().is_some_and(|note| note.has_ended)
    }

    /// Begins the replay, or continues it. A new one empties an output that is written epoch by epoch.
    ///
    /// # Errors
    /// If the folder or the output cannot be written, or another process has begun meanwhile.
    pub(in crate::cli) fn begin(
        &mut self,
        settings: BTreeMap<String, String>,
        deployment: &Deployment,
    ) -> anyhow::Result<()> {
        if self.found.is_some() {
            tracing::info!(folder = ?self.named, "continues an earlier replay");
            return Ok(());
        }
        let failed = || format!("--resume: the folder {:?}", self.named);
        fs::create_dir_all(&self.folder).with_context(failed)?;
        self.lock = Some(locked(&self.folder).with_context(failed)?);
        anyhow::ensure!(!self.folder.join(NOTE).exists(), "{}: another process has begun a replay", failed());
        let is_of_changes = deployment.output.answer.is_of_changes();
        if let Some(path) = deployment.output_file().filter(|path| is_of_changes && !path.is_dir()) {
            File::create(path).with_context(|| format!("the output {path:?}"))?;
        }
        let note = ReplayNote { name: self.name.clone(), settings, has_ended: false };
        self.write(&note).with_context(failed)?;
        self.found = Some(note);
        Ok(())
    }

    /// Replaces the note.
    fn write(&self, note: &ReplayNote) -> io::Result<()> {
        replace(&self.folder.join(NOTE), &serde_json::to_vec_pretty(note)?)
    }

    /// Removes the folder of a replay that has ended. If it is killed meanwhile, the note says so.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(in crate::cli) fn end(mut self) -> anyhow::Result<()> {
        let note = self.found.take().map(|note| ReplayNote { has_ended: true, ..note });
        let remove = || {
            note.map_or(Ok(()), |ended| self.write(&ended))?;
            failpoint::reach("replay-ended");
            let replaced = [COPIED, MARK].map(|name| format!("{name}.new"));
            let files = replaced.iter().map(String::as_str).chain([COPIED, MARK, NEW, NOTE, LOCK]);
            let files = files.map(|name| fs::remove_file(self.folder.join(name)));
            for removed in iter::once_with(|| fs::remove_dir_all(self.folder.join(STATE))).chain(files) {
                removed.or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })?;
            }
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    tracing::warn!(folder = ?self.named, "it holds other files, and stays");
                    Ok(())
                }
                removed => removed,
            }
        };
        remove().with_context(|| format!("--resume: the folder {:?} cannot be removed", self.named))?;
        drop(self.lock);
        Ok(())
    }
}

/// Everything that decides the result of a replay, and where it is written.
pub(in crate::cli) fn settings(
    plan: &Plan,
    deployment: &Deployment,
    inputs: &[Input],
) -> BTreeMap<String, String> {
    let Provenance { program, pipeline, options, .. } = Provenance::begin(plan, deployment, inputs);
    let mut settings = pipeline.keys;
    settings.insert(PIPELINE.to_owned(), pipeline.name);
    settings.insert("program".to_owned(), format!("{} {:?}", program.version, program.commit));
    // What is allowed is no part of the result.
    let options = options.into_iter().filter(|(name, _)| name != "max-bad");
    settings.extend(options.map(|(name, value)| (format!("--{name}"), value.to_string())));
    let path = |path: Option<&Path>| format!("{path:?}");
    let documents = &deployment.documents;
    for (name, value) in [
        ("--output", path(deployment.output_file())),
        ("--dead-letter", path(deployment.letter_file())),
        ("--mark", format!("{:?}", documents.mark)),
        ("--shard-size", format!("{:?}", documents.shard_bytes)),
        ("--benchmark", format!("{:?}", deployment.benchmark)),
        ("number of inputs of --against", deployment.against.to_string()),
    ] {
        settings.insert(name.to_owned(), value);
    }
    for (n, input) in inputs.iter().enumerate() {
        let stamp = stamp(input).unwrap_or_default();
        settings.insert(format!("input {}", n + 1), format!("{:?} of {stamp}", input.name()));
    }
    let folders: Vec<_> = inputs.iter().filter(|input| input.is_folder()).cloned().collect();
    let files = files_of(&folders);
    if files.len() <= NAMED_FILES {
        for file in files {
            settings.insert(format!("input file {:?}", file.name()), stamp(&file).unwrap_or_default());
        }
    }
    settings
}
