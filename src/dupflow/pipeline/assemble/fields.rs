//! The fields of documents that a run holds: those of `source.fields` that a setting asks for.

use crate::config::{Deployment, Plan};
use dupflow_core::doc::fields::FieldRules;

/// The names of fields that settings ask for, each with the setting.
fn wanted<'s>(plan: &'s Plan, _: &'s Deployment) -> impl Iterator<Item = (&'static str, &'s str)> {
    plan.scheme.pairs.fields().map(|name| ("pairs.where", name))
}

/// The fields that a run holds, in the order of `source.fields`.
pub fn held_fields(plan: &Plan, deployment: &Deployment) -> FieldRules {
    deployment.fields.only(|name| wanted(plan, deployment).any(|(_, other)| other == name))
}

/// A problem for each field that a setting asks for and that `source.fields` does not have.
pub fn missing_fields(plan: &Plan, deployment: &Deployment) -> Vec<String> {
    let known: Vec<_> = deployment.fields.rules().iter().map(|rule| format!("{:?}", rule.name())).collect();
    let among = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
    let missing = wanted(plan, deployment).filter(|(_, name)| deployment.fields.place(name).is_none());
    missing
        .map(|(key, name)| format!("{key}: no field {name:?} in source.fields (or --field): {among}"))
        .collect()
}
