//! The records of a file as they are written there, for a second pass that copies some of them.

mod cut;
mod mark;
mod records;

pub(crate) use cut::TextPlace;
#[cfg(feature = "parquet")]
pub(crate) use cut::cut_text;
#[cfg(feature = "parquet")]
pub(crate) use mark::taken;
pub(crate) use mark::{MarkColumns, RecordChoice, RowMark, marked_csv_header, push_csv_mark, push_json_mark};
pub(crate) use records::{RawReader, SharedPages, raw_csv, raw_lines, raw_warc};
