//! Which records are copied: those of the documents that are kept, or of those that are removed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::formats::{RecordChoice, RowMark};
use crate::sinks::{DocumentList, EndList, ListCountsSlot, LiveDocuments, RemovalRule};
use dupflow_core::doc::DocChange;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::hash::{self, mix};
use dupflow_core::pair::Delta;

/// The selected records, by their numbers over all inputs: a bit for each record.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    chosen: Vec<u64>,
    /// Number of selected records.
    pub(crate) count: u64,
    /// Number of live documents.
    pub(crate) alive: u64,
    /// The marks of documents in clusters, if records are marked.
    marks: BTreeMap<u64, ClusterMark>,
    /// Ascending ranges of bytes that are repeated in the texts of records.
    pub(super) repeated: BTreeMap<u64, Vec<Range<u64>>>,
}

/// The mark of a document in a cluster.
#[derive(Clone, Debug)]
struct ClusterMark {
    cluster: Box<str>,
    /// The document that is kept for it; `None` if it is kept itself.
    of: Option<Box<str>>,
}

/// Where a [`SelectionSink`] leaves its selection.
pub type SelectionSlot = Arc<Mutex<Option<Selection>>>;

impl Selection {
    /// The records of all live documents.
    pub(super) fn of_all(records: impl Iterator<Item = u64>) -> Self {
        let mut all = Self::default();
        records.for_each(|record| all.choose(record));
        Self { alive: all.count, ..all }
    }

    pub(super) fn choose(&mut self, record: u64) {
        let word = usize::try_from(record / 64).unwrap_or(usize::MAX);
        if self.chosen.len() <= word {
            self.chosen.resize(word + 1, 0);
        }
        self.chosen[word] |= 1 << (record % 64);
        self.count += 1;
    }
}

impl Selection {
    /// A hash of what is written of each record.
    pub(super) fn hash(&self) -> u64 {
        let chosen = self.chosen.iter().fold(0, |all, word| mix(all ^ word));
        let marked = self.marks.iter().fold(chosen, |all, (record, ClusterMark { cluster, of })| {
            let of = of.as_deref().map_or(0, |of| hash::bytes(1, of.as_bytes()));
            mix(mix(all ^ record) ^ hash::bytes(0, cluster.as_bytes())) ^ of
        });
        self.repeated.iter().fold(marked, |all, (record, parts)| {
            parts.iter().fold(mix(all ^ record), |all, part| mix(mix(all ^ part.start) ^ part.end))
        })
    }
}

impl RecordChoice for Selection {
    fn is_chosen(&self, record: u64) -> bool {
        let word = usize::try_from(record / 64).ok().and_then(|word| self.chosen.get(word));
        word.is_some_and(|word| word & (1 << (record % 64)) != 0)
    }

    fn mark(&self, record: u64) -> RowMark<'_> {
        let mark = self.marks.get(&record);
        let of = mark.and_then(|mark| mark.of.as_deref());
        RowMark { cluster: mark.map(|mark| &*mark.cluster), is_kept: of.is_none(), of }
    }

    fn repeated(&self, record: u64) -> &[Range<u64>] {
        self.repeated.get(&record).map_or(&[], Vec::as_slice)
    }
}

/// Keeps the documents and the pairs that the changes accumulate to, and selects records at the end.
pub struct SelectionSink {
    documents: LiveDocuments,
    listed: DocumentList,
    is_marked: bool,
    slot: SelectionSlot,
}

