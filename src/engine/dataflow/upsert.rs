//! Upsert: of each document's events in an epoch the last one wins. The output is the changes of sketch
//! memberships.

use timely::dataflow::Stream;

use crate::dataflow::documents::arrival::{Arrival, ArrivalContent};
use crate::dataflow::documents::retain::{RetainOutputs, Tick, retain};
use crate::dataflow::documents::retaining::{Follow, TouchedDocument};
use crate::dataflow::documents::store::InForce;
use crate::dataflow::queries::QuerySubject;
use crate::dataflow::sketches::membership::Membership;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::time::Epoch;

/// The value of a document: the low half of its sketch's id, which is enough to find the sketch, since the
/// document is a member of it. An update to a sketch with an equal half is taken for no change, with
/// probability 2^-64. Two values are not halves of ids; a sketch has one of them with probability 2^-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataflow) struct SketchHalf(u64);

impl SketchHalf {
    /// The value of a text without a token.
    const NO_SKETCH: Self = Self(1);

    /// The low half, if there is a sketch.
    fn low(self) -> Option<u64> {
        (![Self::ENDED, Self::NO_SKETCH].contains(&self)).then_some(self.0)
    }
}

impl InForce for SketchHalf {
    const ENDED: Self = Self(0);

    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

/// What a document is compared by, from the value in force.
pub(in crate::dataflow) fn subject(_: u32, sketch: SketchHalf) -> QuerySubject {
    sketch.low().map_or(QuerySubject::Nothing, QuerySubject::Stored)
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
    type LiveValue = SketchHalf;
    type EventText = (SketchId, Box<Sketch>);
    type Emitted = Membership;

    const REPORTS_EACH: bool = false;

    fn value(content: &ArrivalContent) -> SketchHalf {
        match content {
            ArrivalContent::Delete => SketchHalf::ENDED,
            ArrivalContent::Empty | ArrivalContent::Weightless => SketchHalf::NO_SKETCH,
            ArrivalContent::Sketch(id, _) => SketchHalf(id.low()),
            ArrivalContent::Terms(_) => unreachable!("only live weights sketch later"),
            ArrivalContent::Units(_) => unreachable!("units are members in place of their document"),
        }
    }

    fn text(content: ArrivalContent, _: FieldRow) -> Option<Self::EventText> {
        if let ArrivalContent::Sketch(id, body) = content { Some((id, body)) } else { None }
    }

    fn report(
        TouchedDocument { id, before, after, .. }: TouchedDocument<'_, SketchHalf>,
        texts: impl Iterator<Item = Option<Self::EventText>>,
        emit: &mut dyn FnMut(Membership),
    ) {
        if before == after {
            return;
        }
        if let Some(low) = before.low() {
            emit(Membership { low, document: id.clone(), joins: None });
        }
        if let (Some(low), Some(joins)) = (after.low(), texts.flatten().last()) {
            emit(Membership { low, document: id.clone(), joins: Some(joins) });
        }
    }
}
