//! What a source reports about itself before a run begins, and the time as of which it has been read.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;

use crate::mark::{Mark, Topic};
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

impl SourceInfo {
    /// The source as an earlier run has read it: a topic that was compacted then has lost records and
    /// tombstones, whatever its policy is now.
    #[must_use]
    pub fn as_read(&self, kept: &Mark) -> Self {
        let of_this = self.topic.as_ref().zip(kept.input.as_ref()).is_some_and(|(is, was)| was.is(is));
        let Some(was) = kept.deletes_kept_ms.filter(|_| of_this).map(Duration::from_millis) else {
            return self.clone();
        };
        let tombstones = match self.tombstones {
            Some(now @ Tombstones { is_known: true, .. }) => Tombstones { stay: now.stay.min(was), ..now },
            _ => Tombstones { stay: was, all_held: self.holds_all(&kept.start), is_known: true },
        };
        Self { repeats: false, tombstones: Some(tombstones), ..self.clone() }
    }

    /// Whether nothing has expired since these first offsets. Compaction removes no first offsets.
    pub fn holds_all(&self, start: &Offsets) -> bool {
        let start = |partition: &u32| start.get(partition).copied().unwrap_or(0);
        let is_held = |(partition, (first, _)): (&u32, &(u64, u64))| *first <= start(partition);
        self.held.as_ref().is_some_and(|held| held.iter().all(is_held))
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

/// The place of a record that was read, where the source holds another one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedRecord {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: u64,
}

/// Tracks the time as of which a run has read its input. The source notes from time to time where its
/// partitions end. Once everything before the noted ends has been read, all records that were written before
/// the note have been read: the note is *reached*.
///
/// If tombstones are kept for a limited time, reading is late once the last reached note is older than that
/// and records were written since: some of them may have been tombstones that are removed already. On an idle
/// input every note is reached at once. After reading was late, nothing is reached any more: the run has to
/// end without a commit, so that the next one finds how old its documents are.
///
/// Invariant: of the notes that have not been reached, the first and the last are kept. So a run that is
/// always behind still advances.
#[derive(Debug, Default)]
pub struct AsOf(Mutex<AsOfState>);

#[derive(Debug, Default)]
struct AsOfState {
    /// How long tombstones are kept; `None` if they are kept forever, or for too short a time to judge.
    stay: Option<Duration>,
    /// The last reached note, or the beginning; `None` until one of them is known.
    reached: Option<Note>,
    /// The first and the last unreached note.
    waiting: (Option<Note>, Option<Note>),
    /// How far the input has been read.
    read: Offsets,
    /// How late reading was, once it was.
    late: Option<LateReading>,
}

/// A time, and the ends of all partitions then.
type Note = (u64, Offsets);

/// A time for which no tombstone can be relied on, since reading itself takes as long.
const LEAST_STAY: Duration = Duration::from_secs(1);

/// The shortest interval between two notes.
const LEAST_INTERVAL: Duration = Duration::from_millis(250);

/// Notes for each time that tombstones are kept, at least: then a run that keeps up is never late.
const NOTES_A_STAY: u32 = 4;

/// Reading is behind for longer than the compacted input keeps tombstones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "reading is behind for longer than the compacted topic keeps the ends of documents \
    (delete.retention.ms = {}): it had last read everything {} s ago, and ends of documents may have been \
    removed unread; start again, which reads the whole input again and corrects the output; raise \
    delete.retention.ms above the longest pause", .stay.as_millis(), .behind.as_secs()
)]
pub struct LateReading {
    /// How long ago everything had been read.
    pub behind: Duration,
    /// How long tombstones are kept.
    pub stay: Duration,
}

impl AsOf {
    /// Begins at these offsets. `at`: as of when everything before them was read; `None` if nothing was, and
    /// then it is the time of the first note. `stay`: how long tombstones are kept, if not forever.
    pub fn begin(&self, at: Option<u64>, begin: &Offsets, stay: Option<Duration>) {
        *self.0.lock() = AsOfState {
            stay: stay.filter(|stay| *stay >= LEAST_STAY),
            reached: at.map(|at| (at, begin.clone())),
            read: begin.clone(),
            ..AsOfState::default()
        };
    }

    /// The interval at which to note the ends, at most `usual`.
    pub fn interval(&self, usual: Duration) -> Duration {
        let stay = self.0.lock().stay;
        stay.map_or(usual, |stay| usual.min((stay / NOTES_A_STAY).max(LEAST_INTERVAL)))
    }

