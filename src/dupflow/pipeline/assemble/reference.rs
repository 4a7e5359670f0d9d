//! Reads the reference of a run, once, before anything of an earlier run is taken over.

use std::ops::ControlFlow;

use super::error::AssembleError;
use crate::config::{Plan, ReferenceConfig};
use crate::pipeline::error::chain;
use dupflow_connectors::inputs::{Input, files_of, for_each_event_until};
use dupflow_connectors::intake::{BadRecords, OnError, SourceError};
use dupflow_engine::dataflow::{Reference, ReferenceBuilder, Stages};
use dupflow_run::metrics::Counter;

/// Reads the whole reference. A record that is no document of it is an error, as is a reference in which
/// nothing can be found.
pub(super) fn read(
    plan: &Plan,
    config: &ReferenceConfig,
    stages: &Stages,
) -> Result<Reference, AssembleError> {
    let wrong = |what: String| AssembleError::Reference(what);
    let failed = |error: SourceError| wrong(chain(&error));
    let inputs = Input::resolve(&config.inputs, config.layout.clone()).map_err(failed)?;
    tracing::info!(inputs = inputs.len(), "reading the reference");
    let mut builder = ReferenceBuilder::new(stages);
    let (mut too_short, mut textless, mut all) = (0, 0, 0_u64);
    let columns = plan.scheme.text.columns();
    for file in files_of(&inputs) {
        let (name, bad, mut refused) = (file.name(), BadRecords::new(OnError::Fail, None), None);
        let before = all;
        let read = for_each_event_until(vec![file], &columns, &stages.fields, &bad, |_, event| {
            all += 1;
            match builder.add(event) {
                Ok(word) => {
                    too_short += u64::from(word.is_none_or(|word| stages.filter.is_too_short(word)));
                    textless += u64::from(word.is_none());
                    ControlFlow::Continue(())
                }
                Err(why) => {
                    refused = Some(why);
                    ControlFlow::Break(())
                }
            }
        });
        read.map_err(failed)?;
        if let Some(why) = refused {
            return Err(wrong(format!("{why}; reference.ids = \"file\" names records by their files")));
        }
        if all == before && plan.finds_items() {
            return Err(wrong(format!(
                "\"{name}\" holds no item, and nothing would be looked for in its name"
            )));
        }
    }
    let reference = builder.build();
    let count = reference.count;
    // A short text is found in its copies, and is no item.
    let not_found = if plan.finds_items() { too_short } else { textless };
    if count == not_found {
        return Err(wrong(match count {
            0 => "the inputs hold no document, so there is nothing to compare with".to_owned(),
            _ => format!("none of its {count} documents has enough words to be found"),
        }));
    }
    if too_short > 0 {
        tracing::warn!(
            documents = too_short,
            "documents of the reference are too short to be found except as copies"
        );
    }
    stages.observers.metrics.add(Counter::ReferenceTooShort, too_short);
    tracing::info!(reference = reference.description(), "the reference is read");
    Ok(reference)
}
