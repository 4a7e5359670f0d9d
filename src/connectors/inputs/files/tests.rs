use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

use super::super::input::InputPlace;
use super::*;
use crate::formats::feed::{FeedRecord, Parser};
use crate::formats::{BadRecord, FeedReader, InputLayout};
use crate::intake::{Batch, DeadLetter, Decoder, Dequeued, OnError, Payload, QueueRoom};
use dupflow_core::time::Epoch;

/// A clock that stands still.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix(&self) -> f64 {
        self.now().as_secs_f64()
    }
}

/// The result of reading.
#[derive(Debug)]
struct ReadRun {
    /// Batches with records.
    batches: Vec<Batch>,
    /// Number of records, including bad ones: the position where reading would continue.
    records: u64,
    /// The last epoch with records.
    epochs: Epoch,
    /// Epoch, position, id, text (`None` for a delete).
    events: Vec<(Epoch, u64, String, Option<String>)>,
    bad: BTreeMap<&'static str, u64>,
}

impl ReadRun {
    /// Epoch and position of every event.
    fn places(&self) -> Vec<(Epoch, u64)> {
        self.events.iter().map(|event| (event.0, event.1)).collect()
    }

    fn ids(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.2.as_str()).collect()
    }
}

/// Takes and decodes what has been pushed.
fn drain(queue: &Queue, bad: &BadRecords) -> ReadRun {
    let mut run =
        ReadRun { batches: Vec::new(), records: 0, epochs: 0, events: Vec::new(), bad: BTreeMap::new() };
    let mut decoder = Decoder::new(&TextColumns::default());
    while let Dequeued::Batch(epoch, batch) = queue.take(Epoch::MAX) {
        let into = |position: dupflow_core::doc::Position, event: dupflow_core::doc::DocEvent<'_>| {
            assert_eq!(position.partition, 0);
            run.events.push((epoch, position.offset, event.id.to_string(), event.text.map(Into::into)));
        };
        decoder.decode(&batch, bad, &mut Vec::new(), into).unwrap();
        assert!(batch.next > run.records && batch.next >= run.records + batch.records, "{batch:?}");
        (run.records, run.epochs) = (batch.next, epoch);
        run.batches.extend(Some(batch).filter(|batch| batch.records > 0));
    }
    run.bad = bad.counts();
    run
}

fn unbounded() -> Queue {
    Queue::new(1, 1, QueueRoom { bytes: u64::MAX, batches: usize::MAX }, EpochLimits::default())
}

/// The offset of a batch's first record, and the number of its first line: 0 for files.
fn begins(batch: &Batch) -> (u64, u64) {
    match &batch.payload {
        Payload::Lines { first, first_line, .. } => (*first, *first_line),
        Payload::Files { first, .. } => (*first, 0),
        Payload::Records(_) | Payload::Events { .. } | Payload::Kept(_) | Payload::Watched(_) => {
            panic!("{batch:?}")
        }
    }
}

/// Reads inputs from their beginning.
fn read(files: Files, queue: &Queue, bad: &BadRecords) -> Result<(), SourceError> {
    Box::new(files).readers(&Offsets::new()).remove(0).read(queue, bad, &StoppedClock)
}

/// Reads inputs on disk.
fn run_inputs(paths: &[PathBuf], epochs: &str, bad: &BadRecords) -> ReadRun {
    let inputs = Input::resolve(paths, InputLayout::default()).unwrap();
    let files = Files::new(inputs, epochs.parse().unwrap(), Vec::new());
    let queue = unbounded();
    read(files, &queue, bad).unwrap();
    drain(&queue, bad)
}

fn reading<'r>(
    cutter: Cutter<'r>,
    bad: &'r BadRecords,
    longest: usize,
    places: &'r RecordIndex,
    progress: &'r Arc<InputProgress>,
) -> InputReading<'r> {
    InputReading {
        cutter,
        bad,
        longest,
        places,
        fields: &[],
        row: Arc::default(),
        progress,
        waits: Arc::default(),
        followed: None,
        origins: Arc::default(),
        of: "feed".into(),
        digests: None,
    }
}

