//! Watches in the dataflow: texts that are compared with the documents, and change no pair of documents.
//!
//! ```text
//! ingest ── updates, to all workers ──────────────── Collapse ── notices ──▶ Output
//! (text to sketch)                                   (index of watches, by block)
//!           └─ under live weights: Terms, Weigh ─┘
//! ```
//!
//! Watches are few, documents many. So every worker holds all watches, in an index by block, and compares
//! them with the sketches that it owns, where these begin and end. No sketch travels for it, and the blocks
//! of documents neither count watches nor choose them as leaders.
//!
//! With W the watches, S the distinct sketches, and M(s) *all* members of a sketch s, the notices accumulate
//! to W ⋈ S ⋈ M, joined where a watch and a sketch are similar. From the state before an epoch to the state
//! after it (W', S', M'), they change by
//!
//! ```text
//! W' ⋈ S' ⋈ M' - W ⋈ S ⋈ M = W ⋈ (S' ⋈ M' - S ⋈ M) + (W' - W) ⋈ S' ⋈ M'
//! ```
//!
//! so "Collapse" first joins the changes of members with the old watches, then the changed watches with the
//! new members ([`WatchMatcher`]). Similarity is a pure function of two sketches. It is stored for similar
//! ones only, so that a retraction repeats it.
//!
//! Two sketches are similar if they share a block (as many as [`least`](dupflow_core::block::Blocking::least)
//! of them) and the filter accepts them. Nothing is left out in large blocks: a sketch is compared with the
//! watches that share its block, not with the block.
//!
//! Costs: a sketch and its postings for each watch and worker; for a document one look-up for each of its
//! blocks. A watch that begins while the run is live is compared with each sketch of the corpus.

mod index;
mod update;
mod watching;

pub(super) use update::{WatchContent, WatchUpdate};
pub(super) use watching::WatchMatcher;
