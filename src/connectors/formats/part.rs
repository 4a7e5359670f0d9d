//! What a table's log says of one of its files, which the file does not say itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A file of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TablePart {
    /// The folder of the table.
    pub(crate) folder: PathBuf,
    /// The version that is read.
    pub(crate) version: u64,
    /// The columns of the table, and what each is called in files; fields of structs too, as dotted paths.
    pub(crate) columns: Arc<BTreeMap<String, String>>,
    /// Values of columns that are not in the file; `None`: null.
    pub(crate) given: BTreeMap<String, Option<String>>,
    /// The numbers of the rows that are deleted, from 0.
    pub(crate) deleted: DeletedRows,
    /// A hash of what the log says: with another one the same file has other rows.
    pub(crate) tag: String,
}

impl TablePart {
    /// What a column is called in the file; `None`: the table has no such column, whatever the file has.
    #[cfg(feature = "parquet")]
    pub(super) fn in_file(&self, name: &str) -> Option<&str> {
        self.columns.get(name).map(String::as_str)
    }

    /// Whether the table has a column, whether this file has it or not.
    pub(crate) fn is_column(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// The values of these fields that are not in the file, each with its index; empty for null.
    pub(crate) fn given(&self, fields: &[String]) -> Vec<(usize, Vec<u8>)> {
        let value = |field: &String| Some(self.given.get(field)?.clone().unwrap_or_default().into_bytes());
        let given = fields.iter().enumerate();
        given.filter_map(|(place, field)| Some((place, value(field)?))).collect()
    }
}

/// Numbers of rows.
#[cfg(feature = "parquet")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeletedRows(pub(crate) roaring::RoaringTreemap);

#[cfg(feature = "parquet")]
impl Eq for DeletedRows {}

#[cfg(feature = "parquet")]
impl DeletedRows {
    /// Whether a row is among them.
    pub(crate) fn has(&self, row: u64) -> bool {
        self.0.contains(row)
    }
}

/// Numbers of rows: none in this build.
#[cfg(not(feature = "parquet"))]
pub(crate) type DeletedRows = ();
