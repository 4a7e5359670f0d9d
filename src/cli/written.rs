//! Files that a command writes to and must not: its inputs, and what would be read with them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use crate::source::Input;

/// A file that is written to, and the option or the key that says so.
pub(super) type Written<'a> = (&'a str, &'a Path);

/// Notes what would be lost or read back: a file that is written to must be no input, not lie in a folder that is one (it would be
/// read as a document, and what it holds is lost), and be written to but once. Devices and pipes lose nothing.
pub(super) fn check(written: &[Written<'_>], inputs: &[Input], problems: &mut Problems) {
    let files = written.iter().filter(|(_, path)| path.metadata().map_or(true, |file| file.is_file()));
    let files: Vec<_> =
        files.filter_map(|(option, path)| Some((option, path, resolved(path).ok()?))).collect();
    for (n, (option, path, file)) in files.iter().enumerate() {
        for input in inputs.iter().filter_map(Input::path) {
            match input.canonicalize() {
                Ok(read) if read == *file => {
                    problems.note(format_args!("{option}: {path:?} is an input and would be lost"));
                }
                Ok(read) if read.is_dir() && file.starts_with(&read) => {
                    problems.note(format_args!(
                        "{option}: {path:?} is in the folder {input:?}, whose files are the documents; write it elsewhere"
                    ));
                }
                _ => {}
            }
        }
        for (other, ..) in files[..n].iter().filter(|(.., other)| other == file) {
            problems.note(format_args!("{option}: {path:?} is written to by {other}"));
        }
    }
}

/// The file that a shell has connected to standard output, if it is one and the system can name it.
pub(super) fn standard_output() -> Option<PathBuf> {
    let file = fs::canonicalize("/dev/stdout").ok()?;
    file.is_file().then_some(file)
}

/// The path without links and dots; of a file that does not exist yet, by its folder.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default()))
    })
}
