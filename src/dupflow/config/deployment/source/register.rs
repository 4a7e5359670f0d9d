//! The kinds of sources, and which of them is meant.

use super::limits::reject_text;
use super::place::{SourceConfig, SourceKind};
use super::{files, table, topic};
use crate::config::settings::{FileSettings, ProblemKind, without_effect};
use dupflow_core::doc::fields::FieldRules;

/// The kinds, each in a file of its own; the first one is the default.
const SOURCES: [SourceKind; 4] = [files::FILES, topic::KAFKA, table::SQLITE, table::POSTGRES];

const KIND: &str = "source.kind";

impl SourceConfig {
    /// Reads the tables `[source]`, `[csv]` and `[warc]`.
    pub(in crate::config::deployment) fn read(settings: &mut FileSettings, fields: &FieldRules) -> Self {
        let kinds: Vec<_> = SOURCES.iter().enumerate().map(|(at, kind)| (kind.name, at)).collect();
        let chosen = settings.choose(KIND, &kinds, &[]).unwrap_or(0);
        let kind = &SOURCES[chosen];
        if let Some(what) = (kind.missing)() {
            settings.problem(KIND, ProblemKind::Contradiction(what));
        }
        if chosen > 0 || settings.sound(&[KIND]) {
            let keys = |of: &SourceKind| of.keys.concat();
            let (own, mut others) = (keys(kind), SOURCES.iter().flat_map(keys).collect::<Vec<_>>());
            others.retain(|key| !own.contains(key));
            others.sort_unstable();
            others.dedup();
            without_effect(settings, KIND, kind.name, &others);
        }
        let source = (kind.read)(settings, fields);
        reject_text(settings, fields, &source.text());
        source
    }
}
