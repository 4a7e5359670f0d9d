//! What a source says of itself before a run begins.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use crate::mark::Topic;
use dupflow_core::time::Offsets;

/// What a source says of itself before a run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which topic it is, if it is one.
    pub topic: Option<Topic>,
    /// Whether what has been read can be read again as it was. Of a source that holds each document as it is
    /// now it cannot: then a run that has to repeat anything compares what it comes to with the output, and
    /// writes what differs.
    pub repeats: bool,
    /// Of a source that is compacted, or may be, what becomes of the ends of documents.
    pub tombstones: Option<Tombstones>,
    /// Of each partition the first offset that is held, and the one after the last; `None` where that is not
    /// known beforehand.
    pub held: Option<BTreeMap<u32, (u64, u64)>>,
    /// When this was, in milliseconds since 1970.
    pub at: u64,
}

impl Default for Look {
    /// Of a source that repeats what it gave.
    fn default() -> Self {
        Self { topic: None, repeats: true, tombstones: None, held: None, at: 0 }
    }
}

/// What becomes of the records by which documents end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstones {
    /// How long they are held at least, once what they end has been compacted away.
    pub stay: Duration,
    /// Whether every document is held besides, however old: then reading all again shows which have ended.
    pub all_held: bool,
    /// Whether this is known; else the source may just as well not be compacted.
    pub is_known: bool,
}

/// Records that are not held any more, and that nothing has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The partition.
    pub partition: u32,
    /// The first offset that is missing.
    pub from: u64,
    /// The first one that is there again.
    pub to: u64,
    /// The time of the record there, in milliseconds since 1970, if it is known.
    pub until: Option<u64>,
}

/// As of when a run has read its input: it looks where the partitions end, and once all has been read up to
/// there, everything that was written before that look has been.
///
/// Invariant: of the looks that have not been reached, the first and the last are kept; so a run that is
/// always behind gets on too.
#[derive(Debug, Default)]
pub struct AsOf {
    waiting: Mutex<Waiting>,
    /// For how long the ends of documents stay, where they do not stay for good.
    stay: OnceLock<Duration>,
}

/// The first look and the last, each with its time and the ends of the partitions.
type Waiting = (Option<(u64, Offsets)>, Option<(u64, Offsets)>);

impl AsOf {
    /// Notes for how long the ends of documents stay.
    pub fn set_stay(&self, stay: Duration) {
        self.stay.get_or_init(|| stay);
    }

    /// Notes where the partitions end, as of a time before they were looked at. How far behind the reading
    /// is, if that is so long that the ends of documents may have gone before they were read.
    pub fn note(&self, at: u64, ends: Offsets) -> Option<Duration> {
        let mut waiting = self.waiting.lock();
        let (first, last) = &mut *waiting;
        *(if first.is_none() { &mut *first } else { last }) = Some((at, ends));
        let behind = first.as_ref().map(|(first, _)| Duration::from_millis(at.saturating_sub(*first)));
        behind.filter(|behind| self.stay.get().is_some_and(|stay| stay < behind))
    }

    /// The time before which everything has been read, if all has been up to these offsets; `None` if it is
    /// the one that was said last.
    pub fn reached(&self, next: &Offsets) -> Option<u64> {
        let mut waiting = self.waiting.lock();
        let (first, last) = &mut *waiting;
        let is_reached = |look: &Option<(u64, Offsets)>| {
            let ends = look.as_ref().map(|(_, ends)| ends);
            let is_read =
                |(partition, end): (&u32, &u64)| next.get(partition).is_some_and(|next| end <= next);
            ends.is_some_and(|ends| ends.iter().all(is_read))
        };
        if is_reached(last) {
            *first = None;
            return last.take().map(|(at, _)| at);
        }
        if !is_reached(first) {
            return None;
        }
        std::mem::replace(first, last.take()).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_partitions_have_to_be_read_up_to_a_look() {
        let as_of = AsOf::default();
        let read = |a: u64, b: u64| as_of.reached(&[(0, a), (1, b)].into());
        assert_eq!(read(9, 9), None);
        as_of.note(100, [(0, 5), (1, 7)].into());
        assert_eq!((read(4, 9), as_of.reached(&[(0, 9)].into())), (None, None));
        as_of.note(110, [(0, 6), (1, 8)].into());
        as_of.note(120, [(0, 7), (1, 9)].into());
        assert_eq!(read(5, 7), Some(100), "the first one is kept while others follow");
        assert_eq!((read(6, 8), read(7, 9)), (None, Some(120)));
        assert_eq!(read(100, 100), None, "it is said once");
        as_of.note(130, [(0, 8), (1, 9)].into());
        as_of.note(140, [(0, 8), (1, 9)].into());
        assert_eq!((read(8, 9), read(8, 9)), (Some(140), None), "the last one counts");
    }

    #[test]
    fn a_reading_that_takes_longer_than_ends_stay_is_noticed() {
        let as_of = AsOf::default();
        let ends = || Offsets::from([(0, 5)]);
        assert_eq!((as_of.note(0, ends()), as_of.note(9_000, ends())), (None, None), "they stay for good");
        as_of.set_stay(Duration::from_secs(9));
        assert_eq!(as_of.note(9_000, ends()), None);
        assert_eq!(as_of.note(9_001, ends()), Some(Duration::from_millis(9_001)));
        assert_eq!(as_of.reached(&ends()), Some(9_001));
        assert_eq!(as_of.note(20_000, ends()), None);
    }
}
