//! Checks that the files a command writes do not overwrite what it reads, and can be written.

use std::cell::LazyCell;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use dupflow_connectors::inputs::{Input, file_number, file_numbers, folders_of};

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
    // Numbers of the files of the inputs, looked up if a written file exists.
    let numbers = LazyCell::new(|| file_numbers(inputs));
    let folders = LazyCell::new(|| folders_of(inputs));
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
            let places = || inputs.iter().filter_map(Input::path);
            let is_input = |input: &Path| input.canonicalize().is_ok_and(|place| place == file);
            let mut holding = folders.iter().filter(|(folder, _)| file.starts_with(folder));
            if let Some((_, input)) = holding.next().filter(|_| suffix.is_empty()) {
                problems.note(format_args!(
                    "{option}: {path:?} is in the folder {input:?}, whose files are the documents; write it \
                     elsewhere"
                ));
            } else if file_number(&file).is_some_and(|number| numbers.contains(&number))
                || places().any(is_input)
            {
                problems.note(format_args!("{option}: {path:?} is an input and would be lost"));
            }
            for (what, _) in read.iter().filter(|(_, place)| are_same(place, &file)) {
                problems.note(format_args!("{option}: {path:?} is {what}, which is read, and would be lost"));
            }
            for (other, _) in known.iter().filter(|(_, place)| are_same(place, &file)) {
                problems.note(format_args!("{option}: {path:?} is written to by {other}"));
            }
            known.push((option, file));
        }
    }
}

/// Reports a folder of the program's own files that is in an input, where they would be read as documents.
pub(in crate::cli) fn check_folder(option: &str, path: &Path, inputs: &[Input], problems: &mut Problems) {
    let Ok(place) = resolved(path) else { return };
    if let Some((_, input)) = folders_of(inputs).iter().find(|(folder, _)| place.starts_with(folder)) {
        problems.note(format_args!(
            "{option}: {path:?} is in the folder {input:?}, whose files are the documents"
        ));
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

/// Whether two paths lead to one file, by links of either kind or dots.
pub(in crate::cli) fn are_same(path: &Path, other: &Path) -> bool {
    let place = resolved(path).ok();
    place.is_some() && place == resolved(other).ok()
        || file_number(path).is_some_and(|number| file_number(other) == Some(number))
}

/// The files of a SQLite database that is read, unless tables are written into it.
pub(in crate::cli) fn database<'a>(path: &Path, tables: &[&Path]) -> Vec<ReadFile<'a>> {
    if tables.iter().any(|tables| are_same(path, tables)) {
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

/// The path without links and dots; of what is missing, the one at which it would be created.
pub(in crate::cli) fn resolved(path: &Path) -> io::Result<PathBuf> {
    followed(path, MOST_LINKS)
}

/// Most links to what is missing that are followed: as many as Linux follows.
const MOST_LINKS: u32 = 40;

fn followed(path: &Path, links: u32) -> io::Result<PathBuf> {
    // Without a slash at its end, with which a link is what it leads to.
    let path: PathBuf = path.components().collect();
    let error = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && links > 0 => error,
        canonical => return canonical,
    };
    let Some(name) = path.file_name() else { return Err(error) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match path.read_link() {
        Ok(target) => followed(&folder.join(target), links - 1),
        Err(_) => Ok(followed(folder, links)?.join(name)),
    }
}
