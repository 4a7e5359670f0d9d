//! The time from the call of the producer until the delta can be read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dupflow::connectors::kafka::broker::Consumer;
use rdkafka::message::Message as _;
use serde_json::Value;

use crate::broker::Broker;
use crate::documents::{Documents, WORDS, id, is_edit, partition};
use crate::place::{Options, Place};
use crate::rate;

/// Seconds at the beginning that are not counted.
const WARM_UP: u64 = 5;

/// Time when each document was passed to the producer, in microseconds from the beginning; 0 if not yet.
type Sent = Vec<AtomicU64>;

fn micros(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap()
}

/// The highest rate at which a run reads documents, in MB/s, measured with a large backlog.
fn highest(place: &Place) -> f64 {
    let filled = rate::fill(place, 100_000, None);
    let took = rate::live(place, &filled, false);
    println!("{:.0} MB after {:.1} s", filled.mb, took.seconds);
    #[expect(clippy::cast_precision_loss, reason = "a number of documents")]
    let size = filled.mb / filled.documents as f64;
    took.per_second * size
}

/// The delay of each delta whose later document is an edit, in microseconds. Ends when the producer has
/// finished and no delta arrived for two seconds.
fn read(reader: &Consumer, sent: &Sent, begun: Instant, is_over: &AtomicBool) -> Vec<u64> {
    let mut delays = Vec::new();
    loop {
        let Some(Ok(message)) = reader.poll(Duration::from_secs(2)) else {
            if is_over.load(Ordering::Relaxed) {
                return delays;
            }
            continue;
        };
        let now = micros(begun);
        let delta: Value = serde_json::from_slice(message.payload().unwrap()).unwrap();
        let number = |name: &str| -> u64 { delta[name].as_str().unwrap()[20..].parse().unwrap() };
        let later = number("a").max(number("b"));
        let sent = sent[usize::try_from(later).unwrap()].load(Ordering::Relaxed);
        if sent >= WARM_UP * 1_000_000 {
            delays.push(now - sent);
        }
    }
}

pub(crate) fn run(place: &Place, options: &Options) {
    let rate = options.number("mb-per-second").unwrap_or_else(|| {
        let highest = highest(place);
        println!("highest rate: {highest:.1} MB/s");
        highest / 2.0
    });
    let texts = Documents::new(WORDS);
    let mut text = String::new();
    texts.text(0, 0, &mut text);
    let per_second = rate * 1e6 / f64::from(u32::try_from(text.len()).unwrap());
    let seconds = options.count("seconds", 60) + WARM_UP;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a number of documents"
    )]
    let documents = (per_second * seconds as f64) as u64;
    let (input, output) = (place.broker.topic(4), Broker::name("pairs"));
    let run = place.run(&input, &output, None);
    let reader = place.reader(&output, 1);
    while run.ask("/ready").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let writer = place.broker.writer();
    let sent: Sent = (0..documents).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let mut late = 0;
    let mut delays = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&reader, &sent, begun, &is_over));
        for (number, at) in (0_u64..).zip(&sent) {
            #[expect(clippy::cast_precision_loss, reason = "a number of documents")]
            let due = Duration::from_secs_f64(number as f64 / per_second);
            texts.text(number, 0, &mut text);
            while begun.elapsed() < due {
                writer.0.poll(due.saturating_sub(begun.elapsed()).min(Duration::from_millis(1)));
            }
            late = late.max((begun.elapsed() - due).as_millis());
            at.store(micros(begun), Ordering::Relaxed);
            writer.put(&input, partition(number), Some(&id(number)), Some(text.as_bytes()));
        }
        writer.flush();
        is_over.store(true, Ordering::Relaxed);
        reading.join().unwrap()
    });
    let cpu = run.cpu();
    let metrics = run.metrics();
    run.stop();
    delays.sort_unstable();
    let expected = (0..documents).filter(|n| is_edit(*n)).count();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100] / 1000;
    println!(
        "{rate:.1} MB/s, {per_second:.0} documents/s for {seconds} s, the first {WARM_UP} not counted; the \
        writer was at most {late} ms late"
    );
    println!("{} deltas ({expected} edits), CPU of the run {cpu:.1} s", delays.len());
    println!("p50 {} ms, p90 {} ms, p99 {} ms, max {} ms", at(50), at(90), at(99), at(100));
    let commits = metrics.get("dupflow_commit_seconds_count").copied().unwrap_or(0.0);
    let took = metrics.get("dupflow_commit_seconds_sum").copied().unwrap_or(0.0);
    println!("{commits} commits, {:.1} ms each", took / commits * 1000.0);
}
