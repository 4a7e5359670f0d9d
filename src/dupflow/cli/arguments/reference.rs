//! A corpus that is there already, which the inputs are compared with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::problems::Problems;
use crate::config::{EmitKind, Plan};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_core::cluster::ClusterKind;
use dupflow_core::doc::retention::Retention;

/// The inputs of the reference.
#[derive(Clone, Debug, clap::Args)]
pub struct ReferenceArgs {
    /// A corpus that is there already: files, folders, patterns, addresses, or "-"; several times for
    /// several. Its documents are compared with those of the inputs, not with each other, and are neither
    /// removed nor written. With --emit keep, remove, pairs, documents and removed-documents.
    #[arg(long, value_name = "INPUT")]
    pub against: Vec<PathBuf>,

    /// With -p decontaminate: the field (--field) that names the benchmark of an item of --against [default:
    /// the name of its file].
    #[arg(long, value_name = "FIELD", requires = "against")]
    pub benchmark: Option<String>,
}

impl ReferenceArgs {
    /// The resolved inputs of the reference; none if there is no reference.
    pub(in crate::cli) fn resolve(&self, layout: InputLayout, problems: &mut Problems) -> Vec<Input> {
        problems.take(Input::resolve(&self.against, layout)).unwrap_or_default()
    }

    /// Reports inputs that are in the reference, too: all their documents would be their own matches.
    pub(in crate::cli) fn check_sides(reference: &[Input], inputs: &[Input], problems: &mut Problems) {
        let place = |input: &Input| input.path().and_then(|path| path.canonicalize().ok());
        let known: BTreeSet<PathBuf> = reference.iter().filter_map(place).collect();
        for input in inputs.iter().filter(|input| place(input).is_some_and(|at| known.contains(&at))) {
            problems.note(format_args!(
                "--against: {:?} is an input, too, and all its documents would be their own matches",
                input.name()
            ));
        }
    }

    /// Sets the rule of pairs for the reference, if there is one. Reports what has no meaning beside one:
    /// `others` are options, each with whether it is set.
    pub(in crate::cli) fn apply(
        &self,
        plan: Option<&mut Plan>,
        emit: EmitKind,
        others: &[(&str, bool)],
        problems: &mut Problems,
    ) {
        if self.against.is_empty() {
            return;
        }
        if !emit.is_list() && !matches!(emit, EmitKind::Pairs | EmitKind::Items) {
            problems.note("--against: takes --emit keep, remove, pairs, documents or removed-documents");
        }
        for (option, _) in others.iter().filter(|(_, is_set)| *is_set) {
            problems.note(format_args!("--against: does not go with {option}"));
        }
        let Some(plan) = plan else { return };
        if plan.scheme.live().is_some() {
            problems.note("--against: weights that follow the corpus would follow both: freeze them");
        }
        if plan.clusters == ClusterKind::Star {
            problems.note(
                "--against: a star may leave out documents that have a match: set output.clusters to \
                 \"components\"",
            );
        }
        if plan.retention != Retention::default() {
            problems.note("--against: documents that expire would do so on both sides: leave retention out");
        }
        plan.scheme.pairs = plan.scheme.pairs.clone().with_reference();
    }
}
