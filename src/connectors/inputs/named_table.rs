//! What names a table of Delta Lake.

use std::path::{Path, PathBuf};

use url::Url;

use super::table_folder::TableFolder;

/// The folder of its log.
pub(super) const LOG: &str = "_delta_log";

/// A table of Delta Lake that is named: its folder, or `delta:FOLDER`, or `delta:FOLDER?version=7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) folder: PathBuf,
    /// `None`: the newest.
    pub(super) version: Option<u64>,
}

impl NamedTable {
    /// The table that an argument names, if it names one.
    pub(super) fn from_argument(argument: &Path) -> Option<Result<Self, String>> {
        let Some(typed) = argument.to_str().and_then(|typed| typed.strip_prefix("delta:")) else {
            let is_table = argument.join(LOG).is_dir();
            return is_table.then(|| Ok(Self { folder: argument.to_owned(), version: None }));
        };
        Some(Self::from_typed(typed).map_err(|why| format!("cannot read \"delta:{typed}\": {why}")))
    }

    fn from_typed(typed: &str) -> Result<Self, String> {
        let (folder, version) = match typed.rsplit_once("?version=") {
            None => (typed, None),
            Some((folder, version)) => {
                let number = version.parse().map_err(|_| format!("{version:?} is no number of a version"))?;
                (folder, Some(number))
            }
        };
        let local = Url::parse(folder).ok().filter(|url| url.scheme() == "file");
        let local = local.and_then(|url| url.to_file_path().ok());
        if local.is_none() && folder.contains("://") {
            let version = version.map(|version| format!(",version={version}")).unwrap_or_default();
            return Err(format!(
                "tables in stores are not read: write its present rows as Parquet, and name that: {}",
                TableFolder::of_delta(folder).command(&version)
            ));
        }
        let folder = local.unwrap_or_else(|| PathBuf::from(folder));
        if !folder.join(LOG).is_dir() {
            return Err(format!("there is no folder \"{LOG}\" in it: name the folder of one table"));
        }
        Ok(Self { folder, version })
    }
}
