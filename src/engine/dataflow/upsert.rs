//! Upsert: of each document's events in an epoch the last one wins. The output is the changes of sketch
//! memberships.

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;

use crate::dataflow::Stages;
use crate::dataflow::documents::arrival::{Arrival, ArrivalContent};
use crate::dataflow::documents::retain::{RetainOutputs, Tick, retain};
use crate::dataflow::documents::retaining::{Follow, TouchedDocument};
use crate::dataflow::documents::store::InForce;
use crate::dataflow::queries::QuerySubject;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::time::Epoch;

/// A document becomes a member of a sketch (`joins` has the sketch) or stops being one (`joins` is `None`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct Membership {
    pub(in crate::dataflow) sketch: SketchId,
    pub(in crate::dataflow) document: DocId,
    pub(in crate::dataflow) joins: Option<Box<Sketch>>,
}

/// The value of a document is the id of its sketch, or [`no_sketch`] if its text has no token.
impl InForce for SketchId {
    const ENDED: Self = Self::NONE;

    fn to_words(self) -> [u64; 2] {
        self.to_words()
    }

    fn from_words(words: [u64; 2]) -> Self {
        Self::from_words(words)
    }
}

/// The id of zero words. No sketch has this id.
fn no_sketch() -> SketchId {
    SketchId::new(0, &[])
}

/// What a document is compared by, from the value in force.
pub(in crate::dataflow) fn subject(_: u32, sketch: SketchId) -> QuerySubject {
    if sketch == no_sketch() { QuerySubject::Nothing } else { QuerySubject::Stored(sketch) }
}

/// [`Follow`] for documents as members of sketches.
pub(in crate::dataflow) enum Memberships {}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids.
pub(in crate::dataflow) fn upsert<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    stages: &Stages,
) -> RetainOutputs<'scope, Memberships> {
    retain(arrivals, ticks, "Upsert", stages)
}

impl Follow for Memberships {
    type LiveValue = SketchId;
    type EventText = Box<Sketch>;
    type Emitted = Membership;

    const REPORTS_EACH: bool = false;

    fn value(content: &ArrivalContent) -> SketchId {
        match content {
            ArrivalContent::Delete => SketchId::ENDED,
            ArrivalContent::Empty => no_sketch(),
            ArrivalContent::Sketch(id, _) => *id,
            ArrivalContent::Terms(_) => unreachable!("only live weights sketch later"),
        }
    }

    fn text(content: ArrivalContent, _: FieldRow) -> Option<Box<Sketch>> {
        if let ArrivalContent::Sketch(_, body) = content { Some(body) } else { None }
    }

    fn counts(_: SketchId) -> bool {
        // This count is not used.
        false
    }

    fn repeats(before: SketchId, after: SketchId) -> bool {
        before == after
    }

    fn report(
        TouchedDocument { id, before, after, .. }: TouchedDocument<'_, SketchId>,
        texts: impl Iterator<Item = Option<Box<Sketch>>>,
        emit: &mut dyn FnMut(Membership),
    ) {
        if before == after {
            return;
        }
        let is_sketch = |sketch: &SketchId| ![SketchId::ENDED, no_sketch()].contains(sketch);
        if is_sketch(&before) {
            emit(Membership { sketch: before, document: id.clone(), joins: None });
        }
        if is_sketch(&after)
            && let Some(body) = texts.flatten().last()
        {
            emit(Membership { sketch: after, document: id.clone(), joins: Some(body) });
        }
    }
}
