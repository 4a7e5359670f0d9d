//! The watches of a worker, and the notices of its sketches' members; see the [module](super).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::WatchIndex;
use super::update::{WatchContent, WatchUpdate};
use crate::dataflow::sketches::membership::SketchMembership;
use crate::dataflow::sketches::store::Sketches;
use crate::dataflow::stages::Stages;
use dupflow_core::block::{BlockKey, Blocking};
use dupflow_core::doc::DocId;
use dupflow_core::filter::PairFilter;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Similarity;
use dupflow_core::sketch::{Sketch, SketchRef};
use dupflow_core::time::Epoch;
use dupflow_run::watch::WatchMatch;

/// The notices of an epoch, not consolidated.
pub(in crate::dataflow) type Noticed = Vec<(WatchMatch, isize)>;

/// All watches, and where they are similar to a sketch of this worker.
pub(in crate::dataflow) struct WatchMatcher {
    blocking: Arc<dyn Blocking>,
    filter: Arc<dyn PairFilter>,
    /// By watch, its sketch; without the watches that have none.
    list: BTreeMap<DocId, SketchId>,
    /// By watched sketch, its watches and the sketches of this worker that are similar to it.
    watched: BTreeMap<SketchId, WatchedSketch>,
    index: WatchIndex,
    /// By sketch of this worker, the watched sketches that are similar to it; never empty.
    similar: BTreeMap<SketchId, Vec<(SketchId, Similarity)>>,
    /// Changes of epochs that are open.
    updates: BTreeMap<Epoch, Vec<WatchUpdate>>,
    /// The notices of the epoch that closes.
    noticed: Noticed,
}

#[derive(Default)]
struct WatchedSketch {
    watches: BTreeSet<DocId>,
    similar: BTreeMap<SketchId, Similarity>,
}

impl WatchMatcher {
    pub(in crate::dataflow) fn new(stages: &Stages) -> Self {
        Self {
            blocking: Arc::clone(&stages.blocking),
            filter: Arc::clone(&stages.filter),
            list: BTreeMap::new(),
            watched: BTreeMap::new(),
            index: WatchIndex::new(&stages.blocking, &stages.filter),
            similar: BTreeMap::new(),
            updates: BTreeMap::new(),
            noticed: Vec::new(),
        }
    }

    /// Keeps changes of the list until their epoch closes.
    pub(in crate::dataflow) fn receive(&mut self, epoch: Epoch, updates: impl Iterator<Item = WatchUpdate>) {
        self.updates.entry(epoch).or_default().extend(updates);
    }

