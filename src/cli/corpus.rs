//! The corpus that inputs leave, in memory: for the commands that ask about it without a dataflow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Plan;
use crate::doc::{DocEvent, DocId, Position};
use crate::source::{BadRecords, Input, OnError, SourceError, for_each_event};
use crate::text::{Featurizer, Growth, IdfTable, TextRules};

/// The documents alive.
pub(super) type Corpus = BTreeMap<DocId, String>;

/// Reads all inputs, in order of position; `each` sees every event. Live weights of the plan are frozen as the inputs leave them.
pub(super) fn read(
    inputs: Vec<Input>,
    plan: &mut Plan,
    mut each: impl FnMut(Position, &DocEvent<'_>),
) -> Result<Corpus, SourceError> {
    let mut alive = Corpus::new();
    let mut idf = plan.scheme.live().map(|growth| LiveIdf::new(&plan.scheme.text, growth));
    let (fields, bad) = (plan.scheme.text.field_names(), BadRecords::new(OnError::Count, None));
    for_each_event(inputs, &fields, &bad, |position, event| {
        each(position, &event);
        let id = event.id.clone();
        match event.text {
            Some(text) => drop(alive.insert(event.id, text.into_owned())),
            None => drop(alive.remove(&event.id)),
        }
        if let Some(idf) = &mut idf {
            idf.follow(id, &alive);
        }
    })?;
    if let Some(idf) = idf {
        plan.scheme = plan.scheme.under(idf.in_force);
    }
    Ok(alive)
}

/// The table of document frequencies in force, while the corpus changes.
struct LiveIdf {
    featurizer: Featurizer,
    growth: Growth,
    /// Documents with a token.
    counted: BTreeSet<DocId>,
    in_force: Arc<IdfTable>,
}

impl LiveIdf {
    fn new(rules: &TextRules, growth: Growth) -> Self {
        let featurizer = Featurizer::new(rules.clone());
        Self { featurizer, growth, counted: BTreeSet::new(), in_force: Arc::new(IdfTable::new(0, [])) }
    }

    /// Counts the document as it is after an event, and takes a new table where one is due.
    fn follow(&mut self, id: DocId, alive: &Corpus) {
        let featurizer = &mut self.featurizer;
        if alive.get(&id).is_some_and(|text| !featurizer.features(text).is_empty()) {
            self.counted.insert(id);
        } else {
            self.counted.remove(&id);
        }
        if self.growth.is_due(self.in_force.documents(), self.counted.len() as u64) {
            let features =
                self.counted.iter().map(|counted| featurizer.terms(&alive[counted]).to_owned().ids);
            self.in_force = Arc::new(IdfTable::count(features));
        }
    }
}
