//! What a corpus is without its duplicates: the documents to keep, or those to remove.
//!
//! ```text
//! {"id":"…"}                                  Kept: one document of each cluster, and every document that is in none
//! {"id":"…","kept":"…","cluster":"…"}         Removed: every other one, with the document that is kept for it
//! ```
//!
//! Changes of pairs and of documents in; at the end of the input, the list out, sorted by id. The two lists
//! part the documents alive, those without a token too, which are in no pair. Clusters are those of the
//! graph: one that is reported by its size only is told apart here like any other.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use super::rows::{Lines, Row, Rows};
use super::{Destination, Sink};
use crate::mark::Mark;
use dupflow_core::cluster::{Clusters, KeepRule};
use dupflow_core::doc::{DocChange, DocId, Facts, Letter};
use dupflow_core::pair::Delta;
use dupflow_core::time::Progress;

/// Which of the two lists is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The documents that stay.
    Kept,
    /// The documents that go.
    Removed,
}

/// Holds the documents and the pairs that the changes accumulate to, and writes the list at the end.
pub struct KeepList<R> {
    out: R,
    clusters: Clusters,
    keep: KeepRule,
    listed: Listed,
    alive: BTreeMap<DocId, Facts>,
}

impl<W: Destination> KeepList<Lines<W>> {
    /// Writes JSON Lines to `out`, which should be buffered; `clusters` begins empty, and its limit has no
    /// part in this.
    pub fn new(out: W, clusters: Clusters, keep: KeepRule, listed: Listed) -> Self {
        Self::of(Lines(out), clusters, keep, listed)
    }
}

impl<R: Rows> KeepList<R> {
    /// The same, in any form.
    pub fn of(out: R, clusters: Clusters, keep: KeepRule, listed: Listed) -> Self {
        Self { out, clusters, keep, listed, alive: BTreeMap::new() }
    }

    /// The documents that go, each with the one kept for it and the name of its cluster.
    fn removed(&mut self) -> BTreeMap<DocId, (DocId, DocId)> {
        let mut removed = BTreeMap::new();
        for cluster in self.clusters.all().chunk_by(|(a, _), (b, _)| a == b) {
            let Some((name, _)) = cluster.first() else { continue };
            // Who is in a pair is alive.
            let told = cluster.iter().filter_map(|(_, id)| Some((id, *self.alive.get(id)?)));
            let kept = self.keep.choose(name, told);
            let others = cluster.iter().map(|(_, id)| id).filter(|id| *id != kept);
            removed.extend(others.map(|id| (id.clone(), (kept.clone(), name.clone()))));
        }
        removed
    }
}

impl<R: Rows> Sink for KeepList<R> {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        for DocChange { id, now } in changes {
            match now {
                Some(facts) => drop(self.alive.insert(id.clone(), *facts)),
                None => drop(self.alive.remove(id)),
            }
        }
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.clusters.follow(deltas);
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.clusters.follow(deltas);
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let removed = self.removed();
        let (all, gone) = (self.alive.len(), removed.len());
        tracing::info!(kept = all - gone, removed = gone, rule = self.keep.name(), "listed");
        match self.listed {
            Listed::Kept => {
                for id in self.alive.keys().filter(|id| !removed.contains_key(*id)) {
                    self.out.row(&Row::Kept { id })?;
                }
            }
            Listed::Removed => {
                for (id, (kept, cluster)) in &removed {
                    self.out.row(&Row::Removed { id, kept, cluster })?;
                }
            }
        }
        self.out.finish()
    }
}

impl<R> fmt::Debug for KeepList<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepList")
            .field("keep", &self.keep)
            .field("listed", &self.listed)
            .finish_non_exhaustive()
    }
}
