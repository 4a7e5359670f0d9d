//! The actions of a log: what a commit or a checkpoint says.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One line of a commit, or one row of a checkpoint. Actions that change no row are not read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Action {
    pub(super) add: Option<AddedFile>,
    pub(super) remove: Option<RemovedFile>,
    pub(super) meta_data: Option<AboutTable>,
    pub(super) protocol: Option<Protocol>,
    pub(super) sidecar: Option<Sidecar>,
    pub(super) commit_info: Option<CommitInfo>,
}

/// What a commit says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommitInfo {
    /// In unix milliseconds, if the table has the feature `inCommitTimestamp`.
    pub(super) in_commit_timestamp: Option<u64>,
}

/// A file of rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddedFile {
    /// A URI, usually from the table's folder on.
    pub(super) path: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// A file that is none of the table any more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovedFile {
    pub(super) path: String,
    pub(super) deletion_vector: Option<DeletionVector>,
}

/// Where the numbers of deleted rows are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionVector {
    pub(super) storage_type: String,
    pub(super) path_or_inline_dv: String,
    pub(super) offset: Option<u64>,
    pub(super) size_in_bytes: usize,
    pub(super) cardinality: u64,
}

impl DeletionVector {
    /// Its name, which no other vector of the table has.
    pub(super) fn id(&self) -> String {
        let offset = self.offset.map(|offset| format!("@{offset}")).unwrap_or_default();
        [&*self.storage_type, &*self.path_or_inline_dv, &*offset].concat()
    }
}

/// What the table is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AboutTable {
    pub(super) schema_string: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) partition_columns: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) configuration: BTreeMap<String, Option<String>>,
}

/// What readers have to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: u32,
    pub(super) reader_features: Option<Vec<String>>,
}

/// A file of further actions of a checkpoint.
#[derive(Debug, Deserialize)]
pub(super) struct Sidecar {
    pub(super) path: String,
}

/// What a writer has counted at a version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionChecksum {
    pub(super) num_files: Option<u64>,
}

/// In a checkpoint what is absent is null.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