/// Reads one feed from a reader, with lines of at most `longest` bytes.
fn run_feed(reader: impl Read + Send + 'static, epochs: &str, longest: usize, bad: &BadRecords) -> ReadRun {
    let queue = unbounded();
    let cutter = Cutter::new(&queue, &StoppedClock, epochs.parse().unwrap(), Speed::Max, Share::ALL, 0);
    let places = RecordIndex::default();
    let due = places.begin(0, &Input::at("feed".as_ref()));
    let (progress, layout) = (Arc::default(), InputLayout::default());
    let mut reading = reading(cutter, bad, longest, &places, &progress);
    let FeedReader { mut bytes, compressed } = FeedReader::new(reader).unwrap();
    reading.cutter.begin("feed".into()).unwrap();
    reading.feed(&"feed".into(), &layout, &mut bytes, compressed, due).unwrap();
    reading.cutter.finish().unwrap();
    drain(&queue, bad)
}

fn feed(bytes: impl Into<Vec<u8>>, epochs: &str) -> ReadRun {
    run_feed(io::Cursor::new(bytes.into()), epochs, MAX_RECORD_BYTES, &BadRecords::default())
}

/// `n` deletes with ids from `from` on.
fn deletes(from: usize, n: usize) -> String {
    (from..from + n).map(|i| format!("{{\"id\":\"{i}\",\"op\":\"delete\"}}\n")).collect()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A reader that returns one byte at a time, as a slow pipe may.
struct Trickle(io::Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let one = out.len().min(1);
        self.0.read(&mut out[..one])
    }
}

/// A reader that fails at the end of its bytes.
struct BrokenReader(io::Cursor<Vec<u8>>);

impl Read for BrokenReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(io::Error::other("wire cut")),
            n => Ok(n),
        }
    }
}

#[test]
fn positions_and_epochs_continue_over_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| folder.path().join(name)).into();
    fs::write(&paths[0], format!("{}\n\nnot json\n", deletes(0, 2))).unwrap();
    fs::write(&paths[1], b"").unwrap();
    fs::write(&paths[2], format!("\r\n{}{{\"id\":\"last\",\"text\":\"x\"}}", deletes(3, 3))).unwrap();
    let run = run_inputs(&paths, "events:2", &BadRecords::default());
    assert_eq!(run.ids(), ["0", "1", "3", "4", "5", "last"]);
    assert_eq!(run.places(), [(1, 0), (1, 1), (2, 3), (3, 4), (3, 5), (4, 6)]);
    assert_eq!((run.records, run.epochs), (7, 4));
    assert_eq!(run.bad, BTreeMap::from([("not_json", 1)]));
}

#[test]
fn no_batch_crosses_an_epoch_and_all_stay_small() {
    for (epochs, count) in [("events:1", 1000), ("events:1000", 1), ("events:300", 4), ("all", 1)] {
        let run = feed(deletes(0, 1000), epochs);
        assert_eq!(run.epochs, count, "{epochs}");
        assert_eq!(run.ids().len(), 1000);
        let mut next = 0;
        for batch in &run.batches {
            assert_eq!(begins(batch), (next, next + 1));
            assert!(batch.records <= 128);
            next += batch.records;
        }
    }
    let long = format!("{{\"id\":\"a\",\"text\":\"{}\"}}\n", "x".repeat(50_000)).repeat(10);
    let sizes: Vec<_> = feed(long, "all").batches.iter().map(|batch| batch.records).collect();
    assert_eq!(sizes, [3, 3, 3, 1]);
}

#[test]
fn an_epoch_ends_where_the_ts_changes() {
    let lines = [
        r#"{"id":"no ts","text":""}"#,
        r#"{"id":"a","ts":5,"text":""}"#,
        r#"{"id":"b","text":""}"#,
        "",
        "broken",
        r#"{"id":"c","ts":5.0,"text":""}"#,
        r#"{"id":"d","ts":6,"text":""}"#,
        r#"{"id":"e","ts":5,"text":""}"#,
    ];
    let run = feed(lines.join("\n"), "ts");
    assert_eq!(run.ids(), ["no ts", "a", "b", "c", "d", "e"]);
    assert_eq!(run.places(), [(1, 0), (1, 1), (1, 2), (1, 4), (2, 5), (3, 6)]);
    assert_eq!(run.epochs, 3);
    let first_lines: Vec<_> = run.batches.iter().map(|batch| begins(batch).1).collect();
    assert_eq!(first_lines, [1, 7, 8]);
}

