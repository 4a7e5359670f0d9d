//! Reads a corpus into memory, for commands that work without a dataflow.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::arguments::problems;
use crate::config::Plan;
use dupflow_connectors::inputs::{Input, for_each_event_until};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::fields::{FieldRow, FieldRules};
use dupflow_core::doc::{DocEvent, DocId, Position};
use dupflow_core::text::{Featurizer, IdfTable};

/// The live documents by id.
pub(super) type LiveDocuments = BTreeMap<DocId, LiveDocument>;

/// A live document.
#[derive(Debug)]
pub(super) struct LiveDocument {
    pub(super) text: String,
    pub(super) fields: FieldRow,
}

/// Reads all inputs in order of position, with these fields, and calls `each` for every event. If the plan
/// has live weights, they are frozen at the document frequencies of the live documents, as in a run of one
/// epoch.
///
/// # Errors
/// If an input cannot be read, or holds records but no document.
pub(super) fn read(
    inputs: Vec<Input>,
    plan: &mut Plan,
    own: &FieldRules,
    mut each: impl FnMut(Position, &DocEvent<'_>),
) -> anyhow::Result<LiveDocuments> {
    let mut alive = LiveDocuments::new();
    let (fields, bad) = (plan.scheme.text.columns(), BadRecords::new(OnError::Count, None));
    for_each_event_until(inputs, &fields, own, &bad, |position, event| {
        each(position, &event);
        match event.text {
            Some(text) => {
                let document = LiveDocument { text: text.into_owned(), fields: event.fields.row };
                alive.insert(event.id, document);
            }
            None => drop(alive.remove(&event.id)),
        }
        ControlFlow::Continue(())
    })?;
    problems::check_demands(&bad.without_document())?;
    if plan.scheme.live().is_some() {
        let mut featurizer = Featurizer::new(plan.scheme.text.clone());
        let features = alive.values().map(|document| featurizer.terms(&document.text).to_owned().ids);
        plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(features)));
    }
    Ok(alive)
}
