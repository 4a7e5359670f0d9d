//! The memory of one document: an estimate from the layout of the state, for documents that are all
//! different.
//!
//! Input: a plan. Output: bytes per document for each kind of state,
//! without the bytes of the id. Copies of one text share everything except the document entry.
//!
//! The rule is the size of an entry plus the size of its index entries. No structure doubles when it grows,
//! except the vectors of live weights ([`SLACK`]).

use serde::Serialize;

use crate::config::{BlockingPlan, Plan};
use dupflow_core::memory::PAGE_BYTES;
use dupflow_core::sketch::SketchKind;

/// A `HashIndex` entry: 34 bits in a packed table, with the room and headers of its buckets.
const INDEX_BYTES: f64 = 4.8;
/// A posting: 44 bits for the block hash and the member, with room and headers.
pub(super) const POSTING_BYTES: f64 = 5.8;
/// The first word of a sketch, beside its row in a file.
const FIRST_WORD_BYTES: f64 = 8.0;
/// The sum of a page in a file.
const SUM_BYTES: f64 = 4.0;
/// The members of a sketch.
const SKETCH_ENTRY_BYTES: f64 = 24.0;
/// The id of a sketch, where it is not computed from the words.
const SKETCH_ID_BYTES: f64 = 16.0;
/// A list of features: pointer and length.
const FEATURES_ENTRY_BYTES: f64 = 16.0;
/// A document with its terms: id, terms, sketch.
const TERMS_ENTRY_BYTES: f64 = 64.0;
/// A term of a document: the difference from the previous term number, and its count.
const TERM_BYTES: f64 = 3.0;
/// A document: its id (up to 22 bytes), half the id of its sketch, and the position and time of its last
/// event.
const DOCUMENT_BYTES: f64 = 56.0;
/// A document in the order of time: its place, and its index in the order.
const AGE_BYTES: f64 = 8.0;
/// A slot: the same in the order of keys, and its key.
const SLOT_KEY_BYTES: f64 = 32.0;
/// A unit of a document: hash of its content, occurrence, half the id of its sketch.
const UNIT_BYTES: f64 = 24.0;
/// A unit in the list of the output: its id, facts and place, 104 bytes in nodes that are two thirds full.
const LISTED_UNIT_BYTES: f64 = 156.0;
/// The name of a unit besides that of its document: 24 characters, and the header of a shared text.
const UNIT_NAME_BYTES: f64 = 48.0;
/// Mean capacity of vectors that grow, relative to their length.
const SLACK: f64 = 1.25;
/// Assumed number of distinct shingles of a text, if they are stored: a page of about 500 words.
pub(super) const ASSUMED_FEATURES: usize = 500;

/// What takes memory besides: it follows from the corpus, or is set in a deployment, which `plan` does not
/// read.
pub(super) const NOT_COUNTED: [&str; 4] = ["pairs", "clusters", "rows and joins of views", "watches"];

/// The bytes per document of one kind of state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MemoryPart {
    pub(super) what: &'static str,
    pub(super) bytes: f64,
}

/// Additional bytes for a document of a topic whose records have their own times: an entry of 12 bytes in
/// tree nodes of 11 entries, which are half full if places ascend. Not needed where slots hold the time.
pub(super) const OWN_TIME_BYTES: f64 = 26.0;

/// Bytes for a deleted id of a topic while it is remembered, without the id's own bytes; 0 if slots remember
/// it.
pub(super) fn per_deleted_id(plan: &Plan) -> f64 {
    let age = if plan.retention.max_age.is_some() { AGE_BYTES } else { 0.0 };
    let terms = if plan.scheme.live().is_some() { SLACK * TERMS_ENTRY_BYTES } else { 0.0 };
    let is_beside = plan.retention.max_documents.is_none();
    if is_beside { DOCUMENT_BYTES + INDEX_BYTES + age + terms } else { 0.0 }
}

/// The values of a document's fields. Documents with equal values share their text, which is not counted.
const FIELDS_BYTES: f64 = 16.0;

