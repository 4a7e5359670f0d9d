//! What ended last: a map that is bounded by number and by age.

use std::collections::BTreeMap;

use dupflow_core::time::EpochSeconds;

/// The last `MOST` ends, inclusive, by key, in the order in which they were put.
#[derive(Clone, Debug)]
pub(crate) struct EndedMap<K, V, const MOST: usize> {
    /// Each end with its number.
    held: BTreeMap<K, (u64, V)>,
    /// The keys of `held` by number.
    order: BTreeMap<u64, K>,
    /// The number of the next end.
    next: u64,
}

impl<K, V, const MOST: usize> Default for EndedMap<K, V, MOST> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), order: BTreeMap::new(), next: 0 }
    }
}

impl<K: Clone + Ord, V, const MOST: usize> EndedMap<K, V, MOST> {
    /// The end of a key, if it is held.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.held.get(key).map(|(_, end)| end)
    }

    /// Adds an end as the last one, or replaces that of the same key. Returns the key that is dropped for it.
    pub(crate) fn put(&mut self, key: K, end: V) -> Option<K> {
        self.remove(&key);
        self.order.insert(self.next, key.clone());
        self.held.insert(key, (self.next, end));
        self.next += 1;
        if self.held.len() > MOST { self.drop_first() } else { None }
    }

    /// Removes the end of a key that is back. Returns whether it was held.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        self.held.remove(key).is_some_and(|(number, _)| self.order.remove(&number).is_some())
    }

    /// Drops the ends that were committed before `time`, in unix seconds, and returns their keys. An end
    /// without a time is dropped with the next one that has a time.
    pub(crate) fn drop_before(&mut self, time: u64, times: impl Fn(&V) -> EpochSeconds) -> Vec<K> {
        let mut old = 0;
        for (n, key) in self.order.values().enumerate() {
            match self.get(key).and_then(|end| times(end).committed()) {
                Some(at) if at >= time => break,
                Some(_) => old = n + 1,
                None => {}
            }
        }
        (0..old).filter_map(|_| self.drop_first()).collect()
    }

    /// All ends, in no particular order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.held.values_mut().map(|(_, end)| end)
    }

    fn drop_first(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.held.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::time::EpochTimes;

    type Ends = EndedMap<u32, Option<u32>, 5>;

    fn ends(times: &[(u32, Option<u32>)]) -> Ends {
        let mut ends = Ends::default();
        for (key, time) in times {
            assert_eq!(ends.put(*key, *time), None);
        }
        ends
    }

    fn drop_before(ends: &mut Ends, time: u64) -> Vec<u32> {
        ends.drop_before(time, |at| match at {
            None => EpochSeconds::NONE,
            Some(at) => EpochTimes { event: None, committed: f64::from(*at) }.into(),
        })
    }

    #[test]
    fn ends_are_dropped_by_number_and_by_age() {
        let mut ends = ends(&[(1, Some(10)), (2, Some(20)), (3, Some(30)), (4, Some(40)), (5, Some(50))]);
        assert_eq!(ends.put(6, Some(60)), Some(1));
        assert!(ends.remove(&2) && !ends.remove(&1));
        assert_eq!(drop_before(&mut ends, 40), [3], "40 is not before 40");
        assert_eq!((ends.get(&3), ends.get(&4)), (None, Some(&Some(40))));
        assert_eq!(ends.put(4, Some(70)), None);
        assert_eq!(drop_before(&mut ends, 65), [5, 6], "4 has ended again since");
    }

    #[test]
    fn an_end_without_a_time_does_not_hold_the_later_ones() {
        let mut ends = ends(&[(1, None), (2, None), (3, Some(30)), (4, None), (5, Some(50))]);
        assert!(drop_before(&mut ends, 30).is_empty(), "of what is before 30 nothing is known");
        assert_eq!(drop_before(&mut ends, 31), [1, 2, 3]);
        assert_eq!(drop_before(&mut ends, 51), [4, 5]);
    }

    #[test]
    fn keys_that_end_and_are_back_take_no_room() {
        let mut ends = Ends::default();
        for n in 0..1000 {
            assert_eq!(ends.put(n % 3, None), None);
            assert!(ends.remove(&(n % 3)));
        }
        assert!(ends.held.is_empty() && ends.order.is_empty());
    }
}
