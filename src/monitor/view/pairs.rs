//! The pairs in memory, ordered by their documents.
//!
//! Two ordered lists: (a, b) with the pair's data, and (b, a). So the pairs of a document are two ranges, in
//! the order of a page. Documents in them are numbers, which are ordered as their ids are. A pair takes 40
//! bytes in the one and 8 in the other, and a third more where pairs are added in random order; a document
//! that is in a pair takes about 40. Ids of more than 22 bytes are shared with the deltas that inserted them.

use std::cmp::Ordering;
use std::ops::Bound;

use super::KnownPair;
use dupflow_core::doc::DocId;
use dupflow_core::memory::{Interned, OrderedRows};
use dupflow_core::pair::{Cause, Delta, Similarity};
use dupflow_core::time::{Epoch, EpochSeconds};

/// The data of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairDetails {
    pub(crate) similarity: Similarity,
    /// The epoch that added it with this similarity.
    pub(crate) since: Epoch,
    /// The times of that epoch.
    pub(crate) times: EpochSeconds,
    /// Whether that epoch is known. If not, the pair was there by then, and may be older.
    pub(crate) is_exact: bool,
    /// The cause of that delta.
    pub(crate) cause: Cause,
}

impl PairDetails {
    pub(crate) fn new(similarity: Similarity, since: Since, cause: Cause) -> Self {
        let Since { epoch, times, is_exact } = since;
        Self { similarity, since: epoch, times, is_exact, cause }
    }

    /// Since when it has this similarity.
    pub(crate) fn age(&self) -> Since {
        Since { epoch: self.since, times: self.times, is_exact: self.is_exact }
    }
}

/// Since when a pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since {
    /// The epoch that added it.
    pub(crate) epoch: Epoch,
    /// The times of that epoch.
    pub(crate) times: EpochSeconds,
    /// Whether the epoch is known. If not, the pair was there by this epoch, and may be older.
    pub(crate) is_exact: bool,
}

impl Since {
    /// Added by this epoch.
    pub(crate) fn exactly(epoch: Epoch, times: EpochSeconds) -> Self {
        Self { epoch, times, is_exact: true }
    }

    /// There by this epoch.
    pub(crate) fn by(epoch: Epoch) -> Self {
        Self { epoch, times: EpochSeconds::NONE, is_exact: false }
    }

    /// Of a pair that the output held before the run, until its record has been read or found missing.
    pub(crate) fn unread() -> Self {
        Self::by(Epoch::MAX)
    }
}

/// The documents of a pair by number: in the order of their ids in the one list, against it in the other.
type Ends = (u32, u32);

/// Ranges of similarity that are counted, of width 0.01 each; the last one includes 1.
pub(crate) const RANGES: usize = 100;

/// Pairs that a page may skip for each pair that it may hold.
const MOST_SKIPPED: usize = 100;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PairMap {
    ids: Interned<DocId>,
    /// How many pairs each number is in.
    degrees: Vec<u32>,
    held: OrderedRows<Ends, PairDetails>,
    reversed: OrderedRows<Ends, ()>,
    by_similarity: [u64; RANGES],
}

impl Default for PairMap {
    fn default() -> Self {
        Self {
            ids: Interned::default(),
            degrees: Vec::new(),
            held: OrderedRows::default(),
            reversed: OrderedRows::default(),
            by_similarity: [0; RANGES],
        }
    }
}

/// What a page of pairs should contain.
#[derive(Clone, Debug)]
pub(crate) struct PairQuery {
    /// Only pairs of this document.
    pub(crate) document: Option<DocId>,
    /// Only pairs of a document with this text in its id. Case matters.
    pub(crate) part: Option<String>,
    /// Minimum and maximum similarity, both inclusive.
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Only pairs with their similarity since then, inclusive.
    pub(crate) since: Option<SinceBound>,
    /// Only pairs after this one.
    pub(crate) after: Option<(DocId, DocId)>,
    /// Maximum number of pairs.
    pub(crate) limit: usize,
}

impl PairQuery {
    /// The first pairs by (a, b), of any similarity.
    pub(crate) fn all(after: Option<(DocId, DocId)>, limit: usize) -> Self {
        Self { document: None, part: None, min: 0.0, max: 1.0, since: None, after, limit }
    }

