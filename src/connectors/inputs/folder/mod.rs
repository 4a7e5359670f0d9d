//! Folders: their files, the tables that they may be, and the columns in their names.

mod entries;
mod partitions;
mod tables;

pub use entries::{FolderKind, folder_kinds};
pub(super) use entries::{holds_records, in_order, is_hidden, refused_below, table_of};
pub(super) use partitions::{PartitionRows, path_columns};
pub(super) use tables::{TableFolder, TablesAbove};
