//! The law for sources: however many readers and partitions, wherever offsets have gaps and epochs are cut, the deltas up to an epoch
//! accumulate to the pairs of what its progress says has been read.
//!
//! Bug classes: an epoch that closes before all that is in it has come, or reports more or less than it holds; a reader that is idle
//! and holds epochs open; an order between partitions that is taken for one in time; progress that goes back or is left out.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::dataflow::Stages;
use dupflow::hash;
use dupflow::pair::DocPair;
use dupflow::pipeline::{self, Job};
use dupflow::sink::{Memory, Sink};
use dupflow::source::{
    BadRecords, Batch, EpochLimits, KeyedRecord, OnError, Payload, Queue, Reader, Records, Source,
    SourceError,
};
use dupflow::time::{Clock, Epoch, Progress, SystemClock};
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, events};
use crate::law::{Accumulated, Corpus, assert_same};
use crate::script::Run;

/// The events of a partition with their offsets, and the offset after the last one.
#[derive(Clone, Debug, Default)]
struct Partition {
    events: Vec<(u64, Event)>,
    end: u64,
}

/// A log in memory: partitions dealt out to readers, and one more reader that has nothing to read and never ends by itself.
#[derive(Debug)]
struct Log {
    partitions: BTreeMap<u32, Partition>,
    readers: usize,
    limits: EpochLimits,
    seed: u64,
    /// Told by each reader that has read all.
    read: Sender<()>,
}

/// Reads its partitions in turns of random length.
struct Turns {
    partitions: BTreeMap<u32, Partition>,
    seed: u64,
    read: Sender<()>,
}

/// Reads nothing, until it is stopped.
struct Idle;

impl Source for Log {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn readers(self: Box<Self>) -> Vec<Box<dyn Reader>> {
        let mut readers: Vec<Box<dyn Reader>> = vec![Box::new(Idle)];
        for reader in 0..self.readers {
            let mine = |(p, _): &(&u32, &Partition)| **p as usize % self.readers == reader;
            let partitions =
                self.partitions.iter().filter(mine).map(|(p, part)| (*p, part.clone())).collect();
            let seed = hash::mix(self.seed ^ reader as u64);
            readers.push(Box::new(Turns { partitions, seed, read: self.read.clone() }));
        }
        readers
    }
}

impl Reader for Idle {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        while queue.pause(Duration::MAX).is_ok() {}
        Ok(())
    }
}

impl Reader for Turns {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        let mut left: Vec<(u32, Partition)> = std::mem::take(&mut self.partitions).into_iter().collect();
        let mut random = |below: u64| {
            self.seed = hash::mix(self.seed.wrapping_add(1));
            usize::try_from(self.seed % below).unwrap()
        };
        while !left.is_empty() {
            let turn = random(left.len() as u64);
            let (partition, part) = &mut left[turn];
            let count = random(4).min(part.events.len());
            let mut records = Records::default();
            let mut next = part.end;
            for (offset, (id, text)) in part.events.drain(..count) {
                let (key, value) = (Some(id.as_str().as_bytes()), text.as_deref().map(str::as_bytes));
                records.push(KeyedRecord { offset, ts: None, key, value });
                next = offset + 1;
            }
            let is_last = part.events.is_empty();
            if count == 0 && !is_last {
                continue;
            }
            // Behind the last record there may be more that is none.
            next = if is_last { part.end } else { next };
            let batch = Batch {
                input: "log".into(),
                partition: *partition,
                records: records.len() as u64,
                next,
                payload: Payload::Records(records),
            };
            queue.push(batch).unwrap();
            if random(3) == 0 {
                queue.cut();
            }
            if is_last {
                left.remove(turn);
            }
        }
        self.read.send(()).unwrap();
        Ok(())
    }
}

/// A [`Memory`] that can still be looked at when the run has ended.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Memory>>);

impl Sink for Shared {
    fn epoch(&mut self, progress: &Progress, deltas: &[(DocPair, isize)]) -> io::Result<()> {
        self.0.lock().unwrap().epoch(progress, deltas)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().finish()
    }
}

/// Deals events out to partitions by their ids, with gaps between the offsets; a text that is empty would end its document, so it is
/// left out.
fn partitions(history: &[Event], count: u32, seed: u64) -> BTreeMap<u32, Partition> {
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

/// Runs a log, and holds every epoch against the oracle of what it says it has read.
fn assert_law(history: &[Event], count: u32, readers: usize, workers: usize, limits: EpochLimits, seed: u64) {
    const FIRST: Epoch = 1_000_000;
    let parts = partitions(history, count, seed);
    let plan = Plan::load("minhash", &["blocking.cap=4".to_owned(), "threshold=0.5".to_owned()]).unwrap();
    let stages = Stages::of(&plan, false);
    let (sink, (read, all_read)) = (Shared::default(), channel());
    let log = Log { partitions: parts.clone(), readers, limits, seed, read };
    let running = pipeline::start(Job {
        stages: stages.clone(),
        source: Box::new(log),
        first_epoch: FIRST,
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        sink: Box::new(sink.clone()),
        workers,
        clock: Arc::new(SystemClock::start()),
    })
    .unwrap();
    (0..readers).for_each(|_| all_read.recv().unwrap());
    // The idle reader holds no epoch open, but it has not ended either.
    running.stopper().stop();
    let summary = running.join().unwrap();

    let Memory { deltas, progress, finished } = sink.0.lock().unwrap().clone();
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