/// The bytes per document of rows that are in files under a memory budget, and not in memory: of sketches
/// with their ids and members, and of documents, unless a retention orders them.
pub(super) fn spilled(plan: &Plan) -> Vec<MemoryPart> {
    let is_retained = plan.retention.max_age.is_some() || plan.retention.max_documents.is_some();
    let parts = [
        ("sketch by id", (plan.scheme.words() * 8) as f64 + SKETCH_ID_BYTES + SKETCH_ENTRY_BYTES),
        ("document by id", if is_retained { 0.0 } else { DOCUMENT_BYTES }),
    ];
    let parts = parts.into_iter().filter(|(_, bytes)| *bytes > 0.0);
    parts.map(|(what, bytes)| MemoryPart { what, bytes }).collect()
}

/// The bytes per document that a row of so many takes in a file, whose pages hold whole rows.
pub(super) fn on_disk(row_bytes: f64) -> f64 {
    row_bytes.max(PAGE_BYTES as f64) / rows_of_page(row_bytes)
}

fn rows_of_page(row_bytes: f64) -> f64 {
    (PAGE_BYTES as f64 / row_bytes).floor().max(1.0)
}

/// Words that a sketch stores of the features of a text, besides its own.
pub(super) fn stored_features(plan: &Plan) -> usize {
    match (plan.scheme.exact, plan.scheme.keeps_features()) {
        (true, _) => ASSUMED_FEATURES * (1 + usize::from(plan.scheme.measure().is_weighted())),
        (false, true) => in_blocks(plan),
        (false, false) => 0,
    }
}

/// Features of a text that have a block of their own: all, or those that a scaled sketch keeps.
pub(super) fn in_blocks(plan: &Plan) -> usize {
    match plan.scheme.sketch.kind {
        SketchKind::Scaled { scale, least } => {
            (ASSUMED_FEATURES / scale as usize).max(least as usize).min(ASSUMED_FEATURES)
        }
        _ => ASSUMED_FEATURES,
    }
}

/// The bytes per document in memory under a memory budget, of which `all` are without one.
pub(super) fn beside_files(plan: &Plan, all: f64) -> f64 {
    let in_files: f64 = spilled(plan).iter().map(|part| part.bytes).sum();
    // Rows have ids, and memory without a budget has not where they are computed.
    let only_in_rows = SKETCH_ID_BYTES - stored_id_bytes(plan);
    let sums: f64 = spilled(plan).iter().map(|part| SUM_BYTES / rows_of_page(part.bytes)).sum();
    (all - in_files + only_in_rows + FIRST_WORD_BYTES + sums).max(0.0)
}

/// Bytes in memory of the id of a sketch.
fn stored_id_bytes(plan: &Plan) -> f64 {
    if plan.scheme.names_words() { 0.0 } else { SKETCH_ID_BYTES }
}

/// The postings of a sketch.
fn postings(plan: &Plan) -> usize {
    let of_blocking = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Banding { design, .. } => design.curve.bands,
        BlockingPlan::Hamming { design, .. } => usize::try_from(design.keys()).unwrap_or(usize::MAX),
        BlockingPlan::Shingles { .. } => in_blocks(plan),
        // Only documents of the reference have any.
        BlockingPlan::Reference => 0,
        BlockingPlan::Scan => 1,
    };
    plan.blockings().map(of_blocking).sum()
}

