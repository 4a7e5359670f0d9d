//! What an Arrow file or stream is known by, and how it is opened.

use std::io;

#[cfg(not(feature = "arrow"))]
use super::super::format::no_refusal as refuse;
use super::super::format::{FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, not_begun};
use super::super::pages::SharedPages;
use super::magic::{FILE, is_stream};
#[cfg(feature = "arrow")]
use super::rows::{ArrowRows, Batches};

/// Arrow IPC.
pub(in crate::formats) const ARROW: FormatEntry = FormatEntry {
    name: "arrow",
    aliases: &["feather"],
    help: "Arrow IPC: a file (Feather) or a stream",
    file: "an Arrow file or stream",
    kind: FileKind::Container,
    endings: &["arrow", "feather", "ipc"],
    begins: |beginning| beginning.starts_with(FILE) || is_stream(beginning),
    doubt: |beginning| {
        let is_begun = beginning.starts_with(FILE) || is_stream(beginning);
        if is_begun { None } else { not_begun("Arrow file or stream", "ARROW1", beginning) }
    },
    lacks: if cfg!(feature = "arrow") { None } else { Some(("Arrow", "arrow")) },
    open,
    refuse,
    copy,
};

#[cfg(feature = "arrow")]
fn open(file: StoredFile<'_>) -> io::Result<OpenedRecords> {
    Ok(OpenedRecords::Rows(Box::new(rows(file)?)))
}

/// Which wanted column it lacks, or why it cannot be read at all.
#[cfg(feature = "arrow")]
fn refuse(file: StoredFile<'_>) -> Option<String> {
    if file.is_compressed() { None } else { rows(file).ok()?.refusal() }
}

#[cfg(feature = "arrow")]
fn rows(file: StoredFile<'_>) -> io::Result<ArrowRows> {
    let columns = file.columns.clone();
    let batches = if file.beginning.starts_with(FILE) {
        Batches::of_file(file.at_random()?)
    } else {
        Batches::of_stream(file.decoded()?)
    };
    Ok(ArrowRows::new(batches, columns))
}

#[cfg(not(feature = "arrow"))]
fn open(_: StoredFile<'_>) -> io::Result<OpenedRecords> {
    Err(io::ErrorKind::Unsupported.into())
}

fn copy(_: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    let why = "rows of Arrow files and streams are not copied: --emit keep names those to keep, or write it \
               as Parquet first";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
