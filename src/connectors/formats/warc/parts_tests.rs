use std::sync::atomic::{AtomicU64, Ordering};

use super::super::super::layout::WarcId;
use super::super::tests::{containers, conversion, gzip_at, nested_members, record};
use super::*;
use crate::formats::InMemory;
use crate::formats::RowText;
use crate::formats::samples::{ReadResult, columns, harmed, texts};

/// Everything in a file, read in order by one thread.
fn whole(bytes: &[u8]) -> ReadResult {
    found(Warc::new(Box::new(io::Cursor::new(bytes.to_vec())), &columns(&["url"]), WarcId::Record))
}

fn in_parts(file: Arc<dyn RandomAccess>, part_bytes: u64, threads: usize) -> ParallelArchive {
    let archive = WarcArchive::cut_every(part_bytes, file, &columns(&["url"]), WarcId::Record);
    ParallelArchive::new(archive, threads, Arc::default()).unwrap()
}

fn found(rows: impl RowReader) -> ReadResult {
    ReadResult::read_all(rows, 100_000)
}

fn stored(bytes: &[u8]) -> Arc<dyn RandomAccess> {
    Arc::new(InMemory::new(bytes.into()))
}

/// Records of different lengths, so that some units are longer than a part and some shorter; one is
/// truncated.
fn records() -> Vec<Vec<u8>> {
    let mut records: Vec<_> =
        texts(60, 5).iter().enumerate().map(|(number, text)| conversion(number, text)).collect();
    records.push(record("response", "WARC-Truncated: length\r\nContent-Type: text/html\r\n", b"<html>cut"));
    records.push(record("warcinfo", "", b"software: x"));
    records
}

#[test]
fn parts_give_the_records_of_a_single_thread() {
    for (name, file) in containers(&records()).into_iter().skip(1) {
        let expected = whole(&file);
        assert_eq!((expected.rows.len(), expected.cut), (61, 1), "{name}");
        for part_bytes in [1, 100, 1000, 5000, 1 << 20] {
            for threads in [1, 2, 5] {
                let found = found(in_parts(stored(&file), part_bytes, threads));
                assert_eq!(found, expected, "{name}, parts of {part_bytes}, {threads} threads");
            }
        }
    }
}

#[test]
fn parts_of_damaged_files_give_the_records_of_a_single_thread() {
    for (name, file) in containers(&records()).into_iter().skip(1) {
        let mut damages = 0;
        for (number, (harm, at, bytes)) in harmed(&file, 300, 11).enumerate() {
            let expected = whole(&bytes);
            damages += expected.damages.len();
            let part_bytes = [50, 700, 3000][number % 3];
            let found = found(in_parts(stored(&bytes), part_bytes, 3));
            let what = format!("{name}: {harm:?} at {at}, parts of {part_bytes}");
            assert_eq!(found.damages, expected.damages, "{what}");
            assert!(found == expected, "{what}");
        }
        assert!(damages > 100, "{name}");
    }
}

/// Units that are documents of other units, stored uncompressed: the search finds beginnings of parts inside
/// them, which are wrong.
#[test]
fn an_archive_in_an_archive_is_a_document() {
    let inner: Vec<u8> = (0..50).flat_map(|number| gzip_at(9, &conversion(number, "inner"))).collect();
    let outer = record("resource", "Content-Type: application/warc\r\n", &inner);
    let units: Vec<_> = [conversion(1, "first"), outer, conversion(2, "last")].to_vec();
    let file: Vec<u8> = units.iter().flat_map(|unit| gzip_at(0, unit)).collect();
    let expected = whole(&file);
    assert_eq!((expected.texts(), expected.skipped.len()), (vec!["first", "last"], 1));
    let archive = WarcArchive::cut_every(500, stored(&file), &columns(&[]), WarcId::Record);
    let mut wrong = 0;
    for part in 0..archive.count() {
        archive.read(part, &mut |piece| {
            let inner_text = RowText::Is(b"inner".to_vec());
            let is_inner =
                matches!(piece, ArchivePiece::Record(Ok((NextRow::Row, row))) if row.text == inner_text);
            wrong += usize::from(is_inner);
            true
        });
    }
    assert!(wrong > 10, "parts that begin wrongly read {wrong} documents");
    for part_bytes in [100, 500, 1500] {
        assert_eq!(found(in_parts(stored(&file), part_bytes, 2)), expected, "parts of {part_bytes}");
    }
}

/// Damage at the end of a unit of several records, one of which is an archive: the search for the next unit
/// begins after the bytes that were read.
#[test]
fn bytes_before_damage_are_not_searched() {
    let inner: Vec<u8> = (0..50).flat_map(|number| gzip_at(9, &conversion(number, "inner"))).collect();
    let outer = record("resource", "Content-Type: application/warc\r\n", &inner);
    let mut records = vec![conversion(1, "first"), outer];
    // Long enough to be decompressed in several steps.
    records.extend(texts(300, 4).iter().map(|text| conversion(2, text)));
    let mut unit = gzip_at(0, &records.concat());
    let sum = unit.len() - 8;
    unit[sum] ^= 1;
    let file = [unit, gzip_at(0, &conversion(3, "last"))].concat();
    let expected = whole(&file);
    assert_eq!((expected.damages.len(), expected.texts().last()), (1, Some(&"last")));
    assert!(
        expected.rows.len() > 200 && !expected.texts().contains(&"inner"),
        "{} rows",
        expected.rows.len()
    );
    for part_bytes in [100, 500, 1500, 10_000, 100_000] {
        assert!(found(in_parts(stored(&file), part_bytes, 2)) == expected, "parts of {part_bytes}");
    }
}

/// The search for a unit may continue beyond the end of a part, by the cost of the units before it.
#[test]
fn nested_members_are_searched_alike() {
    let nested = nested_members(100_000);
    let good: Vec<u8> =
        (0..50_u32).flat_map(|number| gzip_at(number % 10, &conversion(1, "of some length"))).collect();
    let cut = &nested[..nested.len() - 700];
    let file = [&good[..], &nested, &good, cut, &good].concat();
    let expected = whole(&file);
    assert!(expected.rows.len() >= 100 && expected.damages.len() > 10, "{} damages", expected.damages.len());
    for part_bytes in [300, 7000, 50_000] {
        assert!(found(in_parts(stored(&file), part_bytes, 3)) == expected, "parts of {part_bytes}");
    }
}

#[test]
fn a_read_error_ends_the_file() {
    /// A file that can be read up to this offset.
    #[derive(Debug)]
    struct FailingFile(InMemory, u64, AtomicU64);
    impl RandomAccess for FailingFile {
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }

        fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
            if from + buffer.len() as u64 > self.1 {
                self.2.fetch_add(1, Ordering::Relaxed);
                return Err(io::Error::other("the disk is gone"));
            }
            self.0.read_at(from, buffer)
        }
    }
    let text = texts(1, 8).remove(0).repeat(20);
    let records: Vec<_> = (0..2000).map(|number| conversion(number, &format!("{number} {text}"))).collect();
    let file: Vec<u8> = records.iter().flat_map(|record| gzip_at(0, record)).collect();
    let most = file.len() as u64 / 2;
    let failing = Arc::new(FailingFile(InMemory::new(file.into()), most, AtomicU64::new(0)));
    let found = found(in_parts(Arc::clone(&failing) as Arc<dyn RandomAccess>, 1 << 17, 2));
    assert!(found.damages.len() == 1 && found.damages[0].ends, "{:?}", found.damages);
    assert!(found.rows.len() > 100 && found.rows.len() < 1100, "{} rows", found.rows.len());
}
