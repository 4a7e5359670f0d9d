//! Sketches events before they are sent on.

use super::arrival::{Arrival, ArrivalContent, SketchedUnit, TextUnits};
use super::key::EventKey;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::units::{Unit, UnitRules, units};
use dupflow_core::doc::{DocEvent, Facts, Position};
use dupflow_core::hash;
use dupflow_core::sketch::SketchMaker;

/// An event as the dataflow sends it: with its sketch or, under live weights, its terms.
pub(in crate::dataflow) fn sketched(
    position: Position,
    event: DocEvent<'_>,
    is_of_reference: bool,
    maker: &mut SketchMaker,
    stages: &Stages,
) -> Arrival {
    let DocEvent { id, ts, written, text, fields } = event;
    let id = match (stages.scheme.pairs.has_reference(), is_of_reference) {
        (false, _) => id,
        (true, false) => id.beside_reference(),
        (true, true) => id.in_reference(),
    };
    let bytes = text.as_ref().map_or(0, |text| u32::try_from(text.len()).unwrap_or(u32::MAX));
    let content = match text {
        None => ArrivalContent::Delete,
        Some(text) if stages.scheme.live().is_some() => {
            maker.terms(&text).map_or(ArrivalContent::Empty, |terms| ArrivalContent::Terms(Box::new(terms)))
        }
        Some(text) if let Some(rules) = stages.scheme.units => {
            let hashes = stages.hashes(&fields.row, is_of_reference);
            let units = sketched_units(&text, Facts { ts, bytes, position }, rules, maker, &hashes);
            ArrivalContent::Units(Box::new(TextUnits { text: hash::bytes(0, text.as_bytes()), units }))
        }
        Some(text) => match maker.sketch_with(&text, &stages.hashes(&fields.row, is_of_reference)) {
            Some((sketch_id, sketch)) => ArrivalContent::Sketch(sketch_id, Box::new(sketch)),
            None if maker.terms(&text).is_some() => ArrivalContent::Weightless,
            None => ArrivalContent::Empty,
        },
    };
    let hash = hash::bytes(0, id.as_str().as_bytes());
    // Between partitions the time of the record decides, not the `ts` of its payload.
    let key = stages.ids_move.then(|| EventKey::new(written, position));
    let key = key.filter(|key| *key != EventKey::new(ts, position)).map(Box::new);
    let fields = fields.row;
    Arrival { hash, id, position, ts, content, bytes, is_restored: false, key, fields }
}

/// The units of a text that are long enough, with their sketches.
fn sketched_units(
    text: &str,
    facts: Facts,
    UnitRules { split, least_words }: UnitRules,
    maker: &mut SketchMaker,
    fields: &[u64],
) -> Vec<SketchedUnit> {
    let mut sketched = Vec::new();
    for Unit { text: own, content, occurrence, span } in units(text, split) {
        if maker.words(own) >= least_words
            && let Some((id, sketch)) = maker.sketch_with(own, fields)
        {
            let bytes = u32::try_from(span.to - span.from).unwrap_or(u32::MAX);
            let (named, facts) = ((content, occurrence), Facts { bytes, ..facts });
            sketched.push(SketchedUnit { named, span, facts, sketch: (id, Box::new(sketch)) });
        }
    }
    sketched
}
