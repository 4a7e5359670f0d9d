//! Feeds of any form, length and damage, in reads of any size.

use std::io::Seek as _;

use super::*;

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

/// Behind what is durable are lines that are taken back, as of an append that fails.
#[test]
fn of_a_journal_only_what_is_durable_is_read() {
    const LINES: u64 = 3;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let line = deletes(0, 1);
    let other = "#".repeat(line.len() - 1) + "\n";
    fs::write(&path, "").unwrap();
    let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let durable = Arc::<Durable>::default();
    let inputs = Input::resolve(&[path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, "all".parse().unwrap(), Vec::new());
    let files = Files { follow: true, durable: Some(Arc::clone(&durable)), ..files };
    let (queue, bad) = (unbounded(), BadRecords::default());
    std::thread::scope(|scope| {
        scope.spawn(|| read(files, &queue, &bad).unwrap());
        let mut found = Vec::new();
        for lines in 1..=LINES {
            // A half of the next line is no record yet.
            let part = &line[..line.len() / 2];
            writer.write_all([&*line, part, &other].concat().as_bytes()).unwrap();
            durable.set(lines * line.len() as u64 + part.len() as u64);
            writer.seek_relative(-i64::try_from(part.len() + other.len()).unwrap()).unwrap();
            let batch = loop {
                match queue.take(Epoch::MAX) {
                    Dequeued::Batch(_, batch) if batch.records > 0 => break batch,
                    _ => std::thread::park_timeout(Duration::from_millis(1)),
                }
            };
            found.push((batch.next, batch.payload));
        }
        queue.stop();
        for (n, (next, payload)) in (1..).zip(found) {
            assert_eq!(next, n);
            assert!(matches!(payload, Payload::Lines { bytes, .. } if bytes == line.as_bytes()));
        }
    });
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
fn a_feed_of_which_a_read_fails_ends_the_run() {
    let bad = BadRecords::default();
    for tail in ["{\"id\":", ""] {
        let reader = BrokenReader(io::Cursor::new(format!("{}{tail}", deletes(0, 3)).into_bytes()));
        let failed = try_feed(reader, "all", MAX_RECORD_BYTES, &bad).unwrap_err();
        assert!(
            matches!(&failed, ReadEnd::Failed(error) if error.to_string() == "feed: wire cut"),
            "{failed:?}"
        );
    }
    assert!(bad.counts().is_empty());
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
