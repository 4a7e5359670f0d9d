//! Transactions that are open: what they write is seen when they end, with an order of when they began.

use std::collections::{BTreeMap, BTreeSet};

/// The transactions at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transactions {
    /// The first that had not begun.
    pub(super) next: u64,
    /// Those that were open. A standby does not know them: then it is all from the oldest one on.
    pub(super) open: BTreeSet<u64>,
    /// Whether any of them may end and not be missed here, as on a standby.
    pub(super) is_partial: bool,
}

impl Transactions {
    /// Reads a snapshot: `oldest:end:open,open,…`. Transactions from its end on may be open too; `low` are
    /// the lower 32 bits of the first that had not begun.
    pub(super) fn parse(snapshot: &str, low: u32, is_standby: bool) -> Option<Self> {
        let mut parts = snapshot.split(':');
        let (oldest, end): (u64, u64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let named = parts.next()?.split(',').filter(|one| !one.is_empty());
        let mut open = named.map(str::parse).collect::<Result<BTreeSet<u64>, _>>().ok()?;
        let more = u64::from(low).wrapping_sub(end) & u64::from(u32::MAX);
        // A server has fewer connections; the difference of a number that is behind the snapshot is larger.
        let next = end + if more < 1 << 20 { more } else { 0 };
        open.extend(end..next);
        if oldest < next {
            open.insert(oldest);
        }
        Some(Self { next, open, is_partial: is_standby })
    }

    /// The oldest that is open, or else the next one.
    pub(super) fn oldest(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }
}

/// From which order on each transaction writes: the greatest when it began, less the overlap.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// By the first transaction that had not begun at a look, from which order on it and later ones write.
    orders: BTreeMap<u64, u64>,
    last: Transactions,
}

impl Begun {
    /// `least`: from which order on transactions write that are open at the first look; 0 if that is
    /// not known.
    pub(super) fn new(least: u64) -> Self {
        Self { orders: [(0, least)].into(), ..Self::default() }
    }

    /// From which order on a transaction writes.
    fn order(&self, transaction: u64) -> u64 {
        self.orders.range(..=transaction).next_back().map_or(0, |(_, order)| *order)
    }

    /// From which order on those transactions have written that were open at the last look, and have ended.
    pub(super) fn ended(&mut self, now: &Transactions) -> Option<u64> {
        let has_ended = |one: &&u64| self.last.is_partial || !now.open.contains(one);
        self.last.open.iter().filter(has_ended).map(|one| self.order(*one)).min()
    }

    /// Notes a look, and from which order on transactions write that begin after it.
    pub(super) fn look(&mut self, now: Transactions, order: u64) {
        self.orders.insert(now.next, order);
        let oldest = now.oldest();
        if let Some((first, _)) = self.orders.range(..=oldest).next_back() {
            self.orders = self.orders.split_off(&{ *first });
        }
        self.last = now;
    }

    /// From which order on the open transactions write, as far as that is known.
    pub(super) fn least(&self) -> u64 {
        let known = self.last.open.iter().map(|one| self.order(*one)).filter(|order| *order > 0);
        known.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot whose end is the next transaction.
    fn parsed(snapshot: &str, is_standby: bool) -> Transactions {
        let end = snapshot.split(':').nth(1).unwrap().parse().unwrap();
        Transactions::parse(snapshot, end, is_standby).unwrap()
    }

    fn at(snapshot: &str) -> Transactions {
        parsed(snapshot, false)
    }

    #[test]
    fn snapshots_are_read() {
        assert_eq!(at("757:757:").open, [].into());
        assert_eq!(at("757:761:757,759").open, [757, 759].into());
        assert_eq!(parsed("757:761:", true).open, [757].into(), "of a standby");
        assert_eq!(Transactions::parse("757", 9, false), None);
        // None has ended since 760 began.
        let begun = Transactions::parse("760:760:", 762, false).unwrap();
        assert_eq!((begun.open, begun.next), ([760, 761].into(), 762));
        // The number of a transaction has 64 bits in a snapshot, and 32 elsewhere.
        let wrapped = Transactions::parse("8589934590:8589934591:8589934590", 1, false).unwrap();
        assert_eq!((wrapped.open.len(), wrapped.next), (3, 8_589_934_593));
    }

    #[test]
    fn what_a_late_commit_has_written_is_known() {
        let mut begun = Begun::new(40);
        assert_eq!(begun.ended(&at("9:9:")), None);
        begun.look(at("7:9:7"), 50);
        begun.look(at("7:12:7,10"), 60);
        begun.look(at("7:15:7,10"), 70);
        assert_eq!((begun.ended(&at("7:15:7,10")), begun.least()), (None, 40));
        assert_eq!(begun.ended(&at("7:15:7")), Some(50), "10 began when 50 had been written");
        begun.look(at("10:15:10"), 70);
        assert_eq!((begun.least(), begun.orders.len()), (50, 3));
        assert_eq!(begun.ended(&at("20:20:")), Some(50));
        begun.look(at("20:20:"), 80);
        assert_eq!((begun.ended(&at("21:21:")), begun.least(), begun.orders.len()), (None, u64::MAX, 1));
    }

    /// Of transactions that were open before anything was read, nothing is known.
    #[test]
    fn what_was_open_before_has_any_order() {
        let mut begun = Begun::new(0);
        begun.look(at("7:9:7"), 50);
        assert_eq!((begun.least(), begun.ended(&at("9:9:"))), (u64::MAX, Some(0)));
    }

    /// A standby does not say which of the transactions since the oldest one are open.
    #[test]
    fn on_a_standby_any_may_have_ended() {
        let standby = |snapshot| parsed(snapshot, true);
        let mut begun = Begun::new(40);
        begun.look(standby("7:9:"), 50);
        begun.look(standby("8:12:"), 60);
        assert_eq!(begun.ended(&standby("8:12:")), Some(40));
        begun.look(standby("12:12:"), 60);
        assert_eq!(begun.ended(&standby("12:13:")), None);
    }
}
