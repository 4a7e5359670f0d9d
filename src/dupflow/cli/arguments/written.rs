//! Checks that the files a command writes do not overwrite what it reads, and can be written.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use dupflow_connectors::inputs::Input;

/// A file that is written: the option or key that names it, its path, and the suffixes of files written
/// beside it.
pub(in crate::cli) type WrittenFile<'a> = (&'a str, &'a Path, &'static [&'static str]);

/// A file that is read but is no input: what it is, and its path.
pub(in crate::cli) type ReadFile<'a> = (&'a str, PathBuf);

/// Reports written files that would destroy or repeat data. A written file, or one beside it, must not be an
/// input or any other file that is read. It must not lie in a folder that is an input, where it would be read
/// as a document. It must not be written twice. Devices and pipes are exempt. "-" names no file.
pub(in crate::cli) fn check(
    written: &[WrittenFile<'_>],
    read: &[ReadFile<'_>],
    inputs: &[Input],
    problems: &mut Problems,
) {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path, beside) in written {
        if *path == Path::new("-") {
            problems.note(format_args!("{option}: standard output is not possible here: name a file"));
            continue;
        }
        if !path.metadata().map_or(true, |file| file.is_file()) {
            continue;
        }
        for suffix in iter::once("").chain(beside.iter().copied()) {
            let path = with_suffix(path, suffix);
            let Ok(file) = resolved(&path) else { continue };
            for input in inputs.iter().filter_map(Input::path) {
                match input.canonicalize() {
                    Ok(place) if place == file => {
                        problems.note(format_args!("{option}: {path:?} is an input and would be lost"));
                    }
                    Ok(place) if suffix.is_empty() && place.is_dir() && file.starts_with(&place) => {
                        problems.note(format_args!(
                            "{option}: {path:?} is in the folder {input:?}, whose files are the documents; \
                            write it elsewhere"
                        ));
                    }
                    _ => {}
                }
            }
            for (what, _) in read.iter().filter(|(_, place)| are_same(place, &file)) {
                problems.note(format_args!("{option}: {path:?} is {what}, which is read, and would be lost"));
            }
            for (other, _) in known.iter().filter(|(_, place)| *place == file) {
                problems.note(format_args!("{option}: {path:?} is written to by {other}"));
            }
            known.push((option, file));
        }
    }
}

/// Reports files that cannot be written, before any input is read. Nothing is changed: a missing file is
/// created and removed. Devices and pipes are skipped.
pub(in crate::cli) fn probe<'a>(
    written: impl IntoIterator<Item = (&'a str, &'a Path)>,
    problems: &mut Problems,
) {
    for (option, path) in written {
        if let Err(error) = probed(path) {
            problems.note(format_args!("{option}: {path:?} cannot be written: {error}"));
        }
    }
}

fn probed(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if there.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()),
        // A link to a file that does not exist yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::create_new(path)?;
            fs::remove_file(path)
        }
        Err(error) => Err(error),
    }
}

/// Whether `path` leads to `file`, which has no links or dots.
pub(in crate::cli) fn are_same(path: &Path, file: &Path) -> bool {
    resolved(path).is_ok_and(|place| place == file)
}

/// The files of a SQLite database that is read, unless tables are written into it.
pub(in crate::cli) fn database<'a>(path: &Path, tables: Option<&Path>) -> Vec<ReadFile<'a>> {
    if tables.is_some_and(|tables| resolved(tables).is_ok_and(|tables| are_same(path, &tables))) {
        return Vec::new();
    }
    let beside = dupflow_connectors::tables::database::Address::COMPANION_SUFFIXES;
    let all =
        iter::once("").chain(beside).map(|suffix| ("the database source.path", with_suffix(path, suffix)));
    all.collect()
}

/// The file that standard output is redirected to; `None` if it is no file, or the system cannot name it.
pub(in crate::cli) fn standard_output() -> Option<PathBuf> {
    let file = fs::canonicalize("/dev/stdout").ok()?;
    file.is_file().then_some(file)
}

/// The path with `suffix` appended to its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The path without links and dots; for a missing file, by its folder.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default()))
    })
}
