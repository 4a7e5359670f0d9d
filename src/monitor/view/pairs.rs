//! The pairs in memory, ordered by their documents.
//!
//! Two ordered lists: (a, b) with the pair's data, and (b, a). So the pairs of a document are two ranges, in
//! the order of a page. A pair takes 80 bytes in the one and 48 in the other, and a third more where pairs
//! are added in random order. Ids of more than 22 bytes are shared with the deltas that inserted them. A
//! document without pairs takes nothing.

use std::ops::Bound;

use super::KnownPair;
use dupflow_core::doc::DocId;
use dupflow_core::memory::OrderedRows;
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

/// Two ids: `.0 < .1` in the first tree, `.0 > .1` in the second.
pub(crate) type PairKey = (DocId, DocId);

/// Ranges of similarity that are counted, of width 0.01 each; the last one includes 1.
pub(crate) const RANGES: usize = 100;

/// Pairs that a page may skip for each pair that it may hold.
const MOST_SKIPPED: usize = 100;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PairMap {
    held: OrderedRows<PairKey, PairDetails>,
    reversed: OrderedRows<PairKey, ()>,
    by_similarity: [u64; RANGES],
}

impl Default for PairMap {
    fn default() -> Self {
        Self { held: OrderedRows::default(), reversed: OrderedRows::default(), by_similarity: [0; RANGES] }
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

    fn admits(&self, (a, b): &PairKey, held: &PairDetails) -> bool {
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
        let key = (lo.clone(), hi.clone());
        let removed = if delta.diff > 0 {
            let held = PairDetails::new(delta.pair.similarity, since, delta.cause);
            self.by_similarity[range(held.similarity)] += 1;
            self.reversed.insert((hi.clone(), lo.clone()), ());
            self.held.insert(key, held)
        } else {
            self.reversed.remove(&(hi.clone(), lo.clone()));
            self.held.remove(&key)
        };
        debug_assert_eq!(removed.is_some(), delta.diff < 0, "every pair accumulates to 0 or 1");
        if let Some(removed) = removed {
            self.by_similarity[range(removed.similarity)] -= 1;
        }
        removed
    }

    /// Replaces the data of a pair that has the same similarity. Returns whether there is such a pair.
    pub(crate) fn restore(&mut self, a: &DocId, b: &DocId, known: PairDetails) -> bool {
        let held = self.held.get_mut(&(a.clone(), b.clone()));
        let held = held.filter(|held| held.similarity == known.similarity);
        held.map(|held| *held = known).is_some()
    }

    /// The pairs without a record that has been read: from now on they are known to be there by this epoch.
    pub(crate) fn settle(&mut self, by: Epoch) -> Vec<KnownPair> {
        let unread = self.held.iter_mut().filter(|(_, held)| held.age() == Since::unread());
        let settled = unread.map(|((a, b), held)| {
            *held = PairDetails::new(held.similarity, Since::by(by), held.cause);
            KnownPair { a: a.clone(), b: b.clone(), held: *held }
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
        let key = if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
        self.held.entry(&key).map(|(_, held)| *held)
    }

    /// The next page of wanted pairs, by (a, b). It examines a bounded number of pairs, so a page may hold
    /// fewer than its limit, or none, and not be the last one.
    pub(crate) fn page(&self, wanted: &PairQuery) -> PairPage {
        let mut page = Vec::new();
        let mut last: Option<&PairKey> = None;
        let most = wanted.limit.saturating_mul(MOST_SKIPPED);
        for (looked, (key, held)) in self.in_order(wanted).enumerate() {
            if page.len() == wanted.limit || looked == most {
                return (page, last.cloned());
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
        mut each: impl FnMut(&PairKey, &PairDetails),
    ) -> Option<PairKey> {
        let mut last: Option<&PairKey> = None;
        for (looked, (key, held)) in self.in_order(wanted).enumerate() {
            if looked == most {
                return last.cloned();
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
    ) -> Box<dyn Iterator<Item = (&'p PairKey, &'p PairDetails)> + 'p> {
        let after = wanted.after.as_ref();
        let Some(document) = &wanted.document else {
            let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
            return Box::new(self.held.range(begin));
        };
        // Pairs where `document` is the greater id, from the last page's other id on.
        let first = after.map_or_else(
            || Bound::Included(least(document)),
            |(a, _)| Bound::Excluded((document.clone(), a.clone())),
        );
        let greater = self.reversed.range(first.as_ref()).map(|(key, ())| key);
        let greater = greater.take_while(move |(b, _)| b == document);
        let greater = greater.filter_map(move |(b, a)| self.held.entry(&(a.clone(), b.clone())));
        let is_behind = after.is_some_and(|(a, _)| a == document);
        let second = after.filter(|_| is_behind).cloned();
        let second = second.map_or_else(|| Bound::Included(least(document)), Bound::Excluded);
        let lesser = self.held.range(second.as_ref());
        let lesser = lesser.take_while(move |(key, _)| key.0 == *document);
        // A cursor from a page of another document begins at an arbitrary pair; paging still ends.
        Box::new(greater.filter(move |_| !is_behind).chain(lesser))
    }
}

fn known((a, b): &PairKey, held: &PairDetails) -> KnownPair {
    KnownPair { a: a.clone(), b: b.clone(), held: *held }
}

/// The least possible key with this document: no id is less than "\0".
fn least(document: &DocId) -> PairKey {
    (document.clone(), DocId::new("\0").expect("one byte is an id"))
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
