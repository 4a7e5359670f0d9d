//! What is recorded for an audit, and how records of documents are copied.

use std::num::NonZeroU64;

use dupflow_connectors::rewrite::CopyResume;
use dupflow_core::time::UnixTime;

/// How records of documents are copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentsConfig {
    /// The name of the columns that mark each record, where the records of all documents are copied.
    pub mark: Option<String>,
    /// Bytes of records, before compression, after which a file ends; `None`: files are those of the input.
    pub shard_bytes: Option<NonZeroU64>,
    /// Where a copy that ended early is continued.
    pub resume: Option<CopyResume>,
}

/// What is recorded for an audit, and up to which time events count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuditConfig {
    /// Where the provenance of the result is written.
    pub provenance: ProvenancePlace,
    /// Events after this time are not applied.
    pub until: Option<UnixTime>,
}

/// Where the provenance of a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProvenancePlace {
    /// Nowhere; no digest is computed.
    #[default]
    Nowhere,
    /// With the counts of the run.
    Stats,
    /// With the counts, and in the output or beside it.
    Output,
}
