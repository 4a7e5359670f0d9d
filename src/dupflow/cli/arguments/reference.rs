//! A corpus that is there already, which the inputs are compared with.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::inputs::field_name;
use super::problems::{self, Problems};
use super::share;
use crate::config::{Deployment, OutputAnswer, Plan, ReferenceConfig, TablesPlace};
use crate::pipeline::fields_of_reference;
use crate::plural::count;
use dupflow_connectors::formats::{IdRule, InputLayout};
use dupflow_connectors::inputs::{Input, file_number, files_of, for_each_event_until};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::cluster::ClusterKind;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::retention::Retention;

/// The inputs of the reference.
#[derive(Clone, Debug, clap::Args)]
pub struct ReferenceArgs {
    /// A corpus that is there already, to compare with.
    ///
    /// Files, folders, patterns, addresses, or "-"; several times for several. Its documents are compared
    /// with those of the inputs, not with each other, and are neither removed nor written. With --emit keep,
    /// remove, pairs, documents and removed-documents; with -p decontaminate also items.
    #[arg(long, value_name = "INPUT")]
    pub against: Vec<PathBuf>,

    /// With -p decontaminate: the field (--field) that names the benchmark of an item of --against [default:
    /// the name of its file].
    #[arg(long, value_name = "FIELD", requires = "against")]
    pub benchmark: Option<String>,

    /// The field or column of the id in --against [default: as in the inputs].
    #[arg(long, value_name = "NAME", value_parser = field_name, requires = "against")]
    pub against_id_field: Option<String>,

    /// The field or column of the text in --against [default: as in the inputs].
    #[arg(long, value_name = "NAME", value_parser = field_name, requires = "against")]
    pub against_text_field: Option<String>,

    /// With -p decontaminate: the greatest share of bad records among the items of --against, from 0 to 1,
    /// inclusive; with more the run fails before it reads a page [default: 0].
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "against")]
    pub against_max_bad: Option<f64>,
}

/// Reports inputs that are in the reference of `key`, too: all their documents would be their own matches.
pub(in crate::cli) fn check_sides(key: &str, reference: &[Input], inputs: &[Input], problems: &mut Problems) {
    if reference.is_empty() {
        return;
    }
    let place = |file: &Input| file.path().and_then(|path| path.canonicalize().ok());
    let number = |file: &Input| file.path().and_then(file_number);
    let known = files_of(reference);
    let places: BTreeSet<_> = known.iter().filter_map(place).collect();
    let numbers: BTreeSet<_> = known.iter().filter_map(number).collect();
    let is_both = |file: &&Input| {
        place(file).is_some_and(|at| places.contains(&at))
            || number(file).is_some_and(|number| numbers.contains(&number))
    };
    let files = files_of(inputs);
    let mut both = files.iter().filter(is_both);
    if let Some(file) = both.next() {
        let more = both.count();
        let more = if more > 0 { format!(", and so are {more} more files") } else { String::new() };
        problems.note(format_args!(
            "{key}: \"{}\" is an input, too{more}, and all its documents would be their own matches",
            file.name()
        ));
    }
}

impl ReferenceArgs {
    /// The resolved inputs of the reference, read like the inputs (`layout`) but for its own fields; none if
    /// there is no reference.
    pub(in crate::cli) fn resolve(&self, layout: InputLayout, problems: &mut Problems) -> Vec<Input> {
        if self.against_id_field.is_some() && layout.ids == IdRule::File {
            problems.note("--against-id-field: has no effect with --ids file");
        }
        let layout = InputLayout {
            id: self.against_id_field.clone().unwrap_or(layout.id),
            text: self.against_text_field.clone().unwrap_or(layout.text),
            ..layout
        };
        problems.take(Input::resolve(&self.against, layout)).unwrap_or_default()
    }

    /// Reads the items of the reference once before the run, with the fields of documents by the rules
    /// `fields`: what is wrong with them is known before the first page is read. Returns the number of bad
    /// records.
    ///
    /// # Errors
    /// If an input cannot be read; if a file has no item, or none has the field of `--benchmark`; if more
    /// records are bad than are allowed.
    pub(in crate::cli) fn check_items(
        &self,
        plan: &Plan,
        fields: &FieldRules,
        reference: &[Input],
    ) -> anyhow::Result<u64> {
        let (mut items, mut wrong, mut first, mut unmet) = (0, 0, None, Vec::new());
        let (field, mut nameless) = (fields.only(|name| Some(name) == self.benchmark.as_deref()), 0_u64);
        for file in files_of(reference) {
            let (name, bad) = (file.name(), BadRecords::new(OnError::Count, None));
            let mut of_file = 0_u64;
            for_each_event_until(vec![file], &plan.scheme.text.columns(), &field, &bad, |_, event| {
                let is_item = event.text.is_some();
                of_file += u64::from(is_item);
                nameless += u64::from(is_item && event.fields.row.get(0).is_empty());
                ControlFlow::Continue(())
            })?;
            let bad_of_file: u64 = bad.counts().values().sum();
            if of_file == 0 {
                unmet.push(format!("--against: \"{name}\" holds no item"));
            }
            if bad_of_file > 0 {
                first = first.or_else(|| bad.tallies().into_values().find_map(|tally| tally.first));
            }
            items += of_file;
            wrong += bad_of_file;
        }
        match &self.benchmark {
            Some(name) if items > 0 && nameless == items => {
                let of = count(items, "item");
                unmet.push(format!("--benchmark: none of {of} of --against has the field {name:?}"));
            }
            Some(name) if nameless > 0 => tracing::warn!(
                "--benchmark: {nameless} of {items} items of --against have no field {name:?}: the name of \
                 their benchmark is empty"
            ),
            _ => {}
        }
        let share = wrong as f64 / (items + wrong).max(1) as f64;
        if share > self.against_max_bad.unwrap_or(0.0) {
            let least = (share * 1e6).ceil() / 1e6;
            let first = first.map_or_else(String::new, |first| format!(" ({first})"));
            unmet.push(format!(
                "--against: {wrong} of {} records of items are bad{first}, and nothing would look for these \
                 items: --against-max-bad {least} allows them{}",
                items + wrong,
                fields_of_reference(&first)
            ));
        }
        problems::check_demands(&unmet)?;
        Ok(wrong)
    }

