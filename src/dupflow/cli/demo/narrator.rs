//! The output of the demo: deltas in, sentences about them out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use dupflow_connectors::mark::Mark;
use dupflow_connectors::sinks::Sink;
use dupflow_core::doc::{DocChange, DocId, Letter};
use dupflow_core::pair::{Cause, Delta, DocPair};
use dupflow_core::time::{Epoch, Progress};

/// What is explained once, at its first occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lesson {
    Copy,
    Near,
    Update,
    Delete,
    Cluster,
}

impl Lesson {
    fn text(self) -> &'static str {
        match self {
            Self::Copy => "A pair appears: a delta of +1. Both documents have the same text.",
            Self::Near => {
                "Near-duplicates: at least 80 % of the three-word shingles that either text has are in both."
            }
            Self::Update => "An edit ends a pair: a delta of -1. Consumers need not compare anything again.",
            Self::Delete => "A delete takes back every pair of the document.",
            Self::Cluster => {
                "Pairs that share a document form a cluster. A delete makes it smaller, or splits it."
            }
        }
    }
}

/// Writes what happens to pairs and clusters, each new kind of event with an explanation.
#[derive(Debug)]
pub(super) struct Narrator<W> {
    out: W,
    /// The partners of each document that is in a pair.
    partners: BTreeMap<DocId, BTreeSet<DocId>>,
    /// The documents that the open epoch changes.
    changed: BTreeSet<DocId>,
    explained: BTreeSet<Lesson>,
    /// The last epoch of the feed, once all of it has been read.
    last: Arc<OnceLock<Epoch>>,
    has_ended: bool,
}

/// Most documents of a cluster that are named.
const NAMED: usize = 4;

impl<W: Write> Narrator<W> {
    /// `last` is set to the last epoch of the feed when all of it has been read.
    pub(super) fn new(out: W, last: Arc<OnceLock<Epoch>>) -> Self {
        Self {
            out,
            partners: BTreeMap::new(),
            changed: BTreeSet::new(),
            explained: BTreeSet::new(),
            last,
            has_ended: false,
        }
    }

    fn explain(&mut self, lesson: Lesson) -> io::Result<()> {
        if self.explained.insert(lesson) { writeln!(self.out, "    {}", lesson.text()) } else { Ok(()) }
    }

    /// The pair with the document first that changed in this epoch.
    fn by_change<'a>(&self, pair: &'a DocPair) -> (&'a DocId, &'a DocId) {
        let (lo, hi) = (pair.pair.lo(), pair.pair.hi());
        if self.changed.contains(lo) && !self.changed.contains(hi) { (lo, hi) } else { (hi, lo) }
    }

    fn appeared(&mut self, pair: &DocPair) -> io::Result<()> {
        let (new, other) = self.by_change(pair);
        let similarity = pair.similarity.get();
        writeln!(self.out, "+ {new} repeats {other}: similarity {similarity:.2}")?;
        self.explain(if similarity < 1.0 { Lesson::Near } else { Lesson::Copy })?;
        for (one, another) in [(new, other), (other, new)] {
            self.partners.entry(one.clone()).or_default().insert(another.clone());
        }
        Ok(())
    }

    fn ended(&mut self, pair: &DocPair, cause: Cause) -> io::Result<()> {
        let (gone, other) = self.by_change(pair);
        let (what, lesson) = match cause {
            Cause::Delete => ("was deleted", Lesson::Delete),
            _ => ("was rewritten", Lesson::Update),
        };
        writeln!(self.out, "- {gone} {what}: its pair with {other} ends")?;
        self.explain(lesson)?;
        for (one, another) in [(gone, other), (other, gone)] {
            if let Some(partners) = self.partners.get_mut(one) {
                partners.remove(another);
            }
        }
        self.partners.retain(|_, partners| !partners.is_empty());
        Ok(())
    }

    /// The documents that pairs connect with `id`, itself included.
    fn cluster(&self, id: &DocId) -> BTreeSet<DocId> {
        let (mut cluster, mut next) = (BTreeSet::new(), vec![id.clone()]);
        while let Some(member) = next.pop() {
            next.extend(self.partners.get(&member).into_iter().flatten().cloned());
            cluster.insert(member);
            next.retain(|other| !cluster.contains(other));
        }
        cluster
    }

    /// Reports the clusters of three documents and more that pairs of this epoch changed.
    fn clusters(&mut self, touched: &BTreeSet<DocId>) -> io::Result<()> {
        let clusters: BTreeSet<_> = touched.iter().map(|id| self.cluster(id)).collect();
        for cluster in clusters.into_iter().filter(|cluster| cluster.len() > 2) {
            let names: Vec<_> = cluster.iter().take(NAMED).map(DocId::as_str).collect();
            let more = match cluster.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(self.out, "= a cluster of {}: {}{more}", cluster.len(), names.join(", "))?;
            self.explain(Lesson::Cluster)?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for Narrator<W> {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.changed = changes.iter().map(|change| change.id.clone()).collect();
        Ok(())
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        let mut touched = BTreeSet::new();
        for Delta { pair, diff, cause } in deltas {
            if *diff > 0 {
                self.appeared(pair)?;
                touched.extend([pair.pair.lo().clone(), pair.pair.hi().clone()]);
            } else {
                self.ended(pair, *cause)?;
            }
        }
        self.clusters(&touched)?;
        self.changed.clear();
        if !self.has_ended && self.last.get().is_some_and(|last| *last <= progress.epoch) {
            self.has_ended = true;
            writeln!(self.out, "The feed has ended. The page stays until Ctrl-C.")?;
        }
        self.out.flush()
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use dupflow_core::pair::{Evidence, Pair, Similarity};

    use super::*;

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    fn delta(a: &str, b: &str, similarity: f64, diff: isize, cause: Cause) -> Delta {
        let pair = Pair::new(id(a), id(b)).unwrap();
        Delta {
            pair: DocPair {
                pair,
                similarity: Similarity::clamped(similarity),
                evidence: Evidence::default(),
            },
            diff,
            cause,
        }
    }

    #[test]
    fn each_kind_of_change_is_explained_once() {
        let mut out = Vec::new();
        let mut narrator = Narrator::new(&mut out, Arc::default());
        let mut epoch = |changed: &str, deltas: &[Delta]| {
            narrator.documents(&[DocChange::end(id(changed))], false).unwrap();
            narrator.epoch(&Progress::default(), deltas, &[]).unwrap();
        };
        epoch("mirror", &[delta("mirror", "news", 1.0, 1, Cause::Insert)]);
        epoch("b", &[delta("a", "b", 1.0, 1, Cause::Insert)]);
        epoch("paper", &[delta("news", "paper", 0.9, 1, Cause::Insert)]);
        epoch("paper", &[delta("news", "paper", 0.9, -1, Cause::Update)]);
        epoch("news", &[delta("mirror", "news", 1.0, -1, Cause::Delete)]);
        let said = String::from_utf8(out).unwrap();
        let (sentences, lessons): (Vec<_>, Vec<_>) = said.lines().partition(|line| !line.starts_with("    "));
        assert_eq!(
            sentences,
            [
                "+ mirror repeats news: similarity 1.00",
                "+ b repeats a: similarity 1.00",
                "+ paper repeats news: similarity 0.90",
                "= a cluster of 3: mirror, news, paper",
                "- paper was rewritten: its pair with news ends",
                "- news was deleted: its pair with mirror ends",
            ]
        );
        assert_eq!(lessons.len(), 5);
    }
}
