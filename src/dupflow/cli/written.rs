//! Files that a command writes to and must not: what it reads, and what would be read with it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use dupflow_connectors::inputs::Input;

/// A file that is written to: the option or the key that says so, and what stands behind its name in the
/// names of those that are written beside it.
pub(super) type Written<'a> = (&'a str, &'a Path, &'static [&'static str]);

/// A file that is read and is no input, by what it is.
pub(super) type Read<'a> = (&'a str, PathBuf);

/// Notes what would be lost or read back: a file that is written to, or one beside it, must be no input and
/// nothing else that is read, not lie in a folder that is an input (it would be read as a document, and what
/// it holds is lost), and be written to but once. Devices and pipes lose nothing.
pub(super) fn check(written: &[Written<'_>], read: &[Read<'_>], inputs: &[Input], problems: &mut Problems) {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path, beside) in written {
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
                            "{option}: {path:?} is in the folder {input:?}, whose files are the documents; write it elsewhere"
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

/// Notes files that cannot be written, before anything is read for them. Nothing is changed: a file that is
/// not there is made and removed. Devices and pipes are left alone.
pub(super) fn probe<'a>(written: impl IntoIterator<Item = (&'a str, &'a Path)>, problems: &mut Problems) {
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
        // A link to a file that is not there yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::create_new(path)?;
            fs::remove_file(path)
        }
        Err(error) => Err(error),
    }
}

/// Whether a path leads to a file that is given without links and dots.
pub(super) fn are_same(path: &Path, file: &Path) -> bool {
    resolved(path).is_ok_and(|place| place == file)
}

/// A database of SQLite that is read, with what it keeps beside it, unless tables are written into it.
pub(super) fn database<'a>(path: &Path, tables: Option<&Path>) -> Vec<Read<'a>> {
    if tables.is_some_and(|tables| resolved(tables).is_ok_and(|tables| are_same(path, &tables))) {
        return Vec::new();
    }
    let beside = dupflow_connectors::tables::database::Address::COMPANION_SUFFIXES;
    let all =
        iter::once("").chain(beside).map(|suffix| ("the database source.path", with_suffix(path, suffix)));
    all.collect()
}

/// The file that a shell has connected to standard output, if it is one and the system can name it.
pub(super) fn standard_output() -> Option<PathBuf> {
    let file = fs::canonicalize("/dev/stdout").ok()?;
    file.is_file().then_some(file)
}

/// The path with more behind its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The path without links and dots; of a file that does not exist yet, by its folder.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default()))
    })
}
