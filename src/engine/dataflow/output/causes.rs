//! Causes: why the deltas of an epoch were emitted, from what the epoch did to their documents.
//!
//! What was done to each document, by the hash of its id, and a delta -> the [`Cause`] of the delta. It is
//! the first in order that applies to either document:
//!
//! - of an added pair: insert, update, re-weighed, re-grouped; if none applies, a block that is no longer
//!   hot;
//! - of a removed pair: delete, expire, update, re-weighed, re-grouped; if none applies, a block that became
//!   hot.
//!
//! In an epoch before the run is live a pair that is added without one is inserted: a restored document has
//! no cause, and its pairs may begin in a later epoch.
//!
//! A pair of which only the similarity changes has the same cause on both its deltas: its documents are alive
//! before and after.
//!
//! Two ids with the same hash may get each other's cause; the probability is 2^-64.

use dupflow_core::doc::DocId;
use dupflow_core::hash;
use dupflow_core::pair::{Cause, Pair};

/// What was done to documents in an epoch, by the hashes of their ids.
#[derive(Debug, Default)]
pub(in crate::dataflow) struct Causes(Vec<(u64, Cause)>);

impl Causes {
    /// Adds causes of the same epoch.
    pub(in crate::dataflow) fn add(&mut self, more: Vec<(u64, Cause)>) {
        if self.0.is_empty() {
            self.0 = more;
        } else {
            self.0.extend(more);
        }
    }

    /// Sorts the causes, as [`Self::of`] requires.
    pub(in crate::dataflow) fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }

    /// Why a pair is added (`diff` 1) or removed (-1), in an epoch that is live or not. Requires
    /// [`Self::sorted`].
    pub(in crate::dataflow) fn cause(&self, pair: &Pair<DocId>, diff: isize, is_live: bool) -> Cause {
        let of = |id: &DocId| {
            let hash = hash::bytes(0, id.as_bytes());
            let at = self.0.partition_point(|(other, _)| *other < hash);
            self.0.get(at).filter(|(other, _)| *other == hash).map(|(_, cause)| *cause)
        };
        let both = [of(pair.lo()), of(pair.hi())];
        let (order, otherwise) = if diff > 0 {
            let otherwise = if is_live { Cause::BlockRevived } else { Cause::Insert };
            (&[Cause::Insert, Cause::Update, Cause::Reweighed, Cause::Regrouped][..], otherwise)
        } else {
            (
                &[Cause::Delete, Cause::Expire, Cause::Update, Cause::Reweighed, Cause::Regrouped][..],
                Cause::BlockDied,
            )
        };
        order.iter().copied().find(|cause| both.contains(&Some(*cause))).unwrap_or(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_documents_the_first_cause_in_order_tells() {
        let id = |name: &str| DocId::new(name).unwrap();
        let done = |name: &str, cause| (hash::bytes(0, name.as_bytes()), cause);
        let mut causes = Causes::default();
        causes.add(vec![done("i", Cause::Insert), done("u", Cause::Update), done("w", Cause::Reweighed)]);
        causes.add(vec![done("d", Cause::Delete), done("e", Cause::Expire)]);
        causes.add(vec![done("g", Cause::Regrouped), done("w", Cause::Regrouped)]);
        let causes = causes.sorted();
        for (a, b, diff, cause) in [
            ("i", "u", 1, Cause::Insert),
            ("i", "z", 1, Cause::Insert),
            ("u", "w", 1, Cause::Update),
            ("w", "z", 1, Cause::Reweighed),
            ("g", "w", 1, Cause::Reweighed),
            ("g", "z", 1, Cause::Regrouped),
            ("y", "z", 1, Cause::BlockRevived),
            ("d", "e", -1, Cause::Delete),
            ("e", "u", -1, Cause::Expire),
            ("u", "z", -1, Cause::Update),
            ("w", "z", -1, Cause::Reweighed),
            ("g", "u", -1, Cause::Update),
            ("g", "z", -1, Cause::Regrouped),
            ("y", "z", -1, Cause::BlockDied),
        ] {
            for (one, other) in [(a, b), (b, a)] {
                let pair = Pair::new(id(one), id(other)).unwrap();
                assert_eq!(causes.cause(&pair, diff, true), cause, "{one} {other}");
                let before_live = if cause == Cause::BlockRevived { Cause::Insert } else { cause };
                assert_eq!(causes.cause(&pair, diff, false), before_live, "{one} {other}");
            }
        }
    }
}
