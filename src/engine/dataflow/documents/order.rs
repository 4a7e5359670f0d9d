//! Places in order of age: finds the oldest of many entries while entries are added, changed and removed.
//!
//! A heap with four children a node, and by place the position in the heap: 8 bytes a place. A changed or
//! removed entry is found and moved at once, so no stale entries are kept. The query passes the comparison
//! by age, which must be a total order of places.
//!
//! References: D. B. Johnson, *Priority queues with update and finding minimum spanning trees* (1975), for
//! the heap of several children whose entries can be changed.

use dupflow_core::memory::Rows;

/// Children of a node: half the levels of a binary heap, and siblings share a cache line.
const CHILDREN: usize = 4;

/// The heap position of a place that is not in the order.
const NOWHERE: u32 = u32::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(in crate::dataflow) struct AgeOrder {
    /// Places, none older than its parent: the first `len` entries. Those behind are unused.
    heap: Rows<u32>,
    len: usize,
    /// By place, its position in the heap, or [`NOWHERE`].
    positions: Rows<u32>,
}

impl Default for AgeOrder {
    fn default() -> Self {
        Self { heap: Rows::new(1), len: 0, positions: Rows::new(1) }
    }
}

impl AgeOrder {
    pub(in crate::dataflow) fn len(&self) -> usize {
        self.len
    }

    /// The oldest place.
    pub(in crate::dataflow) fn first(&self) -> Option<u32> {
        (self.len > 0).then(|| self.heap.row(0)[0])
    }

    /// Whether a place is in the order.
    pub(in crate::dataflow) fn holds(&self, place: u32) -> bool {
        self.positions(place).is_some()
    }

    /// Adds a place, or updates it after its age has changed. `older(a, b)` returns whether a is older than
    /// b.
    pub(in crate::dataflow) fn put(&mut self, place: u32, older: impl Fn(u32, u32) -> bool) {
        let at = match self.positions(place) {
            Some(at) => at,
            None => {
                while self.positions.len() <= place as usize {
                    self.positions.push(std::iter::once(NOWHERE));
                }
                if self.len == self.heap.len() {
                    self.heap.push(std::iter::once(place));
                }
                self.len += 1;
                self.len - 1
            }
        };
        self.settle(at, place, older);
    }

    /// Removes a place if it is there. Its age must still be the one it was added with.
    pub(in crate::dataflow) fn remove(&mut self, place: u32, older: impl Fn(u32, u32) -> bool) {
        let Some(at) = self.positions(place) else { return };
        self.positions.row_mut(place as usize)[0] = NOWHERE;
        self.len -= 1;
        let last = self.heap.row(self.len)[0];
        if last != place {
            self.settle(at, last, older);
        }
    }

    fn positions(&self, place: u32) -> Option<usize> {
        let place = place as usize;
        let at = (place < self.positions.len()).then(|| self.positions.row(place)[0])?;
        Some(at).filter(|at| *at != NOWHERE).map(|at| at as usize)
    }

    /// Moves a place to its position, starting from the free node `at`.
    fn settle(&mut self, mut at: usize, place: u32, older: impl Fn(u32, u32) -> bool) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            let above = self.heap.row(parent)[0];
            if !older(place, above) {
                break;
            }
            self.set(at, above);
            at = parent;
        }
        loop {
            let children = CHILDREN * at + 1..(CHILDREN * at + 1 + CHILDREN).min(self.len);
            let oldest =
                children.reduce(|a, b| if older(self.heap.row(b)[0], self.heap.row(a)[0]) { b } else { a });
            let Some(child) = oldest.filter(|child| older(self.heap.row(*child)[0], place)) else { break };
            self.set(at, self.heap.row(child)[0]);
            at = child;
        }
        self.set(at, place);
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 places")]
    fn set(&mut self, at: usize, place: u32) {
        self.heap.row_mut(at)[0] = place;
        self.positions.row_mut(place as usize)[0] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;
    use dupflow_core::hash::mix;

    /// Random changes against a sorted set; many ages are equal, so that the place decides.
    #[test]
    fn the_first_is_the_oldest_at_any_time() {
        let mut order = AgeOrder::default();
        let mut ages = vec![0; 500];
        let mut set = BTreeSet::new();
        for step in 0..20_000_u64 {
            let place = u32::try_from(mix(step) % 500).unwrap();
            let at = place as usize;
            let is_there = set.remove(&(ages[at], place));
            if mix(step ^ 3).is_multiple_of(3) {
                order.remove(place, |a, b| (ages[a as usize], a) < (ages[b as usize], b));
            } else {
                ages[at] = mix(step ^ 9) % 50;
                order.put(place, |a, b| (ages[a as usize], a) < (ages[b as usize], b));
                set.insert((ages[at], place));
            }
            assert_eq!(order.first(), set.first().map(|(_, oldest)| *oldest), "{step} {is_there}");
            assert_eq!(order.len(), set.len());
        }
        assert!(set.len() > 200);
    }

    /// Documents are added in order of age and removed in order of age. The comparisons are counted, not
    /// timed.
    #[test]
    fn push_newest_is_one_comparison_and_pop_oldest_is_few() {
        let compared = Cell::new(0_u64);
        let older = |a: u32, b: u32| {
            compared.set(compared.get() + 1);
            a < b
        };
        let mut order = AgeOrder::default();
        let count = 100_000;
        (0..count).for_each(|place| order.put(place, older));
        assert!(compared.take() <= u64::from(count), "one with its parent each");
        for place in 0..count {
            assert_eq!(order.first(), Some(place));
            order.remove(place, older);
        }
        // Nine levels, four comparisons each.
        assert!(compared.take() <= 36 * u64::from(count), "{}", compared.take());
        assert_eq!(order.first(), None);
    }
}
