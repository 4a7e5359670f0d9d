//! Decisions: each document that an epoch upserts has one record, of the corpus at the end of the epoch; and
//! where they are kept current, the last record of each document is that of a fresh run. Through ends and
//! restarts too.
//!
//! Bug classes: an upsert without a decision, or with two; a decision that an end of a run repeats; a
//! record that is not written again when the oldest document of a cluster changes, a giant forms, or a
//! copy goes; one that is written again and has not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Cursor, Write};
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::connectors::intake::EpochLimits;
use dupflow::connectors::mark::{Mark, Standing};
use dupflow::connectors::sinks::{DecisionLines, DecisionMode, Destination, Sink};
use dupflow::connectors::state;
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters};
use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::doc::{DocChange, DocId, Facts, Letter, Position, UpsertedDoc};
use dupflow::core::hash::mix;
use dupflow::core::oracle;
use dupflow::core::pair::{Delta, DocPair, Pair};
use dupflow::core::run::metrics::Metrics;
use dupflow::core::time::Progress;
use dupflow::engine::dataflow::Stages;
use dupflow::pipeline::RunError;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::history::{check, events, runs, sizes};
use crate::log::Partition;
use crate::pipelines::{CROWDED, plan};
use crate::restart::{Life, Place, live_into, read_up_to};
use crate::retention::{all_alive, clocks, cut, pairs, placed, rules, stamped};
use crate::script::{Epoched, Past, Run, Stamped, closed};
use crate::sources::partitions;

const KINDS: [ClusterKind; 2] = [ClusterKind::Components, ClusterKind::Star];

/// Components of more documents are giants.
const LIMIT: usize = 4;

/// The content of the record of each live document, by definition.
fn expected(
    alive: &BTreeMap<DocId, Facts>,
    pairs: &BTreeSet<DocPair>,
    kind: ClusterKind,
) -> BTreeMap<DocId, Value> {
    let edges: BTreeSet<Pair<DocId>> = pairs.iter().map(|found| found.pair.clone()).collect();
    let groups = |which, limit| {
        let mut groups: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
        for report in oracle::clusters(&edges, which, limit) {
            if let ClusterReport::Member { cluster, document } = report {
                groups.entry(cluster).or_default().insert(document);
            }
        }
        groups
    };
    let components = groups(ClusterKind::Components, usize::MAX);
    let giants: BTreeSet<&DocId> = components.values().filter(|all| all.len() > LIMIT).flatten().collect();
    let clusters = groups(kind, LIMIT);
    let oldest = |members: &BTreeSet<DocId>| {
        let ts = |id: &DocId| alive[id].ts.map_or((1, 0.0), |ts| (0, ts));
        // In the order of ids: of equal ones the smallest is the first.
        members.iter().reduce(|a, b| if ts(b) < ts(a) { b } else { a }).unwrap().clone()
    };
    let content = |id: &DocId| {
        let mut near: Vec<(f64, &DocId)> = Vec::new();
        for found in pairs {
            let similarity = found.similarity.get();
            near.extend((found.pair.lo() == id).then(|| (similarity, found.pair.hi())));
            near.extend((found.pair.hi() == id).then(|| (similarity, found.pair.lo())));
        }
        near.sort_by(|(s, a), (t, b)| t.total_cmp(s).then(a.cmp(b)));
        let mine = clusters.iter().find(|(_, members)| members.contains(id));
        let own: BTreeSet<DocId> =
            near.iter().map(|(_, other)| (*other).clone()).chain([id.clone()]).collect();
        let is_giant = giants.contains(id);
        let of = if is_giant { Some(oldest(&own)) } else { mine.map(|(_, members)| oldest(members)) };
        let repeats = near.iter().take(20).map(|(s, other)| json!({"id": other.as_str(), "similarity": s}));
        json!({
            "copy": of.as_ref().is_some_and(|of| of != id), "of": of.map(|of| of.to_string()),
            "repeats": repeats.collect::<Vec<_>>(), "pairs": near.len(),
            "cluster": mine.map(|(cluster, _)| cluster.to_string()), "giant": is_giant,
        })
    };
    alive.keys().map(|id| (id.clone(), content(id))).collect()
}

/// A written record.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    id: DocId,
    epoch: u64,
    position: Option<Position>,
    /// `None` for an end.
    content: Option<Value>,
}

