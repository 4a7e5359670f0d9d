//! How long a query takes while documents arrive, and how much queries slow the documents.
//!
//! `cargo bench --bench queries -- [DOCUMENTS] [EVENTS] [QUESTIONS] [SECONDS] [WORKERS]`, by default 100,000
//! documents of the generator, then 1,000 events and 200 queries a second for 20 seconds, as many workers as
//! cores. Epochs are cut every 100 ms. A query is a text of the corpus; its time counts from when it is due,
//! even if the one before has no answer yet. Then events are sent as fast as they are read, in rounds with
//! this rate of queries and without.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench panics where it fails, prints, and measures time"
)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dupflow::config::Plan;
use dupflow::connectors::formats::{KeyedRecord, KeyedRecords};
use dupflow::connectors::intake::{
    BadRecords, Batch, EpochLimits, OnError, Payload, Queue, Source, SourceError, SourceReader,
};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::Sink;
use dupflow::core::description::Description;
use dupflow::core::doc::Letter;
use dupflow::core::pair::Delta;
use dupflow::core::run::query::{Query, QueryQueue};
use dupflow::core::time::{Clock, Offsets, Progress, SystemClock};
use dupflow::lab::generate::{Generator, Params};
use dupflow::pipeline::{self, Continuity, Demands, RunJob};

/// Events of a round at full speed, and rounds with queries and without.
const ROUND: u64 = 40_000;
const ROUNDS: usize = 4;

/// Number of texts that are queried in turn.
const TEXTS: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct Load {
    documents: u64,
    /// Per second.
    events: u64,
    /// Per second.
    questions: u64,
    seconds: u64,
}

/// Loads the corpus, then follows the load.
#[derive(Debug)]
struct Feed {
    generator: Generator,
    load: Load,
    next: u64,
    written: Receiver<u64>,
    queries: Arc<QueryQueue>,
    texts: Arc<Mutex<Vec<String>>>,
}

impl Source for Feed {
    fn epochs(&self) -> EpochLimits {
        EpochLimits { interval: Some(Duration::from_millis(100)), ..EpochLimits::default() }
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        Ok(from.cloned().unwrap_or_default())
    }

    fn readers(self: Box<Self>, _: &Offsets) -> Vec<Box<dyn SourceReader>> {
        vec![self]
    }
}

impl SourceReader for Feed {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        let loading = Instant::now();
        while self.next < self.load.documents {
            let batch = self.batch(500);
            queue.push(batch).unwrap();
        }
        self.wait(queue);
        println!("{} documents read in {:.1} s", self.next, loading.elapsed().as_secs_f64());

        let asking = Asking::start(self);
        let start = Instant::now();
        let turn = Duration::from_millis(10);
        for number in 1..=self.load.seconds * 100 {
            let count = self.load.events * number / 100 - self.load.events * (number - 1) / 100;
            let batch = self.batch(usize::try_from(count).unwrap());
            queue.push(batch).unwrap();
            let due = turn * u32::try_from(number).unwrap();
            queue.pause(due.saturating_sub(start.elapsed())).unwrap();
        }
        let took = start.elapsed().as_secs_f64();
        asking.end(&format!("{:.0} events/s", (self.load.seconds * self.load.events) as f64 / took));

        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..2 * ROUNDS {
            let batches: Vec<_> = (0..ROUND / 500).map(|_| self.batch(500)).collect();
            let with_questions = (round % 2 == 1).then(|| Asking::start(self));
            let pushed = Instant::now();
            batches.into_iter().for_each(|batch| queue.push(batch).unwrap());
            self.wait(queue);
            let rate = ROUND as f64 / pushed.elapsed().as_secs_f64();
            rates[round % 2].push(rate);
            with_questions
                .into_iter()
                .for_each(|questions| questions.end(&format!("{rate:.0} events/s, all that can be")));
        }
        let [without, with] = rates.map(|mut rates| {
            println!("rates: {:.0?}", rates);
            rates.sort_unstable_by(f64::total_cmp);
            (rates[ROUNDS / 2 - 1] + rates[ROUNDS / 2]) / 2.0
        });
        println!(
            "at most {without:.0} events/s, with questions {with:.0} ({:+.1} %), medians of {ROUNDS} rounds",
            (with / without - 1.0) * 100.0
        );
        Ok(())
    }
}