    /// Notes the ends of the partitions, as of a time before they were read.
    ///
    /// # Errors
    /// If reading is or was late.
    pub fn note(&self, at: u64, ends: Offsets) -> Result<(), LateReading> {
        let mut state = self.0.lock();
        if state.reached.is_none() {
            state.reached = Some((at, state.read.clone()));
        }
        state.judge(at, &ends)?;
        if is_reached(&ends, &state.read) {
            state.reached = Some((at, ends));
            state.waiting = (None, None);
        } else {
            let (first, last) = &mut state.waiting;
            *(if first.is_none() { first } else { last }) = Some((at, ends));
        }
        Ok(())
    }

    /// Reading has reached these offsets, by the time `now`. Returns the time before which everything has
    /// been read, if it is known.
    ///
    /// # Errors
    /// If reading is or was late.
    pub fn reached(&self, next: &Offsets, now: u64) -> Result<Option<u64>, LateReading> {
        let mut state = self.0.lock();
        state.judge(now, next)?;
        state.read.clone_from(next);
        let AsOfState { reached, waiting: (first, last), .. } = &mut *state;
        let is_read = |note: &Option<Note>| note.as_ref().is_some_and(|(_, ends)| is_reached(ends, next));
        if is_read(last) {
            (*reached, *first) = (last.take(), None);
        } else if is_read(first) {
            *reached = std::mem::replace(first, last.take());
        }
        Ok(reached.as_ref().map(|(at, _)| *at))
    }
}

impl AsOfState {
    /// Checks that nothing written since the last reached note, up to these offsets, may be a tombstone that
    /// was removed by `now`.
    fn judge(&mut self, now: u64, up_to: &Offsets) -> Result<(), LateReading> {
        if let (None, Some(stay), Some((at, ends))) = (self.late, self.stay, &self.reached) {
            let behind = Duration::from_millis(now.saturating_sub(*at));
            self.late = (behind > stay && !is_reached(up_to, ends)).then_some(LateReading { behind, stay });
        }
        self.late.map_or(Ok(()), Err)
    }
}