#[test]
fn feeds_are_recognised_by_their_first_bytes() {
    let plain = deletes(0, 5).into_bytes();
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], &zstd(&plain)[..]].concat();
    let frames = [zstd(&plain[..40]), zstd(&plain[40..])].concat();
    let members = [gzip(&plain[..40]), gzip(&plain[40..])].concat();
    for bytes in [plain.clone(), zstd(&plain), gzip(&plain), skippable, frames, members] {
        let run = feed(bytes.clone(), "all");
        assert_eq!((run.ids(), run.bad.len()), (vec!["0", "1", "2", "3", "4"], 0));
        let slow = Trickle(io::Cursor::new(bytes));
        let slowly = run_feed(slow, "all", MAX_RECORD_BYTES, &BadRecords::default());
        assert_eq!((slowly.ids(), slowly.bad.len()), (vec!["0", "1", "2", "3", "4"], 0));
    }
}

#[test]
fn byte_order_marks_and_line_ends_do_not_matter() {
    let run = feed("\u{feff}{\"id\":\"a\",\"text\":\"x\"}\r\n\r\n{\"id\":\"b\",\"text\":\"y\"}", "all");
    assert_eq!((run.ids(), run.bad.len()), (vec!["a", "b"], 0));
    for empty in ["", "\u{feff}", "\n\n  \n", "\u{feff}\r\n"] {
        assert_eq!((feed(empty, "events:1").records, feed(empty, "events:1").epochs), (0, 0));
        assert!(feed(empty, "all").batches.is_empty());
    }
}

#[test]
fn many_blank_lines_are_not_gathered() {
    let run = feed(format!("{}{}{}", deletes(0, 1), "\n".repeat(1 << 20), deletes(1, 1)), "all");
    assert_eq!(run.places(), [(1, 0), (1, 1)]);
    assert!(run.batches.iter().all(|batch| batch.bytes() <= 128 << 10));
    assert_eq!(begins(&run.batches[1]).1, (1 << 20) + 2);
}

#[test]
fn a_compressed_feed_that_ends_early_counts_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let plain = deletes(0, 50_000).into_bytes();
    let after = folder.path().join("after");
    fs::write(&after, deletes(7, 1)).unwrap();
    for whole in [zstd(&plain), gzip(&plain)] {
        let path = folder.path().join("cut");
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let run = run_inputs(&[path, after.clone()], "all", &BadRecords::default());
        assert_eq!(run.bad, BTreeMap::from([("truncated", 1)]));
        let good = run.events.len() as u64 - 1;
        assert!(good > 1000);
        assert_eq!(run.places()[..2], [(1, 0), (1, 1)]);
        assert_eq!(run.places().last(), Some(&(1, good + 1)), "the broken record has a position");
        assert_eq!(run.records, good + 2);
    }
}

#[test]
fn a_damaged_feed_counts_up_to_there() {
    // Random bytes do not compress: the damage is in the last block of the last frame.
    let mut bytes = [zstd(deletes(0, 10).as_bytes()), zstd(deletes(10, 10).as_bytes())].concat();
    let from = bytes.len() - 20;
    bytes[from..].fill(0xff);
    let run = feed(bytes, "all");
    assert_eq!(run.ids()[..10], ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(run.bad["truncated"], 1);
}

#[test]
fn a_plain_feed_that_breaks_off_is_unreadable_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("dead");
    for (tail, kept) in [("{\"id\":", "{\"id\":\n"), ("", "{\"file\":\"feed\",\"reason\":\"unreadable\"}\n")]
    {
        let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create(letter.clone()).unwrap()));
        let reader = BrokenReader(io::Cursor::new(format!("{}{tail}", deletes(0, 3)).into_bytes()));
        let run = run_feed(reader, "all", MAX_RECORD_BYTES, &bad);
        assert_eq!((run.ids(), run.records), (vec!["0", "1", "2"], 4));
        assert_eq!(run.bad, BTreeMap::from([("unreadable", 1)]));
        bad.flush().unwrap();
        assert_eq!(fs::read_to_string(&letter).unwrap(), kept);
    }
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let line = |n: usize| format!("{{\"id\":\"a\",\"text\":\"{}\"}}", "x".repeat(n - 20));
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("dead");
    let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create(letter.clone()).unwrap()));
    let (fits, long, longer) = (line(100), line(101), line(5000));
    let lines = [&fits, &long, &fits, &longer, &long].map(String::as_str).join("\n");
    let run = run_feed(io::Cursor::new(lines), "events:2", 100, &bad);
    assert_eq!(run.places(), [(1, 0), (2, 2)]);
    assert_eq!(begins(&run.batches[1]).1, 3);
    assert_eq!((run.records, run.epochs), (5, 3));
    assert_eq!(run.bad, BTreeMap::from([("too_long", 3)]));
    bad.flush().unwrap();
    assert_eq!(fs::read_to_string(&letter).unwrap(), format!("{long}\n{longer}\n{long}\n"), "kept whole");
}

