//! Tables that a run follows: it reads one version of each, and ends when there is another.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[cfg(feature = "parquet")]
use super::delta::NewestVersion;
#[cfg(feature = "parquet")]
use super::named_table::LOG;
use super::named_table::{NamedTable, TableAt};

/// The tables that a run follows, each with the version that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedTables(Vec<(PathBuf, NewestVersion)>);

/// The version of a table: none is read in this build.
#[cfg(not(feature = "parquet"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NewestVersion {
    version: u64,
}

/// Why a table is not known any more.
pub(super) type LostTable = (PathBuf, String);

impl FollowedTables {
    /// The tables among these arguments that are named without a version, with the newest that they have;
    /// none unless the last argument is one.
    ///
    /// # Errors
    /// Why that is not known, in one line.
    pub fn now(arguments: &[PathBuf]) -> Result<Self, String> {
        let folders: Vec<_> = arguments.iter().map(|argument| followed(argument)).collect();
        if folders.last().is_none_or(Option::is_none) {
            return Ok(Self::default());
        }
        let look = |folder: PathBuf| Ok((newest(&folder)?, folder)).map(|(newest, folder)| (folder, newest));
        folders.into_iter().flatten().map(look).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The arguments, with these versions of the tables.
    pub fn pinned(&self, arguments: &[PathBuf]) -> Vec<PathBuf> {
        let pinned = |argument: &PathBuf| {
            let named = followed(argument);
            let found = self.0.iter().find(|(folder, _)| named.as_ref() == Some(folder));
            let Some((folder, NewestVersion { version, .. })) = found else { return argument.clone() };
            let mut pinned = OsString::from("delta:");
            pinned.push(folder);
            pinned.push(format!("?version={version}"));
            pinned.into()
        };
        arguments.iter().map(pinned).collect()
    }

    /// Whether a table has another newest version now, or another one of that number.
    ///
    /// # Errors
    /// Of which table that is not known, and why, in one line.
    pub(super) fn have_changed(&self) -> Result<bool, LostTable> {
        for (folder, read) in &self.0 {
            if newest(folder).map_err(|why| (folder.clone(), why))? != *read {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The folder of the table that an argument names without a version.
fn followed(argument: &Path) -> Option<PathBuf> {
    match NamedTable::from_argument(argument)? {
        Ok(NamedTable { folder, at: TableAt::Newest }) => Some(folder),
        _ => None,
    }
}

/// The newest version of a table.
#[cfg(feature = "parquet")]
fn newest(folder: &Path) -> Result<NewestVersion, String> {
    let newest = super::delta::newest(&folder.join(LOG));
    newest.map_err(|why| format!("cannot read the table \"{}\": {why}", folder.display()))
}

/// The newest version of a table: none is read in this build.
#[cfg(not(feature = "parquet"))]
fn newest(_: &Path) -> Result<NewestVersion, String> {
    Err(dupflow_run::missing_feature("tables of Delta Lake", "parquet"))
}
