//! Which rows have been read: how many below a bound, and the orders of those from it on.
//!
//! No row may be added below the bound. An open transaction may write there, so the bound stays behind the
//! beginning of rounds while it is open. The database counts the rows below the next round now and then: if
//! they are more than have been read, the order has regressed, or a row was committed too late.

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
    /// An order below which rows were removed that the window still has, and their number.
    gone: (u64, u64),
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

    /// The number of rows below the bound, at most.
    pub(super) fn rows(&self) -> u64 {
        self.rows_below(self.below)
    }

    /// The number of rows below an order from the bound on, at most.
    fn rows_below(&self, order: u64) -> u64 {
        let gone = if self.gone.0 <= order { self.gone.1 } else { 0 };
        self.with_gone(order).saturating_sub(gone)
    }

    /// The same, with removed ones.
    fn with_gone(&self, order: u64) -> u64 {
        self.passed + self.window.range(..order).map(|(_, (rows, _))| rows).sum::<u64>()
    }

    /// The greatest order of a document from the bound on, or 0.
    pub(super) fn greatest(&self) -> u64 {
        self.window.iter().rev().find(|(_, (_, is_document))| *is_document).map_or(0, |(order, _)| *order)
    }

    /// The order below which rows are to be counted before a round from `from` on, if they are.
    pub(super) fn is_due(&self, from: u64) -> Option<u64> {
        let order = self.below.max(from);
        let rows = self.rows_below(order);
        let is_due = rows < FEW || self.read.saturating_mul(COUNTED_PER_ROW) >= rows;
        (is_due && order > 0).then_some(order)
    }

    /// Compares with the number of rows below an order that [is due](Self::is_due): how many more they are
    /// than have been read.
    pub(super) fn count(&mut self, order: u64, found: u64) -> u64 {
        let more = found.saturating_sub(self.rows_below(order));
        self.gone = (order, self.with_gone(order).saturating_sub(found));
        self.read = 0;
        more
    }

    /// A round begins at an order.
    pub(super) fn begin(&mut self, from: u64) {
        if self.gone.0 > from.max(self.below) {
            self.gone = (0, 0);
        }
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
        self.passed = self.rows_below(bound);
        if self.gone.0 <= bound {
            self.gone = (0, 0);
        }
        self.window = self.window.split_off(&bound);
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
        assert_eq!(frontier.is_due(0), None, "no row is below the first bound");
        read(&mut frontier, 0, &[1, 2, 2, 9], 5);
        assert_eq!((frontier.is_due(5), frontier.rows(), frontier.greatest()), (Some(5), 3, 9));
        assert_eq!(frontier.count(5, 3), 0);
        read(&mut frontier, 5, &[9, 12, 20], 15);
        assert_eq!((frontier.below(), frontier.rows()), (15, 5), "9 was read twice, and is one row");
        assert_eq!(frontier.count(15, 4), 0, "rows may go");
        read(&mut frontier, 15, &[20, 30], 25);
        assert_eq!((frontier.count(25, 6), frontier.count(25, 5)), (1, 0), "one was passed");
    }

    /// While a transaction is open, the bound stays, and rounds begin above it.
    #[test]
    fn rows_between_the_bound_and_a_round_are_counted() {
        let mut frontier = Frontier::new(0, 0);
        read(&mut frontier, 0, &[1, 10, 20, 30], 5);
        assert_eq!((frontier.is_due(25), frontier.count(25, 3)), (Some(25), 0));
        read(&mut frontier, 25, &[30, 40], 5);
        assert_eq!((frontier.count(35, 5), frontier.count(35, 4)), (1, 0), "one came below 35");
        assert_eq!(frontier.count(35, 2), 0, "two have gone");
        assert_eq!((frontier.count(35, 3), frontier.rows()), (1, 1), "where they were is not known");
    }

    /// The transaction has ended: all from 15 on is read again.
    #[test]
    fn rows_that_have_gone_are_not_taken_for_new_ones() {
        let mut frontier = Frontier::new(0, 0);
        read(&mut frontier, 0, &[1, 10, 20, 30], 5);
        assert_eq!(frontier.count(35, 3), 0);
        frontier.begin(35);
        assert_eq!(frontier.count(15, 2), 0, "the one that has gone may be one from 15 on");
        read(&mut frontier, 15, &[15, 20, 40], 35);
        assert_eq!((frontier.count(35, 4), frontier.rows()), (0, 4));
    }

    /// Many rows are counted after some have been read.
    #[test]
    fn many_rows_are_counted_seldom() {
        let mut frontier = Frontier::new(10, FEW * 10);
        assert!(frontier.is_due(10).is_some(), "at the beginning");
        assert_eq!((frontier.count(10, FEW * 10), frontier.is_due(10)), (0, None));
        (0..FEW * 10 / COUNTED_PER_ROW).for_each(|n| frontier.row(10 + n, false));
        assert_eq!((frontier.is_due(10), frontier.greatest()), (Some(10), 0), "none is a document");
    }
}
