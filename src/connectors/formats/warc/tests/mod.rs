use std::io::{Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::super::bad_record::RecordPlace;
use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::layout::WarcId;
use super::super::rows::{FileRow, NextRow, RowReader as _, RowText};
use super::super::samples::{Harm, ReadResult, columns, harmed, texts};
use super::Warc;
use super::fields::MAX_HEAD;

/// One record, in the form that writers use.
pub(super) fn record(kind: &str, more: &str, block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n{more}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

pub(super) fn conversion(number: usize, text: &str) -> Vec<u8> {
    let more = format!(
        "WARC-Target-URI: https://example.org/{number}\r\nWARC-Date: 2024-05-06T07:08:09Z\r\n\
         WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\nContent-Type: text/plain\r\n"
    );
    record("conversion", &more, text.as_bytes())
}

fn response(http: &[u8]) -> Vec<u8> {
    let more =
        "WARC-Target-URI: <https://example.org/>\r\nContent-Type: application/http; msgtype=response\r\n";
    record("response", more, http)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_at(1, bytes)
}

/// Gzip at a level from 0 (stored) to 9.
pub(super) fn gzip_at(level: u32, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame with a checksum, as `zstd` writes it.
fn zstd_frame(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::with_dictionary(Vec::new(), 1, dictionary).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn warc(bytes: Vec<u8>) -> Warc {
    Warc::new(Box::new(Cursor::new(bytes)), &columns(&[]), WarcId::Record)
}

fn read(bytes: impl Into<Vec<u8>>) -> ReadResult {
    ReadResult::read_all(warc(bytes.into()), 100_000)
}

/// A reader that returns a few bytes at a time.
struct SlowCursor(Cursor<Vec<u8>>, usize);

impl Read for SlowCursor {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(self.1);
        self.0.read(&mut out[..most])
    }
}

/// The containers that a file of records may have.
pub(super) fn containers(records: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let each =
        |pack: &dyn Fn(&[u8]) -> Vec<u8>| records.iter().flat_map(|record| pack(record)).collect::<Vec<_>>();
    let dictionary = conversion(0, "a text that others are like").repeat(3);
    let skippable = |magic: u8, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&[magic, 0x2a, 0x4d, 0x18][..], &length, bytes].concat()
    };
    let with_dictionary = each(&|record| zstd_frame(record, &dictionary));
    vec![
        ("plain", records.concat()),
        ("a member each", each(&gzip)),
        ("one member", gzip(&records.concat())),
        ("a frame each", each(&|record| zstd_frame(record, &[]))),
        ("one frame", zstd_frame(&records.concat(), &[])),
        ("a dictionary", [skippable(0x5d, &dictionary), with_dictionary.clone()].concat()),
        (
            "a compressed dictionary",
            [skippable(0x5d, &zstd_frame(&dictionary, &[])), with_dictionary].concat(),
        ),
        ("a skippable frame", [skippable(0x50, b"what"), each(&|record| zstd_frame(record, &[]))].concat()),
    ]
}

#[test]
fn records_are_read_from_every_container() {
    let texts = texts(40, 1);
    let records: Vec<_> = texts.iter().enumerate().map(|(number, text)| conversion(number, text)).collect();
    for (name, file) in containers(&records) {
        for piece in [1, 7, 4096, usize::MAX] {
            let slow = SlowCursor(Cursor::new(file.clone()), piece);
            let slow = Box::new(std::io::BufReader::with_capacity(1 << 16, slow));
            let found =
                ReadResult::read_all(Warc::new(slow, &columns(&["url", "date"]), WarcId::Record), 1000);
            assert_eq!(found.texts(), texts, "{name}, {piece} bytes at once");
            assert!(found.damages.is_empty(), "{name}: {:?}", found.damages);
            let last = &found.rows[39];
            assert_eq!(last.id.as_deref(), Some(&b"00000000-0000-0000-0000-000000000039"[..]));
            assert_eq!(last.ts, Some(1_714_979_289.0));
            assert_eq!(last.fields, [b"https://example.org/39".to_vec(), b"2024-05-06T07:08:09Z".to_vec()]);
        }
    }
}

#[test]
fn heads_may_be_odd() {
    let block = "文字";
    let odd = [
        format!("WARC/1.1\nwarc-type: conversion\ncontent-length: {}\n\n{block}\n\n", block.len()),
        format!(
            "WARC/0.17\r\nWARC-Type: conversion\r\nWARC-Date: Mon, 06 \
             May\r\nContent-Length:{}\r\n\r\n{block}\r\n\r\n",
            block.len()
        ),
        format!(
            "WARC/0.18\r\nWARC-Record-ID:\r\n  <urn:uuid:folded>\r\nWARC-Type: conversion\r\nContent-Length: \
             {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        ),
        format!(
            "\r\n\r\nWARC/1.0\r\nno header\r\nWARC-Type: conversion\r\nContent-Length: {}\r\n\r\n{block}",
            block.len()
        ),
    ];
    for one in &odd {
        let found = read(one.as_str());
        assert_eq!((found.texts(), found.damages.len()), (vec![block], 0), "{one:?}");
        assert_eq!(found.rows[0].ts, None);
    }
    assert_eq!(read(odd[2].as_str()).ids(), ["folded"]);
    assert!(read("").rows.is_empty());
    assert!(read("\r\n\r\n").damages.is_empty());
}

#[test]
fn a_wrong_length_loses_one_record() {
    let good = |number| conversion(number, "gut 文");
    for length in
        ["900000000000", "99999999999999999999999", "-1", "x", "", "0", "5", "300", "67108865", "67108864"]
    {
        let bad =
            format!("WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: {length}\r\n\r\nfour fünf\r\n\r\n");
        let records = [good(1), bad.into_bytes(), good(2), good(3)];
        for (name, file) in containers(&records) {
            let found = read(file);
            let texts = found.texts();
            assert_eq!(texts, ["gut 文"; 3], "{name}, {length:?}: {found:?}");
            assert_eq!(found.damages.len(), 1, "{name}, {length:?}: {found:?}");
        }
    }
    let too_long = read(b"WARC/1.0\r\nContent-Length: 900000000000\r\n\r\n".to_vec());
    assert_eq!(too_long.damages[0].reason, BadRecord::TooLong);
}

#[test]
fn bytes_that_are_no_record_lose_no_other_record() {
    let good = |number| conversion(number, "gut");
    let long_head = [b"WARC/1.0\r\nX: ".to_vec(), vec![b'x'; 2 << 20], b"\r\n\r\n".to_vec()].concat();
    for bad in
        [b"GARBAGE\r\n".to_vec(), record("conversion", "", b"x").replace("WARC/1.0", "WARC/9.9"), long_head]
    {
        for (name, file) in containers(&[good(1), bad, good(2)]) {
            let found = read(file);
            assert_eq!((found.texts().len(), found.damages.len()), (2, 1), "{name}: {found:?}");
        }
    }
    let between = [gzip(&good(1)), b"between members".to_vec(), gzip(&good(2))].concat();
    let found = read(between);
    assert_eq!((found.texts().len(), found.damages.len()), (2, 1));
    assert_eq!(found.damages[0].place, RecordPlace::Byte(gzip(&good(1)).len() as u64));
    // Zeros at the end are padding, as for gzip. Before a further member they are damage.
    for zeros in [1, 9, 1000, 200_000] {
        let padded = read([gzip(&good(1)), vec![0; zeros]].concat());
        assert_eq!((padded.texts().len(), padded.damages.len()), (1, 0), "{zeros} zeros");
        for (behind, texts) in [(gzip(&good(2)), 2), (b"x".to_vec(), 1)] {
            let behind_zeros = read([gzip(&good(1)), vec![0; zeros], behind].concat());
            assert_eq!(
                (behind_zeros.texts().len(), behind_zeros.damages.len()),
                (texts, 1),
                "{zeros} zeros: {behind_zeros:?}"
            );
        }
    }
}

/// Bytes that look like many beginnings are searched once, not once for each beginning.
#[test]
fn unfinished_heads_are_searched_once() {
    let head = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 60000000\r\n";
    let found = read([head.repeat(3), conversion(1, "good")].concat());
    assert_eq!((found.texts(), found.damages.len()), (vec!["good"], 3), "{found:?}");
    for (place, damage) in found.damages.iter().enumerate() {
        assert_eq!(damage.place, RecordPlace::Byte((place * head.len()) as u64));
        assert_eq!(damage.cause.as_deref(), Some("another record begins in its head"));
    }
    let named = |length: usize| {
        let member = gzip(&conversion(1, "named"));
        [&[0x1f, 0x8b, 8, 8][..], &member[4..10], &vec![b'n'; length], &[0], &member[10..]].concat()
    };
    for (length, is_found) in [(512, true), (513, false)] {
        assert_eq!(read(named(length)).texts(), ["named"]);
        let behind_damage = read([&[0x1f, 0x8b, 8, 8].repeat(200)[..], &named(length)].concat());
        assert_eq!(behind_damage.texts().len(), usize::from(is_found), "{length}: {behind_damage:?}");
    }
    assert_eq!(read(named((1 << 20) + 1)).texts().len(), 0);
}

/// A megabyte of heads that begin within lines: each ends where the search finds the next one.
#[test]
fn heads_within_lines_are_searched_once() {
    let count = 90_000;
    let found = read([b"WARC/1.0\nWARC-".repeat(count), conversion(1, "good")].concat());
    assert_eq!((found.texts(), found.damages.len()), (vec!["good"], count));
    let causes: Vec<_> = found.damages.iter().filter_map(|damage| damage.cause.as_deref()).collect();
    assert_eq!(causes[0], "a head longer than 1 MiB");
    assert!(causes[1..].iter().all(|cause| *cause == "another record begins in its head"));
    // A record at its expected place may have the text of another beginning in its head.
    let says_so = conversion(2, "says so").replace("WARC-Type", "X: like WARC/1.0\r\nWARC-Type");
    let both = read([conversion(1, "good"), says_so].concat());
    assert_eq!((both.texts(), both.damages.len()), (vec!["good", "says so"], 0), "{both:?}");
}

/// Members that begin in stored blocks of one another, and so all end in the same damage, after a megabyte of
/// zeros.
pub(super) fn nested_members(bytes: usize) -> Vec<u8> {
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let block = |length: usize| {
        let length = u16::try_from(length).unwrap();
        [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat()
    };
    let mut file = header.to_vec();
    while file.len() < bytes {
        let end = file.len() + 5 + 60_000;
        file.extend(block(60_000));
        file.extend(b"WARC/ ");
        while file.len() + 15 + 40 < end {
            let left = end - file.len() - 15;
            file.extend([&header[..], &block(left), b"WARC/ "].concat());
        }
        file.resize(end, b'.');
    }
    let mut zeros = DeflateEncoder::new(Vec::new(), Compression::best());
    zeros.write_all(&vec![0; 1 << 20]).unwrap();
    zeros.flush().unwrap();
    file.extend(zeros.get_ref());
    // The block type 3 is reserved, so the stream is invalid.
    file.push(0b111);
    file
}

#[test]
fn nested_members_are_read_in_linear_time() {
    let nested = nested_members(1 << 20);
    let found = read([nested, gzip(&conversion(1, "good"))].concat());
    assert_eq!(found.texts(), ["good"]);
    assert!(found.damages.len() < 2_000, "{} damages", found.damages.len());
}

/// Otherwise an archive with one long video would be kept in memory as a whole.
#[test]
fn bytes_kept_for_a_second_search_are_bounded() {
    let mut block = vec![b'.'; MAX_RECORD_BYTES + (4 << 20)];
    for (at, text) in [(1 << 20, "early"), (MAX_RECORD_BYTES + (2 << 20), "late")] {
        let member = gzip(&conversion(1, text));
        block[at..at + member.len()].copy_from_slice(&member);
    }
    let mut member = gzip_at(0, &record("resource", "", &block));
    let sum = member.len() - 8;
    member[sum] ^= 1;
    let found = read(member);
    let reasons: Vec<_> = found.damages.iter().map(|damage| damage.reason).collect();
    assert_eq!(found.texts(), ["late"]);
    // After the late member there is no further unit.
    assert_eq!(reasons, [BadRecord::TooLong, BadRecord::Truncated]);
}

#[test]
fn the_length_of_an_http_head_is_limited() {
    let head = |length: usize| {
        let begin = b"HTTP/1.1 200\nContent-Type: text/plain\n";
        [&begin[..], &b":\n".repeat((length - begin.len()) / 2)].concat()
    };
    let [longest, longer] =
        [MAX_HEAD - 2, MAX_HEAD + 2].map(|length| [&head(length)[..], b"\ntext"].concat());
    let without_end = head(4 << 20);
    for (http, texts) in
        [(longest, vec!["text", "next"]), (longer, vec!["next"]), (without_end, vec!["next"])]
    {
        let found = read(gzip(&[response(&http), conversion(1, "next")].concat()));
        assert_eq!((found.texts(), found.damages.len()), (texts.clone(), 2 - texts.len()));
    }
}

#[test]
fn line_ends_after_a_record_take_no_memory() {
    struct CountedReader(Cursor<Vec<u8>>, Arc<AtomicUsize>);
    impl Read for CountedReader {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(out)?;
            self.1.fetch_add(count, Ordering::Relaxed);
            Ok(count)
        }
    }
    let taken = Arc::<AtomicUsize>::default();
    let bytes = [conversion(1, "text"), vec![b'\r'; 1 << 20], conversion(2, "behind")].concat();
    let counted = CountedReader(Cursor::new(bytes), Arc::clone(&taken));
    let file = Box::new(std::io::BufReader::with_capacity(1 << 10, counted));
    let mut warc = Warc::new(file, &columns(&[]), WarcId::Record);
    let mut row = FileRow::default();
    for (text, most) in [("text", 1 << 12), ("behind", 2 << 20)] {
        assert_eq!((warc.next(&mut row), &row.text), (Ok(NextRow::Row), &RowText::Is(text.into())));
        assert!(taken.load(Ordering::Relaxed) < most);
    }
}

trait Replace {
    fn replace(&self, from: &str, to: &str) -> Vec<u8>;
}

impl Replace for Vec<u8> {
    fn replace(&self, from: &str, to: &str) -> Vec<u8> {
        String::from_utf8(self.clone()).unwrap().replace(from, to).into_bytes()
    }
}

/// A thousand files of each container, each damaged in one place. Records that are read are unchanged, except
/// where the container has no checksum. Records after the damage are read where units are small, and a
/// truncated file is reported.
#[test]
fn damage_loses_only_what_it_touches() {
    let texts = texts(60, 3);
    let records: Vec<_> = texts.iter().enumerate().map(|(number, text)| conversion(number, text)).collect();
    for (name, file) in containers(&records) {
        // Records that end before the damage cannot be affected.
        let is_checked = name != "plain";
        let resumes = matches!(name, "plain" | "a member each" | "a frame each" | "a skippable frame");
        let mut lost = 0;
        for (harm, at, bytes) in harmed(&file, 1000, 7) {
            let is_padding = name == "a member each" && bytes[at..].iter().all(|byte| *byte == 0);
            let found = read(bytes);
            let what = || format!("{name}: {harm:?} at {at}: {:?}", found.damages);
            let good: Vec<_> = found
                .rows
                .iter()
                .map(|row| &row.text)
                .filter(|text| {
                    let is_known = |read: &[u8]| texts.iter().any(|one| one.as_bytes() == read);
                    matches!(text, RowText::Is(text) if is_known(text))
                })
                .collect();
            if is_checked && !name.starts_with("one") && !name.contains("dictionary") {
                assert_eq!(good.len(), found.rows.len(), "{}", what());
            }
            let missing = texts.len() - good.len().min(texts.len());
            if resumes && harm != Harm::Truncated {
                // 2,000 bytes may touch many small records: each of them is lost, and no other.
                let most = if harm == Harm::Flipped { 2 } else { 40 };
                assert!(missing <= most, "{missing} missing, {}", what());
            }
            // Zeros in place of the last members are padding.
            if missing > 0 && is_checked && harm != Harm::Truncated && !is_padding {
                assert!(!found.damages.is_empty(), "{}", what());
            }
            lost += missing;
        }
        assert!(lost > 0, "{name}");
    }
}

#[test]
fn a_truncated_member_is_reported() {
    let records = [conversion(1, "first"), conversion(2, "second")];
    for (name, file) in containers(&records) {
        // A plain file may lack its last line ends.
        let found = read(file[..file.len() - 5].to_vec());
        assert_eq!(found.damages.len(), 1, "{name}: {found:?}");
        assert_eq!(found.damages[0].reason, BadRecord::Truncated, "{name}: {found:?}");
        assert!(!found.texts().contains(&"second"), "{name}");
    }
}

#[test]
fn damage_is_reported_where_its_unit_begins() {
    let first = gzip(&conversion(1, "first"));
    let mut second = gzip(&conversion(2, "second"));
    let sum = second.len() - 8;
    second[sum] ^= 1;
    let found = read([first.clone(), second, gzip(&conversion(3, "third"))].concat());
    assert_eq!(found.texts(), ["first", "third"]);
    assert_eq!(
        found.damages.iter().map(|damage| damage.place).collect::<Vec<_>>(),
        [RecordPlace::Byte(first.len() as u64)]
    );
}

#[test]
fn a_read_error_ends_the_file() {
    struct FailingReader(usize);
    impl Read for FailingReader {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let record = conversion(1, "read before");
            let left = &record[self.0.min(record.len())..];
            if left.is_empty() {
                return Err(std::io::Error::other("the disk is gone"));
            }
            let count = left.len().min(out.len());
            out[..count].copy_from_slice(&left[..count]);
            self.0 += count;
            Ok(count)
        }
    }
    let file = Box::new(std::io::BufReader::new(FailingReader(0)));
    let found = ReadResult::read_all(Warc::new(file, &columns(&[]), WarcId::Record), 10);
    assert!(found.damages[0].ends && found.damages[0].reason == BadRecord::Unreadable, "{found:?}");
}

mod pages;
