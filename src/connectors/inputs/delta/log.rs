//! Reads a table's log up to a version: its newest checkpoint before, and the commits since.
//!
//! | file | is |
//! |---|---|
//! | `00000000000000000007.json` | the commit of version 7: a line an action |
//! | `….checkpoint.parquet` | all actions in force at that version |
//! | `….checkpoint.0000000001.0000000002.parquet` | a part of them; all parts are needed |
//! | `….checkpoint.UUID.parquet`, `.json` | the same, with more in `_sidecars/` |
//! | `….crc` | the number of files at that version, among others |
//!
//! Others (`_last_checkpoint`, compacted commits) say nothing that these do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::named_table::TableAt;
use super::actions::{AboutTable, Action, AddedFile, DeletionVector, Protocol, VersionChecksum};
use super::paths::path_of;
use crate::formats::{OnDisk, objects};
use crate::instant;

/// A table at a version.
pub(super) struct TableVersion {
    pub(super) version: u64,
    pub(super) protocol: Option<Protocol>,
    pub(super) about: AboutTable,
    /// By their paths and deletion vectors.
    pub(super) files: BTreeMap<(String, Option<String>), AddedFile>,
}

/// The files of a log, by their versions.
#[derive(Default)]
struct LogFiles {
    commits: BTreeSet<u64>,
    /// The files of each whole checkpoint.
    checkpoints: BTreeMap<u64, Vec<String>>,
}

/// The newest version of a table, and what tells its commit from another one of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inputs) struct NewestVersion {
    pub(in crate::inputs) version: u64,
    /// Of the file of the commit, if it is there.
    length_and_time: Option<(u64, Option<SystemTime>)>,
}

/// The newest version.
pub(in crate::inputs) fn newest(log: &Path) -> Result<NewestVersion, String> {
    let version = LogFiles::list(log)?.newest()?;
    let commit = log.join(format!("{version:020}.json")).metadata().ok();
    let length_and_time = commit.map(|commit| (commit.len(), commit.modified().ok()));
    Ok(NewestVersion { version, length_and_time })
}

/// Reads a version.
pub(super) fn read(log: &Path, at: TableAt) -> Result<TableVersion, String> {
    let files = LogFiles::list(log)?;
    let newest = files.newest()?;
    let version = match at {
        TableAt::Newest => newest,
        TableAt::Version(version) => version,
        TableAt::Time(millis) => files.version_at(log, millis)?,
    };
    if version > newest {
        return Err(format!("it has no version {version}: its newest is {newest}"));
    }
    let begin = files.checkpoints.range(..=version).next_back();
    let first = begin.map_or(0, |(number, _)| number.saturating_add(1));
    if let Some(missing) = (first..=version).find(|number| !files.commits.contains(number)) {
        return Err(format!(
            "its log has no commit of version {missing} any more, which version {version} needs: it was \
             cleaned up, or is not copied as a whole"
        ));
    }
    let mut table =
        TableVersion { version, protocol: None, about: AboutTable::default(), files: BTreeMap::new() };
    for name in begin.into_iter().flat_map(|(_, checkpoint)| checkpoint) {
        for sidecar in table.read(&log.join(name))? {
            table.read(&path_of(&log.join("_sidecars"), &sidecar)?)?;
        }
    }
    for number in first..=version {
        table.read(&log.join(format!("{number:020}.json")))?;
    }
    if table.about.schema_string.is_empty() {
        return Err("its log has no schema".to_owned());
    }
    let counted = std::fs::read(log.join(format!("{version:020}.crc"))).ok();
    let counted = counted.and_then(|bytes| serde_json::from_slice::<VersionChecksum>(&bytes).ok());
    match counted.and_then(|counted| counted.num_files) {
        Some(number) if number != table.files.len() as u64 => Err(format!(
            "its log gives {} files of version {version}, and \"{version:020}.crc\" counts {number}: the log \
             is damaged; copy the table again",
            table.files.len()
        )),
        _ => Ok(table),
    }
}

impl LogFiles {
    fn list(log: &Path) -> Result<Self, String> {
        let entries = log.read_dir().map_err(|error| format!("its log cannot be listed: {error}"))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(Self::from_names(names.collect()))
    }

    fn newest(&self) -> Result<u64, String> {
        let newest = self.commits.last().max(self.checkpoints.keys().next_back()).copied();
        newest.ok_or_else(|| "its log has no version".to_owned())
    }

    /// The newest version of a commit that is not after this time.
    fn version_at(&self, log: &Path, millis: u64) -> Result<u64, String> {
        let (mut found, mut before, mut first) = (None, None, None);
        for version in &self.commits {
            let (said, changed) = commit_times(&log.join(format!("{version:020}.json")))?;
            // As the protocol has it: a file's time is after that of the commit before, whatever the clock of
            // its writer was.
            let time = said.unwrap_or_else(|| before.map_or(changed, |before: u64| changed.max(before + 1)));
            (before, first) = (Some(time), first.or(Some(time)));
            if time <= millis {
                found = Some(*version);
            }
        }
        found.ok_or_else(|| {
            let first = first.map(instant::millisecond_of);
            format!(
                "its log has no commit of {} or before: the first is of {}; the time of a commit is that of \
                 its file, if the log does not say it, and a copy of the table may have another: name the \
                 version",
                instant::millisecond_of(millis),
                first.as_deref().unwrap_or("no time")
            )
        })
    }

