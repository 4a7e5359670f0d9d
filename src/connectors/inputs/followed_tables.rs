//! Tables that a run follows: it reads one version of each, and ends when there is another.

use std::path::{Path, PathBuf};

#[cfg(feature = "parquet")]
use super::named_table::LOG;
use super::named_table::{NamedTable, TableAt};

/// The tables that a run follows, each with the version that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedTables(Vec<(PathBuf, u64)>);

impl FollowedTables {
    /// The tables among these arguments that are named without a version, with the newest that they have.
    ///
    /// # Errors
    /// Why that is not known, in one line.
    pub fn now(arguments: &[PathBuf]) -> Result<Self, String> {
        let mut tables = Vec::new();
        for argument in arguments {
            if let Some(Ok(NamedTable { folder, at: TableAt::Newest })) = NamedTable::from_argument(argument)
            {
                let newest = newest(&folder)?;
                tables.push((folder, newest));
            }
        }
        Ok(Self(tables))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The arguments, with these versions of the tables.
    pub fn pinned(&self, arguments: &[PathBuf]) -> Vec<PathBuf> {
        let pinned = |argument: &PathBuf| {
            let Some(Ok(NamedTable { folder, at: TableAt::Newest })) = NamedTable::from_argument(argument)
            else {
                return argument.clone();
            };
            let of = self.0.iter().find(|(followed, _)| *followed == folder);
            of.map_or_else(
                || argument.clone(),
                |(followed, version)| format!("delta:{}?version={version}", followed.display()).into(),
            )
        };
        arguments.iter().map(pinned).collect()
    }

    /// Whether a table has another newest version now.
    ///
    /// # Errors
    /// Why that is not known, in one line.
    pub(super) fn have_changed(&self) -> Result<bool, String> {
        for (folder, version) in &self.0 {
            if newest(folder)? != *version {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The newest version of a table.
#[cfg(feature = "parquet")]
fn newest(folder: &Path) -> Result<u64, String> {
    let newest = super::delta::newest(&folder.join(LOG));
    newest.map_err(|why| format!("cannot read the table \"{}\": {why}", folder.display()))
}

/// The newest version of a table: none is read in this build.
#[cfg(not(feature = "parquet"))]
fn newest(_: &Path) -> Result<u64, String> {
    Err(dupflow_run::missing_feature("tables of Delta Lake", "parquet"))
}
