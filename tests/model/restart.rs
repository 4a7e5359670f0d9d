//! The law through ends and restarts: wherever in a commit the earlier runs ended, the durable deltas
//! accumulate to the pairs of what their marks say has been read.
//!
//! A run ends as a crash ends it: its sink fails before a commit or after it, and uncommitted data is lost.
//! It may also end by a file of spilled rows that fails, and the next one has another memory budget or none.
//! Kept documents may be lost too, or be older than the output. Bug classes: a delta twice, or never; a
//! document restored with another sketch, or not at all; a table of document frequencies that a restart
//! decides again; an input that is read beyond the mark before everything up to it has been read; an output
//! that is corrected only in part.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::connectors::intake::{BadRecords, EpochLimits, OnError};
use dupflow::connectors::mark::{Mark, Standing};
use dupflow::connectors::sinks::{MemorySink, Sink};
use dupflow::connectors::state::{self, StoredState};
use dupflow::core::doc::fields::EventFields;
use dupflow::core::doc::{DocChange, DocEvent, DocId, Letter, Position, UpsertedDoc};
use dupflow::core::hash::mix;
use dupflow::core::pair::{Delta, DocPair};
use dupflow::core::run::metrics::Counter;
use dupflow::core::text::IdfTable;
use dupflow::core::time::{Epoch, Progress, RetentionTime, SystemClock, UnixTime};
use dupflow::engine::dataflow::{ReferenceBuilder, Stages};
use dupflow::pipeline::{self, Continuity, Demands, PastError, RunError, RunJob};
use parking_lot::Mutex;
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, events};
use crate::law::{Accumulated, Corpus, assert_same};
use crate::log::{Log, Partition, row_ts};
use crate::pipelines::{plan, small};
use crate::retention;
use crate::script::{self, Run, Stamped};
use crate::sources::partitions;

/// A destination whose run ends at a given commit, if it reaches it: before the commit is made, or after it.
pub(crate) struct Ends<S> {
    pub(crate) sink: S,
    pub(crate) commits_left: u64,
    pub(crate) behind: bool,
}

impl<S: Sink> Sink for Ends<S> {
    fn take_over(&mut self) -> io::Result<Standing> {
        self.sink.take_over()
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.sink.pairs()
    }

    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.sink.documents(changes, restored)
    }

    fn wants_upserts(&self) -> bool {
        self.sink.wants_upserts()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.sink.upserts(upserts)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.sink.restored(deltas);
    }

    fn live(&mut self, past: Epoch) {
        self.sink.live(past);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.sink.epoch(progress, deltas, letters)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        if self.commits_left == 0 && !self.behind {
            return Err(io::Error::other("the end"));
        }
        self.sink.commit(mark)?;
        self.commits_left = self.commits_left.checked_sub(1).ok_or_else(|| io::Error::other("the end"))?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }
}

/// The output and the state between two runs.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) sink: Arc<Mutex<MemorySink>>,
    pub(crate) state: Option<state::MemoryStore>,
    /// Whether files of spilled rows fail, in runs that end early.
    pub(crate) spill_fails: bool,
    /// The frozen reference; none if it is empty.
    pub(crate) reference: Vec<(DocId, String)>,
}

impl Place {
    /// What a run needs to continue here.
    fn continuity(&self, plan: &Plan, stages: &Stages, reconcile: bool) -> Continuity {
        let state = self.state.as_ref().map(|store| (open(store), Duration::ZERO));
        let continuity = Continuity { reconcile, state, ..Continuity::new(&plan.description()) };
        if self.reference.is_empty() {
            return continuity;
        }
        let mut builder = ReferenceBuilder::new(stages);
        for (id, text) in &self.reference {
            let (id, text, fields) = (id.clone(), Some(text.into()), EventFields::default());
            builder.add(DocEvent { id, ts: Some(1.0), written: None, text, fields }).unwrap();
        }
        let reference = builder.build();
        let described = plan.description().with("reference.inputs", &*reference.description());
        Continuity { reference: Some(reference), ..continuity }.described(&described)
    }
}

