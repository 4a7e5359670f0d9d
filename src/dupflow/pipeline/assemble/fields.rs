//! The fields of documents that a run holds: those of `source.fields` that a setting asks for.

use std::sync::Arc;

use crate::config::{Deployment, Plan};
use dupflow_connectors::state::StoredState;
use dupflow_core::description::Description;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::measures::Measure;
use dupflow_core::views::{GroupPart, ViewPlan};
use dupflow_engine::dataflow::HELD_FIELDS;

/// The names of fields that settings ask for, each with the setting.
fn wanted<'s>(plan: &'s Plan, deployment: &'s Deployment) -> impl Iterator<Item = (&'static str, &'s str)> {
    let of_views = deployment.views.iter().flat_map(|view| view.plan.field_names());
    let of_rule = plan.scheme.pairs.fields().map(|name| ("pairs.where", name));
    let of_keep = plan
        .keep
        .field()
        .filter(|_| deployment.answers().any(|answer| answer.is_list()))
        .map(|name| ("output.keep", name));
    let of_items = deployment.benchmark.iter().map(|name| ("--benchmark", name.as_str()));
    of_rule.chain(of_views.map(|name| ("view.group", name))).chain(of_keep).chain(of_items)
}

/// The fields that a run holds, in the order of `source.fields`.
pub fn held_fields(plan: &Plan, deployment: &Deployment) -> FieldRules {
    deployment.fields.only(|name| wanted(plan, deployment).any(|(_, other)| other == name))
}

/// The fields that a run with this state holds: those of the stored documents, if settings ask for no others
/// and `source.fields` still has them. So a view that is removed does not make the stored documents
/// unreadable.
pub(super) fn held_with(state: Option<&StoredState>, plan: &Plan, deployment: &Deployment) -> FieldRules {
    let wanted = held_fields(plan, deployment);
    let scheme = state.and_then(StoredState::scheme).and_then(|scheme| Description::decode(scheme).ok());
    let Some(scheme) = scheme else { return wanted };
    let known = |written: &String| deployment.fields.rules().iter().find(|rule| rule.written() == written);
    let stored: Option<Vec<_>> = scheme.texts(HELD_FIELDS).iter().map(|one| known(one).cloned()).collect();
    match stored.and_then(|rules| FieldRules::new(rules).ok()) {
        Some(stored) if wanted.rules().iter().all(|rule| stored.rules().contains(rule)) => stored,
        _ => wanted,
    }
}

/// The views, with the places of their fields among those that the run holds.
pub(super) fn held_views(held: &FieldRules, deployment: &Deployment) -> Arc<[ViewPlan]> {
    let placed = |part: &GroupPart| match part {
        GroupPart::Field { name, .. } => {
            GroupPart::Field { name: Arc::clone(name), at: held.place(name).unwrap_or_default() }
        }
        GroupPart::Size => GroupPart::Size,
    };
    let view = |plan: &ViewPlan| ViewPlan { group: plan.group.iter().map(placed).collect(), ..plan.clone() };
    deployment.views.iter().map(|config| view(&config.plan)).collect()
}

/// A problem for each field that a setting asks for and that `source.fields` does not have, and for a list
/// that cannot be decided.
pub fn missing_fields(plan: &Plan, deployment: &Deployment) -> Vec<String> {
    let known: Vec<_> = deployment.fields.rules().iter().map(|rule| format!("{:?}", rule.name())).collect();
    let among = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
    let missing = wanted(plan, deployment).filter(|(_, name)| deployment.fields.place(name).is_none());
    let missing =
        missing.map(|(key, name)| format!("{key}: no field {name:?} in source.fields (or --field): {among}"));
    let is_contained = plan.scheme.measure() == Measure::Containment && !plan.finds_items();
    let is_list = deployment.answers().any(|answer| answer.is_list());
    let has_reference = deployment.has_reference();
    let refused = [
        (
            is_contained && is_list && plan.remove_if.is_none(),
            "filter.verify: what to remove is decided by exact shares; set filter.verify = \"exact\"",
        ),
        (
            plan.finds_items() && !has_reference,
            "blocking.kind: \"reference\" finds the documents of a replay's --against, or of a run's \
            reference.inputs, and there are none",
        ),
        (
            deployment.output.answer.is_of_items() && !plan.finds_items(),
            "--emit items: takes a pipeline with blocking.kind = \"reference\", as \"decontaminate\"",
        ),
        (
            deployment.benchmark.is_some() && !plan.finds_items(),
            "--benchmark: takes a pipeline with blocking.kind = \"reference\", as \"decontaminate\"",
        ),
    ];
    let refused = refused.into_iter().filter(|(is_refused, _)| *is_refused).map(|(_, what)| what.to_owned());
    missing.chain(refused).collect()
}
