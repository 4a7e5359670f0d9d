//! The pairs that are there, by their documents.
//!
//! Each pair stands in two trees, as (a, b) with what is known of it and as (b, a): so the pairs of a
//! document are two ranges, in the order in which they are told. Memory: 180 bytes a pair that come in any
//! order, 235 that come in order (nodes of the trees are then half full; measured, November 2026); ids of
//! more than 22 bytes are shared with the deltas that brought them. A document without pairs takes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::Told;
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, Similarity};
use dupflow_core::time::Epoch;

/// What is known of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) similarity: Similarity,
    /// The epoch that brought it with this similarity.
    pub(crate) since: Epoch,
    /// What did.
    pub(crate) cause: Cause,
}

/// Two ids, `.0 < .1` in the first tree and the other way round in the second.
type Key = (DocId, DocId);

/// Ranges of similarities that are counted, of 0.01 each; the last one includes 1.
pub(crate) const RANGES: usize = 100;

/// Pairs that a page may pass over, for each that it may hold.
const LOOKED_AT: usize = 100;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pairs {
    held: BTreeMap<Key, Held>,
    reversed: BTreeSet<Key>,
    by_similarity: [u64; RANGES],
}

impl Default for Pairs {
    fn default() -> Self {
        Self { held: BTreeMap::new(), reversed: BTreeSet::new(), by_similarity: [0; RANGES] }
    }
}

/// Which pairs a page is to hold.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Only those of this document.
    pub(crate) document: Option<DocId>,
    /// The least and the greatest similarity, both inclusive.
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Only those after this one.
    pub(crate) after: Option<(DocId, DocId)>,
    /// Most of them.
    pub(crate) limit: usize,
}

/// Some of the pairs, and behind which one they go on, if they do.
pub(crate) type Page = (Vec<Told>, Option<(DocId, DocId)>);

impl Pairs {
    /// A pair comes, or goes.
    pub(crate) fn apply(&mut self, delta: &Delta, epoch: Epoch) {
        let (lo, hi) = (delta.pair.pair.lo(), delta.pair.pair.hi());
        let key = (lo.clone(), hi.clone());
        let gone = if delta.diff > 0 {
            let held = Held { similarity: delta.pair.similarity, since: epoch, cause: delta.cause };
            self.by_similarity[range(held.similarity)] += 1;
            self.reversed.insert((hi.clone(), lo.clone()));
            self.held.insert(key, held)
        } else {
            self.reversed.remove(&(hi.clone(), lo.clone()));
            self.held.remove(&key)
        };
        debug_assert_eq!(gone.is_some(), delta.diff < 0, "every pair accumulates to 0 or 1");
        if let Some(gone) = gone {
            self.by_similarity[range(gone.similarity)] -= 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many have a similarity in each range.
    pub(crate) fn by_similarity(&self) -> [u64; RANGES] {
        self.by_similarity
    }

    pub(crate) fn get(&self, a: &DocId, b: &DocId) -> Option<Held> {
        let key = if a < b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
        self.held.get(&key).copied()
    }

    /// Some of the wanted ones, by (a, b). It looks at a bounded number: a page may hold fewer than wanted,
    /// or none, and still go on.
    pub(crate) fn page(&self, wanted: &Wanted) -> Page {
        let mut found = Vec::new();
        let mut passed = None;
        let most = wanted.limit.saturating_mul(LOOKED_AT);
        for (looked, told) in self.in_order(wanted).enumerate() {
            if found.len() == wanted.limit || looked == most {
                return (found, passed);
            }
            passed = Some((told.a.clone(), told.b.clone()));
            if (wanted.min..=wanted.max).contains(&told.held.similarity.get()) {
                found.push(told);
            }
        }
        (found, None)
    }

    fn in_order<'p>(&'p self, wanted: &'p Wanted) -> Box<dyn Iterator<Item = Told> + 'p> {
        let told = |(a, b): &Key, held: &Held| Told { a: a.clone(), b: b.clone(), held: *held };
        let after = wanted.after.as_ref();
        let Some(document) = &wanted.document else {
            let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
            return Box::new(
                self.held.range((begin, Bound::Unbounded)).map(move |(key, held)| told(key, held)),
            );
        };
        let of_it = move |key: &&Key| key.0 == *document;
        // Where it is the greater one: from behind the other one of the last page, or all of them.
        let first = after.map_or_else(
            || Bound::Included(least(document)),
            |(a, _)| Bound::Excluded((document.clone(), a.clone())),
        );
        let greater = self.reversed.range((first, Bound::Unbounded)).take_while(of_it);
        let greater = greater.filter_map(move |(b, a)| {
            let key = (a.clone(), b.clone());
            self.held.get(&key).map(|held| told(&key, held))
        });
        let is_behind = after.is_some_and(|(a, _)| a == document);
        let second = after.filter(|_| is_behind).cloned();
        let second = second.map_or_else(|| Bound::Included(least(document)), Bound::Excluded);
        let lesser = self.held.range((second, Bound::Unbounded));
        let lesser =
            lesser.take_while(move |(key, _)| key.0 == *document).map(move |(key, held)| told(key, held));
        // A cursor of another document's page would begin anywhere; it still ends.
        Box::new(greater.filter(move |_| !is_behind).chain(lesser))
    }
}

/// Before all pairs that begin with the document, or the first of them: no id is less.
fn least(document: &DocId) -> Key {
    (document.clone(), DocId::new("\0").expect("one byte is an id"))
}

/// Where a similarity is counted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a similarity is within 0 and 1, so a hundred times it is within 0 and 100"
)]
fn range(similarity: Similarity) -> usize {
    ((similarity.get() * RANGES as f64) as usize).min(RANGES - 1)
}
