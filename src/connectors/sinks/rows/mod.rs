//! Rows of outputs, and the formats in which they are written.
//!
//! An [answer](crate::sinks::answers) decides what a row is; a format, an implementation of [`RowWriter`],
//! decides how it is written. [`JsonLines`] writes one JSON object a line. Formats with columns write cells
//! under the names of the [`Columns`]. A cluster is one line in JSON, with a list of its members, and one row
//! for each member in a format with columns.

mod arrow;
pub(crate) mod cluster_json;
mod column;
mod csv;
mod format;
mod found_item;
mod json;
pub(crate) mod pair_json;
mod parquet;
mod provenance;
mod removed_unit;
mod row;

pub use self::csv::CsvRows;
pub(super) use column::whole;
pub use column::{ColumnType, OutputCell};
pub use format::RowFormat;
pub use found_item::FoundItem;
pub use json::JsonLines;
pub use pair_json::{PairStyle, StandardError};
pub use provenance::{OutputProvenance, WithProvenance};
pub use removed_unit::{RemovedUnit, UnitName};
pub use row::{Columns, EachCells, OutputRow, RowWriter};

/// The formats, each in a file of its own; the first one is the default.
pub static ROW_FORMATS: [RowFormat; 4] = [json::FORMAT, csv::FORMAT, parquet::FORMAT, arrow::FORMAT];
