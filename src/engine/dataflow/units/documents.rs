//! Documents: which are alive, and the units of their last texts.

use crate::dataflow::documents::arrival::{ArrivalContent, TextUnits};
use crate::dataflow::documents::retaining::{Follow, TouchedDocument};
use crate::dataflow::documents::store::InForce;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRow;

/// A document that an epoch has touched, with its units after it.
#[derive(Clone, Debug)]
pub(in crate::dataflow) struct DocumentUnits {
    /// Its place in the store of its worker; valid within the epoch.
    pub(super) place: u32,
    pub(super) id: DocId,
    /// Its units and its fields; `None` if it has ended, or has no unit.
    pub(super) now: Option<(Box<TextUnits>, FieldRow)>,
}

/// The text of a live document, by its hash. Two values are no hashes; a text has one of them with
/// probability 2^-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataflow) struct TextHash(u64);

impl InForce for TextHash {
    const ENDED: Self = Self(0);

    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

/// [`Follow`] for documents with units. Reports every event, since the facts of units are those of the last.
pub(in crate::dataflow) enum LastTexts {}

impl Follow for LastTexts {
    type LiveValue = TextHash;
    type EventText = (Box<TextUnits>, FieldRow);
    type Emitted = DocumentUnits;

    const REPORTS_EACH: bool = true;

    fn value(content: &ArrivalContent) -> TextHash {
        match content {
            ArrivalContent::Delete => TextHash::ENDED,
            ArrivalContent::Units(text) => TextHash(text.text),
            _ => TextHash(1),
        }
    }

    fn text(content: ArrivalContent, fields: FieldRow) -> Option<Self::EventText> {
        if let ArrivalContent::Units(text) = content { Some((text, fields)) } else { None }
    }

    fn report(
        TouchedDocument { place, id, .. }: TouchedDocument<'_, TextHash>,
        texts: impl Iterator<Item = Option<Self::EventText>>,
        emit: &mut dyn FnMut(DocumentUnits),
    ) {
        emit(DocumentUnits { place, id: id.clone(), now: texts.last().flatten() });
    }
}
