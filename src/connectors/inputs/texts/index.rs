//! A sparse index of the records of recorded inputs, filled while they are read.
//!
//! It has the number of the first record of each input. For an input that can be read from the middle it also
//! has *points* (byte, number of the next record), at the first line after each stride. The stride is
//! [`STRIDE_BYTES`] at first; whenever there are [`MOST_POINTS`] points, every second one is dropped and the
//! stride doubles. So the index takes 32 bytes a point, at most 2 MiB, and 8 bytes for each input. Finding
//! a record in 16 GiB reads 256 KiB; in 1 TiB, 32 MiB.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::input::{Input, InputPlace};
use super::super::stamp::FileStamp;

/// The initial stride: 256 KiB.
const STRIDE_BYTES: u64 = 256 << 10;

/// Maximum number of points, exclusive.
const MOST_POINTS: usize = 1 << 16;

/// The index: written by the reader, read by the threads that read texts back.
#[derive(Debug)]
pub struct RecordIndex(Mutex<IndexState>);

#[derive(Debug)]
struct IndexState {
    /// Each input that has begun, and the number of its first record.
    begins: Vec<(u64, Input)>,
    /// The records of each of them before the first that was read of it here.
    skipped: Vec<u64>,
    /// The state of each of them when it began, if it is a file.
    stamps: Vec<Option<FileStamp>>,
    points: Vec<IndexPoint>,
    stride: u64,
    /// How many of the first inputs are a reference.
    reference: usize,
    /// The number of records, once all inputs have been read.
    end: Option<u64>,
}

/// An input that has been read to its end.
#[derive(Clone, Debug)]
pub(crate) struct ReadInput {
    pub(crate) input: Input,
    /// The numbers of its records.
    pub(crate) records: Range<u64>,
    /// The state of the file when reading began; `None` if it is no file.
    pub(crate) stamp: Option<FileStamp>,
}

/// The beginning of a line of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexPoint {
    input: u32,
    byte: u64,
    record: u64,
    line: u64,
}

/// From where a record is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchStart {
    /// The input that has the record.
    pub(crate) input: Input,
    /// The number of the input's first record.
    pub(crate) first: u64,
    /// A byte at which a line begins.
    pub(crate) byte: u64,
    /// The number of the first record from that byte on.
    pub(crate) record: u64,
    /// The number of the line that begins there, from 1.
    pub(crate) line: u64,
    /// Whether the input is still being read: a record that is not found may be added later.
    pub(crate) is_open: bool,
}

impl Default for RecordIndex {
    fn default() -> Self {
        Self(Mutex::new(IndexState {
            begins: Vec::new(),
            skipped: Vec::new(),
            stamps: Vec::new(),
            points: Vec::new(),
            stride: STRIDE_BYTES,
            reference: 0,
            end: None,
        }))
    }
}

impl RecordIndex {
    fn with<T>(&self, f: impl FnOnce(&mut IndexState) -> T) -> T {
        f(&mut self.0.lock())
    }

    /// Begins the next input with this record, before which it has `skipped` others; returns the byte from
    /// which on its first point is due.
    pub(crate) fn begin(&self, record: u64, skipped: u64, input: &Input) -> u64 {
        let stamp = match &input.place {
            InputPlace::File(path) => FileStamp::read(path).ok(),
            _ => None,
        };
        self.with(|noted| {
            noted.begins.push((record, input.clone()));
            noted.stamps.push(stamp);
            noted.skipped.push(skipped);
            noted.stride
        })
    }

    /// Adds a point: this line of the last input, counted from 1, begins at this byte, before this record.
    /// Returns the byte from which on the next point is due.
    pub(crate) fn note(&self, byte: u64, record: u64, line: u64) -> u64 {
        self.with(|noted| {
            let input = u32::try_from(noted.begins.len().saturating_sub(1)).unwrap_or(u32::MAX);
            noted.points.push(IndexPoint { input, byte, record, line });
            if noted.points.len() == MOST_POINTS {
                let mut keep = false;
                noted.points.retain(|_| {
                    keep = !keep;
                    keep
                });
                noted.stride *= 2;
            }
            byte + noted.stride
        })
    }

    /// Notes that all inputs have been read, which have this number of records.
    pub(crate) fn end(&self, records: u64) {
        self.with(|noted| noted.end = Some(records));
    }

    /// Notes that the inputs so far are a reference.
    pub(crate) fn end_reference(&self) {
        self.with(|noted| noted.reference = noted.begins.len());
    }

