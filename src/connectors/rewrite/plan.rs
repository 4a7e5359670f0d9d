//! Checks before a run that its documents can be copied.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::target::{CommonFolder, CopySettings, CopyTarget, compression};
#[cfg(feature = "parquet")]
use crate::formats::ParquetCopy;
#[cfg(feature = "parquet")]
use crate::formats::taken;
use crate::formats::{
    self, Compression, FileFormat, MarkColumns, RawRecords, RecordParts, SharedPages, marked_csv_header,
};
use crate::inputs::{Input, Reopened, files_of, reopen};

/// Everything that prevents the copy of documents of these inputs, beside a reference that is read too. Of
/// the target only a folder is checked. Opens each input, and reads its beginning.
pub fn problems(settings: &CopySettings, inputs: &[Input], reference: &[Input]) -> Vec<String> {
    let mut problems = Vec::new();
    let files = files_of(inputs);
    let read = [inputs, reference].concat();
    if let Some(written) = settings.target.folder() {
        folder(written, &read, &mut problems);
    }
    if let CopyTarget::Folder(_) = &settings.target {
        names(inputs, &files, &mut problems);
    }
    let columns = settings.mark.as_deref().map(|name| MarkColumns::new(name, settings.of_units));
    // By the error, the first input that has it, and the number of all.
    let mut unreadable = BTreeMap::<String, (String, usize)>::new();
    let mut first: Option<(String, FileFormat, Vec<u8>)> = None;
    for file in &files {
        let name = file.name();
        let mut note = |error: io::Error| {
            unreadable.entry(error.to_string()).or_insert_with(|| (name.to_string(), 0)).1 += 1;
        };
        let opened = match reopen(file, &SharedPages::default()) {
            Ok(opened) => opened,
            Err(error) => {
                note(error);
                continue;
            }
        };
        let Reopened { format, records, .. } = opened;
        let is_packed = !matches!(records, RawRecords::Bytes(_));
        let header = match records {
            RawRecords::Bytes(raw) => {
                let parts = raw.parts();
                bytes(settings, columns.as_ref(), &name, parts, &mut problems);
                parts.header().to_vec()
            }
            #[cfg(feature = "parquet")]
            RawRecords::RowGroups(rows) => match ParquetCopy::open(rows) {
                Ok(rows) => {
                    row_groups(settings, columns.as_ref(), (&name, &opened.text), rows, &mut problems)
                }
                Err(error) => {
                    note(error);
                    continue;
                }
            },
        };
        match &first {
            _ if matches!(settings.target, CopyTarget::Folder(_)) => {}
            None => {
                misnamed(&settings.target, format, is_packed, &name, &mut problems);
                first = Some((name.to_string(), format, header));
            }
            Some((other, of, _)) if *of != format => problems.push(format!(
                "--output: \"{other}\" is {} and \"{name}\" is {}: name a folder, as in clean/",
                of.name(),
                format.name()
            )),
            Some((other, _, of)) if *of != header => problems.push(format!(
                "--output: \"{other}\" and \"{name}\" have different columns: name a folder, as in clean/"
            )),
            Some(_) => {}
        }
    }
    problems.extend(unreadable.into_iter().map(|(error, (name, count))| match count {
        1 => format!("\"{name}\": {error}"),
        _ => format!("\"{name}\" and {} more: {error}", count - 1),
    }));
    problems
}

/// Problems of records one after another that are to be marked, or to be cut.
fn bytes(
    settings: &CopySettings,
    columns: Option<&MarkColumns>,
    name: &str,
    parts: RecordParts<'_>,
    problems: &mut Vec<String>,
) {
    match (parts, columns) {
        (RecordParts::Sealed, _) => {
            if columns.is_some() {
                problems.push(format!("--mark: \"{name}\" is a web archive, whose records have no columns"));
            }
            if settings.cuts() {
                problems.push(format!(
                    "text.split: \"{name}\" is a web archive, whose records state the length and the digest \
                     of their texts: take --emit remove"
                ));
            }
        }
        (RecordParts::Cells(header, dialect), Some(columns)) if !header.is_empty() => {
            let taken = marked_csv_header(header, dialect, columns).err();
            problems.extend(taken.map(|error| format!("--mark: \"{name}\": {error}")));
        }
        (RecordParts::Members | RecordParts::Cells(..), _) => {}
    }
}