/// A reader that returns pieces of any size.
struct Pieces(io::Cursor<Vec<u8>>, ChaCha8Rng);

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(self.1.random_range(1..300));
        self.0.read(&mut out[..most])
    }
}

/// However a feed comes in, its events are those of its lines, each parsed alone: with records cut at any
/// place, all line ends, blank, bad and long lines.
#[test]
fn reads_of_any_size_give_the_events_of_the_lines() {
    const LONGEST: usize = 600;
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for n in 0..rng.random_range(0..40) {
            let text = "é漢x\\n".repeat(rng.random_range(0..100));
            let line = match rng.random_range(0..8) {
                0 => String::new(),
                1 => " \t".to_owned(),
                2 => format!("{{\"id\":\"{n}\",\"text\":\"\\ud800\"}}"),
                3 => format!("{{\"id\":\"{n}\",\"op\":\"delete\"}}"),
                _ => format!("{{\"id\":\"{n}\",\"text\":\"{text}\"}}"),
            };
            bytes.extend_from_slice(line.as_bytes());
            if rng.random_ratio(1, 20) {
                bytes.push(0xff);
            }
            bytes.extend_from_slice([&b"\n"[..], b"\n", b"\r\n"][rng.random_range(0..3)]);
        }
        let cut = if rng.random_ratio(1, 2) { bytes.len() } else { rng.random_range(0..=bytes.len()) };
        bytes.truncate(cut);

        let (mut events, mut bad, mut next) = (Vec::new(), BTreeMap::new(), 0);
        let mut parser = Parser::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let is_long = line.len() > LONGEST;
            match if is_long { Err(BadRecord::TooLong) } else { parser.parse(line) } {
                Ok(FeedRecord { event, .. }) => {
                    events.push((next, event.id.to_string(), event.text.map(String::from)));
                }
                Err(why) => *bad.entry(why.reason()).or_insert(0) += 1,
            }
            next += 1;
        }
        let pieces = Pieces(io::Cursor::new(bytes.clone()), ChaCha8Rng::seed_from_u64(rng.random()));
        let whole = run_feed(io::Cursor::new(bytes), "events:7", LONGEST, &BadRecords::default());
        let pieced = run_feed(pieces, "events:7", LONGEST, &BadRecords::default());
        assert_eq!((&whole.events, &whole.bad), (&pieced.events, &pieced.bad));
        let found = whole.events.into_iter().map(|(_, at, id, text)| (at, id, text));
        assert_eq!((found.collect::<Vec<_>>(), whole.bad, whole.records), (events, bad, next));
    }
}

#[test]
fn a_line_of_200_megabytes_is_skipped() {
    let (head, tail) = (deletes(0, 1).into_bytes(), format!("\n{}", deletes(1, 1)).into_bytes());
    let long = io::repeat(b'x').take(200_000_000);
    let reader = io::Cursor::new(head).chain(long).chain(io::Cursor::new(tail));
    let run = run_feed(reader, "all", MAX_RECORD_BYTES, &BadRecords::default());
    assert_eq!(run.places(), [(1, 0), (1, 2)]);
    assert_eq!(run.bad, BTreeMap::from([("too_long", 1)]));
    assert_eq!(begins(&run.batches[1]).1, 3);
}

