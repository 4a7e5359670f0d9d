//! What a place holds against what the corpus gives: the one difference by which every output is corrected.
//!
//! An output that another run has written, or that stands elsewhere than the corpus, is read once. What it
//! holds is subtracted from what the corpus gives, and the rest is what is written to it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Rows that the corpus gives, less rows that a place holds. Memory: the rows that do not cancel.
#[derive(Clone, Debug)]
pub struct Reconcile<R> {
    sums: BTreeMap<R, isize>,
}

impl<R> Default for Reconcile<R> {
    fn default() -> Self {
        Self { sums: BTreeMap::new() }
    }
}

impl<R: Ord + Clone> Reconcile<R> {
    /// Adds a change of what the place holds.
    pub fn held(&mut self, row: R, diff: isize) {
        self.given(row, -diff);
    }

    /// Adds a change of what the corpus gives.
    pub fn given(&mut self, row: R, diff: isize) {
        match self.sums.entry(row) {
            Entry::Vacant(vacant) => drop(vacant.insert(diff)),
            // A count that has changed a million times is a million rows, and one is left.
            Entry::Occupied(sum) if *sum.get() == -diff => drop(sum.remove()),
            Entry::Occupied(mut sum) => *sum.get_mut() += diff,
        }
    }

    /// The changes that make the place right, each with diff 1 or -1, in an order of rows. Of those that are
    /// equal in it, the ones that the place loses are first.
    pub fn changes(self, order: impl Fn(&R, &R) -> Ordering) -> Vec<(R, isize)> {
        let mut changes = Vec::new();
        for (row, sum) in self.sums {
            changes.extend(std::iter::repeat_n((row, sum.signum()), sum.unsigned_abs()));
        }
        // A stable sort: rows stay in order.
        changes.sort_by(|(a, x), (b, y)| order(a, b).then(x.cmp(y)));
        changes
    }

    /// What is to be written of each key, of which a place has one row: the new row, or `None` where it ends.
    pub fn rows<K: Ord>(self, key: impl Fn(&R) -> K) -> BTreeMap<K, Option<R>> {
        let changes = self.changes(|_, _| Ordering::Equal).into_iter();
        changes.map(|(row, diff)| (key(&row), Some(row).filter(|_| diff > 0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference() -> Reconcile<(&'static str, u32)> {
        let mut rows = Reconcile::default();
        [(("a", 1), 1), (("b", 1), 1), (("b", 1), -1), (("c", 1), 1), (("e", 3), 1)]
            .into_iter()
            .for_each(|(row, diff)| rows.held(row, diff));
        [(("a", 1), 1), (("b", 2), 1), (("d", 1), 1), (("d", 1), -1), (("e", 2), 1)]
            .into_iter()
            .for_each(|(row, diff)| rows.given(row, diff));
        rows
    }

    #[test]
    fn the_difference_is_what_the_place_lacks_or_has_too_much() {
        assert_eq!(difference().sums.len(), 4, "what adds up to nothing is not held");
        let lost_first = [(("c", 1), -1), (("e", 3), -1), (("b", 2), 1), (("e", 2), 1)];
        assert_eq!(difference().changes(|_, _| Ordering::Equal), lost_first);
        let by_name = [(("b", 2), 1), (("c", 1), -1), (("e", 3), -1), (("e", 2), 1)];
        assert_eq!(difference().changes(|a, b| a.0.cmp(b.0)), by_name);
        assert_eq!(Reconcile::<u32>::default().changes(Ord::cmp), []);
    }

    #[test]
    fn a_row_that_replaces_another_is_one_change() {
        let rows = difference().rows(|row| row.0);
        assert_eq!(rows, [("b", Some(("b", 2))), ("c", None), ("e", Some(("e", 2)))].into());
    }

    #[test]
    fn more_than_one_of_a_row_are_as_many_changes() {
        let mut rows = Reconcile::default();
        (0..3).for_each(|_| rows.given("x", 1));
        rows.held("x", 1);
        assert_eq!(rows.changes(Ord::cmp), [("x", 1), ("x", 1)]);
    }
}
