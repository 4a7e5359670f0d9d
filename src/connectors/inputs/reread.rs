//! Opens inputs a second time, for the bytes of their records.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::folder::{holds_records, in_order, is_hidden};
use super::input::{Input, InputPlace};
use super::open::{BegunInput, at_random};
use crate::formats::{Compression, FileFormat, InputLayout, Metered, RawRecords, RecordParts, SharedPages};
use dupflow_core::text::TextColumns;

/// An input that has been opened again.
pub(crate) struct Reopened {
    pub(crate) format: FileFormat,
    pub(crate) compression: Compression,
    /// The path to the text of a record.
    pub(crate) text: String,
    pub(crate) records: RawRecords,
}

/// Opens an input for the bytes of its records. `pages` are those to which revisits refer.
///
/// # Errors
/// If it cannot be opened or cannot be read twice, or has no records but is one document.
pub(crate) fn reopen(input: &Input, pages: &SharedPages) -> io::Result<Reopened> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::Unsupported, why.to_owned()));
    if input.part.is_some() {
        return refused(
            "it is a file of a table, whose records are not copied: take their ids (--emit keep)",
        );
    }
    match &input.place {
        InputPlace::Stdin => refused("standard input cannot be read twice: write it to a file first"),
        InputPlace::Folder(_) => refused("it is a folder"),
        InputPlace::File(path) if !path.metadata()?.is_file() => {
            refused("it is a pipe or a device, which cannot be read twice: write it to a file first")
        }
        InputPlace::File(path) => open(input, File::open(path)?, pages),
        InputPlace::Memory(_, bytes) => open(input, io::Cursor::new(Arc::clone(bytes)), pages),
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => open(input, object.read(), pages),
    }
}

fn open(input: &Input, stored: impl Read + Send + 'static, pages: &SharedPages) -> io::Result<Reopened> {
    let mut stored = Metered::new(stored, Default::default(), Default::default());
    let begun = BegunInput::read(input, &mut stored, &TextColumns::default())?;
    let anywhere = |progress| at_random(input, progress);
    let records = begun.format.copy(begun.file(Box::new(stored), Some(&anywhere), Arc::default()), pages)?;
    // Elements of an array are written as lines.
    let are_lines = matches!(&records, RawRecords::Bytes(raw) if matches!(raw.parts(), RecordParts::Members));
    let format = if are_lines { FileFormat::usual() } else { begun.format };
    Ok(Reopened { format, compression: begun.compression, text: begun.columns.text, records })
}

/// The inputs, with each folder replaced by its files, in the order in which they are read.
pub fn files_of(inputs: &[Input]) -> Vec<Input> {
    let mut files = Vec::new();
    for input in inputs {
        let InputPlace::Folder(root) = &input.place else {
            files.push(input.clone());
            continue;
        };
        let found = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
        for entry in found.filter(|entry| entry.file_type().is_file()) {
            let path = entry.into_path();
            let is_document = !holds_records(&path, &input.layout);
            let format = if is_document { Some(FileFormat::text()) } else { input.layout.format };
            let layout = Arc::new(InputLayout { format, ..(*input.layout).clone() });
            files.push(Input { place: InputPlace::File(path), layout, part: None });
        }
    }
    files
}

/// The folders below which files are read: those of the inputs, and those that links in them lead to. Each
/// without links and dots, with the path by which it is reached.
pub fn folders_of(inputs: &[Input]) -> BTreeMap<PathBuf, PathBuf> {
    let roots = inputs.iter().filter(|input| input.is_folder()).filter_map(Input::path);
    let linked = roots.flat_map(|root| {
        let all = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
        all.filter(|entry| entry.depth() == 0 || entry.path_is_symlink() && entry.file_type().is_dir())
    });
    let tables = inputs.iter().filter_map(|input| Some(input.part.as_ref()?.folder.clone()));
    let all = linked.map(walkdir::DirEntry::into_path).chain(tables);
    all.filter_map(|path| Some((path.canonicalize().ok()?, path))).collect()
}
