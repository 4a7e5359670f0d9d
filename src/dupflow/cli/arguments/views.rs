//! Checks of views that need more than their tables: the pipeline, the command, and the other outputs.

use std::collections::BTreeSet;
use std::path::Path;

use super::problems::Problems;
use crate::config::{Deployment, Plan, ViewConfig};
use dupflow_connectors::sinks::MarkedFile;
use dupflow_core::cluster::ClusterKind;
use dupflow_core::views::ViewKind;

/// A file that a view writes: its key, its path, and the suffixes of the files beside it.
pub(in crate::cli) type ViewFile<'a> = (String, &'a Path, &'static [&'static str]);

/// Reports views that the pipeline or the command cannot keep, and those that nothing reads.
pub(in crate::cli) fn note_conflicts(
    plan: Option<&Plan>,
    deployment: &Deployment,
    is_replay: bool,
    problems: &mut Problems,
) {
    let mut tables = BTreeSet::new();
    for (at, view) in deployment.views.iter().enumerate() {
        let key = |key| ViewConfig::key(at, key);
        let are_stars = plan.is_some_and(|plan| plan.clusters == ClusterKind::Star);
        if view.plan.kind == ViewKind::Clusters && are_stars {
            problems.note(format_args!(
                "{}: a view of clusters is of connected components, and output.clusters is \"star\"",
                key("of")
            ));
        }
        let is_read = view.output.is_some() || view.topic.is_some() || view.table.is_some();
        if !is_read && deployment.monitor.is_none() {
            let also = if is_replay { "" } else { ", a topic or a table" };
            problems
                .note(format_args!("{}: found nothing, expected a path{also}, or a monitor", key("output")));
        }
        if view.is_final() && !is_replay {
            problems.note(format_args!(
                "{}: a table of the final rows is written by `replay`; a run writes every change, as lines",
                key("output")
            ));
        }
        if view.is_final() && !tables.insert(&view.output) {
            problems.note(format_args!("{}: another view has its table of final rows here", key("output")));
        }
    }
}

/// The files that the views write, each once.
pub(in crate::cli) fn files(views: &[ViewConfig], is_replay: bool) -> Vec<ViewFile<'_>> {
    let mut files: Vec<ViewFile<'_>> = Vec::new();
    for (at, view) in views.iter().enumerate() {
        let Some(path) = view.output.as_deref() else { continue };
        if files.iter().all(|(_, other, _)| *other != path) {
            let beside = if is_replay { &[][..] } else { &MarkedFile::COMPANION_SUFFIXES[..] };
            files.push((ViewConfig::key(at, "output"), path, beside));
        }
    }
    files
}
