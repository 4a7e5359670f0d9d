//! A corpus in memory that changes: the pairs that appear and end, epoch by epoch.
//!
//! Inserts, updates and deletes of documents -> deltas of pairs. Events are collected in an open epoch;
//! [`commit`](LiveCorpus::commit) closes it. Of several events of a document in one epoch the last counts.
//!
//! The rule: two sketches that share a block, and that the filter accepts, give the pairs of their documents.
//! Documents with the same sketch are *copies*: pairs at similarity 1. A group of more copies than the
//! [expand limit](LiveCorpus::EXPAND_LIMIT) is a star: each copy is in a pair with the smallest id, and only
//! the smallest id is in pairs with other texts. In a hot block only some sketches meet: see
//! [`HotRule`](crate::block::HotRule).
//!
//! Invariants: the sum of all deltas is a function of the live documents, whatever their history; it is
//! [`oracle::exact`](crate::oracle::exact). Each pair sums up to 0 or 1 at all times.
//!
//! How it is computed: the documents of an epoch change the members of some sketches. The pairs of these
//! sketches are listed before and after the change; a pair in one of the lists only is a delta. The pairs of
//! other sketches change only where a block becomes or ceases to be hot, which [`BlockIndex::apply`] reports.

use std::collections::{BTreeMap, BTreeSet};

use super::Detector;
use crate::block::index::{BlockIndex, Postings};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use crate::sketch::{Sketch, SketchMaker, SketchRef};

/// Documents in memory, and the deltas of their near-duplicate pairs.
///
/// Single-threaded and deterministic. It keeps sketches, block keys and pairs, but no texts.
///
/// ```
/// use dupflow_core::{Detector, DocId, LiveCorpus};
///
/// let id = |name: &str| DocId::new(name).expect("an id has 1 to 1024 bytes");
/// let mut corpus = LiveCorpus::new(&Detector::exact(0.5)?);
/// corpus.upsert(id("news/7"), "the old bridge over the river will be closed in May");
/// corpus.upsert(id("blog/1"), "The old bridge over the river will be closed in June!");
/// let appeared = corpus.commit();
/// assert_eq!((appeared.len(), appeared[0].diff), (1, 1));
/// corpus.delete(id("blog/1"));
/// let ended = corpus.commit();
/// assert_eq!((ended.len(), ended[0].diff), (1, -1));
/// # Ok::<(), dupflow_core::DetectorError>(())
/// ```
#[derive(Debug)]
pub struct LiveCorpus {
    detector: Detector,
    maker: SketchMaker,
    expand_limit: usize,
    index: BlockIndex,
    /// Live documents; `None` for a text without tokens, which is in no pair.
    documents: BTreeMap<DocId, Option<SketchId>>,
    groups: BTreeMap<SketchId, CopyGroup>,
    /// For each sketch those with which it forms an accepted pair, on both sides.
    accepted: BTreeMap<SketchId, BTreeMap<SketchId, AcceptedSketch>>,
    /// The last event of each document in the open epoch; `None` for a delete.
    open: BTreeMap<DocId, Option<NewText>>,
}

/// The sketch of an upserted text; `None` for a text without tokens.
type NewText = Option<(SketchId, Sketch)>;

/// The documents of one sketch.
#[derive(Debug)]
struct CopyGroup {
    sketch: Sketch,
    members: BTreeSet<DocId>,
    /// Whether the sketch is in its blocks.
    is_posted: bool,
}

/// The other sketch of an accepted pair.
#[derive(Clone, Copy, Debug)]
struct AcceptedSketch {
    similarity: Similarity,
    /// Number of blocks in which the two meet.
    meetings: isize,
}

/// What an epoch does to documents.
#[derive(Debug, Default)]
struct EpochChanges {
    /// Why each document changes.
    causes: BTreeMap<DocId, Cause>,
    /// Sketches whose members change.
    touched: BTreeSet<SketchId>,
}

impl LiveCorpus {
    /// The default expand limit: most copies of one sketch that are listed pair by pair, inclusive.
    pub const EXPAND_LIMIT: usize = 1000;

    /// An empty corpus.
    ///
    /// # Panics
    /// If the detector's weights are [live](crate::sketch::Scheme::live), if its scheme has a rule on fields
    /// (documents have none here), or as [`Detector::maker`].
    pub fn new(detector: &Detector) -> Self {
        Self::with_expand_limit(detector, Self::EXPAND_LIMIT)
    }

