//! Rows of outputs, and the formats in which they are written.
//!
//! A sink decides what a row is; a format, an implementation of [`RowWriter`], decides how it is written.
//! [`JsonLines`] writes one JSON object a line. Formats with columns write cells under the column
//! names of a [`RowKind`]. A cluster is one line in JSON, with a list of its members, and one row for each
//! member in a format with columns.

pub(crate) mod cluster_json;
mod column;
mod csv;
mod found_item;
mod json;
pub(crate) mod pair_json;
#[cfg(feature = "parquet")]
mod parquet;
mod provenance;
mod removed_unit;
mod row;

pub use self::csv::CsvRows;
#[cfg(feature = "parquet")]
pub use self::parquet::ParquetRows;
pub use column::{ColumnType, OutputCell};
pub use found_item::FoundItem;
pub use json::JsonLines;
pub use pair_json::{PairStyle, StandardError};
pub use provenance::{OutputProvenance, WithProvenance};
pub use removed_unit::{RemovedUnit, UnitName};
pub use row::{OutputRow, RowKind, RowWriter};