#[test]
fn bad_records_have_their_place_and_are_kept_verbatim() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("dead");
    let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create(letter.clone()).unwrap()));
    let bytes = b"\n{\"id\":1}\r\n\xff\n{\"id\":\"a\",\"op\":\"delete\"}\n[]";
    let run = run_feed(io::Cursor::new(bytes), "events:1", 100, &bad);
    assert_eq!(run.places(), [(3, 2)]);
    assert_eq!(run.epochs, 4);
    assert_eq!(run.bad, BTreeMap::from([("missing_text", 1), ("not_utf8", 1), ("not_an_object", 1)]));
    bad.flush().unwrap();
    assert_eq!(fs::read(&letter).unwrap(), b"{\"id\":1}\r\n\xff\n[]\n");
}

#[test]
fn the_files_of_a_folder_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (path, text) in [
        ("a/b.txt", &b"text of a/b"[..]),
        ("a.txt", b"text of a"),
        (".hidden/x", b""),
        ("b\n\"c\".md", b"quotes"),
        ("latin1", b"caf\xe9"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        std::os::unix::fs::symlink(root.join("a.txt"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("a/loop")).unwrap();
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"z\xff")), "no name").unwrap();
    }
    let feed = folder.path().join("feed");
    fs::write(&feed, deletes(0, 1)).unwrap();
    let run = run_inputs(&[root, feed], "events:4", &BadRecords::default());
    assert_eq!(run.ids(), ["a.txt", "a/b.txt", "b\n\"c\".md", "link", "0"], "by bytes of the whole path");
    assert_eq!(run.events[1].3.as_deref(), Some("text of a/b"));
    assert_eq!(run.places(), [(1, 0), (1, 1), (1, 2), (2, 4), (2, 6)]);
    assert_eq!(run.bad, BTreeMap::from([("not_utf8", 1), ("bad_id", 1)]));
    assert!(
        run.batches
            .iter()
            .all(|batch| (begins(batch).1 == 0) == matches!(batch.payload, Payload::Files { .. }))
    );
}

#[test]
fn pages_in_a_folder_are_marked_and_decoded() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("a.html", &b"<meta charset=shift_jis>\x93\xfa\x96{\x8c\xea"[..]),
        ("b.htm", b"<html>caf\xc3\xa9"),
        ("c.txt", b"\xff\xfea\0\x87\x65"),
        ("d.txt", b"<meta charset=windows-1252>caf\xe9"),
        ("e.txt", b"<html><meta charset=windows-1252>caf\xe9"),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let run = run_inputs(&[folder.path().to_owned()], "events:4", &BadRecords::default());
    let texts: Vec<_> = run.events.iter().filter_map(|event| event.3.as_deref()).collect();
    assert_eq!(
        texts,
        [
            "<!doctype html><meta charset=shift_jis>日本語",
            "<html>café",
            "a文",
            "<html><meta charset=windows-1252>café"
        ]
    );
    assert_eq!(run.bad, BTreeMap::from([("not_utf8", 1)]));
}

#[test]
fn deleted_inputs_are_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["gone", "gone folder", "there"].map(|name| folder.path().join(name));
    fs::write(&paths[0], deletes(0, 1)).unwrap();
    fs::create_dir(&paths[1]).unwrap();
    fs::write(&paths[2], deletes(5, 1)).unwrap();
    let inputs = Input::resolve(&paths, InputLayout::default()).unwrap();
    fs::remove_file(&paths[0]).unwrap();
    fs::remove_dir(&paths[1]).unwrap();
    let (queue, bad) = (unbounded(), BadRecords::default());
    let files = Files::new(inputs, EpochRule::All, Vec::new());
    read(files, &queue, &bad).unwrap();
    let run = drain(&queue, &bad);
    assert_eq!((run.ids(), run.places()), (vec!["5"], vec![(1, 2)]));
    assert_eq!(run.bad, BTreeMap::from([("unreadable", 2)]));
}

#[test]
fn arguments_that_cannot_be_read_are_named_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().to_str().unwrap();
    let error = Input::resolve(["/nowhere/a", "-", there, "/nowhere/b", "-"], InputLayout::default())
        .unwrap_err()
        .to_string();
    assert_eq!(error.lines().count(), 3);
    assert!(
        error.contains("\"/nowhere/a\"")
            && error.contains("\"/nowhere/b\"")
            && error.contains("more than once")
    );
    let inputs = Input::resolve(["-", there], InputLayout::default()).unwrap();
    let places: Vec<_> = inputs.into_iter().map(|input| input.place).collect();
    assert_eq!(places, [InputPlace::Stdin, InputPlace::Folder(there.into())]);
}

