//! What a file format of rows is.

use std::fmt;
use std::io;

use super::row::{Columns, RowWriter};
use crate::sinks::destination::Destination;

/// Opens a writer of rows with these columns.
pub(super) type OpenRows = fn(Box<dyn Destination + Send>, Columns) -> io::Result<Box<dyn RowWriter + Send>>;

/// A file format of rows.
pub struct RowFormat {
    /// The name in settings, and the extension of its files.
    pub name: &'static str,
    /// What it is, for help.
    pub help: &'static str,
    /// Whether all rows of a file have the same columns.
    pub has_columns: bool,
    /// Whether a file is complete only at its end, so that it cannot be continued.
    pub is_of_end: bool,
    /// Whether a file has a place for the provenance of its rows.
    pub holds_provenance: bool,
    /// What needs which feature of the build, for messages; `None`: it is always there.
    pub feature: Option<(&'static str, &'static str)>,
    /// Opens a writer; `None` if this build lacks the feature.
    pub open: Option<OpenRows>,
}

impl fmt::Debug for RowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
