//! The deduplicated corpus as a list: the documents to keep, or those to remove.
//!
//! ```text
//! {"id":"…"}                            Kept: one document of each cluster, every document in no cluster
//! {"id":"…","kept":"…","cluster":"…"}   Removed: every other document, and the one kept in its place
//! ```
//!
//! Input: changes of pairs and of documents. Output: at the end of the input, the list, sorted by id. Every
//! live document is in exactly one of the two lists; one without tokens is in no pair, and so is kept.
//! Clusters are read from the graph of pairs: a giant, of which other outputs report only the size, is
//! handled like any other cluster. Of a pipeline of containment the one kept is the one that contains a
//! document, and `cluster` is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use super::contained;
use super::contract::EndList;
use super::destination::Destination;
use super::rows::{EachCells, JsonLines, OutputCell, OutputRow, RowWriter};
use dupflow_core::cluster::{Clusters, KeepFacts, KeepRule};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::{DocChange, DocId};
use dupflow_core::pair::{Delta, DocPair};

/// Selects one of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentList {
    /// Documents to keep.
    Kept,
    /// Documents to remove.
    Removed,
}

/// What is removed.
#[derive(Debug)]
pub enum RemovalRule {
    /// Of each cluster, all documents but the one that a rule selects. The clusters are empty at first, and
    /// their limit has no effect.
    Clusters(Box<Clusters>, KeepRule),
    /// Documents with at least this share of their features, inclusive, in one that stays.
    Contained(f64),
}

/// The pairs of the live documents, as a rule reads them.
enum LivePairs {
    Clusters {
        clusters: Box<Clusters>,
        keep: KeepRule,
        /// The place of the rule's field among those that documents hold.
        field: Option<usize>,
    },
    Contained {
        least: f64,
        pairs: BTreeSet<DocPair>,
    },
}

/// How many documents, or units of documents, are in each of the two lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListCounts {
    /// What is listed: "documents" or "units".
    pub of: &'static str,
    /// Those that are kept.
    pub kept: u64,
    /// Those that are removed.
    pub removed: u64,
    /// Of units, the bytes that are removed from texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_bytes: Option<u64>,
    /// The rule that chooses what is kept.
    pub rule: String,
}

/// Where a list leaves its counts.
pub type ListCountsSlot = Arc<Mutex<Option<ListCounts>>>;

/// The live documents and their pairs, and which of them are removed.
pub(crate) struct LiveDocuments {
    pairs: LivePairs,
    alive: BTreeMap<DocId, KeepFacts>,
    /// Whether the corpus is compared with a reference, whose documents are kept.
    has_reference: bool,
    counts: ListCountsSlot,
}

impl LiveDocuments {
    /// No documents.
    pub(crate) fn new(rule: RemovalRule) -> Self {
        let pairs = match rule {
            RemovalRule::Clusters(clusters, keep) => LivePairs::Clusters { clusters, keep, field: None },
            RemovalRule::Contained(least) => LivePairs::Contained { least, pairs: BTreeSet::new() },
        };
        Self { pairs, alive: BTreeMap::new(), has_reference: false, counts: ListCountsSlot::default() }
    }

    /// The same, which leaves its counts there.
    pub(crate) fn with_counts(self, counts: ListCountsSlot) -> Self {
        Self { counts, ..self }
    }

    /// The same for documents that hold these fields.
    pub(crate) fn with_fields(mut self, held: &FieldRules) -> Self {
        if let LivePairs::Clusters { keep, field, .. } = &mut self.pairs {
            *field = keep.field().and_then(|name| held.place(name));
        }
        self
    }

    /// The same for a corpus that is compared with a reference, if it is.
    pub(crate) fn with_reference(self, has_reference: bool) -> Self {
        Self { has_reference, ..self }
    }

    /// Whether a document is of the reference.
    pub(crate) fn is_of_reference(&self, id: &DocId) -> bool {
        self.has_reference && id.is_of_reference()
    }

