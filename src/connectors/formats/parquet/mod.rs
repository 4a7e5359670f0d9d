//! Parquet as a format of inputs.

#[cfg(feature = "parquet")]
mod file;
mod format;

#[cfg(feature = "parquet")]
pub(crate) use file::{ParquetCopy, ParquetTarget, objects};
pub(super) use format::PARQUET;
#[cfg(test)]
pub(super) use format::is_parquet;
