//! What a Parquet file is known by, and how it is opened.

use std::io;

use super::super::containers::is_text;
use super::super::format::{FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, not_begun};
use super::super::pages::SharedPages;
#[cfg(feature = "parquet")]
use super::super::{parallel::ParallelReader, parallel::cores, rows::Failed};
#[cfg(feature = "parquet")]
use super::file::ParquetFile;

/// Apache Parquet.
pub(in crate::formats) const PARQUET: FormatEntry = FormatEntry {
    name: "parquet",
    aliases: &[],
    help: "Apache Parquet",
    file: "a Parquet file",
    kind: FileKind::Container,
    endings: &["parquet", "parq", "pq"],
    begins: is_parquet,
    doubt: |beginning| not_begun("Parquet file", "PAR1", beginning),
    lacks: if cfg!(feature = "parquet") { None } else { Some(("Parquet", "parquet")) },
    open,
    refuse,
    copy,
};

/// Whether it begins as a Parquet file does: four letters, and then header bytes that no text has.
pub(in crate::formats) fn is_parquet(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PAR1") && (beginning.len() == 4 || !is_text(beginning))
}

/// Bytes of rows that are read ahead: several row groups, which are large.
#[cfg(feature = "parquet")]
const WAITS: usize = 128 << 20;

/// The rows. As many threads as the machine has cores read its row groups.
#[cfg(feature = "parquet")]
fn open(file: StoredFile<'_>) -> io::Result<OpenedRecords> {
    use std::sync::Arc;

    use super::super::bad_record::BadRecord;
    use super::super::rows::failed;

    let columns = file.columns;
    let read = |parts| {
        ParallelReader::new(parts, cores(), WAITS)
            .map_err(|error| failed(BadRecord::Unreadable, error.to_string()))
    };
    let rows = ParquetFile::open(file.at_random()?, columns).and_then(|file| read(Arc::new(file)));
    Ok(OpenedRecords::Rows(match rows {
        Ok(rows) => Box::new(rows),
        Err(damage) => Box::new(Failed(damage)),
    }))
}

/// Why it cannot be read: it ends early, lacks a wanted column, or has an unsupported compression.
#[cfg(feature = "parquet")]
fn refuse(file: StoredFile<'_>) -> Option<String> {
    if file.is_compressed() {
        return None;
    }
    let columns = file.columns;
    let file = file.at_random().ok()?;
    let bytes = file.bytes();
    let mut end = [0; 4];
    let is_read = bytes >= 12 && file.read_at(bytes - 4, &mut end).is_ok();
    if bytes < 12 || is_read && ![*b"PAR1", *b"PARE"].contains(&end) {
        let why =
            "it ends early: a Parquet file ends with PAR1, and this one does not; fetch or write it again";
        return Some(why.to_owned());
    }
    match ParquetFile::open(file, columns) {
        Err(damage) => damage.lack(),
        Ok(file) => file.foreign_column(),
    }
}

#[cfg(feature = "parquet")]
fn copy(file: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    if file.is_compressed() {
        let why = "a Parquet file that is compressed as a whole is not copied: decompress it first";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(RawRecords::RowGroups(file.at_random()?))
}

#[cfg(not(feature = "parquet"))]
fn open(_: StoredFile<'_>) -> io::Result<OpenedRecords> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(feature = "parquet"))]
fn copy(_: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(feature = "parquet"))]
use super::super::format::no_refusal as refuse;
