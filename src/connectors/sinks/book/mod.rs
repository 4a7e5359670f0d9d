//! The book: the pairs in force, and the answers that follow from them, advanced once an epoch.
//!
//! ```text
//!  changes of documents ─┐         ┌─ ClusterChanges ── changes of clusters ─┐
//!  upserted documents ───┤  Book ──┤                                         ├─▶ lines, a topic, tables
//!  deltas ───────────────┘         └─ Decisions ─────── records ─────────────┘
//! ```
//!
//! All answers of an output read one graph of pairs. What no answer asks for is not held.
//!
//! **Correcting an output.** The answers that it holds are read. The caller passes the pairs that it holds
//! as restored, none where it holds answers only, and then what differs of the corpus, in several commits.
//! Until the last of these only marks are written, with `in_correction` set. The last one writes what the
//! corpus gives less what the output holds, in one commit. A run that ends earlier has written no answer, and
//! the next run repeats the correction.
//!
//! # Decisions
//!
//! For each document that an epoch upserts, one record with what the run has found of it: the pairs of the
//! document at the end of the epoch, its cluster, and the oldest document there. It is written in the commit
//! of its epoch, so each upsert has exactly one, through any restart; of several upserts of a document in one
//! epoch the last one has it.
//!
//! | [`DecisionMode`] | a record is written |
//! |---|---|
//! | `First` | for each upsert |
//! | `Current` | for each upsert, whenever the content of a live document's record changes later, and when a document ends |
//!
//! Under `Current` the last record of each document is a function of the corpus: those of documents that have
//! ended aside, the last records are those of a fresh run, except for their epochs and times. A correction
//! writes under `Current` every record whose content or position differs, and an end for each document that
//! is not alive; under `First` a decision of each live document whose last event has none.

mod answers;
mod cluster_changes;
mod decisions;
mod memberships;
mod record;

pub use answers::BookMetrics;
pub(crate) use answers::{Book, BookChanges};
pub(crate) use cluster_changes::count;
pub(crate) use record::LastDecisions;
pub use record::{Decision, DecisionMode, Repetition};
