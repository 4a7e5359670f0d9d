//! The backlog of an input: the records that are not yet read, by partition. Readers write it, the monitor
//! and the log read it.
//!
//! In: the position of each partition, and its stable offset and end whenever the source was asked for them
//! (a *look*). Out: [`UnreadRecords`] for each partition, in offsets and durations. There are two kinds of
//! unread offsets:
//!
//! - *behind*: readable, but not read yet.
//! - *undecided*: beyond the last stable offset. They belong to an open transaction of a producer, or follow
//!   one; readers of committed records do not get them before that transaction ends.
//!
//! If a look gets no answer the partition's values stay as they were, and [`UnreadRecords::unseen`] grows.
//!
//! The waiting time of a record is counted from the first look that found it. Its own time stamp is not used:
//! it is set by its producer and may be years old.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use dupflow_core::time::{Clock, SystemClock};

/// Most stored looks of a partition, inclusive; with more, adjacent looks are merged in pairs.
const LOOKS: usize = 512;

/// The unread records of each partition of an input.
#[derive(Debug)]
pub struct Backlog {
    clock: SystemClock,
    partitions: Mutex<BTreeMap<u32, PartitionBacklog>>,
    /// Since when the input cannot be read, and why.
    away: Mutex<Option<(Duration, String)>>,
}

/// The unread records of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadRecords {
    /// The next offset to read.
    pub position: u64,
    /// Number of offsets from `position` to the last stable offset.
    pub behind: u64,
    /// Number of offsets from the last stable offset to the end.
    pub undecided: u64,
    /// Waiting time of the first unread record; 0 if there is none.
    pub oldest: Duration,
    /// Time since the last look with an answer; if there was none, since reading of the partition began.
    pub unseen: Duration,
}

#[derive(Debug, Default)]
struct PartitionBacklog {
    position: u64,
    stable: u64,
    end: u64,
    /// Time of the last look; before the first look, time when reading began.
    seen: Duration,
    /// Ends beyond the position, ascending, each with the time when it was first seen.
    looks: VecDeque<(u64, Duration)>,
}

impl Default for Backlog {
    /// An input without known partitions.
    fn default() -> Self {
        Self { clock: SystemClock::start(), partitions: Mutex::default(), away: Mutex::default() }
    }
}

impl Backlog {
    /// Sets the position of a partition: it has been read up to this offset, exclusive.
    pub fn read(&self, partition: u32, position: u64) {
        let now = self.clock.now();
        let mut partitions = self.partitions.lock();
        let found = partitions
            .entry(partition)
            .or_insert_with(|| PartitionBacklog { seen: now, ..PartitionBacklog::default() });
        found.position = position;
        found.forget();
    }

    /// The input cannot be read at present, for this reason; `None`: it can.
    pub fn away(&self, why: Option<String>) {
        let now = self.clock.now();
        let mut away = self.away.lock();
        *away = why.map(|why| (away.as_ref().map_or(now, |(since, _)| *since), why));
    }

    /// For how long the input cannot be read, and why.
    pub fn is_away(&self) -> Option<(Duration, String)> {
        let now = self.clock.now();
        self.away.lock().as_ref().map(|(since, why)| (now.saturating_sub(*since), why.clone()))
    }

    /// The known partitions.
    pub fn partitions(&self) -> Vec<u32> {
        self.partitions.lock().keys().copied().collect()
    }

    /// Records a look: the partition is stable up to `stable` and ends at `end`, both exclusive.
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

    /// The unread records of each partition.
    pub fn waiting(&self) -> BTreeMap<u32, UnreadRecords> {
        self.waiting_at(self.clock.now())
    }

    fn waiting_at(&self, now: Duration) -> BTreeMap<u32, UnreadRecords> {
        self.partitions.lock().iter().map(|(number, partition)| (*number, partition.waiting(now))).collect()
    }

    /// The partition whose first unread record has waited longest, if there is an unread record.
    pub fn oldest(&self) -> Option<(u32, UnreadRecords)> {
        let all = self.waiting().into_iter();
        all.filter(|(_, waiting)| waiting.behind + waiting.undecided > 0)
            .max_by_key(|(_, waiting)| waiting.oldest)
    }

    /// The partition with the greatest [`UnreadRecords::unseen`], and that time.
    pub fn unseen(&self) -> Option<(u32, Duration)> {
        let all = self.waiting().into_iter();
        all.map(|(partition, waiting)| (partition, waiting.unseen)).max_by_key(|(_, unseen)| *unseen)
    }
}

impl PartitionBacklog {
    /// Removes looks whose records have been read.
    fn forget(&mut self) {
        while self.looks.front().is_some_and(|(end, _)| *end <= self.position) {
            self.looks.pop_front();
        }
    }

    /// Merges looks in pairs: the records of the later look count from the time of the earlier one.
    fn halve(&mut self) {
        let looks: Vec<_> = self.looks.drain(..).collect();
        let one = |two: &[(u64, Duration)]| Some((two.last()?.0, two.first()?.1));
        self.looks.extend(looks.chunks(2).filter_map(one));
    }

    fn waiting(&self, now: Duration) -> UnreadRecords {
        let since = self.looks.front().map_or(now, |(_, seen)| *seen);
        UnreadRecords {
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
        let waiting = |now| UnreadRecords { unseen: Duration::ZERO, ..backlog.waiting_at(now)[&3] };
        assert_eq!(waiting(SECOND), UnreadRecords { position: 10, ..UnreadRecords::default() });
        backlog.looked_at(3, 10, 10, 2 * SECOND);
        assert_eq!(waiting(9 * SECOND).oldest, Duration::ZERO);
        backlog.looked_at(3, 14, 14, 10 * SECOND);
        backlog.looked_at(3, 14, 20, 15 * SECOND);
        let all = waiting(16 * SECOND);
        assert_eq!(
            all,
            UnreadRecords {
                position: 10,
                behind: 4,
                undecided: 6,
                oldest: 6 * SECOND,
                unseen: Duration::ZERO
            }
        );
        // The remaining records were found by the second look.
        backlog.read(3, 14);
        let rest = waiting(16 * SECOND);
        assert_eq!(
            rest,
            UnreadRecords { position: 14, behind: 0, undecided: 6, oldest: SECOND, unseen: Duration::ZERO }
        );
        assert_eq!(backlog.partitions(), [3]);
        backlog.read(3, 20);
        assert_eq!(waiting(99 * SECOND), UnreadRecords { position: 20, ..UnreadRecords::default() });
    }

    #[test]
    fn a_partition_without_an_answer_is_unseen() {
        let backlog = Backlog::default();
        backlog.read(0, 5);
        backlog.read(1, 5);
        backlog.looked_at(0, 5, 5, 10 * SECOND);
        backlog.looked_at(1, 5, 5, 10 * SECOND);
        // The broker of partition 0 does not answer.
        backlog.looked_at(1, 5, 5, 90 * SECOND);
        let unseen = |now| backlog.waiting_at(now).into_values().map(|one| one.unseen).collect::<Vec<_>>();
        assert_eq!(unseen(90 * SECOND), [80 * SECOND, Duration::ZERO]);
        // Reading a record is not a look.
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
