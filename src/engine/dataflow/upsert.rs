//! Upsert: of each document's events in an epoch the last one wins; out come the changes of sketches'
//! memberships.

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;

use super::Stages;
use super::arrival::{Arrival, Content};
use super::documents::InForce;
use super::retain::{Retained, Tick, retain};
use super::retaining::{Follow, Told};
use super::visitors::Look;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::time::Epoch;

/// A document becomes a member of a sketch (with the sketch itself) or ceases to be one (without).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Membership {
    pub(super) sketch: SketchId,
    pub(super) document: DocId,
    pub(super) joins: Option<Box<Sketch>>,
}

/// A document stands for its sketch, or for [`no_sketch`] if its text has no token.
impl InForce for SketchId {
    const ENDED: Self = Self::NONE;
}

/// The id of no words at all, which no sketch has.
fn no_sketch() -> SketchId {
    SketchId::new(0, &[])
}

/// By what a document is compared, of what is in force of it.
pub(super) fn look(_: u32, sketch: SketchId) -> Look {
    if sketch == no_sketch() { Look::Nothing } else { Look::Held(sketch) }
}

/// Documents as members of sketches.
pub(super) enum Memberships {}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids.
pub(super) fn upsert<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    stages: &Stages,
) -> Retained<'scope, Memberships> {
    retain(arrivals, ticks, "Upsert", stages)
}

impl Follow for Memberships {
    type Value = SketchId;
    type Text = Box<Sketch>;
    type Record = Membership;

    const TELLS_EACH: bool = false;

    fn value(content: &Content) -> SketchId {
        match content {
            Content::Delete => SketchId::ENDED,
            Content::Empty => no_sketch(),
            Content::Sketch(id, _) => *id,
            Content::Terms(_) => unreachable!("only live weights sketch later"),
        }
    }

    fn text(content: Content) -> Option<Box<Sketch>> {
        if let Content::Sketch(_, body) = content { Some(body) } else { None }
    }

    fn counts(_: SketchId) -> bool {
        // Nobody asks how many there are.
        false
    }

    fn repeats(before: SketchId, after: SketchId) -> bool {
        before == after
    }

    fn tell(
        Told { id, before, after, .. }: Told<'_, SketchId>,
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