    /// An empty corpus with an expand limit, at least 1.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn with_expand_limit(detector: &Detector, expand_limit: usize) -> Self {
        assert!(detector.scheme().live().is_none(), "live weights are computed by the crate `dupflow`");
        assert!(detector.scheme().pairs.is_empty(), "rules on fields are applied by the crate `dupflow`");
        Self {
            detector: detector.clone(),
            maker: detector.maker(),
            expand_limit: expand_limit.max(1),
            index: BlockIndex::for_blocking(detector.blocking()),
            documents: BTreeMap::new(),
            groups: BTreeMap::new(),
            accepted: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Inserts a document, or replaces its text, in the open epoch.
    pub fn upsert(&mut self, id: DocId, text: &str) {
        let sketch = self.maker.sketch(text);
        self.open.insert(id, Some(sketch));
    }

    /// Deletes a document in the open epoch; without effect if there is none of this id.
    pub fn delete(&mut self, id: DocId) {
        self.open.insert(id, None);
    }

    /// Number of live documents, without the open epoch.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is no live document, without the open epoch.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Closes the open epoch and returns its deltas, sorted by pair: pairs that end have `diff` -1, pairs
    /// that appear 1. A pair whose similarity changes has both.
    ///
    /// [`Evidence`] is left out (zero).
    pub fn commit(&mut self) -> Vec<Delta> {
        let open = std::mem::take(&mut self.open);
        let mut epoch = self.changes(&open);
        let visible = self.visible_of(&epoch.touched);
        let mut before = self.pairs_of(&epoch.touched);
        let mut after = BTreeSet::new();

        self.change_members(open);
        let meetings = self.apply_to_blocks(&epoch.touched);
        for (pair, diff) in meetings {
            let is_touched = epoch.touched.contains(pair.lo()) || epoch.touched.contains(pair.hi());
            match self.change_meetings(&pair, diff) {
                Some((similarity, 1)) if !is_touched => after.extend(self.pairs_between(&pair, similarity)),
                Some((similarity, _)) if !is_touched => before.extend(self.pairs_between(&pair, similarity)),
                _ => {}
            }
        }
        after.append(&mut self.pairs_of(&epoch.touched));

        for id in visible.symmetric_difference(&self.visible_of(&epoch.touched)) {
            epoch.causes.entry(id.clone()).or_insert(Cause::Regrouped);
        }
        epoch.touched.iter().for_each(|id| self.remove_if_empty(id));
        let ended = before.difference(&after).map(|pair| epoch.delta(pair, -1));
        let appeared = after.difference(&before).map(|pair| epoch.delta(pair, 1));
        let mut deltas: Vec<Delta> = ended.chain(appeared).collect();
        deltas.sort_unstable_by(|x, y| (&x.pair.pair, x.diff).cmp(&(&y.pair.pair, y.diff)));
        deltas
    }

    /// The documents and sketches that the events of an epoch change.
    fn changes(&self, open: &BTreeMap<DocId, Option<NewText>>) -> EpochChanges {
        let mut epoch = EpochChanges::default();
        for (id, event) in open {
            let old = self.documents.get(id);
            let new = event.as_ref().map(|text| text.as_ref().map(|(sketch, _)| *sketch));
            let cause = match (old, new) {
                (None, None) => continue,
                (None, Some(_)) => Cause::Insert,
                (Some(_), None) => Cause::Delete,
                (Some(old), Some(new)) if *old == new => continue,
                (Some(_), Some(_)) => Cause::Update,
            };
            epoch.causes.insert(id.clone(), cause);
            epoch.touched.extend(old.copied().flatten());
            epoch.touched.extend(new.flatten());
        }
        epoch
    }

    /// Moves documents between groups. Groups without members stay until the end of the commit.
    fn change_members(&mut self, open: BTreeMap<DocId, Option<NewText>>) {
        for (id, event) in open {
            if let Some(Some(old)) = self.documents.remove(&id)
                && let Some(group) = self.groups.get_mut(&old)
            {
                group.members.remove(&id);
            }
            let Some(text) = event else { continue };
            self.documents.insert(id.clone(), text.as_ref().map(|(sketch, _)| *sketch));
            if let Some((sketch_id, sketch)) = text {
                let empty = || CopyGroup { sketch, members: BTreeSet::new(), is_posted: false };
                self.groups.entry(sketch_id).or_insert_with(empty).members.insert(id);
            }
        }
    }

    /// Adds sketches that have their first member to their blocks, and removes those that lost the last one.
    /// Returns the changes in the number of blocks in which two sketches meet.
    fn apply_to_blocks(&mut self, touched: &BTreeSet<SketchId>) -> Vec<(Pair<SketchId>, isize)> {
        let mut postings = Postings::default();
        let mut keys = Vec::new();
        for id in touched {
            let Some(group) = self.groups.get_mut(id) else { continue };
            let has_members = !group.members.is_empty();
            if has_members == group.is_posted {
                continue;
            }
            group.is_posted = has_members;
            let diff = if has_members { 1 } else { -1 };
            self.detector.blocking().keys(group.sketch.view(), &mut keys);
            keys.drain(..).for_each(|key| postings.key(key));
            postings.sketch(*id, group.sketch.words[0], diff);
        }
        let filter = self.detector.filter();
        let mut meetings = Vec::new();
        let worth = |a, b, _| filter.first_word(a, b);
        self.index.apply([postings], worth, |pair, diff| meetings.push((pair, diff)));
        self.index.hot_blocks().for_each(drop);
        meetings
    }

    /// Notes that two sketches meet in `diff` more blocks. Returns the similarity of a pair that is accepted
    /// from now on (1), or is accepted no longer (-1).
    fn change_meetings(&mut self, pair: &Pair<SketchId>, diff: isize) -> Option<(Similarity, i8)> {
        let (x, y) = (*pair.lo(), *pair.hi());
        let before = self.accepted.get(&x).and_then(|others| others.get(&y)).copied();
        let Some(AcceptedSketch { similarity, meetings }) = before else {
            let is_candidate = diff >= self.detector.blocking().least().cast_signed();
            let decide = || self.detector.filter().decide(self.sketch(&x)?, self.sketch(&y)?).accepted;
            let similarity = if is_candidate { decide() } else { None }?;
            self.set_accepted(pair, AcceptedSketch { similarity, meetings: diff });
            return Some((similarity, 1));
        };
        if meetings + diff > 0 {
            self.set_accepted(pair, AcceptedSketch { similarity, meetings: meetings + diff });
            return None;
        }
        for (one, other) in [(x, y), (y, x)] {
            if let Some(others) = self.accepted.get_mut(&one) {
                others.remove(&other);
                if others.is_empty() {
                    self.accepted.remove(&one);
                }
            }
        }
        Some((similarity, -1))
    }

    fn set_accepted(&mut self, pair: &Pair<SketchId>, accepted: AcceptedSketch) {
        for (one, other) in [(pair.lo(), pair.hi()), (pair.hi(), pair.lo())] {
            self.accepted.entry(*one).or_default().insert(*other, accepted);
        }
    }

    fn sketch(&self, id: &SketchId) -> Option<SketchRef<'_>> {
        self.groups.get(id).map(|group| group.sketch.view())
    }

