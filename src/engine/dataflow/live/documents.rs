//! Documents: which are alive, their places, and how their number changes.

use super::update::{TextUpdate, Update};
use crate::dataflow::documents::arrival::ArrivalContent;
use crate::dataflow::documents::retaining::{Follow, TouchedDocument};
use crate::dataflow::documents::store::InForce;
use crate::dataflow::queries::QuerySubject;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::text::Terms;

/// The state of a document's text, from which the documents with terms are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataflow) enum TextState {
    Ended,
    WithoutToken,
    WithTokens,
}

impl InForce for TextState {
    const ENDED: Self = Self::Ended;

    fn to_word(self) -> u64 {
        self as u64
    }

    fn from_word(word: u64) -> Self {
        let all = [Self::Ended, Self::WithoutToken, Self::WithTokens];
        all.into_iter().find(|state| state.to_word() == word).unwrap_or(Self::Ended)
    }
}

/// What a document is compared by, from its place and the value in force.
pub(super) fn subject(place: u32, text: TextState) -> QuerySubject {
    if text == TextState::WithTokens { QuerySubject::Weighed(place) } else { QuerySubject::Nothing }
}

/// [`Follow`] for documents by place. Reports every event, since terms are compared where they are stored:
/// updates of a document are in the order of its events.
pub(in crate::dataflow) enum Updates {}

impl Follow for Updates {
    type LiveValue = TextState;
    /// The terms, `None` without a token; and the fields.
    type EventText = (Option<Box<Terms>>, FieldRow);
    type Emitted = Update;

    const REPORTS_EACH: bool = true;
    const HOLDS_TEXTS: bool = false;

    fn value(content: &ArrivalContent) -> TextState {
        match content {
            ArrivalContent::Delete => TextState::Ended,
            ArrivalContent::Empty => TextState::WithoutToken,
            ArrivalContent::Terms(_)
            | ArrivalContent::Weightless
            | ArrivalContent::Sketch(..)
            | ArrivalContent::Units(_) => TextState::WithTokens,
        }
    }

    fn text(content: ArrivalContent, fields: FieldRow) -> Option<(Option<Box<Terms>>, FieldRow)> {
        match content {
            ArrivalContent::Delete => None,
            ArrivalContent::Empty => Some((None, fields)),
            ArrivalContent::Terms(terms) => Some((Some(terms), fields)),
            ArrivalContent::Weightless | ArrivalContent::Sketch(..) | ArrivalContent::Units(_) => {
                unreachable!("live weights sketch later, and whole documents")
            }
        }
    }

    fn counts(value: TextState) -> bool {
        value == TextState::WithTokens
    }

    fn repeats(_: TextState, _: TextState) -> bool {
        // Counted where terms are compared.
        false
    }

    fn report(
        TouchedDocument { place, id, .. }: TouchedDocument<'_, TextState>,
        texts: impl Iterator<Item = Option<Self::EventText>>,
        emit: &mut dyn FnMut(Update),
    ) {
        let text = |text: Option<_>| {
            text.map_or(TextUpdate::Ended, |(terms, row)| TextUpdate::InForce(id.clone(), terms, row))
        };
        texts.for_each(|one| emit(Update { place, text: text(one) }));
    }
}