    /// All inputs in the order in which they were read, if they were read to the end, without those of a
    /// reference. A folder is an input before, between and after its files of records.
    pub(crate) fn inputs(&self) -> Option<Vec<ReadInput>> {
        self.with(|noted| {
            let ends = noted.begins.iter().skip(1).map(|(begin, _)| *begin).chain([noted.end?]);
            let all = noted.begins.iter().zip(&noted.stamps).zip(ends);
            let one = |(((begin, input), stamp), end): ((&(u64, Input), &Option<FileStamp>), u64)| {
                ReadInput { input: input.clone(), records: *begin..end, stamp: *stamp }
            };
            Some(all.map(one).skip(noted.reference).collect())
        })
    }

    /// The name of the input that has a record; `None` while no input has begun.
    pub fn input_name(&self, record: u64) -> Option<Arc<str>> {
        self.find(record).map(|found| found.input.name())
    }

    /// From where to look for a record; `None` while no input has begun.
    pub(crate) fn find(&self, record: u64) -> Option<SearchStart> {
        self.with(|noted| {
            // Several inputs may begin with the same record; all except the last are empty.
            let input = noted.begins.partition_point(|(begin, _)| *begin <= record).checked_sub(1)?;
            let is_open = noted.end.is_none() && input + 1 == noted.begins.len();
            let before = noted.points.partition_point(|point| point.record <= record);
            let point = before.checked_sub(1).map(|at| noted.points[at]);
            let point = point.filter(|point| point.input as usize == input);
            let (begin, of) = &noted.begins[input];
            let first = begin.saturating_sub(noted.skipped[input]);
            let (byte, from, line) =
                point.map_or((0, first, 1), |point| (point.byte, point.record, point.line));
            Some(SearchStart { input: of.clone(), first, byte, record: from, line, is_open })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_starts_at_the_last_point_before_the_record() {
        let places = RecordIndex::default();
        let input = |n: u64| Input::at(n.to_string().as_ref());
        assert_eq!(places.find(0), None);
        assert_eq!(places.begin(0, 0, &input(0)), STRIDE_BYTES);
        assert_eq!(places.note(STRIDE_BYTES + 7, 90, 93), 2 * STRIDE_BYTES + 7);
        let from = |n, first, byte, record, is_open| {
            let line = if byte == 0 { 1 } else { record + 3 };
            Some(SearchStart { input: input(n), first, byte, record, line, is_open })
        };
        assert_eq!(places.find(89), from(0, 0, 0, 0, true));
        assert_eq!(places.find(90), from(0, 0, STRIDE_BYTES + 7, 90, true));
        // Two empty inputs, and one with records.
        for n in 1..=3 {
            places.begin(100, 0, &input(n));
        }
        assert_eq!(places.find(99), from(0, 0, STRIDE_BYTES + 7, 90, false));
        assert_eq!(places.find(100), from(3, 100, 0, 100, true));
        assert!(places.inputs().is_none());
        places.end(107);
        let ranges = places.inputs().unwrap().into_iter().map(|read| read.records);
        assert_eq!(ranges.collect::<Vec<_>>(), [0..100, 100..100, 100..100, 100..107]);
        assert_eq!(places.find(1000), from(3, 100, 0, 100, false));
    }

    #[test]
    fn the_index_is_bounded_and_evenly_spaced() {
        let places = RecordIndex::default();
        let mut due = places.begin(0, 0, &Input::at("feed".as_ref()));
        for record in 0..5 * MOST_POINTS as u64 {
            // Each line is as long as a stride.
            let byte = record * STRIDE_BYTES;
            if byte >= due {
                due = places.note(byte, record, record + 1);
            }
        }
        places.with(|noted| {
            assert!(noted.points.len() < MOST_POINTS && noted.points.len() > MOST_POINTS / 2);
            assert_eq!(noted.stride, 8 * STRIDE_BYTES);
            let apart = noted.points.windows(2).map(|two| two[1].byte - two[0].byte);
            assert!(apart.into_iter().all(|apart| (noted.stride..2 * noted.stride).contains(&apart)));
        });
        for record in [0, 7, 1_000, 1_007, 300_000] {
            let from = places.find(record).unwrap();
            assert!(from.record <= record && from.record + 16 > record, "{record}: {from:?}");
            assert_eq!(from.byte, from.record * STRIDE_BYTES);
        }
    }
}
