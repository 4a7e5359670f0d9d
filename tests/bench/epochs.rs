//! The latency of a small epoch in a large corpus: from sending its events to the workers until the committer
//! has written its deltas, one epoch at a time.
//!
//! `cargo bench --bench epochs -- [DOCUMENTS] [EVENTS] [EPOCHS] [WORKERS] [MIB] [WORDS]`, by default 200,000
//! documents of the generator, 10 events an epoch, 2,000 epochs, as many workers as cores, no memory budget,
//! texts as long as the generator makes them. The small epochs are the last ones of the feed: inserts,
//! updates and deletes as the generator mixes them. MIB is a memory budget, 0 for none; its files are in the
//! folder for temporary files. WORDS is the most words of a text.
//!
//! Also: what an event reads from these files and how many meetings it has, while loading and in the small
//! epochs, and the time from the last epoch to the end of the run.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics where it fails, and prints")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use dupflow::config::Plan;
use dupflow::connectors::formats::{KeyedRecord, KeyedRecords};
use dupflow::connectors::intake::{
    BadRecords, Batch, Closed, OnError, Payload, Queue, Source, SourceError, SourceReader,
};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::Sink;
use dupflow::core::description::Description;
use dupflow::core::doc::Letter;
use dupflow::core::pair::Delta;
use dupflow::core::run::metrics::{Counter, Metrics};
use dupflow::core::time::{Clock, Offsets, Progress, SystemClock};
use dupflow::engine::dataflow::Stages;
use dupflow::lab::generate::{Generator, Params};
use dupflow::pipeline::{self, Continuity, Demands, RunJob};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Reads epochs of the generator, each after the previous one has been written, and measures their times.
#[derive(Debug)]
struct Paced {
    feed: Generator,
    metrics: Arc<Metrics>,
    /// Documents before the small epochs.
    documents: u64,
    events: usize,
    epochs: usize,
    /// Batches of an epoch.
    workers: usize,
    next: u64,
    written: Receiver<()>,
    times: Sender<Duration>,
    start: Instant,
}

/// The counts that are printed for each event.
const COUNTED: [Counter; 4] =
    [Counter::Events, Counter::Candidates, Counter::RejectedAtFirstWord, Counter::SpillReads];

impl Source for Paced {
    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        Ok(from.cloned().unwrap_or_default())
    }

    fn readers(self: Box<Self>, _: &Offsets) -> Vec<Box<dyn SourceReader>> {
        vec![self]
    }
}

impl SourceReader for Paced {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        while self.metrics.get(Counter::Inserted) < self.documents {
            self.epoch(queue, 1000).unwrap();
        }
        let loaded = self.print_costs("loaded", [0; 4]);
        for _ in 0..self.epochs {
            let time = self.epoch(queue, self.events).unwrap();
            self.times.send(time).unwrap();
        }
        self.print_costs("small epochs", loaded);
        Ok(())
    }
}

impl Paced {
    /// Prints what an event has cost since `before`; returns the counts.
    fn print_costs(&self, what: &str, before: [u64; 4]) -> [u64; 4] {
        let counts = COUNTED.map(|counter| self.metrics.get(counter));
        let of_event = |at: usize| (counts[at] - before[at]) as f64 / (counts[0] - before[0]) as f64;
        println!(
            "{what} at {:.1} s: {} events, each of {:.2} meetings, {:.2} ended by the first word, \
            and {:.3} reads",
            self.start.elapsed().as_secs_f64(),
            counts[0] - before[0],
            of_event(1),
            of_event(2),
            of_event(3)
        );
        counts
    }

    fn epoch(&mut self, queue: &Queue, size: usize) -> Result<Duration, Closed> {
        let share = size.div_ceil(self.workers);
        let batches: Vec<Batch> = (0..self.workers).map(|_| self.batch(share)).collect();
        let start = Instant::now();
        batches.into_iter().try_for_each(|batch| queue.push(batch))?;
        queue.cut();
        self.written.recv().unwrap();
        Ok(start.elapsed())
    }

    fn batch(&mut self, size: usize) -> Batch {
        let mut records = KeyedRecords::default();
        for record in self.feed.by_ref().take(size) {
            let event = record.event;
            let (key, value) = (event.id.as_str().as_bytes(), event.text.as_deref().map(str::as_bytes));
            records.push(KeyedRecord { offset: self.next, ts: event.ts, key: Some(key), value });
            self.next += 1;
        }
        let (n, payload) = (records.len() as u64, Payload::Records(records));
        Batch {
            input: "generated".into(),
            partition: 0,
            records: n,
            next: self.next,
            payload,
            letters: Vec::new(),
            seen: None,
        }
    }
}

/// Reports when an epoch has been written.
struct Bell(Sender<()>);

impl Sink for Bell {
    fn epoch(&mut self, _: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
        // After the last epoch the receiver is dropped.
        self.0.send(()).unwrap_or(());
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let number = |i: usize, default| numbers.get(i).copied().unwrap_or(default);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (documents, events, epochs, workers) =
        (number(0, 200_000), number(1, 10), number(2, 2000), number(3, cores));

    let plan = Plan::load("minhash", &[]).unwrap();
    let spill = match number(4, 0) as u64 {
        0 => None,
        mib => Some(pipeline::spill_to(&std::env::temp_dir(), mib << 20, workers).unwrap()),
    };
    let stages = Stages { spill, ..pipeline::stages(&plan, false) };
    let long = Params::default();
    let max_words = number(5, long.max_words);
    let params = Params {
        // Without end: a document that is deleted in the epoch that inserts it is never counted as inserted.
        documents: u64::MAX,
        min_words: long.min_words.min(max_words / 2),
        max_words,
        ..long
    };
    let start = Instant::now();
    let ((bell, written), (times, taken)) = (channel(), channel());
    let source = Paced {
        feed: Generator::new(params),
        metrics: Arc::clone(&stages.observers.metrics),
        documents: documents as u64,
        events,
        epochs,
        workers,
        next: 0,
        written,
        times,
        start,
    };
    let job = RunJob {
        receiver: None,
        stages,
        source: Box::new(source),
        first_epoch: 1,
        processes: None,
        status: Arc::default(),
        most_records: None,
        demands: Demands::default(),
        publication: None,
        continuity: Continuity::new(&Description::new()),
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        sink: Box::new(Bell(bell)),
        workers,
        clock: Arc::new(SystemClock::start()),
    };
    let summary = pipeline::run(job).unwrap();
    println!("end at {:.1} s, {} hot blocks", start.elapsed().as_secs_f64(), summary.hot_blocks.len());
    let mut sorted: Vec<Duration> = taken.into_iter().collect();
    sorted.sort_unstable();
    let longest: Vec<String> =
        sorted.iter().rev().take(10).map(|time| format!("{:.1}", time.as_secs_f64() * 1e3)).collect();
    println!("longest, ms: {}", longest.join(" "));
    let at =
        |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)].as_secs_f64() * 1e3;
    println!("peak: {:.3} GB", summary.peak_rss_bytes as f64 / 1e9);
    println!(
        "{} documents, {workers} workers, {epochs} epochs of {events} events: \
         median {:.3} ms, 90th percentile {:.3}, 99th {:.3}, most {:.3}",
        summary.documents,
        at(50),
        at(90),
        at(99),
        at(100)
    );
}
