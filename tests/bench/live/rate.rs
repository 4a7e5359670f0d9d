//! The throughput of a run: documents read, compared and committed in a second.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use dupflow::connectors::formats::feed;
use dupflow::connectors::formats::feed::FeedRecord;
use dupflow::connectors::mark::Mark;
use dupflow::core::doc::fields::EventFields;
use dupflow::core::doc::{DocEvent, DocId};
use rdkafka::message::Message as _;

use crate::broker::Broker;
use crate::documents::{Documents, WORDS, id, partition};
use crate::place::{Options, Place, cpu_of_ended, spread};

/// Time limit of a measurement.
const BOUND: Duration = Duration::from_secs(600);

/// Documents in a topic.
pub(crate) struct Filled {
    pub(crate) topic: String,
    pub(crate) documents: u64,
    /// Megabytes of text, of 1,000,000 bytes.
    pub(crate) mb: f64,
}

/// Writes documents into a new topic of four partitions, and into a feed file if there is one.
pub(crate) fn fill(place: &Place, documents: u64, mut feed: Option<&mut dyn Write>) -> Filled {
    let topic = place.broker.topic(4);
    let (writer, texts) = (place.broker.writer(), Documents::new(WORDS));
    let (mut text, mut bytes) = (String::new(), 0);
    for number in 0..documents {
        texts.text(number, 0, &mut text);
        bytes += text.len();
        writer.put(&topic, partition(number), Some(&id(number)), Some(text.as_bytes()));
        if let Some(feed) = &mut feed {
            let event = DocEvent {
                id: DocId::new(&id(number)).unwrap(),
                text: Some((&*text).into()),
                ts: None,
                written: None,
                fields: EventFields::default(),
            };
            feed::write(feed, &FeedRecord { event, ts: None }).unwrap();
        }
    }
    writer.flush();
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let mb = bytes as f64 / 1e6;
    Filled { topic, documents, mb }
}

/// Seconds until a consumer that only counts has read all records.
fn count(place: &Place, filled: &Filled) -> f64 {
    let begun = Instant::now();
    let reader = place.reader(&filled.topic, 4);
    let (mut seen, mut bytes) = (0, 0);
    while seen < filled.documents {
        assert!(begun.elapsed() < BOUND, "{seen} of {} records", filled.documents);
        if let Some(Ok(message)) = reader.poll(Duration::from_secs(1)) {
            seen += 1;
            bytes += message.payload_len();
        }
    }
    assert!(bytes > 0);
    begun.elapsed().as_secs_f64()
}

/// Times of a run.
pub(crate) struct Live {
    /// Seconds from the start until a mark that covers all documents can be read.
    pub(crate) seconds: f64,
    /// Documents per second from the first mark to the last, without the time of the start.
    pub(crate) per_second: f64,
    /// CPU seconds.
    cpu: f64,
}

/// Measures a run that catches up.
pub(crate) fn live(place: &Place, filled: &Filled, has_state: bool) -> Live {
    let output = Broker::name("pairs");
    let progress = format!("{output}-progress");
    place.broker.make(&progress, 1);
    let reader = place.reader(&progress, 1);
    let state = has_state.then(|| format!("state-{output}"));
    let begun = Instant::now();
    let mut run = place.run(&filled.topic, &output, state.as_deref());
    let mut first = None;
    let (seconds, per_second) = loop {
        assert!(begun.elapsed() < BOUND && !run.has_ended(), "{}", run.log());
        let Some(Ok(message)) = reader.poll(Duration::from_millis(100)) else { continue };
        if message.key().is_some_and(|key| key.ends_with(b"\0claim")) {
            continue;
        }
        let mark: Mark = serde_json::from_slice(message.payload().unwrap()).unwrap();
        let read = mark.progress.next.values().sum::<u64>();
        let now = begun.elapsed().as_secs_f64();
        let (at, before) = *first.get_or_insert((now, read));
        if read == filled.documents {
            #[expect(clippy::cast_precision_loss, reason = "a number of documents")]
            break (now, (read - before) as f64 / (now - at));
        }
    };
    let cpu = run.cpu();
    run.stop();
    Live { seconds, per_second, cpu }
}

/// `dupflow replay` of the feed into a file, with epochs of the same interval as the run.
fn replay(place: &Place) -> (f64, f64) {
    let (begun, cpu) = (Instant::now(), cpu_of_ended());
    let epoch = format!("every:{}", place.interval);
    let words = ["replay", "-p", "minhash", "--epoch", &epoch, "-o", "replayed.jsonl", "feed.jsonl"];
    let ended =
        Command::new(env!("CARGO_BIN_EXE_dupflow")).args(words).current_dir(place.path("")).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    (begun.elapsed().as_secs_f64(), cpu_of_ended() - cpu)
}

pub(crate) fn run(place: &Place, options: &Options) {
    let mut feed = BufWriter::new(File::create(place.path("feed.jsonl")).unwrap());
    let filled = fill(place, options.count("documents", 150_000), Some(&mut feed));
    feed.flush().unwrap();
    let Filled { documents, mb, .. } = filled;
    println!("{documents} documents, {mb:.0} MB of text; commits every {}", place.interval);
    let names = ["consumer that counts", "replay of a file", "run", "run with state"];
    let mut rates = names.map(|_| Vec::new());
    let mut cpus = names.map(|_| Vec::new());
    // Rates without the start; `size` is in megabytes per document.
    let mut sustained = names.map(|_| Vec::new());
    #[expect(clippy::cast_precision_loss, reason = "a number of documents")]
    let size = mb / documents as f64;
    for round in 0..options.count("rounds", 5) {
        // The order alternates, so that no measurement always follows the same one.
        let forward = round % 2 == 0;
        for turn in 0..names.len() {
            let which = if forward { turn } else { names.len() - 1 - turn };
            let mut per_second = None;
            let (seconds, cpu) = match which {
                0 => (count(place, &filled), 0.0),
                1 => replay(place),
                _ => {
                    let took = live(place, &filled, which == 3);
                    per_second = Some(took.per_second);
                    (took.seconds, took.cpu)
                }
            };
            let rate = mb / seconds;
            println!("round {round}: {}: {seconds:.2} s, {rate:.1} MB/s, CPU {cpu:.2} s", names[which]);
            if let Some(per_second) = per_second {
                sustained[which].push(per_second * size);
            }
            rates[which].push(rate);
            cpus[which].push(cpu);
        }
    }
    println!("| | MB/s: median (least to most) | without the start | CPU seconds |\n|---|---|---|---|");
    for (which, name) in names.iter().enumerate() {
        let [rate, cpu] = [(&rates, 1), (&cpus, 2)].map(|(of, places)| spread(of[which].clone(), places));
        let without = sustained[which].clone();
        let without = if without.is_empty() { String::new() } else { spread(without, 1) };
        println!("| {name} | {rate} | {without} | {cpu} |");
    }
}