/// The parts of a document's state, over all workers of a process.
pub(super) fn per_document(plan: &Plan) -> Vec<MemoryPart> {
    let sketch = (plan.scheme.words() * 8) as f64;
    let features = FEATURES_ENTRY_BYTES + (stored_features(plan) * 8) as f64;
    // Most terms of a text are in the vocabulary already; every worker holds the whole vocabulary.
    let terms = SLACK * TERMS_ENTRY_BYTES + ASSUMED_FEATURES as f64 * TERM_BYTES;
    let is_live = plan.scheme.live().is_some();
    let parts = [
        ("sketch", sketch),
        // A new table gives every document another sketch in one epoch, which drops the old ones at its end.
        ("sketched again", if is_live { sketch } else { 0.0 }),
        ("features", if plan.scheme.keeps_features() { features } else { 0.0 }),
        ("terms", if is_live { terms } else { 0.0 }),
        ("sketch by id", stored_id_bytes(plan) + SKETCH_ENTRY_BYTES + INDEX_BYTES),
        ("postings", postings(plan) as f64 * POSTING_BYTES),
        ("document by id", DOCUMENT_BYTES + INDEX_BYTES),
        ("fields", if plan.scheme.pairs.is_empty() { 0.0 } else { FIELDS_BYTES }),
        ("unit by place", if plan.scheme.units.is_some() { UNIT_BYTES } else { 0.0 }),
        ("name of a unit", if plan.scheme.units.is_some() { UNIT_NAME_BYTES } else { 0.0 }),
        ("listed unit", if plan.scheme.units.is_some() { LISTED_UNIT_BYTES } else { 0.0 }),
        ("order of age", if plan.retention.max_age.is_some() { AGE_BYTES } else { 0.0 }),
        ("slots", if plan.retention.max_documents.is_some() { SLOT_KEY_BYTES } else { 0.0 }),
    ];
    parts
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0.0)
        .map(|(what, bytes)| MemoryPart { what, bytes })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::block::BlockKey;
    use dupflow_core::cluster::KeepFacts;
    use dupflow_core::doc::DocId;
    use dupflow_core::doc::units::UnitFacts;
    use dupflow_core::hash::mix;
    use dupflow_core::memory::PackedTables;

    /// Measured bytes per entry of a packed table that holds the values 0, 1, 2 … shifted left by `flags`.
    fn bytes_each<const BITS: u32>(entries: u32, flags: u32) -> f64 {
        let mut tables = PackedTables::<BITS>::new(2);
        for table in 0..2 {
            (0..entries).for_each(|n| tables.insert(table, mix(n.into()) >> (64 - BITS), n << flags));
        }
        tables.bytes() as f64 / f64::from(2 * entries)
    }

    /// Nodes of 11 entries that are two thirds full.
    #[test]
    fn a_listed_unit_is_an_entry_of_a_tree() {
        let entry = size_of::<(DocId, (KeepFacts, UnitFacts))>();
        assert!((entry as f64 * 1.5 - LISTED_UNIT_BYTES).abs() < 1.0, "{entry} bytes");
        let plan = Plan::load("minhash", &["text.split=line".to_owned()]).unwrap();
        let parts = per_document(&plan);
        let beside = |what: &str| parts.iter().any(|part| part.what == what);
        assert!(["unit by place", "name of a unit", "listed unit"].into_iter().all(beside));
        let whole = Plan::load("minhash", &[]).unwrap();
        let bytes = |of: &Plan| beside_files(of, per_document(of).iter().map(|part| part.bytes).sum());
        let more = bytes(&plan) - bytes(&whole);
        assert!((more - UNIT_BYTES - UNIT_NAME_BYTES - LISTED_UNIT_BYTES).abs() < 1e-6, "in no file: {more}");
    }

    #[test]
    fn a_budget_moves_rows_to_files() {
        for name in ["minhash", "simhash"] {
            let plan = Plan::load(name, &[]).unwrap();
            let all: f64 = per_document(&plan).iter().map(|part| part.bytes).sum();
            let of_sketch = (PAGE_BYTES / (plan.scheme.words() * 8 + 40)) as f64;
            let sums = SUM_BYTES / of_sketch + SUM_BYTES / 73.0;
            let tables = postings(&plan) as f64;
            let by_hand = tables * POSTING_BYTES + 2.0 * INDEX_BYTES + FIRST_WORD_BYTES + sums;
            let beside = beside_files(&plan, all);
            assert!((beside - by_hand).abs() < 1e-6, "{name}: {beside} bytes");
        }
    }

    /// The estimate is that of the tables themselves. Small ones take about 200 KB more.
    #[test]
    fn the_model_is_what_tables_take() {
        for entries in [430_000, 600_000] {
            let posting = bytes_each::<{ BlockKey::HASH_BITS }>(entries, 1);
            assert!((posting - POSTING_BYTES).abs() < 0.5, "{posting} bytes a posting");
            let place = bytes_each::<32>(entries, 0);
            assert!((place - INDEX_BYTES).abs() < 0.5, "{place} bytes a place");
        }
    }
}