    fn from_names(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        let mut files = Self::default();
        let mut parts: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
        for name in names {
            let parsed: Vec<&str> = name.split('.').collect();
            let Some(version) =
                parsed.first().filter(|digits| digits.len() == 20).and_then(|v| v.parse().ok())
            else {
                continue;
            };
            match parsed[1..] {
                ["json"] => drop(files.commits.insert(version)),
                ["checkpoint", "parquet"] | ["checkpoint", _, "parquet" | "json"] => {
                    files.checkpoints.insert(version, vec![name]);
                }
                ["checkpoint", _, of, "parquet"] => {
                    if let Ok(of) = of.parse() {
                        parts.entry((version, of)).or_default().push(name);
                    }
                }
                _ => {}
            }
        }
        for ((version, of), all) in parts {
            if all.len() as u64 == of {
                files.checkpoints.entry(version).or_insert(all);
            }
        }
        files
    }
}

impl TableVersion {
    /// Applies the actions of a file. Returns the names of sidecars.
    fn read(&mut self, path: &Path) -> Result<Vec<String>, String> {
        let failed = |what: String| format!("\"{}\" cannot be read: {what}", path.display());
        let mut sidecars = Vec::new();
        if path.extension().is_some_and(|ending| ending == "parquet") {
            let file = OnDisk::open(path, Arc::default()).map_err(|error| failed(error.to_string()))?;
            let mut wrong = None;
            objects(Arc::new(file), is_read, |row| match serde_json::from_value(row) {
                Ok(action) => sidecars.extend(self.apply(action)),
                Err(error) => wrong = wrong.take().or(Some(error.to_string())),
            })
            .map_err(failed)?;
            return wrong.map_or(Ok(sidecars), |wrong| Err(failed(wrong)));
        }
        let lines = BufReader::new(File::open(path).map_err(|error| failed(error.to_string()))?).lines();
        let mut actions = Vec::new();
        for (number, line) in (1..).zip(lines) {
            let line = line.map_err(|error| failed(error.to_string()))?;
            if !line.trim().is_empty() {
                let action = serde_json::from_str(&line);
                actions.push(action.map_err(|error| failed(format!("line {number}: {error}")))?);
            }
        }
        if actions.is_empty() {
            return Err(failed("it has no action".to_owned()));
        }
        // What a commit removes was there before it.
        actions.sort_by_key(|action: &Action| action.remove.is_none());
        sidecars.extend(actions.into_iter().filter_map(|action| self.apply(action)));
        Ok(sidecars)
    }

    fn apply(&mut self, action: Action) -> Option<String> {
        let key = |path: &str, rows: &Option<DeletionVector>| {
            (path.to_owned(), rows.as_ref().map(DeletionVector::id))
        };
        if let Some(removed) = action.remove {
            self.files.remove(&key(&removed.path, &removed.deletion_vector));
        }
        if let Some(added) = action.add {
            self.files.insert(key(&added.path, &added.deletion_vector), added);
        }
        self.protocol = action.protocol.or_else(|| self.protocol.take());
        self.about = action.meta_data.unwrap_or_else(|| std::mem::take(&mut self.about));
        action.sidecar.map(|sidecar| sidecar.path)
    }
}

/// The time that a commit says itself, if it does, and that of its file, in unix milliseconds.
fn commit_times(path: &Path) -> Result<(Option<u64>, u64), String> {
    let failed = |error: io::Error| format!("\"{}\" cannot be read: {error}", path.display());
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let changed = file.get_ref().metadata().and_then(|of| of.modified()).map_err(failed)?;
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut line = String::new();
    file.read_line(&mut line).map_err(failed)?;
    // Where it has a time, it is the first action.
    let action = serde_json::from_str::<Action>(&line).ok();
    let said = action.and_then(|action| action.commit_info?.in_commit_timestamp);
    Ok((said, u64::try_from(changed).unwrap_or(u64::MAX)))
}

/// Whether a column of a checkpoint, or a field of one, is read.
fn is_read(path: &[&str]) -> bool {
    match path {
        ["add", field] => ["path", "partitionValues", "deletionVector"].contains(field),
        ["metaData", field] => ["schemaString", "partitionColumns", "configuration"].contains(field),
        [column, ..] => ["add", "metaData", "protocol", "sidecar"].contains(column),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_log() {
        let name = |end: &str| format!("{:020}.{end}", 7);
        let names = ["json", "checkpoint.0000000001.0000000002.parquet", "crc", "8.compacted.json"].map(name);
        let mut names = names.to_vec();
        names.extend(["_last_checkpoint", "7.json", "00000000000000000009.json"].map(str::to_owned));
        let files = LogFiles::from_names(names.clone());
        assert_eq!((files.commits, files.checkpoints.len()), ([7, 9].into(), 0));
        names.push(name("checkpoint.0000000002.0000000002.parquet"));
        assert_eq!(LogFiles::from_names(names.clone()).checkpoints[&7].len(), 2);
        names.push(name("checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"));
        assert_eq!(LogFiles::from_names(names).checkpoints[&7].len(), 1);
    }
}
