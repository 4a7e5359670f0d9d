//! Places in order of age: which of many things is the oldest, while they come, change and go.
//!
//! A heap of four children that knows where each place stands in it: 8 bytes a place, and what changes or
//! goes is found and moved at once, so that nothing stale is kept. What is older is told by the caller, by
//! place, and must be a total order.
//!
//! References: D. B. Johnson, *Priority queues with update and finding minimum spanning trees* (1975), for
//! the heap of several children whose entries can be changed.

use dupflow_core::memory::Rows;

/// Children of a node: half the levels of a binary heap, in one line of cache each.
const CHILDREN: usize = 4;

/// Where a place stands that has no part in the order.
const NOWHERE: u32 = u32::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Order {
    /// Places, none older than its parent; as many as `len`, and then what was left of others.
    heap: Rows<u32>,
    len: usize,
    /// By place, where it stands in the heap.
    stands: Rows<u32>,
}

impl Default for Order {
    fn default() -> Self {
        Self { heap: Rows::new(1), len: 0, stands: Rows::new(1) }
    }
}

impl Order {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The oldest one.
    pub(super) fn first(&self) -> Option<u32> {
        (self.len > 0).then(|| self.heap.row(0)[0])
    }

    /// Whether a place has a part in it.
    pub(super) fn holds(&self, place: u32) -> bool {
        self.stands(place).is_some()
    }

    /// A place has come, or has another age. `older` tells whether the first one is older than the second.
    pub(super) fn put(&mut self, place: u32, older: impl Fn(u32, u32) -> bool) {
        let at = match self.stands(place) {
            Some(at) => at,
            None => {
                while self.stands.len() <= place as usize {
                    self.stands.push(std::iter::once(NOWHERE));
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

    /// A place goes, if it is there; its age is still that of before.
    pub(super) fn remove(&mut self, place: u32, older: impl Fn(u32, u32) -> bool) {
        let Some(at) = self.stands(place) else { return };
        self.stands.row_mut(place as usize)[0] = NOWHERE;
        self.len -= 1;
        let last = self.heap.row(self.len)[0];
        if last != place {
            self.settle(at, last, older);
        }
    }

    fn stands(&self, place: u32) -> Option<usize> {
        let place = place as usize;
        let at = (place < self.stands.len()).then(|| self.stands.row(place)[0])?;
        Some(at).filter(|at| *at != NOWHERE).map(|at| at as usize)
    }

    /// Puts a place where it belongs, starting from a node that is free.
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
        self.stands.row_mut(place as usize)[0] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;
    use dupflow_core::hash::mix;

    /// Random changes against a sorted set, with ages of which many are equal but for the place.
    #[test]
    fn the_first_is_the_oldest_at_any_time() {
        let mut order = Order::default();
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

    /// Documents come in order of age and go in order of age: what that costs is counted, not timed.
    #[test]
    fn whoever_comes_last_costs_one_comparison_and_whoever_goes_first_few() {
        let compared = Cell::new(0_u64);
        let older = |a: u32, b: u32| {
            compared.set(compared.get() + 1);
            a < b
        };
        let mut order = Order::default();
        let count = 100_000;
        (0..count).for_each(|place| order.put(place, older));
        assert!(compared.take() <= u64::from(count), "one with its parent each");
        for place in 0..count {
            assert_eq!(order.first(), Some(place));
            order.remove(place, older);
        }
        // Of nine levels, four comparisons each.
        assert!(compared.take() <= 36 * u64::from(count), "{}", compared.take());
        assert_eq!(order.first(), None);
    }
}
