//! The formats of inputs: lines of a feed ([`feed`]), CSV, Parquet, web archives, and files that are one
//! document.
//!
//! A file whose records are not lines -> its records, in order: a `FileRow`, or the damage. The reader of a
//! format only finds documents; ids are checked and texts are decoded elsewhere. `shape` reads documents from
//! the values of records with keys; `storage` has the bytes of inputs, decompressed and counted.

pub mod feed;

mod bad_record;
mod csv;
mod document;
mod foreign;
mod layout;
mod nonstandard;
mod parallel;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod shape;
mod storage;
mod warc;
mod whole;

use std::io;
use std::io::BufRead;
use std::sync::Arc;

use rows::failed;

pub use bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
pub(crate) use csv::Dialect;
pub use document::text_of_file;
pub(crate) use document::{NoText, is_refusal, read_text};
pub(crate) use foreign::{is_parquet, quoted, refused as refused_format, refused_window};
pub use layout::{CsvQuote, FileFormat, IdRule, InputLayout, SurrogateRule, WarcId};
pub(crate) use layout::{by_name, without_query};
pub use layout::{instead_of, named_path, promised};
#[cfg(feature = "parquet")]
pub(crate) use parquet::{ParquetCopy, ParquetTarget};
#[cfg(feature = "parquet")]
pub(crate) use raw::taken;
pub(crate) use raw::{
    MarkColumns, RawReader, RecordChoice, RowMark, SharedPages, TextPlace, marked_csv_header, push_csv_mark,
    push_json_mark, raw_csv, raw_lines, raw_warc,
};
pub(crate) use rows::{
    ArchiveRole, Damage, FileRow, NextRow, RowReader, RowText, WantedColumns, found, panicked,
};
pub(crate) use shape::ShapeReader;
pub use shape::{KeyedRecord, KeyedRecords, RecordShape, ValueFormat};
pub(crate) use storage::{
    Compression, FailedRead, FeedReader, InMemory, Metered, OnDisk, READ_BYTES, RandomAccess, ReadFailure,
    RestOfLine, line_length,
};
pub use storage::{InputProgress, decompressed, open};
pub(crate) use warc::{PAGE_BYTES, PageMemory};

/// A whole text or web page, as one record with this id.
pub(crate) fn whole(bytes: Box<dyn BufRead + Send>, id: &str, is_html: bool) -> Box<dyn RowReader> {
    Box::new(whole::WholeDocument { bytes: Some(bytes), id: id.to_owned(), is_html })
}

/// The pages and texts of a web archive, read as a stream of its stored bytes.
pub(crate) fn warc(
    bytes: Box<dyn BufRead + Send>,
    columns: &WantedColumns,
    id: WarcId,
) -> Box<dyn RowReader> {
    Box::new(warc::Warc::new(bytes, columns, id))
}

/// The same for a compressed archive with random access: in parts, by as many threads as the machine has
/// cores. `None` if the archive is too small for several parts.
///
/// # Errors
/// If the threads cannot be started.
pub(crate) fn warc_in_parts(
    file: Arc<dyn RandomAccess>,
    columns: &WantedColumns,
    id: WarcId,
    progress: &Arc<InputProgress>,
) -> io::Result<Option<Box<dyn RowReader>>> {
    let archive = warc::WarcArchive::new(file, columns, id);
    Ok(if archive.count() > 1 {
        Some(Box::new(warc::ParallelArchive::new(archive, cores(), Arc::clone(progress))?))
    } else {
        None
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// The rows of a table with a header.
pub(crate) fn csv(
    bytes: Box<dyn BufRead + Send>,
    dialect: Dialect,
    columns: &WantedColumns,
) -> Box<dyn RowReader> {
    Box::new(csv::CsvReader::new(bytes, columns, dialect))
}

/// Which wanted column the table lacks.
pub(crate) fn csv_lacks(
    bytes: Box<dyn BufRead + Send>,
    dialect: Dialect,
    columns: &WantedColumns,
) -> Option<String> {
    csv::CsvReader::new(bytes, columns, dialect).lacks()
}

/// Which wanted column the file lacks, or which unsupported compression it has.
#[cfg(feature = "parquet")]
pub(crate) fn parquet_lacks(file: Arc<dyn RandomAccess>, columns: &WantedColumns) -> Option<String> {
    match parquet::ParquetFile::open(file, columns) {
        Err(damage) => damage.lack(),
        Ok(file) => file.foreign_column(),
    }
}

/// Without the feature `parquet` no file is read.
#[cfg(not(feature = "parquet"))]
pub(crate) fn parquet_lacks(_: Arc<dyn RandomAccess>, _: &WantedColumns) -> Option<String> {
    Some(dupflow_run::missing_feature("Parquet", "parquet"))
}

/// Bytes of rows that are read ahead: several row groups, which are large.
#[cfg(feature = "parquet")]
const PARQUET_WAITS: usize = 128 << 20;

/// The rows of a Parquet file. As many threads as the machine has cores read its row groups.
#[cfg(feature = "parquet")]
pub(crate) fn parquet(file: Arc<dyn RandomAccess>, columns: &WantedColumns) -> Box<dyn RowReader> {
    let read = |parts| {
        parallel::ParallelReader::new(parts, cores(), PARQUET_WAITS)
            .map_err(|error| failed(BadRecord::Unreadable, error.to_string()))
    };
    match parquet::ParquetFile::open(file, columns).and_then(|file| read(Arc::new(file))) {
        Ok(rows) => Box::new(rows),
        Err(damage) => Box::new(Failed(damage)),
    }
}

/// Without the feature `parquet`, a file gives only an error.
#[cfg(not(feature = "parquet"))]
pub(crate) fn parquet(_: Arc<dyn RandomAccess>, _: &WantedColumns) -> Box<dyn RowReader> {
    Box::new(Failed(failed(BadRecord::Unreadable, dupflow_run::missing_feature("Parquet", "parquet"))))
}

/// A file that cannot be read at all.
struct Failed(Damage);

impl RowReader for Failed {
    fn next(&mut self, _: &mut FileRow) -> Result<NextRow, Damage> {
        Err(self.0.clone())
    }
}
