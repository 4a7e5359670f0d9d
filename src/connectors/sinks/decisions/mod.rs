//! Decisions: for each document that an epoch upserts, one record with what the run has found of it.
//!
//! ```text
//!  changes of documents ─┐
//!  upserted documents ───┤  DecisionBook ── Decision ──▶ lines, a topic, a table
//!  deltas ───────────────┘
//! ```
//!
//! A decision is of the corpus at the end of its epoch: the pairs of the document, its cluster, and the
//! oldest document there. It is written in the commit of its epoch, so each upsert has exactly one,
//! through any restart; of several upserts of a document in one epoch the last one has it.
//!
//! | [`DecisionMode`] | a record is written |
//! |---|---|
//! | `First` | for each upsert |
//! | `Current` | for each upsert, whenever the content of a live document's record changes later, and when a document ends |
//!
//! Under `Current` the last record of each document is a function of the corpus: those of documents that have
//! ended aside, the last records are those of a fresh run, except for their epochs and times.
//!
//! **Correcting an output.** The records in the output are read, and the run adds up its pairs without
//! writing. The last commit of the correction writes, in one step, what differs: under `Current` every
//! record whose content or position does, and an end for each document that is not alive; under `First` a
//! decision of each live document whose last event has none.

mod book;
mod lines;
mod memberships;
mod record;

pub(crate) use book::DecisionBook;
pub use lines::DecisionLines;
pub(crate) use record::LastDecisions;
pub use record::{Decision, DecisionMode, Repetition};
