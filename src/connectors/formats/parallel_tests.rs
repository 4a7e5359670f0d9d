use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::bad_record::{BadRecord, Place};
use super::super::samples::{Found, texts};
use super::*;

/// Synthetic parts: texts, records without documents, damage, and a record that ends its part.
struct Made {
    parts: Vec<Vec<Arc<str>>>,
    opened: Arc<AtomicUsize>,
}

struct Part<'a> {
    texts: &'a [Arc<str>],
    at: usize,
}

fn damage(ends: bool) -> Damage {
    Damage { reason: BadRecord::Unreadable, cause: None, place: Place::Whole, head: Vec::new(), ends }
}

impl Parts for Made {
    type Piece = Record;

    fn count(&self) -> usize {
        self.parts.len()
    }

    fn read(&self, part: usize, each: &mut dyn FnMut(Record) -> bool) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        match part % 7 {
            3 => drop(each(Err(damage(true)))),
            5 => panic!("part {part}"),
            _ => each_record(&mut Part { texts: &self.parts[part], at: 0 }, each),
        }
    }
}

impl Rows for Part<'_> {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        let Some(text) = self.texts.get(self.at) else { return Ok(Next::End) };
        self.at += 1;
        match self.at % 10 {
            3 => Ok(Next::Skipped("odd")),
            7 => Err(damage(false)),
            9 if self.texts.len().is_multiple_of(4) => Err(damage(true)),
            _ => {
                row.text = Text::Is(text.as_bytes().to_vec());
                Ok(Next::Row)
            }
        }
    }
}

const MOST: usize = 128 << 20;

fn made(parts: Vec<Vec<Arc<str>>>) -> (Arc<Made>, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    (Arc::new(Made { parts, opened: Arc::clone(&opened) }), opened)
}

#[test]
fn the_order_is_that_of_the_parts_whatever_the_threads() {
    let texts: Vec<Arc<str>> = texts(2000, 2).into_iter().map(Into::into).collect();
    let parts: Vec<_> = (0..40).map(|part| texts[part * 50..][..part % 13 * 4].to_vec()).collect();
    let mut expected = None;
    for threads in [0, 1, 2, 3, 8, 100] {
        let (made, opened) = made(parts.clone());
        let found = Found::of(Ahead::new(made, threads, 1 << 20).unwrap(), 10_000);
        let told = (
            found.texts().iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(),
            found.skipped,
            found.damages,
        );
        assert_eq!(opened.load(Ordering::Relaxed), 40);
        assert!(!told.0.is_empty() && told.2.len() > 2 * (40 / 7));
        assert_eq!(&told, expected.get_or_insert_with(|| told.clone()), "{threads} threads");
    }
    let (none, _) = made(Vec::new());
    assert!(Found::of(Ahead::new(none, 4, 1).unwrap(), 1).rows.is_empty());
}

#[test]
fn what_waits_is_bounded() {
    // Twice what may be queued in all, in parts that are each longer than the limit of a part.
    let text: Arc<str> = "x".repeat(1 << 20).into();
    let parts: Vec<_> = (0..6).map(|_| vec![Arc::clone(&text); 45]).collect();
    let (made, _) = made(parts);
    let mut ahead = Ahead::new(made, 6, MOST).unwrap();
    let mut row = Row::default();
    let mut rows = 0;
    loop {
        let (queued, most) = {
            let state = ahead.shared.state.lock();
            (state.bytes, state.queues.iter().map(|queue| queue.bytes).max().unwrap_or(0))
        };
        let batch = (1 << 20) + 1000;
        assert!(queued <= MOST + PART_BYTES + 6 * batch && most <= PART_BYTES + batch, "{queued}, {most}");
        match Rows::next(&mut ahead, &mut row) {
            Ok(Next::End) => break,
            Ok(Next::Row) => rows += 1,
            Ok(Next::Skipped(_)) | Err(_) => {}
        }
    }
    assert_eq!(rows, 4 * (45 - 5 - 4), "one part cannot be opened, another one panics");
}

#[test]
fn nobody_has_to_read_to_the_end() {
    let text: Arc<str> = "x".repeat(1 << 20).into();
    let (made, opened) = made(vec![vec![text; 45]; 50]);
    let mut ahead = Ahead::new(made, 4, MOST).unwrap();
    assert_eq!(Rows::next(&mut ahead, &mut Row::default()), Ok(Next::Row));
    drop(ahead);
    assert!(opened.load(Ordering::Relaxed) < 50);
}