    /// The id of a document as it was read.
    pub(crate) fn written<'d>(&self, id: &'d DocId) -> &'d str {
        if self.has_reference { id.without_side() } else { id.as_str() }
    }

    /// Takes the changes of documents of an epoch.
    pub(crate) fn change(&mut self, changes: &[DocChange]) {
        for DocChange { id, now, fields, .. } in changes {
            let Some(facts) = *now else {
                self.alive.remove(id);
                continue;
            };
            let rank = match &self.pairs {
                LivePairs::Clusters { keep, field: Some(place), .. } => keep.rank(fields.get(*place)),
                _ => 0,
            };
            self.alive.insert(id.clone(), KeepFacts { facts, rank });
        }
    }

    /// Takes the changes of pairs of an epoch.
    pub(crate) fn follow(&mut self, deltas: &[Delta]) {
        match &mut self.pairs {
            LivePairs::Clusters { clusters, .. } => clusters.follow(deltas),
            LivePairs::Contained { pairs, .. } => {
                for Delta { pair, diff, .. } in deltas {
                    let changed = if *diff > 0 { pairs.insert(pair.clone()) } else { pairs.remove(pair) };
                    debug_assert!(changed, "every pair accumulates to 0 or 1");
                }
            }
        }
    }

    /// The live documents of the corpus, without those of a reference, sorted by id.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (&DocId, &KeepFacts)> {
        self.alive.iter().filter(|(id, _)| !self.is_of_reference(id))
    }

    /// What is known of a live document.
    pub(crate) fn get(&self, id: &DocId) -> Option<&KeepFacts> {
        self.alive.get(id)
    }

    /// Documents to remove, each with the document kept in its place and the name of their cluster.
    ///
    /// # Errors
    /// If documents are kept by a value that none of them has.
    pub(crate) fn removed(&mut self) -> io::Result<BTreeMap<DocId, (DocId, DocId)>> {
        let Self { pairs, alive, has_reference, .. } = self;
        let is_fixed = |id: &DocId| *has_reference && id.is_of_reference();
        let (removed, rule): (BTreeMap<_, _>, _) = match pairs {
            LivePairs::Clusters { clusters, keep, .. } => {
                keep.check(alive.values().copied()).map_err(io::Error::other)?;
                // Every document in a pair is alive.
                let removed = keep.removed(clusters, |id| alive.get(id).copied(), is_fixed);
                (removed, keep.to_string())
            }
            LivePairs::Contained { least, pairs } => {
                let removed = contained::removed(pairs, *least, is_fixed).into_iter();
                let named = removed.map(|(id, kept)| (id.clone(), (kept.clone(), kept.clone())));
                (named.collect(), format!("contained:{least}"))
            }
        };
        let (kept, count) = ((self.alive().count() - removed.len()) as u64, removed.len() as u64);
        tracing::info!(kept, removed = count, rule, "listed");
        *self.counts.lock() =
            Some(ListCounts { of: "documents", kept, removed: count, removed_bytes: None, rule });
        Ok(removed)
    }
}

/// A document to keep.
#[derive(Serialize)]
struct KeptRow<'a> {
    id: &'a str,
}

impl OutputRow for KeptRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        each(&[OutputCell::Text(self.id)])
    }
}

/// A document to remove, and the one kept in its place.
#[derive(Serialize)]
struct RemovedRow<'a> {
    id: &'a str,
    kept: &'a str,
    cluster: &'a str,
    /// In a corpus that is compared with a reference: whether the kept document is of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<bool>,
}

impl OutputRow for RemovedRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let mut cells = [self.id, self.kept, self.cluster].map(OutputCell::Text).to_vec();
        cells.extend(self.old.map(OutputCell::Flag));
        each(&cells)
    }
}

/// Keeps the documents and the pairs that the changes accumulate to, and writes the list at the end.
pub struct KeepList<R> {
    out: R,
    documents: LiveDocuments,
    listed: DocumentList,
}

impl<W: Destination> KeepList<JsonLines<W>> {
    /// Writes JSON Lines to `out`, which should be buffered.
    pub fn new(out: W, rule: RemovalRule, listed: DocumentList) -> Self {
        Self::with_rows(JsonLines(out), rule, listed)
    }
}

impl<R: RowWriter> KeepList<R> {
    /// As `new`, for any row format.
    pub fn with_rows(out: R, rule: RemovalRule, listed: DocumentList) -> Self {
        Self { out, documents: LiveDocuments::new(rule), listed }
    }

    /// The same, which leaves its counts there.
    #[must_use]
    pub fn with_counts(self, counts: ListCountsSlot) -> Self {
        Self { documents: self.documents.with_counts(counts), ..self }
    }

    /// The same for a corpus that is compared with a reference, if it is.
    #[must_use]
    pub fn with_reference(self, has_reference: bool) -> Self {
        Self { documents: self.documents.with_reference(has_reference), ..self }
    }

    /// The same for documents that hold these fields, one of which the rule may read.
    #[must_use]
    pub fn with_fields(self, held: &FieldRules) -> Self {
        Self { documents: self.documents.with_fields(held), ..self }
    }
}

impl<R: RowWriter> EndList for KeepList<R> {
    const OF_DOCUMENTS: bool = true;

    fn change(&mut self, changes: &[DocChange]) {
        self.documents.change(changes);
    }

    fn follow(&mut self, deltas: &[Delta]) {
        self.documents.follow(deltas);
    }

    fn write(&mut self) -> io::Result<()> {
        let removed = self.documents.removed()?;
        match self.listed {
            DocumentList::Kept => {
                for (id, _) in self.documents.alive().filter(|(id, _)| !removed.contains_key(*id)) {
                    self.out.row(&KeptRow { id: self.documents.written(id) })?;
                }
            }
            DocumentList::Removed => {
                for (id, (kept, cluster)) in &removed {
                    let old = self.documents.has_reference.then(|| kept.is_of_reference());
                    let [id, kept, cluster] = [id, kept, cluster].map(|id| self.documents.written(id));
                    self.out.row(&RemovedRow { id, kept, cluster, old })?;
                }
            }
        }
        self.out.finish()
    }
}

impl<R> fmt::Debug for KeepList<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepList").field("listed", &self.listed).finish_non_exhaustive()
    }
}