/// Opens the stored state.
pub(crate) fn open(store: &state::MemoryStore) -> StoredState {
    StoredState::open(Box::new(store.clone())).unwrap()
}

/// The times of events: mostly ascending, some late, some without.
pub(crate) fn ts_of(partition: u32, offset: u64) -> Option<f64> {
    let random = mix(u64::from(partition) << 32 | offset);
    let now = 1000.0 + 1.5 * f64::from(u32::try_from(offset).unwrap());
    match random % 8 {
        0 => None,
        1 => Some(now - f64::from(u32::try_from(random >> 8 & 31).unwrap())),
        _ => Some(now),
    }
}

/// The setup of a run, and how it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) workers: usize,
    pub(crate) readers: usize,
    pub(crate) limits: EpochLimits,
    pub(crate) seed: u64,
    /// The commit at which the run ends, if any.
    pub(crate) end: Option<(u64, bool)>,
    pub(crate) reconcile: bool,
    pub(crate) ids_move: bool,
}

/// Runs to the end of the input, or to the run's own end; returns the number of restored documents.
pub(crate) fn live(
    place: &Place,
    plan: &Plan,
    parts: &std::collections::BTreeMap<u32, Partition>,
    life: Life,
) -> Result<u64, RunError> {
    live_into(Arc::clone(&place.sink), place, plan, parts, life)
}

/// As [`live`], into another sink than that of the place.
pub(crate) fn live_into(
    sink: impl Sink + Send + 'static,
    place: &Place,
    plan: &Plan,
    parts: &std::collections::BTreeMap<u32, Partition>,
    life: Life,
) -> Result<u64, RunError> {
    let mut stages = dupflow::pipeline::stages(plan, false);
    let fails_after = mix(life.seed ^ 0xf5) % 400;
    stages.spill = if place.spill_fails && life.end.is_some() {
        Some(script::spill(life.seed, Some(fails_after)))
    } else {
        script::budget(life.seed)
    };
    let (read, all_read) = channel();
    let (commits_left, behind) = life.end.unwrap_or((u64::MAX, false));
    let metrics = Arc::clone(&stages.observers.metrics);
    let log = Log {
        partitions: parts.clone(),
        readers: life.readers,
        limits: life.limits,
        seed: life.seed,
        ids_move: life.ids_move,
        ts: ts_of,
        read,
    };
    let continuity = place.continuity(plan, &stages, life.reconcile);
    let running = pipeline::start(RunJob {
        receiver: None,
        stages,
        source: Box::new(log),
        first_epoch: 1,
        processes: None,
        status: Arc::default(),
        most_records: None,
        demands: Demands::default(),
        publication: None,
        continuity,
        bad: Arc::new(BadRecords::new(OnError::Fail, None)),
        sink: Box::new(Ends { sink, commits_left, behind }),
        workers: life.workers,
        clock: Arc::new(SystemClock::start()),
    })?;
    // Receivers of readers that end early are dropped; readers that end in order have read everything.
    let whole = (0..life.readers).all(|_| all_read.recv().is_ok());
    if whole {
        running.stopper().stop();
    }
    running.join().map(|_| metrics.get(Counter::Restored))
}

/// Runs once, to the end of the input.
pub(crate) fn to_the_end(
    place: &Place,
    plan: &Plan,
    parts: &std::collections::BTreeMap<u32, Partition>,
    ids_move: bool,
) {
    let (limits, end, reconcile) = (EpochLimits::default(), None, false);
    let life = Life { workers: 2, readers: 1, limits, seed: 1, end, reconcile, ids_move };
    live(place, plan, parts, life).unwrap();
}

