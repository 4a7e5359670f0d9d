//! How much of an input waits to be read, partition by partition: noted by its readers, read by the monitor
//! and the log.
//!
//! Two things are apart. What is *behind* may be read, and has not been. What is *undecided* lies beyond
//! the last stable offset: it belongs to a transaction of its producer that is open, or follows one, and no
//! reader of committed records gets it before that transaction ends.
//!
//! A look may get no answer: then what it would have found is not known, and each partition says how long ago
//! it was last seen.
//!
//! How long a record has waited is counted from the look that first found it. Its own time stamp says when
//! its producer made it, which may be years ago, so it is not used.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use crate::time::{Clock, SystemClock};

/// Looks of a partition that are kept at most; beyond, two that are beside each other become one.
const LOOKS: usize = 512;

/// What waits in each partition of an input.
#[derive(Debug)]
pub struct Backlog {
    clock: SystemClock,
    partitions: Mutex<BTreeMap<u32, Partition>>,
}

/// What waits in one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The offset from which on nothing has been read.
    pub position: u64,
    /// Offsets from there to the last stable one.
    pub behind: u64,
    /// Offsets from the last stable one to the end.
    pub undecided: u64,
    /// How long the first record of all these has waited; 0 if there is none.
    pub oldest: Duration,
    /// How long ago the partition was last looked at with an answer; since its reading began, if there has
    /// been none.
    pub unseen: Duration,
}

#[derive(Debug, Default)]
struct Partition {
    position: u64,
    stable: u64,
    end: u64,
    /// When it was last looked at; before that, when its reading began.
    seen: Duration,
    /// Ends beyond the position, ascending, each with when it was first seen.
    looks: VecDeque<(u64, Duration)>,
}

impl Default for Backlog {
    /// Of an input of which nothing is known.
    fn default() -> Self {
        Self { clock: SystemClock::start(), partitions: Mutex::default() }
    }
}

impl Backlog {
    /// A partition has been read up to this offset, exclusive.
    pub fn read(&self, partition: u32, position: u64) {
        let now = self.clock.now();
        let mut partitions = self.partitions.lock();
        let found =
            partitions.entry(partition).or_insert_with(|| Partition { seen: now, ..Partition::default() });
        found.position = position;
        found.forget();
    }

    /// The partitions that are read.
    pub fn partitions(&self) -> Vec<u32> {
        self.partitions.lock().keys().copied().collect()
    }

    /// A partition is stable up to one offset and ends at another one, both exclusive.
    pub fn looked(&self, partition: u32, stable: u64, end: u64) {
        let now = self.clock.now();
        self.looked_at(partition, stable, end, now);
    }

    fn looked_at(&self, partition: u32, stable: u64, end: u64, now: Duration) {
        let mut partitions = self.partitions.lock();
        let found = partitions.entry(partition).or_default();
        (found.stable, found.end, found.seen) = (stable, end.max(stable), now);
        if found.looks.back().is_none_or(|(last, _)| *last < found.end) {
            found.looks.push_back((found.end, now));
        }
        found.forget();
        if found.looks.len() > LOOKS {
            found.halve();
        }
    }

    /// What waits in each partition.
    pub fn waiting(&self) -> BTreeMap<u32, Waiting> {
        self.waiting_at(self.clock.now())
    }

    fn waiting_at(&self, now: Duration) -> BTreeMap<u32, Waiting> {
        self.partitions.lock().iter().map(|(number, partition)| (*number, partition.waiting(now))).collect()
    }

    /// The partition whose first record has waited longest, if any record waits.
    pub fn oldest(&self) -> Option<(u32, Waiting)> {
        let all = self.waiting().into_iter();
        all.filter(|(_, waiting)| waiting.behind + waiting.undecided > 0)
            .max_by_key(|(_, waiting)| waiting.oldest)
    }

