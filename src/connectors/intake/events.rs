//! Events of documents in one buffer: the payload of a source inside the process, which has no records to
//! decode.
//!
//! ```text
//! texts   all texts, one after another, with their further fields
//! events  id, time, fields, and where the text begins and ends
//! ```
//!
//! Unlike a record of a topic, an event with an empty text is an upsert.

use dupflow_core::doc::fields::EventFields;
use dupflow_core::doc::{DocEvent, DocId};

/// Events in order. Offsets follow each other without gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventBuffer {
    texts: String,
    events: Vec<BufferedEvent>,
}

#[derive(Clone, Debug, PartialEq)]
struct BufferedEvent {
    id: DocId,
    ts: Option<f64>,
    fields: EventFields,
    /// Where the text begins and ends; `None` for a delete.
    text: Option<(usize, usize)>,
}

impl EventBuffer {
    /// Appends an upsert. `pieces` are the text and, as in [`DocEvent::text`], its further fields.
    pub fn upsert<'t>(
        &mut self,
        id: DocId,
        ts: Option<f64>,
        fields: EventFields,
        pieces: impl IntoIterator<Item = &'t str>,
    ) {
        let begin = self.texts.len();
        self.texts.extend(pieces);
        self.events.push(BufferedEvent { id, ts, fields, text: Some((begin, self.texts.len())) });
    }

    /// Appends a delete.
    pub fn delete(&mut self, id: DocId, ts: Option<f64>) {
        self.events.push(BufferedEvent { id, ts, fields: EventFields::default(), text: None });
    }

    /// The events.
    pub fn iter(&self) -> impl Iterator<Item = DocEvent<'_>> {
        self.events.iter().map(|event| DocEvent {
            id: event.id.clone(),
            ts: event.ts,
            written: None,
            text: event.text.map(|(begin, end)| self.texts[begin..end].into()),
            fields: event.fields.clone(),
        })
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Bytes of the texts, and some for each event.
    pub fn bytes(&self) -> usize {
        self.texts.len() + self.events.len() * size_of::<BufferedEvent>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_is_an_upsert() {
        let id = |id: &str| DocId::new(id).unwrap();
        let mut buffer = EventBuffer::default();
        assert!(buffer.is_empty() && buffer.bytes() == 0);
        buffer.upsert(id("a"), Some(7.5), EventFields::default(), ["title", "\u{1e}", "text"]);
        buffer.delete(id("a"), None);
        buffer.upsert(id("b"), None, EventFields::default(), [""]);
        let found = buffer.iter().map(|event| (event.id, event.ts, event.text.map(String::from)));
        let text = |text: &str| Some(text.to_owned());
        let expected =
            [(id("a"), Some(7.5), text("title\u{1e}text")), (id("a"), None, None), (id("b"), None, text(""))];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(buffer.len(), 3);
    }
}
