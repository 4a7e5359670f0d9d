//! What names a table of Delta Lake.

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::table_folder::TableFolder;
use crate::instant;
use dupflow_core::time::unix_milliseconds;

/// The folder of its log.
pub(super) const LOG: &str = "_delta_log";

/// A table of Delta Lake that is named: its folder, or `delta:FOLDER`, `delta:FOLDER?version=7`,
/// `delta:FOLDER?timestamp=2026-11-30T12:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) folder: PathBuf,
    pub(super) at: TableAt,
}

/// Which version of a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableAt {
    Newest,
    Version(u64),
    /// The newest of a commit that is not after this time, in unix milliseconds.
    Time(u64),
}

impl NamedTable {
    /// The table that an argument names, if it names one.
    pub(super) fn from_argument(argument: &Path) -> Option<Result<Self, String>> {
        let Some(typed) = argument.to_str().and_then(|typed| typed.strip_prefix("delta:")) else {
            let is_table = argument.join(LOG).is_dir();
            return is_table.then(|| Ok(Self { folder: argument.to_owned(), at: TableAt::Newest }));
        };
        Some(Self::from_typed(typed).map_err(|why| format!("cannot read \"delta:{typed}\": {why}")))
    }

    fn from_typed(typed: &str) -> Result<Self, String> {
        let (folder, at) = match typed.rsplit_once('?') {
            Some((folder, query)) => (folder, TableAt::from_query(query)?),
            None => (typed, TableAt::Newest),
        };
        let local = Url::parse(folder).ok().filter(|url| url.scheme() == "file");
        let local = local.and_then(|url| url.to_file_path().ok());
        if local.is_none() && folder.contains("://") {
            let version = if let TableAt::Version(n) = at { format!(",version={n}") } else { String::new() };
            return Err(format!(
                "tables in stores are not read: write its present rows as Parquet, and name that: {}",
                TableFolder::of_delta(folder).command(&version)
            ));
        }
        let folder = local.unwrap_or_else(|| PathBuf::from(folder));
        if !folder.join(LOG).is_dir() {
            return Err(format!("there is no folder \"{LOG}\" in it: name the folder of one table"));
        }
        Ok(Self { folder, at })
    }
}

impl TableAt {
    fn from_query(query: &str) -> Result<Self, String> {
        match query.split_once('=') {
            Some(("version", typed)) => {
                let number = typed.parse();
                Ok(Self::Version(number.map_err(|_| format!("{typed:?} is no number of a version"))?))
            }
            Some(("timestamp", typed)) => {
                // Half a microsecond more than what a number of seconds may be below its milliseconds.
                let since =
                    instant::of_text(typed).map(|seconds| Duration::try_from_secs_f64(seconds + 5e-7));
                let millis =
                    since.and_then(Result::ok).and_then(|since| u64::try_from(since.as_millis()).ok());
                let millis = millis.filter(|millis| *millis <= unix_milliseconds());
                Ok(Self::Time(millis.ok_or_else(|| {
                    format!("{typed:?} is no time up to now, in unix seconds or as 2026-11-30T12:00:00Z")
                })?))
            }
            _ => Err(format!("{query:?} is neither version=NUMBER nor timestamp=TIME")),
        }
    }
}
