//! The corpus that an input leaves, in memory.

use std::collections::BTreeMap;

use crate::doc::{DocId, Position};
use crate::source::{BadRecords, Input, OnError, SourceError, for_each_event};

/// What the input leaves.
#[derive(Debug, Default)]
pub(super) struct Corpus {
    /// The documents alive.
    pub(super) alive: BTreeMap<DocId, String>,
    /// The traced document's events: the bytes of its text, or none for a delete.
    pub(super) events: Vec<(Position, Option<usize>)>,
}

impl Corpus {
    /// Reads all inputs, in order of position.
    pub(super) fn read(inputs: Vec<Input>, traced: &DocId) -> Result<Self, SourceError> {
        let mut corpus = Self::default();
        for_each_event(inputs, &BadRecords::new(OnError::Count, None), |position, event| {
            if event.id == *traced {
                corpus.events.push((position, event.text.as_ref().map(|text| text.len())));
            }
            match event.text {
                Some(text) => drop(corpus.alive.insert(event.id, text.into_owned())),
                None => drop(corpus.alive.remove(&event.id)),
            }
        })?;
        Ok(corpus)
    }
}
