//! The law for sources: for any readers and partitions, gaps of offsets and cuts into epochs, the deltas up
//! to an epoch accumulate to the pairs of what its progress says has been read.
//!
//! Bug classes: an epoch that closes before all its events have arrived, or reports more or less than it
//! holds; an idle reader that holds epochs open; an order of partitions that is taken for an order in time;
//! progress that decreases or is left out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::connectors::intake::{BadRecords, EpochLimits, OnError};
use dupflow::connectors::sinks::MemorySink;
use dupflow::core::description::Description;
use dupflow::core::hash;
use dupflow::core::time::{Clock, Epoch, SystemClock};
use dupflow::engine::dataflow::Stages;
use dupflow::pipeline::{self, Continuity, Demands, RunError, RunJob};
use parking_lot::Mutex;
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, events};
use crate::law::{Accumulated, Corpus, assert_same};
use crate::log::{Log, Partition};
use crate::script::Run;

/// Distributes events over partitions by their ids, with gaps between the offsets. An empty text would end
/// its document, so it is left out.
pub(crate) fn partitions(history: &[Event], count: u32, seed: u64) -> BTreeMap<u32, Partition> {
    let mut parts: BTreeMap<u32, Partition> = BTreeMap::new();
    for (n, (id, text)) in (0..).zip(history) {
        let text = text.clone().filter(|text| !text.is_empty());
        let hash = hash::bytes(seed, id.as_str().as_bytes());
        let part = parts.entry(u32::try_from(hash % u64::from(count)).unwrap() * 3).or_default();
        let offset = part.end + hash::mix(seed ^ n) % 3;
        part.events.push((offset, (id.clone(), text)));
        part.end = offset + 1 + hash::mix(seed ^ !n) % 2;
    }
    parts
}

fn job(stages: Stages, log: Log, sink: &Arc<Mutex<MemorySink>>, workers: usize) -> RunJob {
    RunJob {
        stages,
        source: Box::new(log),
        receiver: None,
        first_epoch: 1,
        processes: None,
        status: Arc::default(),
        most_records: None,
        demands: Demands::default(),
        publication: None,
        continuity: Continuity::new(&Description::new()),
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        sink: Box::new(Arc::clone(sink)),
        workers,
        clock: Arc::new(SystemClock::start()),
    }
}

/// Runs a log, and checks every epoch against the oracle of what its progress says has been read.
fn assert_law(history: &[Event], count: u32, readers: usize, workers: usize, limits: EpochLimits, seed: u64) {
    const FIRST: Epoch = 1_000_000;
    let parts = partitions(history, count, seed);
    let plan = Plan::load("minhash", &["blocking.cap=4".to_owned(), "threshold=0.5".to_owned()]).unwrap();
    let stages = dupflow::pipeline::stages(&plan, false);
    let (sink, (read, all_read)) = (Arc::<Mutex<MemorySink>>::default(), channel());
    let log =
        Log { partitions: parts.clone(), readers, limits, seed, ids_move: false, ts: |_, _| None, read };
    let job = RunJob { first_epoch: FIRST, ..job(stages.clone(), log, &sink, workers) };
    let running = pipeline::start(job).unwrap();
    (0..readers).for_each(|_| all_read.recv().unwrap());
    // The idle reader holds no epoch open, but it has not ended either.
    running.stopper().stop();
    let summary = running.join().unwrap();

    let MemorySink { deltas, progress, finished, .. } = sink.lock().clone();
    assert!(finished);
    assert_eq!(summary.durable_epochs, progress.len() as u64);
    let mut accumulated = Accumulated::new(deltas);
    let mut corpus = Corpus::new(&stages);
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    for (epoch, told) in (FIRST..).zip(progress) {
        assert_eq!(told.epoch, epoch, "every epoch is reported, in order");
        assert!(before.iter().all(|(p, next)| told.next[p] >= *next), "{before:?}, then {told:?}");
        for (p, part) in &parts {
            let from = before.get(p).copied().unwrap_or(0);
            let to = told.next.get(p).copied().unwrap_or(0);
            let new = part.events.iter().filter(|(offset, _)| (from..to).contains(offset));
            corpus.apply(&new.map(|(_, event)| event.clone()).collect::<Vec<_>>());
        }
        accumulated.advance(epoch);
        let run = Run { workers, serialized: false, seed };
        assert_same(&accumulated.pairs, &corpus.pairs(&stages), epoch, run);
        before = told.next;
    }
    let ends: BTreeMap<u32, u64> = parts.iter().map(|(p, part)| (*p, part.end)).collect();
    assert_eq!(before, ends, "all is read");
    accumulated.end();
}

#[test]
fn any_source_holds_the_law() {
    let limits = prop_oneof![
        Just(EpochLimits::default()),
        Just(EpochLimits { records: Some(7), ..EpochLimits::default() }),
        Just(EpochLimits { bytes: Some(500), ..EpochLimits::default() }),
        Just(EpochLimits { interval: Some(Duration::from_micros(50)), ..EpochLimits::default() }),
    ];
    let runs = (1u32..5, 1usize..4, prop_oneof![Just(1usize), Just(2), Just(4)], limits, any::<u64>());
    check(48, (events(1..120), runs), |(history, (count, readers, workers, limit, seed))| {
        assert_law(&history, count, readers, workers, limit, seed);
    });
}

/// A clock that a worker cannot read.
struct BrokenClock(SystemClock);

impl Clock for BrokenClock {
    fn now(&self) -> Duration {
        let is_worker = thread::current().name().is_some_and(|name| name.starts_with("timely"));
        assert!(!is_worker, "broken on purpose");
        self.0.now()
    }

    fn unix(&self) -> f64 {
        self.0.unix()
    }
}

#[test]
fn a_worker_that_panics_fails_its_run_though_nobody_waits_for_it() {
    let plan = Plan::load("minhash", &[]).unwrap();
    let (sink, (read, _all_read)) = (Arc::default(), channel());
    let (partitions, limits) = (BTreeMap::from([(0, Partition::default())]), EpochLimits::default());
    let log = Log { partitions, readers: 1, limits, seed: 1, ids_move: false, ts: |_, _| None, read };
    let clock = Arc::new(BrokenClock(SystemClock::start()));
    let stages = dupflow::pipeline::stages(&plan, false);
    let running = pipeline::start(RunJob { clock, ..job(stages, log, &sink, 2) }).unwrap();
    let stopper = running.stopper();
    while !stopper.has_failed() {
        thread::yield_now();
    }
    let failed = running.join().unwrap_err();
    assert!(matches!(&failed, RunError::Worker(what) if what.contains("broken on purpose")), "{failed}");
}
