use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::hash::mix;
use crate::memory::{PAGE_BYTES, PageFile, PlaceInMemory, SpillError};

/// A number, and a text that stays in memory if it is long. A value of 0 stays as a whole.
#[derive(Clone, Debug, PartialEq)]
struct Note {
    number: u64,
    value: u64,
    text: String,
}

const WIDTH: usize = 3 + 30;

impl RowValue for Note {
    type Rest = String;

    fn stays(&self) -> bool {
        self.value == 0
    }

    fn store(&self, row: &mut [u64]) {
        row.fill(self.number ^ self.value);
        (row[0], row[1]) = (self.number, self.value);
    }

    fn rest(self) -> Option<String> {
        (!self.text.is_empty()).then_some(self.text)
    }

    fn load(row: &[u64], rest: Option<String>) -> Self {
        assert!(row[2..].iter().all(|word| *word == row[0] ^ row[1]), "{row:?}");
        Self { number: row[0], value: row[1], text: rest.unwrap_or_default() }
    }
}

fn slab(pages: usize, passes: Option<u64>) -> SpilledSlab<Note> {
    SpilledSlab::create(&PlaceInMemory { passes }, WIDTH, PAGE_BYTES, pages * PAGE_BYTES)
}

/// Equal hashes for some numbers.
fn hash(number: u64) -> u64 {
    mix(number % 700)
}

fn find(slab: &SpilledSlab<Note>, number: u64) -> Option<u32> {
    slab.find(hash(number), |note| note.number == number)
}

/// Compared with a map: batches of insertions, changes and removals, with caches of 1, 2 and 16 pages.
#[test]
fn a_spilled_slab_is_a_map() {
    for pages in [1, 2, 16] {
        let (mut slab, mut map) = (slab(pages, None), BTreeMap::<u64, Note>::new());
        let (mut most, mut counts) = (0, SpillCounts::default());
        let (reader, mut places) = (slab.reader(), BTreeMap::new());
        for batch in 0..1500_u64 {
            // Sizes of batches, also those larger than the cache.
            let size = [1, 3, 40, 3][usize::try_from(mix(batch) % 4).unwrap()];
            let numbers: Vec<u64> = (0..size).map(|n| mix(batch << 8 | n) % 900).collect();
            slab.fetch(numbers.iter().map(|number| hash(*number)));
            for number in &numbers {
                let random = mix(number ^ batch << 20);
                let value = random % 4;
                let text =
                    if random.is_multiple_of(5) { format!("the text of {number}") } else { String::new() };
                let note = Note { number: *number, value, text };
                match find(&slab, *number) {
                    Some(place) if random % 16 < 10 => {
                        assert_eq!(slab.get(place), map.get(number));
                        if random % 16 < 5 {
                            *slab.get_mut(place).unwrap() = note.clone();
                            map.insert(*number, note);
                        }
                    }
                    Some(place) => {
                        assert_eq!(Some(slab.remove(hash(*number), place)), map.remove(number));
                        places.remove(number);
                    }
                    None => {
                        assert!(!map.contains_key(number));
                        let place = slab.insert(hash(*number), note.clone());
                        assert_eq!(reader.with(place, |row| row[1]), value, "it is in its row");
                        places.insert(*number, place);
                        map.insert(*number, note);
                        most = most.max(map.len());
                        assert!((place as usize) < most, "places are used again");
                    }
                }
                assert_eq!((slab.len(), slab.is_empty()), (map.len(), map.is_empty()));
            }
            counts += slab.take_counts();
            if batch % 50 == 49 {
                for (number, place) in &places {
                    assert_eq!(reader.with(*place, |row| row[0]), *number, "in memory or not");
                }
            }
            if batch % 300 == 299 {
                let mut all = BTreeMap::new();
                slab.for_each(|_, note| drop(all.insert(note.number, note.clone())));
                assert_eq!(all, map, "after batch {batch}");
            }
        }
        assert_eq!(counts.cached, (pages as u64).min(counts.bytes / PAGE_BYTES as u64));
        assert!(counts.reads > 500 && counts.rows > counts.reads && counts.writes > 500, "{counts:?}");
        let staying = map.values().filter(|note| note.value == 0).count();
        assert!(slab.present.len() <= staying + 40 + 20, "only the last batch is in memory");
        assert!(slab.rests.len() <= map.values().filter(|note| !note.text.is_empty()).count());
    }
}

