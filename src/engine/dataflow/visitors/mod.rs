//! Visitors: questions that go through the dataflow beside the documents, meet what is there, and leave no
//! trace.
//!
//! ```text
//!  ingest ── callers ──┬─ Enter ─ guests ─▶ Blocks ─ calls ─▶ Compare ─ notes ─┬─▶ Answer ─▶ who asked
//!  (text to sketch)    │    └ notes ──────────┴ notes ─────────────────────────┘
//!     └── seekers ─ Find                                                    where it was let in
//!        (documents by id)
//! ```
//!
//! A visitor comes in at the time e of an epoch that is open, and is of the corpus after e - 1. "Blocks"
//! holds it until all of e - 1 is in the blocks, and handles it before any of e: it asks whom the sketch
//! *would* meet. From there it is called on those who own the sketches met, which compare, and read the
//! members as of e - 1. As all records at e, it holds their epoch open for those behind it while it is on its
//! way: what it names is held (see [`sketches`](super::sketches)), and its epoch, which lasts a hundred
//! milliseconds, never waits for the few that a visitor takes.
//!
//! Nothing on its way waits for an epoch to close. "Answer" knows by counting that it has heard all: Enter
//! says how many blocks are asked, each of them how many calls it has sent, and every call is answered by one
//! note.
//!
//! Who asks about a document first goes to where it is kept. "Find" reads it as the last epoch has left it
//! that was applied there, and lets the visitor go on at the time of the next one; so the answer is of that
//! epoch. What is told is the pairs that the document is in.
//!
//! What is told of a text is what the text would be paired with, were it that of a new document whose id
//! sorts after all others: also where blocks are hot, would become so, and where copies are a star.

mod answer;
mod enter;
mod find;

use serde::{Deserialize, Serialize};

pub(super) use answer::{Lobby, answer};
pub(super) use enter::enter;
pub(super) use find::find;

use super::Accepted;
use dupflow_core::block::BlockKey;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::run::visit::Found;
use dupflow_core::sketch::Sketch;
use dupflow_core::text::Terms;

/// A visitor's name: the worker that let it in, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Name {
    worker: u64,
    number: u64,
}

/// A visitor who asks about a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seeker {
    pub(super) name: Name,
    pub(super) top: usize,
    /// Hash of the id: finds who keeps the document, and the document.
    pub(super) hash: u64,
    pub(super) id: DocId,
}

/// A visitor that has been let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Caller {
    pub(super) name: Name,
    /// Most documents to be told.
    pub(super) top: usize,
    /// Which document it asks about, and what is known of that, if it is alive.
    pub(super) document: Option<(DocId, Found)>,
    pub(super) look: Look,
}

/// What a visitor is compared by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Look {
    /// A text without a token, or without a feature of any weight; no document.
    Nothing,
    /// This sketch.
    Sketch(SketchId, Box<Sketch>),
    /// Terms, which the table in force will weigh.
    Terms(Box<Terms>),
    /// The sketch of a document, which is held by its owner.
    Held(SketchId),
    /// That of the document that is kept here, by its place, among those that are weighed.
    Weighed(u32),
}

/// A visitor with its sketch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Presence {
    pub(super) name: Name,
    pub(super) top: usize,
    /// The document whose sketch it is: it is not told of itself.
    pub(super) document: Option<DocId>,
    pub(super) id: SketchId,
    pub(super) sketch: Sketch,
}

/// A visitor on its way to the blocks of one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Guest {
    /// The worker.
    pub(super) to: u64,
    pub(super) presence: Presence,
    /// Those of its keys that the worker owns.
    pub(super) keys: Vec<BlockKey>,
}

/// A visitor on its way to the sketches that one worker owns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Call {
    /// The worker.
    pub(super) to: u64,
    pub(super) presence: Presence,
    /// Its own sketch is among them, at its owner: for its copies.
    pub(super) partners: Vec<SketchId>,
}

/// What is told of a visitor to the worker that let it in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) name: Name,
    pub(super) said: Said,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// By "Enter": whether it has a sketch, how many workers' blocks will say whom they have sent it to, and
    /// what is known of the document.
    Entered { sketched: bool, guests: usize, document: Option<Found> },
    /// By a worker's blocks: to how many workers.
    Sent(usize),
    /// By one of these: what it met there.
    Found(Vec<Met>),
    /// By the one that owns its sketch: its copies are too many for it to stand for them, and it is in no
    /// pair but that with the copy that does.
    Hidden(Met),
}

/// A sketch that a visitor is paired with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Met {
    pub(super) sketch: SketchId,
    pub(super) accepted: Accepted,
    /// Those who stand for it: those of the least ids, as many as are wanted.
    pub(super) documents: Vec<DocId>,
    /// Others who do.
    pub(super) more: usize,
}

impl Caller {
    /// Where it is let in to the blocks: where the sketch is held or, if it brings its own, where it is.
    fn owner(&self) -> u64 {
        match self.look {
            Look::Held(id) => id.low(),
            _ => self.name.worker,
        }
    }
}

impl Met {
    /// A sketch with those who stand for it.
    pub(super) fn new(sketch: SketchId, accepted: Accepted, documents: &mut Vec<&DocId>, top: usize) -> Self {
        let more = documents.len().saturating_sub(top);
        if more > 0 {
            documents.sort_unstable();
            documents.truncate(top);
        }
        let documents = documents.iter().map(|document| (*document).clone()).collect();
        Self { sketch, accepted, documents, more }
    }
}