impl Record {
    fn read(line: &str) -> Self {
        let mut read: Value = serde_json::from_str(line).unwrap();
        assert!(read["at"].as_str().unwrap().ends_with('Z'), "{line}");
        let id = DocId::new(read["id"].as_str().unwrap()).unwrap();
        let (epoch, has_ended) = (read["epoch"].as_u64().unwrap(), read["ended"] == json!(true));
        let position = read["partition"]
            .as_u64()
            .zip(read["offset"].as_u64())
            .map(|(partition, offset)| Position { partition: u32::try_from(partition).unwrap(), offset });
        let fields = read.as_object_mut().unwrap();
        for key in ["id", "epoch", "at", "partition", "offset"] {
            fields.remove(key);
        }
        fields.entry("giant").or_insert(json!(false));
        Self { id, epoch, position, content: Some(read).filter(|_| !has_ended) }
    }
}

/// What one epoch holds, by definition.
struct Moment {
    epoch: u64,
    /// The documents with an upsert, each with the position of its last event.
    upserts: BTreeMap<DocId, Position>,
    alive: BTreeMap<DocId, Facts>,
    expected: BTreeMap<DocId, Value>,
}

/// Checks the records of an output against the definition of each epoch.
fn assert_records(lines: &[u8], moments: &[Moment], mode: DecisionMode, what: &str) {
    let records = std::str::from_utf8(lines).unwrap().lines().map(Record::read);
    let mut records = records.peekable();
    let mut last: BTreeMap<DocId, Value> = BTreeMap::new();
    for Moment { epoch, upserts, alive, expected } in moments {
        let mut decided = BTreeMap::new();
        let mut previous = None;
        while let Some(record) = records.next_if(|record| record.epoch == *epoch) {
            assert!(previous < Some(record.id.clone()), "{what}, {epoch}: one record of a document, by id");
            previous = Some(record.id.clone());
            assert_eq!(record.content.as_ref(), expected.get(&record.id), "{what}, {epoch}: {record:?}");
            let now = alive.get(&record.id).map(|facts| facts.position);
            if let Some(position) = upserts.get(&record.id) {
                assert_eq!(record.position, Some(*position), "{what}, {epoch}: {record:?}");
                decided.insert(record.id.clone(), *position);
            } else {
                assert_eq!(mode, DecisionMode::Current, "{what}, {epoch}: {record:?}");
                assert_eq!(record.position, now, "{what}, {epoch}: {record:?}");
                assert_ne!(record.content.as_ref(), last.get(&record.id), "{what}, {epoch}: {record:?}");
            }
            match record.content {
                Some(content) => last.insert(record.id, content),
                None => last.remove(&record.id),
            };
        }
        assert_eq!(decided, *upserts, "{what}, {epoch}: each upsert has one decision");
        if mode == DecisionMode::Current {
            assert_eq!(last, *expected, "{what}, {epoch}");
        }
    }
    assert_eq!(records.next(), None, "{what}");
}

/// The moments of epochs that are run at once.
fn moments(stages: &Stages, epochs: &[Epoched], kind: ClusterKind) -> Vec<Moment> {
    let mut so_far: Vec<&Stamped> = Vec::new();
    let mut moments = Vec::new();
    for (epoch, (given, clock)) in (1..).zip(epochs.iter().zip(clocks(epochs, stages.retention.clock))) {
        let first = so_far.len();
        so_far.extend(&given.events);
        let all = placed(so_far.iter().copied());
        let alive = all_alive(&all, clock, &stages.retention);
        moments.push(moment(epoch, &all[first..], &alive, stages, kind));
    }
    moments
}

/// The moment of an epoch with these events, after which these documents are alive.
fn moment(
    epoch: u64,
    events: &[(Position, Stamped)],
    alive: &BTreeMap<DocId, (String, Facts)>,
    stages: &Stages,
    kind: ClusterKind,
) -> Moment {
    let has_upsert = |id: &DocId| events.iter().any(|(_, event)| event.id == *id && event.text.is_some());
    let last: BTreeMap<DocId, Position> = events.iter().map(|(at, event)| (event.id.clone(), *at)).collect();
    let texts = alive.iter().map(|(id, (text, _))| (id.clone(), text.clone())).collect();
    let alive: BTreeMap<_, _> = alive.iter().map(|(id, (_, facts))| (id.clone(), *facts)).collect();
    let expected = expected(&alive, &pairs(stages, &texts), kind);
    Moment { epoch, upserts: last.into_iter().filter(|(id, _)| has_upsert(id)).collect(), alive, expected }
}