impl Feed {
    fn batch(&mut self, size: usize) -> Batch {
        let mut records = KeyedRecords::default();
        let mut texts = self.texts.lock().unwrap();
        for record in self.generator.by_ref().take(size) {
            let event = record.event;
            if let Some(text) = event.text.as_deref().filter(|_| texts.len() < TEXTS) {
                texts.push(text.to_owned());
            }
            let (key, value) = (event.id.as_str().as_bytes(), event.text.as_deref().map(str::as_bytes));
            records.push(KeyedRecord { offset: self.next, ts: event.ts, key: Some(key), value });
            self.next += 1;
        }
        let (n, payload) = (records.len() as u64, Payload::Records(records));
        let (letters, seen) = (Vec::new(), None);
        Batch { input: "generated".into(), partition: 0, records: n, next: self.next, payload, letters, seen }
    }

    /// Waits until everything pushed is committed.
    fn wait(&self, queue: &Queue) {
        queue.cut();
        while self.written.recv().unwrap() < self.next {}
    }
}

/// Sends queries at a steady rate.
struct Asking {
    end: Sender<()>,
    thread: thread::JoinHandle<()>,
    times: Receiver<Option<Duration>>,
}

impl Asking {
    fn start(feed: &Feed) -> Self {
        let (queries, texts) = (Arc::clone(&feed.queries), Arc::clone(&feed.texts));
        let rate = feed.load.questions as f64;
        let ((end, ended), (time, times)) = (channel(), channel());
        let number = AtomicU64::new(0);
        let thread = thread::spawn(move || {
            let start = Instant::now();
            loop {
                let number = number.fetch_add(1, Ordering::Relaxed);
                let due = start + Duration::from_secs_f64(number as f64 / rate);
                match ended.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                let texts = texts.lock().unwrap();
                let text = texts[usize::try_from(number).unwrap() * 7919 % texts.len()].clone();
                drop(texts);
                let time = time.clone();
                queries.ask(Query::Text { text, top: 20 }, move |answer| {
                    time.send(answer.ok().map(|_| due.elapsed())).unwrap_or(());
                });
            }
        });
        Self { end, thread, times }
    }

    fn end(self, beside: &str) {
        let Self { end, thread, times } = self;
        drop(end);
        thread.join().unwrap();
        let all: Vec<_> = times.into_iter().collect();
        let mut told: Vec<_> = all.iter().flatten().copied().collect();
        told.sort_unstable();
        let at = |percent: usize| told[(told.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        println!(
            "{beside}: {} questions, {} refused: median {:.2} ms, 90th percentile {:.2}, 99th {:.2}, most \
            {:.2}",
            all.len(),
            all.len() - told.len(),
            at(50),
            at(90),
            at(99),
            at(100)
        );
    }
}

/// Publishes the offset up to which everything has been committed.
struct Bell(Sender<u64>);

impl Sink for Bell {
    fn epoch(&mut self, progress: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
        // After the last round the receiver is dropped.
        self.0.send(progress.next.get(&0).copied().unwrap_or(0)).unwrap_or(());
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
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let number = |i: usize, default| numbers.get(i).copied().unwrap_or(default);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = Load {
        documents: number(0, 100_000),
        events: number(1, 1000),
        questions: number(2, 200),
        seconds: number(3, 20),
    };
    let workers = usize::try_from(number(4, cores as u64)).unwrap();

    let plan = Plan::load("minhash", &[]).unwrap();
    let stages = dupflow::pipeline::stages(&plan, false);
    let more = load.events * load.seconds + 2 * ROUNDS as u64 * ROUND;
    let params = Params { documents: load.documents + more, ..Params::default() };
    let (bell, written) = channel();
    let source = Feed {
        generator: Generator::new(params),
        load,
        next: 0,
        written,
        queries: Arc::clone(&stages.observers.queries),
        texts: Arc::default(),
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
    println!(
        "{} documents, {workers} workers, {:.0} MB",
        summary.documents,
        summary.peak_rss_bytes as f64 / 1e6
    );
}
