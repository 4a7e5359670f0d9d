//! The kinds of sources.

use super::limits::reject_text;
use super::place::{SourceConfig, SourceKind};
use super::{database, files, http, topic};
use crate::config::deployment::kind::Kind;
use crate::config::settings::FileSettings;
use dupflow_core::doc::fields::FieldRules;

/// The kinds, each in a file of its own; the first one is the default.
static SOURCES: [SourceKind; 5] =
    [files::FILES, topic::KAFKA, database::SQLITE, database::POSTGRES, http::HTTP];

impl SourceConfig {
    /// Reads the tables `[source]`, `[csv]` and `[warc]`.
    pub(in crate::config::deployment) fn read(settings: &mut FileSettings, fields: &FieldRules) -> Self {
        let source = (Kind::chosen(settings, "source.kind", &SOURCES).read)(settings, fields);
        reject_text(settings, fields, &source.text());
        source
    }
}