    /// Sets the rule of pairs for the reference, if there is one. Reports what has no meaning beside one:
    /// `others` are options, each with whether it is set.
    pub(in crate::cli) fn apply(
        &self,
        plan: Option<&mut Plan>,
        answer: OutputAnswer,
        others: &[(&str, bool)],
        problems: &mut Problems,
    ) {
        if self.against.is_empty() {
            return;
        }
        if !answer.takes_reference() || answer.is_of_changes() {
            let items = plan.as_ref().is_some_and(|plan| plan.finds_items()).then_some(", items");
            problems.note(format_args!(
                "--against: takes --emit keep, remove, pairs, documents, removed-documents{}",
                items.unwrap_or_default()
            ));
        }
        for (option, _) in others.iter().filter(|(_, is_set)| *is_set) {
            problems.note(format_args!("--against: does not go with {option}"));
        }
        let Some(plan) = plan else { return };
        if plan.finds_items() && self.against.iter().any(|path| path == Path::new("-")) {
            problems.note("--against: items are read twice: name files, not standard input");
        }
        if !plan.finds_items() && self.against_max_bad.is_some() {
            problems.note("--against-max-bad: takes a pipeline that finds items, as \"decontaminate\"");
        }
        if plan.retention != Retention::default() {
            problems.note("--against: documents that expire would do so on both sides: leave retention out");
        }
        set_rule(plan, "--against", problems);
    }
}

/// Sets the rule of pairs for a reference that `key` names. Reports what has no meaning beside one.
fn set_rule(plan: &mut Plan, key: &str, problems: &mut Problems) {
    if plan.scheme.live().is_some() {
        problems.note(format_args!("{key}: weights that follow the corpus would follow both: freeze them"));
    }
    if plan.clusters == ClusterKind::Star {
        problems.note(format_args!(
            "{key}: a star may leave out documents that have a match: set output.clusters to \"components\""
        ));
    }
    plan.scheme.pairs = plan.scheme.pairs.clone().with_reference();
}

/// Reports inputs of the reference of a deployment that are not there.
pub(in crate::cli) fn note_missing(deployment: &Deployment, problems: &mut Problems) {
    if let Some(ReferenceConfig { inputs, layout }) = &deployment.reference {
        problems.take(Input::resolve(inputs, layout.clone()));
    }
}

/// Sets the rule of pairs for the reference of a deployment, if it has one. Reports what has no meaning
/// beside one, and what cannot be written.
pub(in crate::cli) fn apply_frozen(
    plan: Option<&mut Plan>,
    deployment: &Deployment,
    are_several: bool,
    problems: &mut Problems,
) {
    if deployment.reference.is_none() {
        return;
    }
    let finds_items = plan.as_ref().is_some_and(|plan| plan.finds_items());
    for output in deployment.all_outputs() {
        let answer = output.answer;
        let is_written =
            answer.takes_reference() && !answer.is_of_items() && (answer.is_of_changes() || !finds_items);
        if !is_written && finds_items {
            problems.note(format_args!(
                "{}: \"{answer}\": a run writes the pairs of items and pages as they are found, which \
                is \"deltas\"; lists and rows of items are written by `dupflow replay --against`",
                output.answer_key()
            ));
        } else if !is_written {
            problems.note(format_args!(
                "{}: \"{answer}\" would be of documents of both sides: beside reference.inputs take \
                \"deltas\", \"pairs\", \"keep\" or \"remove\"",
                output.answer_key()
            ));
        }
        if output.place.as_a::<TablesPlace>().is_some() {
            let (table, why) = (&output.table, TablesPlace::NO_SIDE);
            problems.note(format_args!("{table}.kind: does not go with reference.inputs: {why}"));
        }
    }
    let others = [
        ("watch", deployment.watch.is_some(), "watches would be compared with documents of both sides"),
        ("view", !deployment.views.is_empty(), "views would be of documents of both sides"),
        (
            "state.history",
            deployment.state.as_ref().is_some_and(|state| state.history.is_some()),
            "the page has no pairs beside a reference",
        ),
        ("--processes", are_several, "one process takes a reference in"),
        ("source.kind", deployment.posted().is_some(), "answers would be of documents of both sides"),
    ];
    for (key, _, why) in others.into_iter().filter(|(_, is_set, _)| *is_set) {
        problems.note(format_args!("{key}: does not go with reference.inputs: {why}"));
    }
    if let Some(plan) = plan {
        set_rule(plan, "reference.inputs", problems);
    }
}
