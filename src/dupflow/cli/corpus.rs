//! Reads a corpus into memory, for commands that work without a dataflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arguments::problems;
use crate::config::Plan;
use dupflow_connectors::inputs::{Input, for_each_event};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::{DocEvent, DocId, Position};
use dupflow_core::text::{Featurizer, IdfTable};

/// The live documents: texts by id.
pub(super) type LiveDocuments = BTreeMap<DocId, String>;

/// Reads all inputs in order of position, and calls `each` for every event. If the plan has live weights,
/// they are frozen at the document frequencies of the live documents, as in a run of one epoch.
///
/// # Errors
/// If an input cannot be read, or holds records but no document.
pub(super) fn read(
    inputs: Vec<Input>,
    plan: &mut Plan,
    mut each: impl FnMut(Position, &DocEvent<'_>),
) -> anyhow::Result<LiveDocuments> {
    let mut alive = LiveDocuments::new();
    let (fields, bad) = (plan.scheme.text.field_names(), BadRecords::new(OnError::Count, None));
    for_each_event(inputs, &fields, &bad, |position, event| {
        each(position, &event);
        match event.text {
            Some(text) => drop(alive.insert(event.id, text.into_owned())),
            None => drop(alive.remove(&event.id)),
        }
    })?;
    problems::check_demands(&bad.without_document())?;
    if plan.scheme.live().is_some() {
        let mut featurizer = Featurizer::new(plan.scheme.text.clone());
        let features = alive.values().map(|text| featurizer.terms(text).to_owned().ids);
        plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(features)));
    }
    Ok(alive)
}