    /// Notices the changes of a sketch's members, by the watches before the epoch. `born` has the sketch and
    /// its block keys if it had no members before; `dies` says that it has none now.
    pub(in crate::dataflow) fn members_changed(
        &mut self,
        id: SketchId,
        born: Option<(SketchRef<'_>, &[BlockKey])>,
        changes: &[SketchMembership],
        dies: bool,
    ) {
        if let Some((sketch, keys)) = born.filter(|_| !self.index.is_empty()) {
            let mut found = Vec::new();
            self.index.similar(id, sketch, keys, |watched, similarity| found.push((watched, similarity)));
            for (watched, similarity) in found {
                self.meet(id, watched, similarity);
            }
        }
        let Some(met) = self.similar.get(&id) else { return };
        for (watched, similarity) in met {
            for watch in &self.watched[watched].watches {
                for (_, change) in changes {
                    let diff = if change.joins.is_some() { 1 } else { -1 };
                    self.noticed.push((found(watch, &change.document, *similarity), diff));
                }
            }
        }
        if dies {
            for (watched, _) in self.similar.remove(&id).into_iter().flatten() {
                if let Some(watched) = self.watched.get_mut(&watched) {
                    watched.similar.remove(&id);
                }
            }
        }
    }

    /// Applies the changes of the list in an epoch to the members after it, and returns all notices of the
    /// epoch.
    pub(in crate::dataflow) fn close(&mut self, epoch: Epoch, sketches: &mut Sketches) -> Noticed {
        let mut begun = Vec::new();
        for update in last_of_each(self.updates.remove(&epoch).unwrap_or_default()) {
            let WatchUpdate { watch, content, .. } = update;
            let sketched = match content {
                WatchContent::Sketch(id, sketch) => Some((id, *sketch)),
                WatchContent::Nothing => None,
                WatchContent::Terms(_) => unreachable!("terms are weighted before they are compared"),
            };
            let after = sketched.as_ref().map(|(id, _)| *id);
            let before = self.list.get(&watch).copied();
            if before == after {
                continue;
            }
            if let Some(before) = before {
                self.list.remove(&watch);
                self.end(before, &watch, sketches);
            }
            begun.extend(sketched.map(|(id, sketch)| (id, sketch, watch)));
        }
        // After all ends, which may have removed sketches that begin again.
        let is_new = |(id, ..): &&(SketchId, Sketch, DocId)| !self.watched.contains_key(id);
        let fresh = begun.iter().filter(is_new).map(|(id, sketch, _)| (*id, sketch.clone())).collect();
        self.meet_corpus(fresh, sketches);
        for (id, _, watch) in begun {
            self.begin(id, watch, sketches);
        }
        std::mem::take(&mut self.noticed)
    }

    /// Notices that a watch of this sketch begins; the sketch has met the corpus.
    fn begin(&mut self, id: SketchId, watch: DocId, sketches: &mut Sketches) {
        let watched = self.watched.get_mut(&id).expect("the sketch of a watch that begins is in the index");
        sketches.fetch(watched.similar.keys().copied());
        for (sketch, similarity) in &watched.similar {
            let documents = sketches.all_members(*sketch);
            self.noticed.extend(documents.map(|document| (found(&watch, document, *similarity), 1)));
        }
        self.list.insert(watch.clone(), id);
        watched.watches.insert(watch);
    }

    /// Notices that a watch of this sketch ends.
    fn end(&mut self, id: SketchId, watch: &DocId, sketches: &mut Sketches) {
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.watches.remove(watch);
        sketches.fetch(watched.similar.keys().copied());
        for (sketch, similarity) in &watched.similar {
            let documents = sketches.all_members(*sketch);
            self.noticed.extend(documents.map(|document| (found(watch, document, *similarity), -1)));
        }
        if watched.watches.is_empty()
            && let Some(removed) = self.watched.remove(&id)
        {
            self.index.remove(id);
            for sketch in removed.similar.into_keys() {
                if let Some(met) = self.similar.get_mut(&sketch) {
                    met.retain(|(other, _)| *other != id);
                    if met.is_empty() {
                        self.similar.remove(&sketch);
                    }
                }
            }
        }
    }

    /// Compares watched sketches that are new with every sketch of this worker, and adds them to the index.
    fn meet_corpus(&mut self, fresh: BTreeMap<SketchId, Sketch>, sketches: &mut Sketches) {
        if fresh.is_empty() {
            return;
        }
        let mut index = WatchIndex::new(&self.blocking, &self.filter);
        index.add(fresh.iter().map(|(id, sketch)| (*id, sketch.clone())));
        self.watched.extend(fresh.keys().map(|id| (*id, WatchedSketch::default())));
        let mut keys = Vec::new();
        sketches.each_with_members(|id, sketch, _| {
            if !index.may_be_similar(id, sketch.words[0]) {
                return;
            }
            keys.clear();
            self.blocking.keys(sketch, &mut keys);
            let mut found = Vec::new();
            index.similar(id, sketch, &keys, |watched, similarity| found.push((watched, similarity)));
            found.into_iter().for_each(|(watched, similarity)| self.meet(id, watched, similarity));
        });
        self.index.add(fresh);
    }

    /// Stores that a sketch of this worker and a watched sketch are similar.
    fn meet(&mut self, id: SketchId, watched: SketchId, similarity: Similarity) {
        self.similar.entry(id).or_default().push((watched, similarity));
        if let Some(watched) = self.watched.get_mut(&watched) {
            watched.similar.insert(id, similarity);
        }
    }
}

fn found(watch: &DocId, document: &DocId, similarity: Similarity) -> WatchMatch {
    WatchMatch { watch: watch.clone(), id: document.clone(), similarity }
}

/// The change with the greatest number of each watch.
fn last_of_each(mut updates: Vec<WatchUpdate>) -> Vec<WatchUpdate> {
    updates.sort_by(|a, b| (&a.watch, b.number).cmp(&(&b.watch, a.number)));
    updates.dedup_by(|later, first| later.watch == first.watch);
    updates
}