    fn admits(&self, (a, b): (&DocId, &DocId), held: &PairDetails) -> bool {
        let has_part = |part: &String| a.as_str().contains(part) || b.as_str().contains(part);
        (self.min..=self.max).contains(&held.similarity.get())
            && self.since.is_none_or(|since| since.admits(held))
            && self.part.as_ref().is_none_or(has_part)
    }
}

/// The beginning of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SinceBound {
    Epoch(Epoch),
    /// A time of a commit, in unix seconds.
    Time(u64),
}

impl SinceBound {
    fn admits(self, held: &PairDetails) -> bool {
        match self {
            Self::Epoch(epoch) => held.since >= epoch,
            Self::Time(time) => held.times.committed().is_some_and(|at| at >= time),
        }
    }
}

/// Some pairs, and the one after which the next page begins; `None` on the last page.
pub(crate) type PairPage = (Vec<KnownPair>, Option<(DocId, DocId)>);

impl PairMap {
    /// Adds a pair, or removes one and returns its data.
    pub(crate) fn apply(&mut self, delta: &Delta, since: Since) -> Option<PairDetails> {
        let (lo, hi) = (delta.pair.pair.lo(), delta.pair.pair.hi());
        let Self { ids, held, reversed, .. } = self;
        let ends = (ids.number(lo), ids.number(hi));
        let (forward, backward) = (order(ids, lo, hi), order(ids, hi, lo));
        let removed = if delta.diff > 0 {
            let details = PairDetails::new(delta.pair.similarity, since, delta.cause);
            self.by_similarity[range(details.similarity)] += 1;
            reversed.insert_by((ends.1, ends.0), (), backward);
            held.insert_by(ends, details, forward)
        } else {
            reversed.remove_by(backward);
            held.remove_by(forward)
        };
        debug_assert_eq!(removed.is_some(), delta.diff < 0, "every pair accumulates to 0 or 1");
        if let Some(removed) = removed {
            self.by_similarity[range(removed.similarity)] -= 1;
        }
        [ends.0, ends.1].into_iter().for_each(|end| self.count(end, delta.diff > 0));
        removed
    }

    /// Counts a pair that a document is in, or is in no longer.
    fn count(&mut self, end: u32, is_added: bool) {
        let at = end as usize;
        self.degrees.resize(self.degrees.len().max(at + 1), 0);
        self.degrees[at] = if is_added { self.degrees[at] + 1 } else { self.degrees[at].saturating_sub(1) };
        if self.degrees[at] == 0 {
            self.ids.remove(end);
        }
    }

    /// Replaces the data of a pair that has the same similarity. Returns whether there is such a pair.
    pub(crate) fn restore(&mut self, a: &DocId, b: &DocId, known: PairDetails) -> bool {
        let held = self.held.get_mut_by(order(&self.ids, a, b));
        let held = held.filter(|held| held.similarity == known.similarity);
        held.map(|held| *held = known).is_some()
    }

