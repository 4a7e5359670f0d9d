//! What a source reports about itself before a run begins, and the time as of which it has been read.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use crate::mark::Topic;
use dupflow_core::time::Offsets;

/// What a source reports about itself before a run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Which topic the source is, if it is one.
    pub topic: Option<Topic>,
    /// Whether reading again gives the same records. A source that has each document only in its present
    /// state cannot repeat. A run that has to repeat such a source compares its result with the output and
    /// writes the difference.
    pub repeats: bool,
    /// For a source that is (or may be) compacted: how long delete records are kept.
    pub tombstones: Option<Tombstones>,
    /// For each partition, the first available offset and the offset after the last; `None` where that is not
    /// known beforehand.
    pub held: Option<BTreeMap<u32, (u64, u64)>>,
    /// The time of the report, in milliseconds since 1970.
    pub at: u64,
}

impl Default for SourceInfo {
    /// A source that gives the same records again.
    fn default() -> Self {
        Self { topic: None, repeats: true, tombstones: None, held: None, at: 0 }
    }
}

/// How long a compacted source keeps delete records (tombstones).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstones {
    /// The minimum time for which a tombstone is kept after its document has been compacted away.
    pub stay: Duration,
    /// Whether every live document is kept, of any age. Then reading everything again finds all deletes.
    pub all_held: bool,
    /// Whether compaction is known to be on. If false, the source may not be compacted at all.
    pub is_known: bool,
}

/// Records that expired before any run read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetGap {
    /// The partition.
    pub partition: u32,
    /// The first missing offset.
    pub from: u64,
    /// The first available offset after the gap.
    pub to: u64,
    /// The time of the record at [`Self::to`], in milliseconds since 1970, if it is known.
    pub until: Option<u64>,
}

/// Tracks the time as of which a run has read its input. The source notes from time to time where its
/// partitions end. Once everything before the noted ends has been read, all records that were written before
/// the note have been read.
///
/// Invariant: of the notes that have not been reached, the first and the last are kept. So a run that is
/// always behind still advances.
#[derive(Debug, Default)]
pub struct AsOf {
    waiting: Mutex<PendingNotes>,
    /// How long tombstones are kept; unset if they are kept forever.
    stay: OnceLock<Duration>,
}

/// The first and the last unreached note, each with its time and the ends of the partitions.
type PendingNotes = (Option<(u64, Offsets)>, Option<(u64, Offsets)>);

impl AsOf {
    /// Sets how long tombstones are kept.
    pub fn set_stay(&self, stay: Duration) {
        self.stay.get_or_init(|| stay);
    }

    /// Notes the ends of the partitions, as of a time before they were read. Returns how far behind the
    /// reading is, if that is longer than tombstones are kept, so that deletes may expire unread.
    pub fn note(&self, at: u64, ends: Offsets) -> Option<Duration> {
        let mut waiting = self.waiting.lock();
        let (first, last) = &mut *waiting;
        *(if first.is_none() { &mut *first } else { last }) = Some((at, ends));
        let behind = first.as_ref().map(|(first, _)| Duration::from_millis(at.saturating_sub(*first)));
        behind.filter(|behind| self.stay.get().is_some_and(|stay| stay < behind))
    }

    /// The time before which everything has been read, if reading has reached these offsets; `None` if that
    /// has not changed since the last call.
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
    fn a_note_is_reached_once_all_partitions_are_read() {
        let as_of = AsOf::default();
        let read = |a: u64, b: u64| as_of.reached(&[(0, a), (1, b)].into());
        assert_eq!(read(9, 9), None);
        as_of.note(100, [(0, 5), (1, 7)].into());
        assert_eq!((read(4, 9), as_of.reached(&[(0, 9)].into())), (None, None));
        as_of.note(110, [(0, 6), (1, 8)].into());
        as_of.note(120, [(0, 7), (1, 9)].into());
        assert_eq!(read(5, 7), Some(100), "the first one is kept while others follow");
        assert_eq!((read(6, 8), read(7, 9)), (None, Some(120)));
        assert_eq!(read(100, 100), None, "it is returned once");
        as_of.note(130, [(0, 8), (1, 9)].into());
        as_of.note(140, [(0, 8), (1, 9)].into());
        assert_eq!((read(8, 9), read(8, 9)), (Some(140), None), "the last one counts");
    }

    #[test]
    fn reading_behind_the_tombstones_is_reported() {
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