    /// The partition that was last seen longest ago, and how long.
    pub fn unseen(&self) -> Option<(u32, Duration)> {
        let all = self.waiting().into_iter();
        all.map(|(partition, waiting)| (partition, waiting.unseen)).max_by_key(|(_, unseen)| *unseen)
    }
}

impl Partition {
    /// Forgets looks whose records have been read.
    fn forget(&mut self) {
        while self.looks.front().is_some_and(|(end, _)| *end <= self.position) {
            self.looks.pop_front();
        }
    }

    /// Makes one look of two: the records of the later one count from the earlier one on.
    fn halve(&mut self) {
        let looks: Vec<_> = self.looks.drain(..).collect();
        let one = |two: &[(u64, Duration)]| Some((two.last()?.0, two.first()?.1));
        self.looks.extend(looks.chunks(2).filter_map(one));
    }

    fn waiting(&self, now: Duration) -> Waiting {
        let since = self.looks.front().map_or(now, |(_, seen)| *seen);
        Waiting {
            position: self.position,
            behind: self.stable.saturating_sub(self.position),
            undecided: self.end.saturating_sub(self.stable.max(self.position)),
            oldest: now.saturating_sub(since),
            unseen: now.saturating_sub(self.seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waiting_counts_from_the_look_that_found_the_record() {
        let backlog = Backlog::default();
        backlog.read(3, 10);
        let waiting = |now| Waiting { unseen: Duration::ZERO, ..backlog.waiting_at(now)[&3] };
        assert_eq!(waiting(SECOND), Waiting { position: 10, ..Waiting::default() });
        backlog.looked_at(3, 10, 10, 2 * SECOND);
        assert_eq!(waiting(9 * SECOND).oldest, Duration::ZERO);
        backlog.looked_at(3, 14, 14, 10 * SECOND);
        backlog.looked_at(3, 14, 20, 15 * SECOND);
        let all = waiting(16 * SECOND);
        assert_eq!(
            all,
            Waiting { position: 10, behind: 4, undecided: 6, oldest: 6 * SECOND, unseen: Duration::ZERO }
        );
        // What is left was found by the second look.
        backlog.read(3, 14);
        let rest = waiting(16 * SECOND);
        assert_eq!(
            rest,
            Waiting { position: 14, behind: 0, undecided: 6, oldest: SECOND, unseen: Duration::ZERO }
        );
        assert_eq!(backlog.partitions(), [3]);
        backlog.read(3, 20);
        assert_eq!(waiting(99 * SECOND), Waiting { position: 20, ..Waiting::default() });
    }

    #[test]
    fn a_partition_without_an_answer_is_unseen() {
        let backlog = Backlog::default();
        backlog.read(0, 5);
        backlog.read(1, 5);
        backlog.looked_at(0, 5, 5, 10 * SECOND);
        backlog.looked_at(1, 5, 5, 10 * SECOND);
        // The broker of one of them is away.
        backlog.looked_at(1, 5, 5, 90 * SECOND);
        let unseen = |now| backlog.waiting_at(now).into_values().map(|one| one.unseen).collect::<Vec<_>>();
        assert_eq!(unseen(90 * SECOND), [80 * SECOND, Duration::ZERO]);
        // What is read shows nothing of the end.
        backlog.read(0, 6);
        assert_eq!(unseen(91 * SECOND), [81 * SECOND, SECOND]);
    }

    #[test]
    fn a_long_backlog_keeps_few_looks_and_no_record_seems_younger() {
        let backlog = Backlog::default();
        backlog.read(0, 0);
        for n in 1..=10_000_u32 {
            backlog.looked_at(0, u64::from(n), u64::from(n), n * SECOND);
        }
        assert!(backlog.partitions.lock()[&0].looks.len() <= LOOKS);
        assert_eq!(backlog.waiting_at(10_000 * SECOND)[&0].oldest, 9_999 * SECOND);
        backlog.read(0, 5_000);
        assert!(backlog.waiting_at(10_000 * SECOND)[&0].oldest >= 4_999 * SECOND);
    }
}
