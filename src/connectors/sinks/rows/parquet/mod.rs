//! Parquet files.

#[cfg(feature = "parquet")]
mod writer;

use super::format::{OpenRows, RowFormat};
#[cfg(feature = "parquet")]
use writer::ParquetRows;

pub(super) const FORMAT: RowFormat = RowFormat {
    name: "parquet",
    help: "A Parquet file. It is complete only at the end of the run",
    has_columns: true,
    is_of_end: true,
    holds_provenance: true,
    feature: Some(("Parquet", "parquet")),
    open: OPEN,
};

#[cfg(feature = "parquet")]
const OPEN: Option<OpenRows> = Some(|out, columns| Ok(Box::new(ParquetRows::new(out, &columns)?)));

#[cfg(not(feature = "parquet"))]
const OPEN: Option<OpenRows> = None;