    fn remove_if_empty(&mut self, id: &SketchId) {
        if self.groups.get(id).is_some_and(|group| group.members.is_empty()) {
            self.groups.remove(id);
        }
    }

    /// The documents of a sketch that are in pairs with other texts.
    fn visible(&self, id: &SketchId) -> impl Iterator<Item = &DocId> + Clone {
        let members = self.groups.get(id).map(|group| &group.members);
        let is_star = members.is_some_and(|members| members.len() > self.expand_limit);
        members.into_iter().flatten().take(if is_star { 1 } else { usize::MAX })
    }

    fn visible_of(&self, sketches: &BTreeSet<SketchId>) -> BTreeSet<DocId> {
        sketches.iter().flat_map(|id| self.visible(id)).cloned().collect()
    }

    /// The pairs of documents of two sketches.
    fn pairs_between(&self, pair: &Pair<SketchId>, similarity: Similarity) -> impl Iterator<Item = DocPair> {
        let others = self.visible(pair.hi());
        self.visible(pair.lo())
            .flat_map(move |a| others.clone().filter_map(move |b| document_pair(a, b, similarity)))
    }

    /// All pairs of the documents of these sketches, with each other and with other documents.
    fn pairs_of(&self, sketches: &BTreeSet<SketchId>) -> BTreeSet<DocPair> {
        let mut pairs = BTreeSet::new();
        for id in sketches {
            let Some(group) = self.groups.get(id) else { continue };
            for a in self.visible(id) {
                pairs.extend(group.members.iter().filter_map(|b| document_pair(a, b, Similarity::ONE)));
            }
            for (other, accepted) in self.accepted.get(id).into_iter().flatten() {
                if let Some(pair) = Pair::new(*id, *other) {
                    pairs.extend(self.pairs_between(&pair, accepted.similarity));
                }
            }
        }
        pairs
    }
}

impl EpochChanges {
    /// The delta of a pair, with the first cause in order that one of its documents has.
    fn delta(&self, pair: &DocPair, diff: isize) -> Delta {
        let causes = [pair.pair.lo(), pair.pair.hi()].map(|id| self.causes.get(id).copied());
        let (order, otherwise) = if diff > 0 {
            ([Cause::Insert, Cause::Update, Cause::Regrouped], Cause::BlockRevived)
        } else {
            ([Cause::Delete, Cause::Update, Cause::Regrouped], Cause::BlockDied)
        };
        let cause = order.into_iter().find(|cause| causes.contains(&Some(*cause))).unwrap_or(otherwise);
        Delta { pair: pair.clone(), diff, cause }
    }
}

/// The pair of two documents; `None` for a document and itself.
fn document_pair(a: &DocId, b: &DocId, similarity: Similarity) -> Option<DocPair> {
    DocPair::new(a.clone(), b.clone(), similarity, Evidence::default())
}