/// Events up to a progress, with their positions and times, by partition.
pub(crate) fn read_up_to(
    history: &std::collections::BTreeMap<u32, Partition>,
    next: &dupflow::core::time::Offsets,
) -> Vec<(Position, Stamped)> {
    let mut events = Vec::new();
    for (partition, part) in history {
        let next = next.get(partition).copied().unwrap_or(0);
        for (offset, (id, text)) in part.events.iter().filter(|(offset, _)| *offset < next) {
            let position = Position { partition: *partition, offset: *offset };
            let written = ts_of(*partition, *offset);
            let own = row_ts(*partition, *offset, written).filter(|_| part.rows && text.is_some());
            let (id, text, ts) = (id.clone(), text.clone(), own.or(written));
            events.push((position, Stamped { written, ..Stamped::new(id, text, ts) }));
        }
    }
    events
}

/// Checks the changes of documents that the last run has emitted against the definition: all live documents,
/// as if it had read everything itself.
pub(crate) fn assert_documents(
    place: &Place,
    plan: &Plan,
    history: &std::collections::BTreeMap<u32, Partition>,
) {
    let memory = place.sink.lock().clone();
    let Some(last) = memory.progress.last() else { return };
    let events = read_up_to(history, &last.next);
    let clock = events.iter().filter_map(|(_, event)| event.ts).reduce(f64::max);
    let alive = retention::all_alive(&events, clock, &plan.retention);
    assert_eq!(memory.documents, retention::facts(alive));
}

/// Checks every durable epoch against the oracle of what its progress says has been read.
pub(crate) fn assert_durable(
    place: &Place,
    plan: &Plan,
    history: &std::collections::BTreeMap<u32, Partition>,
    run: Run,
) {
    let memory = place.sink.lock().clone();
    let stages = dupflow::pipeline::stages(plan, false);
    let mut accumulated = Accumulated::new(memory.deltas);
    let mut corpus = Corpus::new(&stages);
    let mut before = dupflow::core::time::Offsets::new();
    for told in memory.progress {
        for (p, part) in history {
            let from = before.get(p).copied().unwrap_or(0);
            let to = told.next.get(p).copied().unwrap_or(0);
            assert!(to >= from, "progress goes back from {before:?} to {told:?}");
            let new = part.events.iter().filter(|(offset, _)| (from..to).contains(offset));
            corpus.apply(&new.map(|(_, event)| event.clone()).collect::<Vec<_>>());
        }
        accumulated.advance(told.epoch);
        assert_same(&accumulated.pairs, &corpus.pairs(&stages), told.epoch, run);
        before = told.next;
    }
    assert!(history.iter().all(|(p, part)| before[p] == part.end), "all is read");
    accumulated.end();
    assert_documents(place, plan, history);
}

/// Runs several times; each run except the last ends early.
fn assert_law_through(history: &[Event], plan: &Plan, keeps: bool, seed: u64) -> Place {
    through_ends(&partitions(history, 1 + u32::try_from(seed % 3).unwrap(), seed), plan, keeps, seed, false)
}

/// The same with partitions, in which ids may move.
pub(crate) fn through_ends(
    parts: &std::collections::BTreeMap<u32, Partition>,
    plan: &Plan,
    keeps: bool,
    seed: u64,
    ids_move: bool,
) -> Place {
    let state = keeps.then(state::MemoryStore::default);
    let place = Place { state, spill_fails: seed & 32 == 0, ..Place::default() };
    through_ends_at(place, parts, plan, seed, ids_move)
}