fn assert_decisions(plan: &Plan, epochs: &[Epoched], retention: Retention, run: Run) {
    let stages = dupflow::pipeline::stages(plan, false);
    let stages = Stages { retention, emits_documents: true, emits_upserts: true, ..stages };
    let told = closed(&stages, epochs, &Past::default(), run);
    for kind in KINDS {
        let moments = moments(&stages, epochs, kind);
        for mode in DecisionMode::ALL {
            let mut out = Vec::new();
            let clusters = Clusters::new(kind, LIMIT);
            let mut sink = DecisionLines::new(&mut out, mode, clusters, Arc::new(Metrics::new(0)));
            sink.live(0);
            for closed in &told {
                sink.documents(&closed.documents, false).unwrap();
                sink.upserts(&closed.upserts).unwrap();
                sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
            }
            sink.finish().unwrap();
            drop(sink);
            assert_records(&out, &moments, mode, &format!("{kind:?}, {mode}"));
        }
    }
}

#[test]
fn each_upsert_has_a_decision_of_its_epoch() {
    let plan = plan(CROWDED);
    check(80, (stamped(), sizes(), runs()), |(events, sizes, run)| {
        assert_decisions(&plan, &cut(&events, &sizes, false), Retention::default(), run);
    });
}

#[test]
fn decisions_know_of_documents_that_expire() {
    let plan = plan(CROWDED);
    check(80, (stamped(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
        let wall = retention.clock == RetentionClock::Wall;
        assert_decisions(&plan, &cut(&events, &sizes, wall), retention, run);
    });
}

/// An output in memory with its mark: what is written between two commits becomes durable with the second.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    durable: Vec<u8>,
    written: Vec<u8>,
    mark: Option<Mark>,
    /// The progress of each epoch, and how many of them are durable.
    progress: Vec<Progress>,
    epochs: usize,
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for Tape {
    fn take_over(&mut self) -> io::Result<Standing> {
        let mut kept = self.0.lock();
        let epochs = kept.epochs;
        kept.progress.truncate(epochs);
        kept.written.clear();
        Ok(kept.mark.clone().map_or(Standing::New, |mark| Standing::At(Box::new(mark))))
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.0.lock().durable.clone())))
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let mut kept = self.0.lock();
        let written = std::mem::take(&mut kept.written);
        kept.durable.extend(written);
        kept.epochs = kept.progress.len();
        kept.mark = Some(mark.clone());
        Ok(())
    }
}

/// Decisions on a tape, with the progress of each epoch.
struct OnTape {
    lines: DecisionLines<Tape>,
    tape: Tape,
}

impl OnTape {
    fn new(tape: &Tape, mode: DecisionMode) -> Self {
        let clusters = Clusters::new(ClusterKind::Components, LIMIT);
        let lines = DecisionLines::new(tape.clone(), mode, clusters, Arc::new(Metrics::new(0)));
        Self { lines, tape: tape.clone() }
    }
}

impl Sink for OnTape {
    fn take_over(&mut self) -> io::Result<Standing> {
        self.lines.take_over()
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.lines.pairs()
    }

    fn documents(&mut self, changes: &[DocChange], restored: bool) -> io::Result<()> {
        self.lines.documents(changes, restored)
    }

    fn wants_upserts(&self) -> bool {
        self.lines.wants_upserts()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.lines.upserts(upserts)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.lines.restored(deltas);
    }

    fn live(&mut self, past: u64) {
        self.lines.live(past);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.tape.0.lock().progress.push(progress.clone());
        self.lines.epoch(progress, deltas, letters)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.lines.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lines.finish()
    }
}

/// A run that ends early at a random commit, or the last one, which does not.
fn life(random: u64, is_last: bool, reconcile: bool) -> Life {
    Life {
        workers: 1 + usize::try_from(random >> 8 & 3).unwrap(),
        readers: 1 + usize::try_from(random >> 10 & 1).unwrap(),
        limits: EpochLimits { records: Some(1 + (random >> 12) % 9), ..EpochLimits::default() },
        seed: random,
        end: Some((random % 5, random & 64 == 0)).filter(|_| !is_last),
        reconcile,
        ids_move: false,
    }
}

/// Runs of one output, each but the last of which ends early. Now and then the state is lost.
fn through_ends(
    place: &mut Place,
    tape: &Tape,
    plan: &Plan,
    parts: &BTreeMap<u32, Partition>,
    mode: DecisionMode,
    seed: u64,
) {
    for n in 0..12 {
        let random = mix(seed ^ (n << 32));
        if random >> 16 & 7 == 0 && place.state.is_some() {
            place.state = Some(state::MemoryStore::default());
        }
        let ended = live_into(OnTape::new(tape, mode), place, plan, parts, life(random, n == 11, false));
        assert!(is_expected(ended), "run {n}");
    }
}

fn is_expected(ended: Result<u64, RunError>) -> bool {
    match ended {
        Ok(_) => true,
        Err(RunError::Sink(error)) if error.to_string() == "the end" => true,
        Err(error) => panic!("{error}"),
    }
}

