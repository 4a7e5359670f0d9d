//! The formats of inputs: lines of a feed ([`feed`]), CSV, Parquet, web archives, and files that are one
//! document.
//!
//! A file whose records are not lines -> its records, in order: a `FileRow`, or the damage. The reader of a
//! format only finds documents; ids are checked and texts are decoded elsewhere. `shape` reads documents from
//! the values of records with keys; `storage` has the bytes of inputs, decompressed and counted.

pub mod feed;

mod arc;
mod arrow;
mod bad_record;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod columns;
mod containers;
mod csv;
mod dialect;
mod document;
mod foreign;
mod format;
mod layout;
mod nonstandard;
mod pages;
mod parallel;
mod parquet;
mod part;
mod raw;
mod register;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod shape;
mod storage;
mod wacz;
mod warc;

pub use bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
pub(crate) use dialect::Dialect;
pub use document::text_of_file;
pub(crate) use document::{NoText, is_refusal, read_text};
pub(crate) use foreign::{quoted, refused as refused_format, refused_window};
pub(crate) use format::{
    FileKind, OpenStored, OpenedRecords, RawReader, RawRecords, RecordParts, StoredFile,
};
pub(crate) use layout::without_query;
pub use layout::{CsvQuote, FileFormat, IdRule, InputLayout, NotFoundRule, SurrogateRule, WarcId};
pub use layout::{instead_of, named_path};
pub(crate) use pages::{PAGE_BYTES, PageMemory, SharedPages};
#[cfg(feature = "parquet")]
pub(crate) use parquet::{ParquetCopy, ParquetTarget, objects};
#[cfg(feature = "parquet")]
pub(crate) use part::DeletedRows;
pub(crate) use part::TablePart;
#[cfg(feature = "parquet")]
pub(crate) use raw::taken;
pub(crate) use raw::{
    MarkColumns, RecordChoice, RowMark, TextPlace, marked_csv_header, push_csv_mark, push_json_mark,
};
pub use register::promised;
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
