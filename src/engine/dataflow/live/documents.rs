//! Documents: which are alive, where each is kept, and how their number changes.

use timely::dataflow::Stream;

use super::{NewText, Update};
use crate::dataflow::Stages;
use crate::dataflow::arrival::{Arrival, Content};
use crate::dataflow::documents::InForce;
use crate::dataflow::retain::{Retained, Tick, retain};
use crate::dataflow::retaining::{Follow, Told};
use crate::dataflow::visitors::Look;
use dupflow_core::text::Terms;
use dupflow_core::time::Epoch;

/// What is in force of a document, for the number of those that are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataflow) enum Text {
    Ended,
    WithoutToken,
    WithTokens,
}

impl InForce for Text {
    const ENDED: Self = Self::Ended;
}

/// By what a document is compared, of what is in force of it.
pub(super) fn look(place: u32, text: Text) -> Look {
    if text == Text::WithTokens { Look::Weighed(place) } else { Look::Nothing }
}

/// Documents by place, with every event, since terms are compared where they are kept.
pub(in crate::dataflow) enum Updates {}

/// Finds each event's document, which are partitioned by the hash of their ids. Updates of a document are in
/// the order of its events.
pub(super) fn documents<'scope>(
    arrivals: Stream<'scope, Epoch, Vec<Arrival>>,
    ticks: Stream<'scope, Epoch, Vec<Tick>>,
    stages: &Stages,
) -> Retained<'scope, Updates> {
    retain(arrivals, ticks, "Documents", stages)
}

impl Follow for Updates {
    type Value = Text;
    /// None without a token.
    type Text = Option<Box<Terms>>;
    type Record = Update;

    const TELLS_EACH: bool = true;

    fn value(content: &Content) -> Text {
        match content {
            Content::Delete => Text::Ended,
            Content::Empty => Text::WithoutToken,
            Content::Terms(_) | Content::Sketch(..) => Text::WithTokens,
        }
    }

    fn text(content: Content) -> Option<Option<Box<Terms>>> {
        match content {
            Content::Delete => None,
            Content::Empty => Some(None),
            Content::Terms(terms) => Some(Some(terms)),
            Content::Sketch(..) => unreachable!("live weights sketch later"),
        }
    }

    fn counts(value: Text) -> bool {
        value == Text::WithTokens
    }

    fn repeats(_: Text, _: Text) -> bool {
        // Counted where terms are compared.
        false
    }

    fn tell(
        Told { place, id, .. }: Told<'_, Text>,
        texts: impl Iterator<Item = Option<Option<Box<Terms>>>>,
        emit: &mut dyn FnMut(Update),
    ) {
        let text = |text: Option<_>| text.map_or(NewText::Ended, |terms| NewText::InForce(id.clone(), terms));
        texts.for_each(|one| emit(Update { place, text: text(one) }));
    }
}
