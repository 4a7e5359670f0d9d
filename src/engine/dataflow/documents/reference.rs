//! The documents of a frozen reference, which a run takes in before all others.
//!
//! In: events. Out: the documents as an earlier run would have [kept](super::kept) them, under
//! their [ids of a reference](DocId::in_reference). So they enter the dataflow as restored documents do, no
//! state stores them, and no output has an upsert of them.
//!
//! The fingerprint is the sum, modulo 2^128, of a hash of each document: of its id and of the id of its
//! sketch. It does not depend on the order of the documents, on files or on formats, and two references have
//! the same one if all that is compared is the same.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use super::arrival::ArrivalContent;
use super::kept::{self, PARCEL_BYTES};
use super::sketched::sketched;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocEvent, DocId, Position};
use dupflow_core::hash::{self, SketchId};
use dupflow_core::sketch::SketchMaker;

/// Seeds of the two hashes of an id.
const SEEDS: [u64; 2] = [hash::PI[0], hash::PI[1]];

/// A frozen reference.
#[derive(Clone, Default)]
pub struct Reference {
    /// Its documents, a part of them in each buffer.
    pub documents: Vec<Changes>,
    /// Their number.
    pub count: u64,
    fingerprint: u128,
}

impl Reference {
    /// What is compared with: the number of documents, and their fingerprint.
    pub fn description(&self) -> String {
        format!("{} documents, {:032x}", self.count, self.fingerprint)
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reference").field(&self.description()).finish()
    }
}

/// Why an event is no document of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoReferenceDocument {
    /// An earlier document has the same id.
    #[error("the id {0:?} is there twice")]
    Repeated(DocId),
    /// The event is a delete.
    #[error("the record of {0:?} is a delete, and a reference has documents only")]
    Delete(DocId),
}

/// Makes a reference of the events of its documents.
#[derive(Debug)]
pub struct ReferenceBuilder {
    stages: Stages,
    maker: SketchMaker,
    /// Hashes of the ids so far.
    ids: BTreeSet<[u64; 2]>,
    made: Reference,
}

impl ReferenceBuilder {
    /// For a run with these stages, whose scheme [has a reference](dupflow_core::pair_rule::PairRule).
    pub fn new(stages: &Stages) -> Self {
        let maker = SketchMaker::new(&stages.scheme);
        Self { stages: stages.clone(), maker, ids: BTreeSet::new(), made: Reference::default() }
    }

    /// Adds a document. Its time does not count, so that it never expires. Returns the first word of its
    /// sketch; `None` if its text has no token.
    ///
    /// # Errors
    /// If the id was added before, or the event is a delete.
    pub fn add(&mut self, event: DocEvent<'_>) -> Result<Option<u64>, NoReferenceDocument> {
        let id = SEEDS.map(|seed| hash::bytes(seed, event.id.as_bytes()));
        if event.text.is_none() {
            return Err(NoReferenceDocument::Delete(event.id));
        }
        if !self.ids.insert(id) {
            return Err(NoReferenceDocument::Repeated(event.id));
        }
        let Reference { documents, count, fingerprint } = &mut self.made;
        let position = Position { partition: 0, offset: *count };
        let event = DocEvent { ts: None, written: None, ..event };
        let arrival = sketched(position, event, true, &mut self.maker, &self.stages);
        let content = match &arrival.content {
            ArrivalContent::Sketch(sketch, _) => sketch.to_words(),
            _ => [0; 2],
        };
        let [high, low] = SketchId::new(SEEDS[0], &[id, content].concat()).to_words();
        *fingerprint = fingerprint.wrapping_add(u128::from(high) << 64 | u128::from(low));
        *count += 1;
        if documents.last().is_none_or(|last| last.len_bytes() >= PARCEL_BYTES) {
            documents.push(Changes::default());
        }
        if let Some(last) = documents.last_mut() {
            kept::keep(&arrival, None, last);
        }
        Ok(arrival.change().word)
    }

    /// The reference.
    pub fn build(self) -> Reference {
        self.made
    }
}
