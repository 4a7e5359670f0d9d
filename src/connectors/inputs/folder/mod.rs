//! Folders: their files, and the columns in their names.

mod entries;
mod partitions;

pub use entries::{FolderKind, folder_kinds};
pub(super) use entries::{holds_records, in_order, is_hidden, refused_below, table_of};
#[cfg(feature = "parquet")]
pub(super) use partitions::decoded;
pub(super) use partitions::{PartitionRows, line_rules};
