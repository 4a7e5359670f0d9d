//! Measurements of speed; run only by name: `cargo test --release --test kafka -- measure`.

use std::time::{Duration, Instant};

use dupflow::connectors::intake::{Dequeued, EpochLimits, Queue, QueueRoom, Source as _};
use dupflow::connectors::kafka::Start;
use dupflow::connectors::kafka::{KafkaOutput, KafkaSink, OutputEnvelope};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::Sink as _;
use dupflow::core::doc::DocId;
use dupflow::core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow::core::time::{Progress, SystemClock};

use crate::Test;
use crate::broker::Broker;
use crate::read::kafka;
use crate::run::Scene;

pub(crate) const TESTS: &[Test] = &[
    ("measure::reading", reading),
    ("measure::commits", commits),
    ("measure::a_minute_without_the_broker", a_minute_without_the_broker),
];

/// Reads and counts records of 5 KB.
fn reading(broker: &Broker) {
    let topic = broker.topic(4);
    let writer = broker.writer();
    let (records, text) = (40_000_u32, "x".repeat(5_000));
    for n in 0..records {
        writer.put(&topic, n % 4, Some(&format!("k{n}")), Some(text.as_bytes()));
    }
    writer.flush();
    let mut source = kafka(broker, &topic, Start::Earliest);
    let begin = source.begin(None).unwrap();
    let mut readers = Box::new(source).readers(&begin);
    let queue = Queue::new(1, 1, QueueRoom { bytes: 16 << 20, batches: 256 }, EpochLimits::default());
    let started = Instant::now();
    std::thread::scope(|scope| {
        let this = std::thread::current();
        queue.register(Box::new(move || this.unpark()));
        scope.spawn(|| readers[0].read(&queue, &Default::default(), &SystemClock::start()).unwrap());
        let (mut seen, mut bytes, mut batches) = (0, 0, 0);
        while seen < u64::from(records) {
            match queue.take(u64::MAX) {
                Dequeued::Batch(_, batch) => {
                    seen += batch.records;
                    bytes += batch.bytes();
                    batches += 1;
                    queue.give_back(batch);
                }
                _ => std::thread::park_timeout(Duration::from_secs(1)),
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        let mb = f64::from(u32::try_from(bytes / 1000).unwrap()) / 1000.0;
        println!(
            "reading: {seen} records, {mb:.0} MB, {batches} batches in {seconds:.2} s: {:.0} MB/s",
            mb / seconds
        );
        queue.stop();
    });
}

/// Duration of a transaction by its number of deltas.
fn commits(broker: &Broker) {
    let output = KafkaOutput {
        connection: broker.connection(),
        topic: Broker::name("pairs"),
        progress_topic: Broker::name("progress"),
        transactional_id: Broker::name("id"),
        envelope: OutputEnvelope::Delta,
        dead_letter: None,
        timeout: Duration::from_secs(20),
        refresh: Duration::from_secs(30),
        run: "measure".to_owned(),
    };
    let mut sink = KafkaSink::new(output, None);
    sink.take_over().unwrap();
    let mut epoch = 0;
    for deltas in [0, 10, 1000] {
        let mut times = Vec::new();
        for _ in 0..200 {
            epoch += 1;
            let pair = |n: u32| {
                let [a, b] = [format!("a{epoch}"), format!("b{n}")].map(|id| DocId::new(&id).unwrap());
                let pair = Pair::new(a, b).unwrap();
                let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
                Delta::by_block(similar, 1)
            };
            let deltas: Vec<_> = (0..deltas).map(pair).collect();
            let progress = Progress { epoch, next: [(0, epoch)].into(), ..Progress::default() };
            let started = Instant::now();
            sink.epoch(&progress, &deltas, &[]).unwrap();
            let mark = Mark {
                run: "measure".to_owned(),
                progress,
                start: [(0, 0)].into(),
                pipeline: "{}".to_owned(),
                in_correction: false,
                letters: None,
                ..Mark::default()
            };
            sink.commit(&mark).unwrap();
            times.push(started.elapsed());
        }
        times.sort();
        println!(
            "commits of {deltas} deltas: p50 {:.1?}, p99 {:.1?}, most {:.1?}",
            times[100], times[198], times[199]
        );
    }
}

/// The broker is down for a minute while records are written: duration until they are all read after that.
fn a_minute_without_the_broker(broker: &Broker) {
    let scene = Scene::new(broker, 2);
    let text = |n: u32| (0..9).map(|word| format!("w{n}x{word} ")).collect::<String>();
    let put = |from: u32, to: u32| {
        let writer = broker.writer();
        let one = |n: u32, id: &str| writer.put(&scene.input, n % 2, Some(id), Some(text(n).as_bytes()));
        (from..to).for_each(|n| ["a", "b"].iter().for_each(|side| one(n, &format!("{n:06}{side}"))));
        writer.flush();
    };
    let expected = |to: u32| (0..to).map(|n| format!("{n:06}a {n:06}b")).collect::<Vec<_>>();
    put(0, 1);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &expected(1));
    put(1, 20_000);
    if !broker.kill() {
        println!("SKIPPED: it needs the broker of broker.sh");
        return;
    }
    std::thread::sleep(Duration::from_secs(60));
    broker.restart();
    let back = Instant::now();
    output.until(&mut run, &expected(20_000));
    println!(
        "a minute without a broker: all 20,000 pairs once, {:.1?} after it answered again",
        back.elapsed()
    );
    run.stop();
}
