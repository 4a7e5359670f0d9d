//! Upsert: of each document's events in an epoch the last one wins; out come the changes of sketches' memberships.

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::arrival::{Arrival, Content};
use super::epochs::by_epoch2;
use super::{Stages, kept};
use crate::codec::Changes;
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::sketch::Sketch;
use crate::slab::Slab;
use crate::time::Epoch;

/// A document becomes a member of a sketch (with the sketch itself) or ceases to be one (without).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Membership {
    pub(super) sketch: SketchId,
    pub(super) document: DocId,
    pub(super) joins: Option<Box<Sketch>>,
}

/// A document alive.
struct Document {
    id: DocId,
    /// Its sketch; [`no_sketch`] if its text has no token. (An option would take 8 bytes more.)
    sketch: SketchId,
}

/// The id of no words at all, which no sketch has.
fn no_sketch() -> SketchId {
    SketchId::of(0, &[])
}

/// What the events of an epoch come to.
pub(super) struct Upserted<'scope> {
    /// Of documents in sketches.
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// What a later run needs to go on from here, if documents are kept.
    pub(super) kept: Stream<'scope, Epoch, Vec<Changes>>,
}

/// Applies the events of each epoch to the documents, which are partitioned by the hash of their ids.
pub(super) fn upsert<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    stages: &Stages,
) -> Upserted<'scope> {
    let metrics = std::sync::Arc::clone(&stages.metrics);
    let keeps = stages.keeps;
    let mut documents = Slab::<Document>::default();
    let no_sketch = no_sketch();

    let exchange = Exchange::new(|a: &Arrival| a.hash);
    let (memberships, kept) = by_epoch2(arrivals, exchange, "Upsert", move |mut arrivals, emit, keep| {
        let mut changes = Changes::default();
        arrivals.sort_unstable_by(|a, b| (a.hash, &a.id, a.position).cmp(&(b.hash, &b.id, b.position)));
        let (mut inserted, mut deleted, mut unchanged, mut unknown) = (0, 0, 0, 0);
        let mut arrivals = arrivals.into_iter().peekable();
        while let Some(mut last) = arrivals.next() {
            let place = documents.find(last.hash, |d| d.id == last.id);
            // What each event of the epoch does is counted as if it stood alone: counts do not depend on the cut.
            let before = place.and_then(|place| documents.get(place)).map(|document| document.sketch);
            let mut in_force = before;
            loop {
                let next = match &last.content {
                    Content::Delete => None,
                    Content::Empty => Some(no_sketch),
                    Content::Sketch(id, _) => Some(*id),
                    Content::Terms(_) => unreachable!("only live weights sketch later"),
                };
                match (in_force, next) {
                    (None, None) => unknown += 1,
                    (None, Some(_)) => inserted += 1,
                    (Some(_), None) => deleted += 1,
                    (Some(old), Some(new)) => unchanged += u64::from(old == new),
                }
                in_force = next;
                match arrivals.next_if(|a| a.id == last.id) {
                    Some(later) => last = later,
                    None => break,
                }
            }
            if keeps && (before.is_some() || in_force.is_some()) {
                kept::keep(&last, &mut changes);
                if changes.len_bytes() >= kept::PARCEL_BYTES {
                    keep(std::mem::take(&mut changes));
                }
            }
            if before != in_force {
                if let Some(sketch) = before.filter(|sketch| *sketch != no_sketch) {
                    emit(Membership { sketch, document: last.id.clone(), joins: None });
                }
                if let Content::Sketch(sketch, body) = last.content {
                    emit(Membership { sketch, document: last.id.clone(), joins: Some(body) });
                }
            }
            match (place, in_force) {
                (Some(place), Some(sketch)) => {
                    documents.get_mut(place).into_iter().for_each(|document| document.sketch = sketch);
                }
                (Some(place), None) => drop(documents.remove(last.hash, place)),
                (None, Some(sketch)) => {
                    documents.insert(last.hash, Document { id: last.id, sketch });
                }
                (None, None) => {}
            }
        }
        if !changes.is_empty() {
            keep(changes);
        }
        metrics.add(Counter::Inserted, inserted);
        metrics.add(Counter::Deleted, deleted);
        metrics.add(Counter::Unchanged, unchanged);
        metrics.add(Counter::UnknownDeletes, unknown);
    });
    Upserted { memberships, kept }
}