/// Problems of rows of a Parquet file that are to be marked, or to be cut. Returns their schema.
#[cfg(feature = "parquet")]
fn row_groups(
    settings: &CopySettings,
    columns: Option<&MarkColumns>,
    (name, text): (&str, &str),
    rows: ParquetCopy,
    problems: &mut Vec<String>,
) -> Vec<u8> {
    let taken_name = columns.and_then(|columns| columns.names().iter().find(|column| rows.has(column)));
    problems.extend(taken_name.map(|column| format!("--mark: \"{name}\": {}", taken(column))));
    let schema = rows.schema_text().into_bytes();
    let failed = settings.cuts().then(|| rows.with_cuts(text).err()).flatten();
    problems.extend(failed.map(|error| format!("text.split: \"{name}\": {error}")));
    schema
}

/// Problems of the name of a file for records of `format`, which are those of the input `name`; `is_packed`:
/// the format compresses by itself.
fn misnamed(
    target: &CopyTarget,
    format: FileFormat,
    is_packed: bool,
    name: &str,
    problems: &mut Vec<String>,
) {
    let (CopyTarget::File(path) | CopyTarget::Shards(path, _)) = target else { return };
    let (promised, packed) = formats::promised(path);
    match packed {
        Some(_) if is_packed => {
            problems.push(format!("--output: {path:?} is compressed by its name, and Parquet inside itself"));
        }
        Some(end) if compression(path) == Compression::None => {
            problems.push(format!("--output: {path:?} ends in {end}: records are compressed as .gz or .zst"));
        }
        _ => {}
    }
    let foreign = promised.is_none() && formats::instead_of(path).is_some();
    if foreign {
        problems.push(format!(
            "--output: {path:?} names a format that is not written, and records are written as they are \
             read: \"{name}\" is {}",
            format.name()
        ));
    }
    if let Some(promised) = promised.filter(|promised| *promised != format) {
        let (promised, format) = (promised.name(), format.name());
        problems.push(format!(
            "--output: {path:?} is {promised} by its name, and records are written as they are read: \
             \"{name}\" is {format}"
        ));
    }
}

/// Problems of the folder that is written to.
fn folder(written: &Path, inputs: &[Input], problems: &mut Vec<String>) {
    if written.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        problems
            .push(format!("--output: the folder {written:?} is not empty: name another one, or empty it"));
    }
    // "x/" is what the link x leads to.
    let itself: PathBuf = written.components().collect();
    if itself.symlink_metadata().is_ok() && !itself.is_dir() {
        let what = if itself.exists() { "a file and no folder" } else { "a link to what does not exist" };
        problems.push(format!("--output: {itself:?} is {what}: name another one"));
        return;
    }
    let parent = written.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = written.canonicalize().or_else(|_| parent.canonicalize());
    let Ok(place) = place else {
        problems.push(format!("--output: there is no folder {parent:?}"));
        return;
    };
    let inside = inputs.iter().filter(|input| input.is_folder()).filter_map(Input::path);
    for folder in inside.filter(|folder| folder.canonicalize().is_ok_and(|folder| place.starts_with(folder)))
    {
        problems.push(format!(
            "--output: {written:?} is in the folder {folder:?}, whose files are read; write it elsewhere"
        ));
    }
}

/// Problems of the names of files below a folder.
fn names(inputs: &[Input], files: &[Input], problems: &mut Vec<String>) {
    let common = match CommonFolder::among(inputs) {
        Ok(common) => common,
        Err(error) => return problems.push(format!("--output: the folder of the inputs: {error}")),
    };
    let mut known = BTreeSet::new();
    for file in files {
        let name = file.name();
        match file.path().map(|path| common.below(path)) {
            None => problems.push(format!("--output: \"{name}\" has no path below a folder: name a file")),
            Some(Err(error)) => problems.push(format!("--output: \"{name}\": {error}")),
            Some(Ok(below)) if !known.insert(below.clone()) => {
                problems.push(format!("--output: \"{name}\" is named twice, and would be written twice"));
            }
            Some(Ok(_)) => {}
        }
    }
}
