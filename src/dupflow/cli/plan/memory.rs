//! What a document costs: an estimate from the layout of the state, for documents that are all different.
//!
//! In: a plan and the number of workers. Out: bytes for each kind of state, per document, not counting its
//! id's own bytes. Copies of one text share all but the document.
//!
//! The rule is the size of an entry and of its place in an index; nothing doubles but under live weights,
//! whose vectors have room to grow ([`SLACK`]).

use serde::Serialize;

use crate::config::{BlockingPlan, Plan};
use dupflow_core::text::measures::Measure;

/// An entry of a `HashIndex`, which is 76 % full at any size: 32 bits of a hash, and a place.
const INDEX_BYTES: f64 = 10.5;
/// A block of one sketch: 32 bits of its hash, and its member, in a table whose segments are 75 to 90 % full.
pub(super) const POSTING_BYTES: f64 = 9.9;
/// A sketch in the block index, on each worker: id and first word.
const SLOT_BYTES: f64 = 24.0;
/// The id of a sketch and its members.
const SKETCH_ENTRY_BYTES: f64 = 40.0;
/// A list of features: pointer and length.
const FEATURES_ENTRY_BYTES: f64 = 16.0;
/// A document whose terms are kept: id, terms, sketch.
const TERMS_ENTRY_BYTES: f64 = 64.0;
/// A term of a document: the difference to the number of the term before, and its count.
const TERM_BYTES: f64 = 3.0;
/// A document: its id, if that has 22 bytes at most, its sketch, where its last event stands and when it was.
const DOCUMENT_BYTES: f64 = 64.0;
/// A document in the order of time: its place, and where it stands in the order.
const AGE_BYTES: f64 = 8.0;
/// A slot: the same in the order of keys, and its key.
const SLOT_KEY_BYTES: f64 = 32.0;
/// Vectors that have room to grow, on average.
const SLACK: f64 = 1.25;
/// Distinct shingles of a text, where they are kept and none says how many they are: a page of some 500
/// words.
pub(super) const ASSUMED_FEATURES: usize = 500;

/// The bytes of one kind of state, for one document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Part {
    pub(super) what: &'static str,
    pub(super) bytes: f64,
}

/// What a document of a topic takes more whose rows have a time of their own: an entry of 12 bytes in nodes
/// of 11, which are half full where places ascend. Nothing where slots have it.
pub(super) const OWN_TIME_BYTES: f64 = 26.0;

/// What a deleted id of a topic takes while it is remembered, its own bytes not counted; 0 where slots
/// remember it.
pub(super) fn per_deleted_id(plan: &Plan) -> f64 {
    let age = if plan.retention.max_age.is_some() { AGE_BYTES } else { 0.0 };
    let terms = if plan.scheme.live().is_some() { SLACK * TERMS_ENTRY_BYTES } else { 0.0 };
    let is_beside = plan.retention.max_documents.is_none();
    if is_beside { DOCUMENT_BYTES + INDEX_BYTES + age + terms } else { 0.0 }
}

/// The parts of a document's state, on all `workers` together.
pub(super) fn per_document(plan: &Plan, workers: usize) -> Vec<Part> {
    // The blocks of a sketch are spread over the workers; each that has one holds a slot.
    let postings = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Banding { design, .. } => design.curve.bands,
        BlockingPlan::Hamming { design, .. } => usize::try_from(design.keys()).unwrap_or(usize::MAX),
        BlockingPlan::Shingles { .. } => ASSUMED_FEATURES,
        BlockingPlan::Scan => 1,
    };
    let postings: usize = plan.blockings().map(postings).sum();
    let holders = postings.min(workers) as f64;
    let sketch = (plan.scheme.words() * 8) as f64;
    let weighted = if plan.scheme.measure() == Measure::Jaccard { 1 } else { 2 };
    let features = FEATURES_ENTRY_BYTES + (ASSUMED_FEATURES * 8 * weighted) as f64;
    // Of a text's terms most are in the vocabulary already; the table of each worker has all of it.
    let terms = SLACK * TERMS_ENTRY_BYTES + ASSUMED_FEATURES as f64 * TERM_BYTES;
    let parts = [
        ("sketch", sketch),
        ("features", if plan.scheme.exact { features } else { 0.0 }),
        ("terms", if plan.scheme.live().is_some() { terms } else { 0.0 }),
        ("sketch by id", SKETCH_ENTRY_BYTES + INDEX_BYTES),
        ("postings", postings as f64 * POSTING_BYTES),
        ("block slots", holders * (SLOT_BYTES + INDEX_BYTES)),
        ("document by id", DOCUMENT_BYTES + INDEX_BYTES),
        ("order of age", if plan.retention.max_age.is_some() { AGE_BYTES } else { 0.0 }),
        ("slots", if plan.retention.max_documents.is_some() { SLOT_KEY_BYTES } else { 0.0 }),
    ];
    parts.into_iter().filter(|(_, bytes)| *bytes > 0.0).map(|(what, bytes)| Part { what, bytes }).collect()
}
