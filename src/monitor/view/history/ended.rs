//! Pairs that ended, the last ones of them.

use std::collections::{BTreeMap, VecDeque};

use crate::view::pairs::{PairDetails, Since};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Pair};
use dupflow_core::time::Epoch;

/// The end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedPair {
    /// The pair as it was.
    pub(crate) was: PairDetails,
    /// The epoch that removed it. If it is not exact, the pair had ended by this epoch.
    pub(crate) ended: Since,
    /// The cause of that delta.
    pub(crate) cause: Cause,
}

/// The ends of the last [`EndedPairs::MOST`] ended pairs.
#[derive(Debug, Default)]
pub(crate) struct EndedPairs {
    held: BTreeMap<Pair<DocId>, EndedPair>,
    /// In the order of the ends. An entry is stale if `held` does not have the pair with this epoch.
    order: VecDeque<(Pair<DocId>, Epoch)>,
}

impl EndedPairs {
    /// The number of ended pairs that are held.
    pub(crate) const MOST: usize = 10_000;

    pub(crate) fn get(&self, pair: &Pair<DocId>) -> Option<&EndedPair> {
        self.held.get(pair)
    }

    /// Adds an end, of no earlier epoch than those held; returns the pairs that are dropped for it.
    pub(crate) fn put(&mut self, pair: Pair<DocId>, ended: EndedPair) -> Vec<Pair<DocId>> {
        self.order.push_back((pair.clone(), ended.ended.epoch));
        self.held.insert(pair, ended);
        let mut dropped = Vec::new();
        // Pairs that are added and removed again leave stale entries, whose number is bounded too.
        while self.held.len() > Self::MOST || self.order.len() > 4 * Self::MOST {
            dropped.extend(self.drop_first());
        }
        dropped
    }

    /// Removes the end of a pair that is back. Returns whether it was held.
    pub(crate) fn remove(&mut self, pair: &Pair<DocId>) -> bool {
        self.held.remove(pair).is_some()
    }

    /// Drops the ends before this time of their commits, in unix seconds.
    pub(crate) fn drop_before(&mut self, time: u64) -> Vec<Pair<DocId>> {
        let mut dropped = Vec::new();
        while let Some((pair, epoch)) = self.order.front() {
            let held = self.held.get(pair).filter(|held| held.ended.epoch == *epoch);
            if held.is_some_and(|held| held.ended.times.committed().is_none_or(|at| at >= time)) {
                break;
            }
            dropped.extend(self.drop_first());
        }
        dropped
    }

    fn drop_first(&mut self) -> Option<Pair<DocId>> {
        let (pair, epoch) = self.order.pop_front()?;
        let is_current = self.held.get(&pair).is_some_and(|held| held.ended.epoch == epoch);
        is_current.then(|| {
            self.held.remove(&pair);
            pair
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::pair::Similarity;
    use dupflow_core::time::{EpochSeconds, EpochTimes};

    fn pair(n: usize) -> Pair<DocId> {
        Pair::new(DocId::new("a").unwrap(), DocId::new(&format!("b{n}")).unwrap()).unwrap()
    }

    fn ended(epoch: Epoch) -> EndedPair {
        let was = PairDetails::new(Similarity::ONE, Since::by(1), Cause::Insert);
        let times = EpochSeconds::from(EpochTimes { event: None, committed: 100.0 * epoch as f64 });
        EndedPair { was, ended: Since::exactly(epoch, times), cause: Cause::Delete }
    }

    #[test]
    fn ends_are_dropped_by_number_and_by_age() {
        let mut pairs = EndedPairs::default();
        for n in 0..EndedPairs::MOST {
            assert!(pairs.put(pair(n), ended(1 + n as u64)).is_empty());
        }
        assert_eq!(pairs.put(pair(EndedPairs::MOST), ended(20_000)), [pair(0)]);
        assert!(pairs.remove(&pair(1)) && !pairs.remove(&pair(0)));
        assert_eq!(pairs.drop_before(400), [pair(2)], "300 seconds; 400 is not before 400");
        assert!(pairs.get(&pair(3)).is_some() && pairs.get(&pair(2)).is_none());
    }

    #[test]
    fn pairs_that_come_and_go_take_no_room() {
        let mut pairs = EndedPairs::default();
        for epoch in 1..100_000 {
            pairs.put(pair(0), ended(epoch));
            assert!(pairs.remove(&pair(0)));
        }
        assert!(pairs.held.is_empty() && pairs.order.len() <= 4 * EndedPairs::MOST);
    }
}