/// The same at a place.
pub(crate) fn through_ends_at(
    mut place: Place,
    parts: &std::collections::BTreeMap<u32, Partition>,
    plan: &Plan,
    seed: u64,
    ids_move: bool,
) -> Place {
    let keeps = place.state.is_some();
    let limits = EpochLimits { records: Some(1 + mix(seed) % 9), ..EpochLimits::default() };
    for n in 0..40 {
        let random = mix(seed ^ (n << 32));
        let end = Some((random % 5, random & 64 == 0)).filter(|_| n < 39);
        let life = Life {
            workers: 1 + usize::try_from(random >> 8 & 1).unwrap(),
            readers: 1 + usize::try_from(random >> 9 & 1).unwrap(),
            limits,
            seed: random,
            end,
            reconcile: false,
            ids_move,
        };
        if random >> 16 & 7 == 0 && keeps && plan.scheme.live().is_none() {
            // The kept documents are lost: everything is read again.
            place.state = Some(state::MemoryStore::default());
        }
        match live(&place, plan, parts, life) {
            Ok(_) => return place,
            Err(RunError::Sink(error)) if error.to_string() == "the end" => {}
            Err(RunError::Spill(why)) if place.spill_fails => assert!(why.starts_with("spill: "), "{why}"),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the last run has no end of its own")
}

pub(crate) fn run(seed: u64) -> Run {
    Run { workers: 2, serialized: false, seed }
}

#[test]
fn no_end_of_a_run_shows_in_its_output() {
    let pipeline = prop_oneof![Just("minhash"), Just("exact"), Just("simhash")];
    check(48, (events(1..120), pipeline, any::<bool>(), any::<u64>()), |(history, name, keeps, seed)| {
        let plan = Plan::load(name, &small(name)).unwrap();
        let place = assert_law_through(&history, &plan, keeps, seed);
        let parts = partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed);
        assert_durable(&place, &plan, &parts, run(seed));
    });
}

/// As [`assert_durable`], with documents that expire.
pub(crate) fn assert_durable_by_retention(
    place: &Place,
    plan: &Plan,
    history: &std::collections::BTreeMap<u32, Partition>,
    run: Run,
) {
    let memory = place.sink.lock().clone();
    let stages = dupflow::pipeline::stages(plan, false);
    let mut accumulated = Accumulated::new(memory.deltas);
    for told in memory.progress {
        let events = read_up_to(history, &told.next);
        let clock = events.iter().filter_map(|(_, event)| event.ts).reduce(f64::max);
        let alive = retention::alive(&events, clock, &plan.retention);
        accumulated.advance(told.epoch);
        assert_same(&accumulated.pairs, &retention::pairs(&stages, &alive), told.epoch, run);
        let expected = clock.filter(|_| plan.retention.max_age.is_some()).and_then(UnixTime::new);
        assert_eq!(told.clock, expected.map(RetentionTime::Event));
    }
    accumulated.end();
    assert_documents(place, plan, history);
}

#[test]
fn no_end_of_a_run_shows_where_documents_expire() {
    let rules = prop_oneof![
        Just(&["retention.max_age=20s"][..]),
        Just(&["retention.max_documents=5"][..]),
        Just(&["retention.max_age=30s", "retention.max_documents=8"][..]),
    ];
    check(48, (events(1..120), rules, any::<bool>(), any::<u64>()), |(history, rules, keeps, seed)| {
        let typed = rules.iter().chain(&["blocking.cap=4"]).map(|&typed| typed.to_owned());
        let plan = Plan::load("minhash", &typed.collect::<Vec<_>>()).unwrap();
        let place = assert_law_through(&history, &plan, keeps, seed);
        let parts = partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed);
        assert_durable_by_retention(&place, &plan, &parts, run(seed));
    });
}

#[test]
fn a_restart_takes_the_documents_that_were_kept() {
    let history: Vec<Event> = (0..60)
        .map(|n| {
            let id = dupflow::core::doc::DocId::new(&format!("d{}", n % 50)).unwrap();
            (id, Some(format!("some text of many words, number {}", n % 7)))
        })
        .collect();
    let parts = partitions(&history, 2, 1);
    let plan = Plan::load("minhash", &[]).unwrap();
    let place = Place { state: Some(state::MemoryStore::default()), ..Place::default() };
    let life = Life {
        workers: 2,
        readers: 1,
        limits: EpochLimits::default(),
        seed: 1,
        end: None,
        reconcile: false,
        ids_move: false,
    };
    assert_eq!(live(&place, &plan, &parts, life).unwrap(), 0);
    let before = place.sink.lock().deltas.clone();
    assert_eq!(live(&place, &plan, &parts, life).unwrap(), 50);
    assert_eq!(place.sink.lock().deltas, before, "nothing new has come");
    let other = Plan::load("minhash", &["threshold=0.7".to_owned()]).unwrap();
    let error = live(&place, &other, &parts, life).unwrap_err();
    let RunError::Past(PastError::OtherPipeline(differences)) = &error else { panic!("{error}") };
    assert!(differences.iter().any(|difference| difference.name == "threshold"));
    assert!(error.to_string().contains("threshold is 0.8 there and 0.7 here"), "{error}");
    // The output is lost and the documents are not: the output is written completely.
    let lost = Place { state: place.state.clone(), ..Place::default() };
    assert_eq!(live(&lost, &plan, &parts, life).unwrap(), 50);
    let pairs = |at: &Place| {
        let deltas = at.sink.lock().deltas.clone();
        let mut alive = BTreeSet::new();
        for (_, pair, diff) in deltas {
            assert!(if diff > 0 { alive.insert(pair) } else { alive.remove(&pair) });
        }
        alive
    };
    assert_eq!(pairs(&lost), pairs(&place));
}