#[test]
fn a_bad_record_ends_the_run_where_none_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.zst");
    let whole = zstd(deletes(0, 100).as_bytes());
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::All, Vec::new());
    let (queue, bad) = (unbounded(), BadRecords::new(OnError::Fail, None));
    let error = read(files, &queue, &bad).unwrap_err().to_string();
    assert!(error.contains("cut.zst") && error.contains("truncated"), "{error}");
    while let Dequeued::Batch(..) = queue.take(Epoch::MAX) {}
    assert_eq!(queue.take(Epoch::MAX), Dequeued::Nothing { low: 1 }, "the epoch is not over");
}

#[test]
fn a_closed_queue_ends_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    fs::write(&path, deletes(0, 1000)).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::All, Vec::new());
    let queue = unbounded();
    queue.stop();
    read(files, &queue, &BadRecords::default()).unwrap();
    assert_eq!(queue.take(Epoch::MAX), Dequeued::Done);
}

#[test]
fn a_record_that_is_not_due_waits_and_those_before_it_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    let lines = ["{\"id\":\"a\",\"ts\":0,\"text\":\"\"}", "{\"id\":\"b\",\"ts\":1e9,\"text\":\"\"}"];
    fs::write(&path, lines.join("\n")).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files { speed: Speed::REAL, ..Files::new(inputs, EpochRule::Ts, Vec::new()) };
    let queue = unbounded();
    let (woken, wakes) = std::sync::mpsc::channel();
    queue.register(Box::new(move || woken.send(()).unwrap()));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(files, &queue, &BadRecords::default()).unwrap());
        while queue.take(9) != (Dequeued::Nothing { low: 2 }) {
            wakes.recv().unwrap();
        }
        assert!(!reader.is_finished(), "the second record is due in 31 years");
        queue.stop();
        reader.join().unwrap();
    });
}

/// Returns one sent message for each read, and waits for the next one.
struct Pipe(std::sync::mpsc::Receiver<&'static [u8]>, Vec<u8>);

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default().to_vec();
        }
        let n = self.1.len().min(out.len());
        out[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

#[test]
fn records_are_pushed_before_the_reader_waits() {
    let (send, receive) = std::sync::mpsc::channel();
    let queue = unbounded();
    let (woken, wakes) = std::sync::mpsc::channel();
    queue.register(Box::new(move || woken.send(()).unwrap()));
    let take = || {
        wakes.recv().unwrap();
        match queue.take(9) {
            Dequeued::Batch(1, Batch { payload: Payload::Lines { bytes, .. }, next, .. }) => (bytes, next),
            other => panic!("{other:?}"),
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bad = BadRecords::default();
            let cutter = Cutter::new(&queue, &StoppedClock, EpochRule::All, Speed::Max, Share::ALL, 0);
            let places = RecordIndex::default();
            let progress = Arc::default();
            let mut reading = reading(cutter, &bad, 20, &places, &progress);
            let FeedReader { mut bytes, .. } = FeedReader::new(Pipe(receive, Vec::new())).unwrap();
            reading.feed(&"pipe".into(), &InputLayout::default(), &mut bytes, false, u64::MAX).unwrap();
            reading.cutter.finish().unwrap();
        });
        send.send(b"{\"id\":1}\n{\"id\":2}\n{\"i").unwrap();
        assert_eq!(take(), (b"{\"id\":1}\n{\"id\":2}\n".to_vec(), 2), "and the line that has begun is kept");
        send.send(b"d\":3}\n").unwrap();
        assert_eq!(take(), (b"{\"id\":3}\n".to_vec(), 3));
        send.send(b"a line that is longer than 20 bytes\n{").unwrap();
        assert_eq!(take(), (b"".to_vec(), 4), "a bad record moves the position");
        send.send(b"}").unwrap();
        drop(send);
        assert_eq!(take(), (b"{}".to_vec(), 5));
    });
}
