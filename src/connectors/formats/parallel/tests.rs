use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::bad_record::{BadRecord, RecordPlace};
use super::super::samples::{ReadResult, texts};
use super::*;

/// Synthetic parts: texts, records without documents, damage, and a record that ends its part.
struct SyntheticParts {
    parts: Vec<Vec<Arc<str>>>,
    opened: Arc<AtomicUsize>,
}

struct SyntheticPart<'a> {
    texts: &'a [Arc<str>],
    at: usize,
}

fn damage(ends: bool) -> Damage {
    Damage { reason: BadRecord::Unreadable, cause: None, place: RecordPlace::Whole, head: Vec::new(), ends }
}

impl ReadableParts for SyntheticParts {
    type PartItem = RowResult;

    fn count(&self) -> usize {
        self.parts.len()
    }

    fn read(&self, part: usize, each: &mut dyn FnMut(RowResult) -> bool) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        match part % 7 {
            3 => drop(each(Err(damage(true)))),
            5 => panic!("part {part}"),
            _ => each_record(&mut SyntheticPart { texts: &self.parts[part], at: 0 }, each),
        }
    }
}

impl RowReader for SyntheticPart<'_> {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        let Some(text) = self.texts.get(self.at) else { return Ok(NextRow::End) };
        self.at += 1;
        match self.at % 10 {
            3 => Ok(NextRow::Skipped("odd")),
            7 => Err(damage(false)),
            9 if self.texts.len().is_multiple_of(4) => Err(damage(true)),
            _ => {
                row.text = RowText::Is(text.as_bytes().to_vec());
                Ok(NextRow::Row)
            }
        }
    }
}

const MOST: usize = 128 << 20;

fn made(parts: Vec<Vec<Arc<str>>>) -> (Arc<SyntheticParts>, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    (Arc::new(SyntheticParts { parts, opened: Arc::clone(&opened) }), opened)
}

#[test]
fn the_order_of_parts_is_kept_for_any_number_of_threads() {
    let texts: Vec<Arc<str>> = texts(2000, 2).into_iter().map(Into::into).collect();
    let parts: Vec<_> = (0..40).map(|part| texts[part * 50..][..part % 13 * 4].to_vec()).collect();
    let mut expected = None;
    for threads in [0, 1, 2, 3, 8, 100] {
        let (made, opened) = made(parts.clone());
        let found = ReadResult::read_all(ParallelReader::new(made, threads, 1 << 20).unwrap(), 10_000);
        let read = (
            found.texts().iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(),
            found.skipped,
            found.damages,
        );
        assert_eq!(opened.load(Ordering::Relaxed), 40);
        assert!(!read.0.is_empty() && read.2.len() > 2 * (40 / 7));
        assert_eq!(&read, expected.get_or_insert_with(|| read.clone()), "{threads} threads");
    }
    let (none, _) = made(Vec::new());
    assert!(ReadResult::read_all(ParallelReader::new(none, 4, 1).unwrap(), 1).rows.is_empty());
}

#[test]
fn queued_bytes_are_bounded() {
    // Twice what may be queued in all, in parts that are each longer than the limit of a part.
    let text: Arc<str> = "x".repeat(1 << 20).into();
    let parts: Vec<_> = (0..6).map(|_| vec![Arc::clone(&text); 45]).collect();
    let (made, _) = made(parts);
    let mut ahead = ParallelReader::new(made, 6, MOST).unwrap();
    let mut row = FileRow::default();
    let mut rows = 0;
    loop {
        let (queued, most) = {
            let state = ahead.shared.state.lock();
            (state.bytes, state.queues.iter().map(|queue| queue.bytes).max().unwrap_or(0))
        };
        let batch = (1 << 20) + 1000;
        assert!(queued <= MOST + PART_BYTES + 6 * batch && most <= PART_BYTES + batch, "{queued}, {most}");
        match RowReader::next(&mut ahead, &mut row) {
            Ok(NextRow::End) => break,
            Ok(NextRow::Row) => rows += 1,
            Ok(NextRow::Skipped(_)) | Err(_) => {}
        }
    }
    assert_eq!(rows, 4 * (45 - 5 - 4), "one part cannot be opened, another one panics");
}

#[test]
fn a_reader_may_be_dropped_before_the_end() {
    let text: Arc<str> = "x".repeat(1 << 20).into();
    let (made, opened) = made(vec![vec![text; 45]; 50]);
    let mut ahead = ParallelReader::new(made, 4, MOST).unwrap();
    assert_eq!(RowReader::next(&mut ahead, &mut FileRow::default()), Ok(NextRow::Row));
    drop(ahead);
    assert!(opened.load(Ordering::Relaxed) < 50);
}