#[test]
fn under_live_weights_a_restart_goes_on_with_the_table_in_force() {
    let live_plan = "text = { shingle = \"words:1\", weights = \"tf-idf\", idf = \"live\" }\n\
        sketch = { kind = \"dart\", size = 64, bits = 8 }\nblocking = { bands = 16, rows = 2, cap = 4 }";
    check(32, (events(1..120), any::<u64>()), |(history, seed)| {
        let plan = plan(live_plan);
        let place = assert_law_through(&history, &plan, true, seed);
        let mark = place.sink.lock().mark.clone();
        let Some(table) = mark.and_then(|mark| mark.progress.table) else { return };
        let state = open(place.state.as_ref().unwrap());
        let bytes = state.table(table.fingerprint).unwrap().expect("the table in force is kept");
        let kept = IdfTable::read(&plan.scheme.text, &*bytes).unwrap();
        let mut stages = dupflow::pipeline::stages(&plan, false);
        stages.scheme = stages.scheme.under(Arc::new(kept));
        let mut corpus = Corpus::new(&stages);
        // By partitions: each id is in one of them.
        for part in partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed).values() {
            corpus.apply(&part.events.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>());
        }
        let memory = place.sink.lock().clone();
        let mut accumulated = Accumulated::new(memory.deltas);
        memory.progress.iter().for_each(|progress| accumulated.advance(progress.epoch));
        assert_same(&accumulated.pairs, &corpus.pairs(&stages), 0, run(seed));
        accumulated.end();
        assert_documents(&place, &plan, &partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed));
    });
}

#[test]
fn an_output_is_reconciled_with_another_pipeline_however_often_that_ends_early() {
    check(32, (events(1..100), any::<bool>(), any::<u64>()), |(history, keeps, seed)| {
        let first = Plan::load("minhash", &["threshold=0.8".to_owned()]).unwrap();
        let place = assert_law_through(&history, &first, keeps, seed);
        let parts = partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed);
        for (n, (name, threshold)) in (0..).zip([("minhash", 0.5), ("exact", 0.6)]) {
            let plan = Plan::load(name, &[format!("threshold={threshold}")]).unwrap();
            let life = Life {
                workers: 2,
                readers: 1,
                limits: EpochLimits { records: Some(5), ..EpochLimits::default() },
                seed,
                end: Some((0, mix(seed + n) & 1 == 0)),
                reconcile: true,
                ids_move: false,
            };
            for end in [life.end, None] {
                match live(&place, &plan, &parts, Life { end, ..life }) {
                    Ok(_) => assert_eq!(end, None),
                    Err(RunError::Sink(error)) if error.to_string() == "the end" => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let stages = dupflow::pipeline::stages(&plan, false);
            let mut corpus = Corpus::new(&stages);
            for part in parts.values() {
                corpus.apply(&part.events.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>());
            }
            let memory = place.sink.lock().clone();
            let mut alive = BTreeSet::new();
            for (_, pair, diff) in memory.deltas {
                assert!(if diff > 0 { alive.insert(pair.clone()) } else { alive.remove(&pair) }, "{pair:?}");
            }
            assert_same(&alive, &corpus.pairs(&stages), 0, run(seed));
            assert_documents(&place, &plan, &parts);
        }
    });
}
