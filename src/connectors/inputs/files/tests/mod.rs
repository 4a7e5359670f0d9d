mod feeds;
mod hostile;
mod places;
mod revisits;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::formats::feed::{FeedRecord, Parser};
use crate::formats::{BadRecord, FeedReader, InputLayout, ReadFailure};
use crate::inputs::input::InputPlace;
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

/// Texts alone.
static NO_FIELDS: TextColumns = TextColumns { further: Vec::new(), given: None };

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
        columns: &NO_FIELDS,
        row: Arc::default(),
        progress,
        waits: Arc::default(),
        failure: ReadFailure::default(),
        followed: None,
        origins: Arc::default(),
        of: "feed".into(),
        digests: None,
        list: None,
        known: None,
        begun: BTreeMap::new(),
        until: None,
        ends: SpanEnd::default(),
        revisits: Default::default(),
    }
}

/// Reads one feed from a reader, with lines of at most `longest` bytes.
fn run_feed(reader: impl Read + Send + 'static, epochs: &str, longest: usize, bad: &BadRecords) -> ReadRun {
    try_feed(reader, epochs, longest, bad).unwrap()
}

fn try_feed(
    reader: impl Read + Send + 'static,
    epochs: &str,
    longest: usize,
    bad: &BadRecords,
) -> Result<ReadRun, ReadEnd> {
    let queue = unbounded();
    let cutter = Cutter::new(&queue, &StoppedClock, epochs.parse().unwrap(), Speed::Max, Share::ALL, 0);
    let places = RecordIndex::default();
    let due = places.begin(0, 0, &Input::at("feed".as_ref()));
    let (progress, layout) = (Arc::default(), InputLayout::default());
    let mut reading = reading(cutter, bad, longest, &places, &progress);
    let FeedReader { mut bytes, compressed } = FeedReader::new(reader).unwrap();
    reading.cutter.begin("feed".into()).unwrap();
    reading.feed(&"feed".into(), &layout, &mut bytes, compressed, due)?;
    reading.cutter.finish().unwrap();
    Ok(drain(&queue, bad))
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