impl SelectionSink {
    /// With `is_marked` the records of all live documents are selected, with their marks; else those of the
    /// list.
    pub fn new(rule: RemovalRule, listed: DocumentList, is_marked: bool, slot: SelectionSlot) -> Self {
        Self { documents: LiveDocuments::new(rule), listed, is_marked, slot }
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

    fn select(&mut self) -> io::Result<Selection> {
        let removed = self.documents.removed()?;
        let mut selection =
            Selection { alive: self.documents.alive().count() as u64, ..Selection::default() };
        for (id, of) in self.documents.alive() {
            let is_listed = match self.listed {
                DocumentList::Kept => !removed.contains_key(id),
                DocumentList::Removed => removed.contains_key(id),
            };
            if is_listed || self.is_marked {
                selection.choose(of.facts.position.offset);
            }
        }
        if self.is_marked {
            let record = |id| self.documents.get(id).map(|of| of.facts.position.offset);
            let of_removed = removed.iter().map(|(id, (kept, cluster))| (id, Some(kept), cluster));
            let of_kept = removed.values().map(|(kept, cluster)| (kept, None, cluster));
            let marks = of_kept.chain(of_removed).filter_map(|(id, of, cluster)| {
                let [cluster, of] =
                    [Some(cluster), of].map(|named| named.map(|one| self.documents.written(one).into()));
                Some((record(id)?, ClusterMark { cluster: cluster?, of }))
            });
            selection.marks = marks.collect();
        }
        Ok(selection)
    }
}

impl EndList for SelectionSink {
    const OF_DOCUMENTS: bool = true;

    fn change(&mut self, changes: &[DocChange]) {
        self.documents.change(changes);
    }

    fn follow(&mut self, deltas: &[Delta]) {
        self.documents.follow(deltas);
    }

    fn write(&mut self) -> io::Result<()> {
        let selection = self.select()?;
        *self.slot.lock() = Some(selection);
        Ok(())
    }
}

impl fmt::Debug for SelectionSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectionSink").field("listed", &self.listed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::cluster::{ClusterKind, Clusters, KeepRule};
    use dupflow_core::doc::{DocId, Facts, Position};
    use dupflow_core::pair::{DocPair, Evidence, Pair, Similarity};

    /// Documents a, b, c, d at records 70, 3, 64 and 0; a b c are a cluster. Record 5 was d before.
    fn selected(listed: DocumentList, is_marked: bool) -> Selection {
        let slot = SelectionSlot::default();
        let id = |name: &str| DocId::new(name).unwrap();
        let rule =
            RemovalRule::Clusters(Box::new(Clusters::new(ClusterKind::Components, 2)), KeepRule::Smallest);
        let mut sink = SelectionSink::new(rule, listed, is_marked, Arc::clone(&slot));
        let change = |name, offset| DocChange {
            id: id(name),
            now: Some(Facts { ts: None, bytes: 1, position: Position { partition: 0, offset } }),
            ..DocChange::end(id(name))
        };
        sink.change(&[change("a", 70), change("b", 3), change("c", 64), change("d", 5)]);
        let gone = DocChange { now: None, ..change("e", 9) };
        sink.change(&[change("d", 0), gone]);
        let delta = |a, b| {
            let pair = Pair::new(id(a), id(b)).unwrap();
            Delta::by_block(DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() }, 1)
        };
        sink.follow(&[delta("a", "b"), delta("b", "c")]);
        sink.write().unwrap();
        slot.lock().take().unwrap()
    }

    #[test]
    fn records_are_those_of_the_last_events() {
        let chosen = |selection: &Selection| {
            let all: Vec<u64> = (0..200).filter(|record| selection.is_chosen(*record)).collect();
            assert_eq!((selection.count, selection.alive), (all.len() as u64, 4));
            all
        };
        assert_eq!(chosen(&selected(DocumentList::Kept, false)), [0, 70]);
        assert_eq!(chosen(&selected(DocumentList::Removed, false)), [3, 64]);
        let marked = selected(DocumentList::Kept, true);
        assert_eq!(chosen(&marked), [0, 3, 64, 70]);
        let mark = |record| {
            let RowMark { cluster, is_kept, of } = marked.mark(record);
            (cluster.unwrap_or("-"), is_kept, of.unwrap_or("-"))
        };
        assert_eq!([mark(0), mark(70)], [("-", true, "-"), ("a", true, "-")]);
        assert_eq!([mark(3), mark(64)], [("a", false, "a"), ("a", false, "a")]);
    }
}