/// Whether everything before `ends` has been read.
fn is_reached(ends: &Offsets, read: &Offsets) -> bool {
    ends.iter().all(|(partition, end)| *end <= read.get(partition).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(a: u64, b: u64) -> Offsets {
        [(0, a), (1, b)].into()
    }

    /// A topic that was compacted when it was read, by its policy now.
    #[test]
    fn a_policy_is_remembered() {
        let seconds = Duration::from_secs;
        let topic = |id: &str| Some(Topic { name: "t".to_owned(), id: Some(id.to_owned()) });
        let kept = Mark { input: topic("1"), deletes_kept_ms: Some(9_000), ..Mark::default() };
        let now = |id: &str, first, tombstones: Option<Tombstones>| SourceInfo {
            topic: topic(id),
            repeats: tombstones.is_none(),
            tombstones,
            held: Some([(0, (first, 20))].into()),
            at: 0,
        };
        let known = |stay, all_held| Tombstones { stay: seconds(stay), all_held, is_known: true };
        let unknown = Tombstones { is_known: false, ..known(86_400, false) };
        for (first, is, was) in [
            (0, None, known(9, true)),
            (1, None, known(9, false)),
            (0, Some(known(60, true)), known(9, true)),
            (1, Some(known(5, false)), known(5, false)),
            (0, Some(unknown), known(9, true)),
        ] {
            let read = now("1", first, is).as_read(&kept);
            assert_eq!((read.tombstones, read.repeats), (Some(was), false), "{first} {is:?}");
        }
        assert_eq!(now("2", 0, None).as_read(&kept), now("2", 0, None), "another topic");
        let never = Mark { deletes_kept_ms: None, ..kept };
        assert_eq!(now("1", 0, None).as_read(&never), now("1", 0, None));
    }

    #[test]
    fn a_note_is_reached_once_all_partitions_are_read() {
        let as_of = AsOf::default();
        let read = |a: u64, b: u64| as_of.reached(&at(a, b), 0).unwrap();
        assert_eq!(read(4, 4), None);
        as_of.note(100, at(5, 7)).unwrap();
        as_of.note(105, at(5, 7)).unwrap();
        assert_eq!((read(4, 9), as_of.reached(&[(0, 9)].into(), 0).unwrap()), (Some(100), Some(100)));
        as_of.note(110, at(6, 8)).unwrap();
        as_of.note(120, at(7, 9)).unwrap();
        assert_eq!(read(5, 7), Some(100), "the first one is kept while others follow");
        assert_eq!((read(6, 8), read(7, 9)), (Some(100), Some(120)));
        assert_eq!(read(100, 100), Some(120));
        as_of.note(130, at(8, 9)).unwrap();
        assert_eq!(read(100, 100), Some(130), "nothing was to be read");
        as_of.note(140, at(101, 100)).unwrap();
        as_of.note(150, at(101, 100)).unwrap();
        assert_eq!((read(101, 100), read(101, 100)), (Some(150), Some(150)), "the last one counts");
    }

    /// Pauses of a run, longer than tombstones are kept (9 s) and shorter, with and without records written
    /// meanwhile, found by a note or by a commit first.
    #[test]
    fn reading_is_late_by_the_last_reached_note() {
        for (pause, written, is_late) in [(8_000, 1, false), (10_000, 1, true), (10_000, 0, false)] {
            for commits_first in [false, true] {
                let as_of = AsOf::default();
                as_of.begin(Some(1_000), &at(5, 5), Some(Duration::from_secs(9)));
                as_of.note(2_000, at(7, 5)).unwrap();
                assert_eq!(as_of.reached(&at(8, 5), 2_500), Ok(Some(2_000)), "busy: no note is waiting");
                as_of.note(3_000, at(8, 5)).unwrap();
                let (resumed, end) = (3_000 + pause, at(8, 5 + written));
                let commit = || as_of.reached(&end, resumed);
                let found = if commits_first {
                    commit().and_then(|_| as_of.note(resumed, end.clone()))
                } else {
                    as_of.note(resumed, end.clone()).and_then(|()| commit().map(drop))
                };
                assert_eq!(found.is_err(), is_late, "{pause} {written} {commits_first}");
                assert_eq!(as_of.reached(&end, resumed).is_err(), is_late, "late once is late for ever");
                if !is_late {
                    assert_eq!(as_of.reached(&end, resumed), Ok(Some(resumed)));
                }
            }
        }
    }

    /// Nothing happens on the input for days, and no epoch is closed.
    #[test]
    fn an_idle_input_is_never_late() {
        let as_of = AsOf::default();
        as_of.begin(Some(0), &at(5, 5), Some(Duration::from_secs(5)));
        for second in 1..1_000 {
            assert_eq!(as_of.note(second * 60_000, at(5, 5)), Ok(()));
        }
        // The network was away, and looks had no answer.
        assert_eq!(as_of.note(999_000_000, at(5, 5)), Ok(()));
        assert_eq!(as_of.note(999_001_000, at(5, 6)), Ok(()));
        assert_eq!(as_of.reached(&at(5, 6), 999_002_000), Ok(Some(999_001_000)));
    }

    /// A run without a state begins to read at its first note.
    #[test]
    fn a_first_reading_begins_at_the_first_note() {
        let as_of = AsOf::default();
        as_of.begin(None, &at(0, 0), Some(Duration::from_secs(9)));
        assert_eq!(as_of.note(50_000, at(9, 9)), Ok(()));
        assert_eq!(as_of.reached(&at(3, 3), 59_000), Ok(Some(50_000)));
        assert!(as_of.reached(&at(4, 4), 59_001).is_err());
    }

    /// Not having read for long what was there at the beginning is late too.
    #[test]
    fn catching_up_has_to_end_in_time() {
        let begun = |stay| {
            let as_of = AsOf::default();
            as_of.begin(Some(1_000), &at(0, 0), Some(Duration::from_secs(stay)));
            as_of.note(1_500, at(9, 9)).unwrap();
            as_of
        };
        let late = LateReading { behind: Duration::from_millis(9_001), stay: Duration::from_secs(9) };
        assert_eq!(begun(9).reached(&at(3, 3), 10_001), Err(late));
        assert_eq!(begun(10).reached(&at(9, 9), 10_001), Ok(Some(1_500)));
        assert_eq!(begun(0).reached(&at(3, 3), 99_000), Ok(Some(1_000)), "too short to judge");
        let text = late.to_string();
        assert!(text.contains("behind for longer") && text.contains("delete.retention.ms = 9000"), "{text}");
    }

    #[test]
    fn notes_follow_each_other_while_tombstones_are_kept() {
        let as_of = AsOf::default();
        let interval = |stay: Option<u64>| {
            as_of.begin(None, &Offsets::new(), stay.map(Duration::from_millis));
            as_of.interval(Duration::from_secs(30)).as_millis()
        };
        assert_eq!([None, Some(0), Some(1_000), Some(8_000)].map(interval), [30_000, 30_000, 250, 2_000]);
        assert_eq!(interval(Some(86_400_000)), 30_000);
    }
}
