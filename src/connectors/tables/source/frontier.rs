//! Which rows have been read: how many below a bound, and the orders of those from it on.
//!
//! No row may be added below the bound. The database counts the rows there now and then: if they are more
//! than have been read, the order has regressed, or a row was committed too late.

use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Frontier {
    /// The bound.
    below: u64,
    /// The number of rows below it, at most.
    passed: u64,
    /// Rows from the bound on: their number by order, and whether one is a document.
    window: BTreeMap<u64, (u64, bool)>,
    /// Rows read since the last count.
    read: u64,
}

/// Counting is much cheaper than reading. So rows are counted again when as many have been read as this part
/// of them, or when they are few.
const COUNTED_PER_ROW: u64 = 50;
const FEW: u64 = 100_000;

impl Frontier {
    /// Begins with a number of rows below a bound.
    pub(super) fn new(below: u64, rows: u64) -> Self {
        Self { below, passed: rows, read: u64::MAX, ..Self::default() }
    }

    pub(super) fn below(&self) -> u64 {
        self.below
    }

    pub(super) fn rows(&self) -> u64 {
        self.passed
    }

    /// The greatest order of a document from the bound on, or 0.
    pub(super) fn greatest(&self) -> u64 {
        self.window.iter().rev().find(|(_, (_, is_document))| *is_document).map_or(0, |(order, _)| *order)
    }

    /// The bound below which rows are to be counted, if they are.
    pub(super) fn is_due(&self) -> Option<u64> {
        let is_due = self.passed < FEW || self.read.saturating_mul(COUNTED_PER_ROW) >= self.passed;
        (is_due && self.below > 0).then_some(self.below)
    }

    /// Compares with the number of rows below the bound: how many more they are than have been read.
    pub(super) fn count(&mut self, found: u64) -> u64 {
        let more = found.saturating_sub(self.passed);
        (self.passed, self.read) = (self.passed.min(found), 0);
        more
    }

    /// A round begins at an order.
    pub(super) fn begin(&mut self, from: u64) {
        drop(self.window.split_off(&from));
    }

    /// A row was read.
    pub(super) fn row(&mut self, order: u64, is_document: bool) {
        self.read = self.read.saturating_add(1);
        if order < self.below {
            return;
        }
        let (rows, has_document) = self.window.entry(order).or_default();
        *rows += 1;
        *has_document |= is_document;
    }

    /// Everything below a bound has been read, and no row may be added there.
    pub(super) fn advance(&mut self, bound: u64) {
        if bound <= self.below {
            return;
        }
        let rest = self.window.split_off(&bound);
        self.passed += std::mem::replace(&mut self.window, rest).values().map(|(rows, _)| rows).sum::<u64>();
        self.below = bound;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frontier: &mut Frontier, from: u64, orders: &[u64], bound: u64) {
        frontier.begin(from);
        orders.iter().for_each(|order| frontier.row(*order, true));
        frontier.advance(bound);
    }

    #[test]
    fn rows_that_come_below_the_bound_are_counted() {
        let mut frontier = Frontier::new(0, 0);
        assert_eq!(frontier.is_due(), None, "no row is below the first bound");
        read(&mut frontier, 0, &[1, 2, 2, 9], 5);
        assert_eq!((frontier.is_due(), frontier.rows(), frontier.greatest()), (Some(5), 3, 9));
        assert_eq!(frontier.count(3), 0);
        read(&mut frontier, 5, &[9, 12, 20], 15);
        assert_eq!((frontier.below(), frontier.rows()), (15, 5), "9 was read twice, and is one row");
        assert_eq!(frontier.count(4), 0, "rows may go");
        read(&mut frontier, 15, &[20, 30], 25);
        assert_eq!((frontier.count(6), frontier.count(5)), (1, 0), "one was passed");
    }

    /// Many rows are counted after some have been read.
    #[test]
    fn many_rows_are_counted_seldom() {
        let mut frontier = Frontier::new(10, FEW * 10);
        assert!(frontier.is_due().is_some(), "at the beginning");
        assert_eq!((frontier.count(FEW * 10), frontier.is_due()), (0, None));
        (0..FEW * 10 / COUNTED_PER_ROW).for_each(|n| frontier.row(10 + n, false));
        assert_eq!((frontier.is_due(), frontier.greatest()), (Some(10), 0), "none is a document");
    }
}