/// What reads: a value that is on no page of the cache, once in a batch. Values that are added do not.
#[test]
fn reads_are_those_of_old_values() {
    let new = |number| Note { number, value: 1, text: String::new() };
    let mut slab = SpilledSlab::create(&PlaceInMemory::default(), WIDTH, PAGE_BYTES, 16 * PAGE_BYTES);
    let count = 200_000_u64;
    for from in (0..count).step_by(1000) {
        slab.fetch((from..from + 1000).map(mix));
        for number in from..from + 1000 {
            assert_eq!(slab.find(mix(number), |note: &Note| note.number == number), None);
            slab.insert(mix(number), new(number));
        }
    }
    slab.fetch(std::iter::empty());
    let counts = slab.take_counts();
    // The index compares 32 bits: of 200,000 look-ups about 5 meet a stranger, whose page is read.
    assert!(counts.reads < 20, "{counts:?}");
    let rows_of_page = (PAGE_BYTES / 8 / WIDTH) as u64;
    let pages = count.div_ceil(rows_of_page);
    assert_eq!(counts.bytes, pages * PAGE_BYTES as u64);
    assert_eq!(counts.writes, pages - 16, "each page once, as a whole");

    // One read for each page, however many rows of it are wanted, and more pages than the cache holds.
    let old = 0..50 * rows_of_page;
    slab.fetch(old.clone().map(mix));
    let fetched = slab.take_counts();
    assert_eq!((fetched.reads, fetched.writes), (50, 16));
    for number in old {
        let place = slab.find(mix(number), |note| note.number == number).unwrap();
        slab.get_mut(place).unwrap().value = 2;
    }
    // Rows of pages that are no longer cached are written alone, without a read.
    slab.fetch(std::iter::empty());
    let written = slab.take_counts();
    assert_eq!((written.reads, written.writes), (0, 34 * rows_of_page));
    slab.fetch([mix(0), mix(50 * rows_of_page - 1)].into_iter());
    for number in [0, 50 * rows_of_page - 1] {
        let place = slab.find(mix(number), |note| note.number == number).unwrap();
        assert_eq!(slab.get(place), Some(&Note { value: 2, ..new(number) }));
    }
}

/// A row that is longer than a page has a page of its own.
#[test]
fn long_rows_have_their_own_pages() {
    let width = PAGE_BYTES / 8 + 1;
    let mut slab = SpilledSlab::create(&PlaceInMemory::default(), width, PAGE_BYTES, 3 * PAGE_BYTES);
    for number in 1..=9 {
        slab.insert(mix(number), Note { number, value: number, text: String::new() });
    }
    slab.fetch(std::iter::empty());
    assert_eq!(slab.width(), width);
    slab.fetch((1..=9).map(mix));
    for number in 1..=9 {
        let place = slab.find(mix(number), |note| note.number == number).unwrap();
        assert_eq!(slab.get(place).map(|note| note.value), Some(number));
    }
    assert_eq!(slab.take_counts().bytes, 9 * 8 * width as u64);
}

/// A file that fails at each of its first reads and writes: the thread unwinds with the error.
#[test]
fn a_failing_file_unwinds_with_its_error() {
    let mut failures = 0;
    for passes in 0..400 {
        let run = || {
            let mut slab = slab(2, Some(passes));
            for batch in 0..100_u64 {
                let numbers = (0..9).map(|n| mix(batch << 8 | n) % 100);
                slab.fetch(numbers.clone().map(hash));
                for number in numbers {
                    match find(&slab, number) {
                        Some(place) => slab.get_mut(place).unwrap().value += 1,
                        None => {
                            slab.insert(hash(number), Note { number, value: 1, text: String::new() });
                        }
                    }
                }
            }
        };
        let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else { continue };
        let error = payload.downcast::<SpillError>().expect("it is the error of the file");
        let text = error.to_string();
        assert!(text.starts_with("spill: a temporary file in \"memory\" cannot be "), "{text}");
        assert!(text.contains("read: ") || text.contains("written: "), "{text}");
        failures += 1;
    }
    assert!(failures > 300, "{failures}");
}

/// Files whose `nth` write does nothing, and says that it did.
#[derive(Debug)]
struct LosingPlace {
    nth: u64,
}

#[derive(Debug)]
struct LosingFile {
    file: Box<dyn PageFile>,
    left: Cell<u64>,
}

impl SpillPlace for LosingPlace {
    fn open(&self) -> io::Result<Box<dyn PageFile>> {
        Ok(Box::new(LosingFile { file: PlaceInMemory::default().open()?, left: Cell::new(self.nth) }))
    }

    fn name(&self) -> String {
        "losing".to_owned()
    }
}

impl PageFile for LosingFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_lost = self.left.get() == 0;
        self.left.set(self.left.get().wrapping_sub(1));
        if is_lost {
            // Space that was never written is read as zeros.
            let mut old = vec![0; bytes.len()];
            drop(self.file.read_at(&mut old, offset));
            return self.file.write_at(&old, offset);
        }
        self.file.write_at(bytes, offset)
    }
}

#[test]
fn a_lost_write_is_not_read_as_if_it_were_there() {
    let mut found = 0;
    for nth in 0..30 {
        let run = || {
            let losing = LosingPlace { nth };
            let mut slab = SpilledSlab::create(&losing, WIDTH, PAGE_BYTES, 2 * PAGE_BYTES);
            for round in 0..3 {
                for number in 0..300 {
                    slab.fetch(std::iter::once(mix(number)));
                    match slab.find(mix(number), |note: &Note| note.number == number) {
                        Some(place) => slab.get_mut(place).unwrap().value += 1,
                        None => {
                            assert_eq!(round, 0, "{number} is gone");
                            slab.insert(mix(number), Note { number, value: 1, text: String::new() });
                        }
                    }
                }
            }
        };
        let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else { continue };
        let error = payload.downcast::<SpillError>().expect("it is the error of the file");
        let expected =
            "spill: a temporary file in \"losing\" cannot be read: it returns what was not written to it";
        assert_eq!(error.to_string(), expected);
        found += 1;
    }
    assert_eq!(found, 30);
}

#[test]
#[should_panic(expected = "what is looked up was fetched")]
fn a_look_up_without_a_fetch_is_refused() {
    let mut slab = slab(1, None);
    slab.insert(hash(1), Note { number: 1, value: 1, text: String::new() });
    slab.fetch(std::iter::empty());
    find(&slab, 1);
}
