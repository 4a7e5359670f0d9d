//! Arrivals: the records that events become once they are sketched.

use serde::{Deserialize, Serialize};

use crate::dataflow::documents::key::EventKey;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::units::UnitSpan;
use dupflow_core::doc::{DocChange, DocId, Facts, Position};
use dupflow_core::filter::PairFilter;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;
use dupflow_core::text::Terms;

/// What an event does to its document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) enum ArrivalContent {
    /// Ends the document.
    Delete,
    /// The new text has no token.
    Empty,
    /// The new text has tokens, and all its features weigh 0.
    Weightless,
    /// The new text has this sketch.
    Sketch(SketchId, Box<Sketch>),
    /// The new text has these terms. It is sketched once the terms are weighted.
    Terms(Box<Terms>),
    /// The new text has these units.
    Units(Box<TextUnits>),
}

/// The units of a text that are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct TextUnits {
    /// Hash of the text.
    pub(in crate::dataflow) text: u64,
    /// In the order of the text.
    pub(in crate::dataflow) units: Vec<SketchedUnit>,
}

/// A unit of a text with its sketch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct SketchedUnit {
    /// Hash of its content, and the number of units before it with that content.
    pub(in crate::dataflow) named: (u64, u32),
    pub(in crate::dataflow) span: UnitSpan,
    /// Those of the document, with the bytes of the unit.
    pub(in crate::dataflow) facts: Facts,
    pub(in crate::dataflow) sketch: (SketchId, Box<Sketch>),
}

/// A sketched event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct Arrival {
    /// Hash of the id: selects the worker and finds the document.
    pub(in crate::dataflow) hash: u64,
    pub(in crate::dataflow) id: DocId,
    pub(in crate::dataflow) position: Position,
    /// In unix seconds, if the source has it.
    pub(in crate::dataflow) ts: Option<f64>,
    pub(in crate::dataflow) content: ArrivalContent,
    /// The length of the text, as [`Facts::bytes`].
    pub(in crate::dataflow) bytes: u32,
    /// Whether the event was restored from an earlier run.
    pub(in crate::dataflow) is_restored: bool,
    /// The key that the event gives its document, if it differs from the key of `ts` and `position`: the
    /// record was written at another time, or the key was kept.
    pub(in crate::dataflow) key: Option<Box<EventKey>>,
    /// The fields of its document.
    pub(in crate::dataflow) fields: FieldRow,
}

impl ArrivalContent {
    /// Whether its text has tokens, and too few to be similar to any but its copies.
    pub(in crate::dataflow) fn is_too_short(&self, filter: &dyn PairFilter) -> bool {
        let Self::Sketch(_, sketch) = self else { return false };
        sketch.words.first().is_some_and(|word| filter.is_too_short(*word))
    }

    /// Whether nothing of its text is compared.
    pub(in crate::dataflow) fn is_empty(&self) -> bool {
        match self {
            Self::Empty | Self::Weightless => true,
            Self::Units(text) => text.units.is_empty(),
            Self::Delete | Self::Sketch(..) | Self::Terms(_) => false,
        }
    }
}

impl Arrival {
    /// The facts of its document.
    pub(in crate::dataflow) fn facts(&self) -> Facts {
        Facts { ts: self.ts, bytes: self.bytes, position: self.position }
    }

    /// The change of its document that it makes.
    pub(in crate::dataflow) fn change(&self) -> DocChange {
        let word = match &self.content {
            ArrivalContent::Sketch(_, sketch) => sketch.words.first().copied(),
            _ => None,
        };
        DocChange {
            id: self.id.clone(),
            now: Some(self.facts()),
            fields: self.fields.clone(),
            word,
            unit: None,
        }
    }

    /// The key that the event gives its document.
    pub(in crate::dataflow) fn key(&self) -> EventKey {
        self.key.as_ref().map_or_else(|| EventKey::new(self.ts, self.position), |key| **key)
    }
}