/// The moment of each durable epoch on a tape.
fn moments_of(tape: &Tape, plan: &Plan, parts: &BTreeMap<u32, Partition>) -> Vec<Moment> {
    let stages = dupflow::pipeline::stages(plan, false);
    let mut before = BTreeMap::new();
    let progress = tape.0.lock().progress.clone();
    let moment = |told: Progress| {
        let events = read_up_to(parts, &told.next);
        let is_new = |at: &Position| before.get(&at.partition).is_none_or(|next: &u64| at.offset >= *next);
        let new: Vec<_> = events.iter().filter(|(at, _)| is_new(at)).cloned().collect();
        let clock = events.iter().filter_map(|(_, event)| event.ts).reduce(f64::max);
        let alive = all_alive(&events, clock, &plan.retention);
        before = told.next;
        moment(told.epoch, &new, &alive, &stages, ClusterKind::Components)
    };
    progress.into_iter().map(moment).collect()
}

#[test]
fn no_end_of_a_run_shows_in_its_decisions() {
    let rules = prop_oneof![Just(&[][..]), Just(&["retention.max_age=20s", "retention.max_documents=8"][..])];
    check(48, (events(1..100), rules, any::<bool>(), any::<u64>()), |(history, rules, keeps, seed)| {
        let typed = rules.iter().chain(&["blocking.cap=4", "threshold=0.5"]).map(|&typed| typed.to_owned());
        let plan = Plan::load("minhash", &typed.collect::<Vec<_>>()).unwrap();
        let parts = partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed);
        for mode in DecisionMode::ALL {
            let mut place = Place { state: keeps.then(state::MemoryStore::default), ..Place::default() };
            let tape = Tape::default();
            through_ends(&mut place, &tape, &plan, &parts, mode, seed);
            let moments = moments_of(&tape, &plan, &parts);
            assert_records(&tape.0.lock().durable, &moments, mode, mode.name());
        }
    });
}

/// The last record of each document that has not ended.
fn last_records(tape: &Tape) -> BTreeMap<DocId, Record> {
    let mut last = BTreeMap::new();
    for record in std::str::from_utf8(&tape.0.lock().durable).unwrap().lines().map(Record::read) {
        if record.content.is_some() {
            last.insert(record.id.clone(), record);
        } else {
            last.remove(&record.id);
        }
    }
    last
}

/// Another threshold, however often the correction ends early; then the output is lost and the state is not.
#[test]
fn decisions_are_reconciled() {
    check(32, (events(1..100), any::<bool>(), any::<u64>()), |(history, keeps, seed)| {
        let typed = |threshold| Plan::load("minhash", &[format!("threshold={threshold}")]).unwrap();
        let (first, second) = (typed(0.8), typed(0.5));
        let parts = partitions(&history, 1 + u32::try_from(seed % 3).unwrap(), seed);
        for mode in DecisionMode::ALL {
            let mut place = Place { state: keeps.then(state::MemoryStore::default), ..Place::default() };
            let tape = Tape::default();
            through_ends(&mut place, &tape, &first, &parts, mode, seed);
            let before = tape.0.lock().durable.clone();
            for n in 0..3 {
                let life = Life { end: (n < 2).then_some((0, n == 0)), ..life(mix(seed + n), true, true) };
                assert!(is_expected(live_into(OnTape::new(&tape, mode), &place, &second, &parts, life)));
            }
            if mode == DecisionMode::First {
                assert_eq!(tape.0.lock().durable, before, "every upsert had its decision");
            } else {
                assert_last(&tape, &second, &parts);
            }
            let lost = Tape::default();
            let life = life(seed, true, false);
            assert!(is_expected(live_into(OnTape::new(&lost, mode), &place, &second, &parts, life)));
            // Without a state everything is read again, and decided as it comes.
            if keeps || mode == DecisionMode::Current {
                assert_last(&lost, &second, &parts);
            }
        }
    });
}

/// Checks the last record of each document against the corpus of all events.
fn assert_last(tape: &Tape, plan: &Plan, parts: &BTreeMap<u32, Partition>) {
    let ends = parts.iter().map(|(partition, part)| (*partition, part.end)).collect();
    let events = read_up_to(parts, &ends);
    let stages = dupflow::pipeline::stages(plan, false);
    let alive = all_alive(&events, None, &Retention::default());
    let moment = moment(1, &events, &alive, &stages, ClusterKind::Components);
    let last = last_records(tape);
    assert!(last.keys().eq(moment.alive.keys()));
    for (id, record) in last {
        assert_eq!(record.content.as_ref(), Some(&moment.expected[&id]), "{id}");
        assert_eq!(record.position, Some(moment.alive[&id].position), "{id}");
    }
}