    /// The pairs without a record that has been read: from now on they are known to be there by this epoch.
    pub(crate) fn settle(&mut self, by: Epoch) -> Vec<KnownPair> {
        let Self { ids, held: all, .. } = self;
        let unread = all.iter_mut().filter(|(_, held)| held.age() == Since::unread());
        let settled = unread.map(|((a, b), held)| {
            *held = PairDetails::new(held.similarity, Since::by(by), held.cause);
            known((ids.key(*a), ids.key(*b)), held)
        });
        settled.collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// The number of pairs in each range of similarity.
    pub(crate) fn by_similarity(&self) -> [u64; RANGES] {
        self.by_similarity
    }

    pub(crate) fn get(&self, a: &DocId, b: &DocId) -> Option<PairDetails> {
        let (lo, hi) = if a < b { (a, b) } else { (b, a) };
        self.held.entry_by(order(&self.ids, lo, hi)).map(|(_, held)| *held)
    }

    /// The next page of wanted pairs, by (a, b). It examines a bounded number of pairs, so a page may hold
    /// fewer than its limit, or none, and not be the last one.
    pub(crate) fn page(&self, wanted: &PairQuery) -> PairPage {
        let mut page = Vec::new();
        let mut last = None;
        let most = wanted.limit.saturating_mul(MOST_SKIPPED);
        for (looked, (key, held)) in self.in_order(wanted).enumerate() {
            if page.len() == wanted.limit || looked == most {
                return (page, last.map(cloned));
            }
            last = Some(key);
            if wanted.admits(key, held) {
                page.push(known(key, held));
            }
        }
        (page, None)
    }

    /// Passes those of the next `most` pairs by (a, b) to `each` that `wanted` admits. Returns the last pair
    /// that was examined, from which the next call continues; `None` after the last pair of all.
    pub(crate) fn visit(
        &self,
        wanted: &PairQuery,
        most: usize,
        mut each: impl FnMut((&DocId, &DocId), &PairDetails),
    ) -> Option<(DocId, DocId)> {
        let mut last = None;
        for (looked, (key, held)) in self.in_order(wanted).enumerate() {
            if looked == most {
                return last.map(cloned);
            }
            last = Some(key);
            if wanted.admits(key, held) {
                each(key, held);
            }
        }
        None
    }

    fn in_order<'p>(
        &'p self,
        wanted: &'p PairQuery,
    ) -> Box<dyn Iterator<Item = ((&'p DocId, &'p DocId), &'p PairDetails)> + 'p> {
        let ids = &self.ids;
        let after = wanted.after.as_ref();
        let behind = |a, b| Bound::Excluded(order(ids, a, b));
        let named = move |((a, b), held): (&Ends, &'p PairDetails)| ((ids.key(*a), ids.key(*b)), held);
        let Some(document) = &wanted.document else {
            let begin = after.map_or(Bound::Unbounded, |(a, b)| behind(a, b));
            return Box::new(self.held.range_by(begin).map(named));
        };
        let Some(number) = ids.find(document) else { return Box::new(std::iter::empty()) };
        let first_of = move |ends: &Ends| ids.key(ends.0).cmp(document).then(Ordering::Greater);
        // Pairs where `document` is the greater id, from the last page's other id on.
        let is_of = move |ends: &Ends| ends.0 == number;
        let greater: Box<dyn Iterator<Item = &Ends>> = match after {
            Some((a, _)) => Box::new(self.reversed.range_by(behind(document, a)).map(|(ends, ())| ends)),
            None => Box::new(self.reversed.range_by(Bound::Included(first_of)).map(|(ends, ())| ends)),
        };
        let greater = greater.take_while(move |ends| is_of(ends));
        let greater = greater.filter_map(move |(_, a)| self.held.entry_by(order(ids, ids.key(*a), document)));
        let is_behind = after.is_some_and(|(a, _)| a == document);
        let lesser: Box<dyn Iterator<Item = (&Ends, &PairDetails)>> = match after.filter(|_| is_behind) {
            Some((a, b)) => Box::new(self.held.range_by(behind(a, b))),
            None => Box::new(self.held.range_by(Bound::Included(first_of))),
        };
        let lesser = lesser.take_while(move |(ends, _)| is_of(ends));
        // A cursor from a page of another document begins at an arbitrary pair; paging still ends.
        Box::new(greater.filter(move |_| !is_behind).chain(lesser).map(named))
    }
}

/// How the documents of an entry compare with these two.
fn order<'o>(
    ids: &'o Interned<DocId>,
    first: &'o DocId,
    second: &'o DocId,
) -> impl Fn(&Ends) -> Ordering + 'o {
    |(a, b)| ids.key(*a).cmp(first).then_with(|| ids.key(*b).cmp(second))
}

fn cloned((a, b): (&DocId, &DocId)) -> (DocId, DocId) {
    (a.clone(), b.clone())
}

fn known((a, b): (&DocId, &DocId), held: &PairDetails) -> KnownPair {
    KnownPair { a: a.clone(), b: b.clone(), held: *held }
}

/// The range in which a similarity is counted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a similarity is within 0 and 1, so a hundred times it is within 0 and 100"
)]
fn range(similarity: Similarity) -> usize {
    ((similarity.get() * RANGES as f64) as usize).min(RANGES - 1)
}
