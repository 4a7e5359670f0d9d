//! What the commands of an audit share: a time up to which events count, where a provenance is written, and
//! the conflicts of the options.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::arguments::problems::Problems;
use crate::config::{AuditConfig, Deployment, OutputConfig, Plan, ProvenancePlace};
use crate::pipeline::{Provenance, Summary};
use dupflow_connectors::instant;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::time::UnixTime;

/// Reports options of a replay for an audit that exclude each other or have no effect. `are_several`: the
/// replay has several processes.
pub(super) fn note_conflicts(
    deployment: &Deployment,
    are_several: bool,
    plan: Option<&Plan>,
    problems: &mut Problems,
) {
    let AuditConfig { provenance, until } = deployment.audit;
    let OutputConfig { answer, format, times, .. } = deployment.output;
    let is_wanted = provenance == ProvenancePlace::Output;
    let is_file =
        || deployment.output_file().is_some_and(|path| path.metadata().map_or(true, |it| it.is_file()));
    if times && !answer.takes_times() {
        problems.note("--times: only changes have times, and something else is to be emitted");
    }
    if is_wanted && answer.is_of_decisions() {
        problems.note("--provenance: decisions have no place for it; --stats has it");
    }
    if is_wanted && answer.copied().is_some() {
        problems.note("--provenance: records are written as they were read; --stats has it");
    }
    if is_wanted && are_several {
        problems.note("--provenance: one process writes it; with several, --stats has it");
    }
    if is_wanted && !format.holds_provenance && !is_file() {
        problems.note(format_args!(
            "--provenance: \"{}\" has no place for it, and it is written beside the file: name one with \
            --output",
            format.name()
        ));
    }
    if until.is_some() && plan.is_some_and(|plan| plan.retention.follows(RetentionClock::Wall)) {
        problems.note(
            "--until: documents expire by the time of day (retention.clock = \"wall\"), which is not the \
            time of the events: take \"event\"",
        );
    }
}

/// Suffix of the file beside an output, of a format without a place for it, that has its provenance.
pub(super) const COMPANION_SUFFIX: &str = ".provenance.json";

/// The file beside an output that has its provenance.
pub(super) fn companion(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(COMPANION_SUFFIX);
    name.into()
}

/// The contents of the stats file.
#[derive(Serialize)]
pub(super) struct StatsReport<'a> {
    #[serde(flatten)]
    pub(super) summary: &'a Summary,
    pub(super) provenance: &'a Provenance,
}

/// A time of events.
pub(super) fn until(typed: &str) -> Result<UnixTime, String> {
    let time = instant::of_text(typed).and_then(UnixTime::new);
    time.ok_or_else(|| {
        "expected unix seconds, or a date such as 2026-11-02T12:00:00Z, from 1970 to before 2100".to_owned()
    })
}
