//! The corpus that inputs leave, in memory: for the commands that ask about it without a dataflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::problems;
use crate::config::Plan;
use dupflow_connectors::inputs::{Input, for_each_event};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::{DocEvent, DocId, Position};
use dupflow_core::text::{Featurizer, IdfTable};

/// The documents alive.
pub(super) type Corpus = BTreeMap<DocId, String>;

/// Reads all inputs, in order of position; `each` sees every event. Live weights of the plan are frozen at
/// the frequencies of what the inputs leave, as a run of one epoch has them.
///
/// # Errors
/// An input that cannot be read, or that holds records and no document.
pub(super) fn read(
    inputs: Vec<Input>,
    plan: &mut Plan,
    mut each: impl FnMut(Position, &DocEvent<'_>),
) -> anyhow::Result<Corpus> {
    let mut alive = Corpus::new();
    let (fields, bad) = (plan.scheme.text.field_names(), BadRecords::new(OnError::Count, None));
    for_each_event(inputs, &fields, &bad, |position, event| {
        each(position, &event);
        match event.text {
            Some(text) => drop(alive.insert(event.id, text.into_owned())),
            None => drop(alive.remove(&event.id)),
        }
    })?;
    problems::met(&bad.without_document())?;
    if plan.scheme.live().is_some() {
        let mut featurizer = Featurizer::new(plan.scheme.text.clone());
        let features = alive.values().map(|text| featurizer.terms(text).to_owned().ids);
        plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(features)));
    }
    Ok(alive)
}
