//! The law with documents that expire ([`restart`](crate::restart) tests it through ends and restarts): after
//! every epoch, the accumulated deltas are the pairs of the documents that are alive by the definition of
//! `core::doc::retention`, evaluated on all events so far.
//!
//! Bug classes: a document that expires with the cut and not with the clock; a late event that is alive for
//! an epoch; a slot that a delete or an expiry frees too early, so that a forgotten document would have to
//! return; a kept slot that is lost in a restart; a worker that gives up slots by the keys of another epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::doc::{DocChange, DocId, Facts, Position};
use dupflow::core::oracle;
use dupflow::core::pair::DocPair;
use dupflow::core::run::metrics::Counter;
use dupflow::core::sketch::SketchMaker;
use dupflow::core::time::{LiveFrom, RetentionTime, UnixTime};
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::history::{check, events, runs, sizes};
use crate::law::{Accumulated, assert_same};
use crate::live::{self, LIVE};
use crate::pipelines::{CROWDED, plan};
use crate::script::{self, Epoched, Past, Run, Stamped, closed};

/// Seconds.
const AGE: f64 = 20.0;

/// Events whose times mostly ascend; some are late, some far ahead, some have no time, many are equal.
pub(crate) fn stamped() -> impl Strategy<Value = Vec<Stamped>> {
    let times = (0u32..16, 0u32..30);
    (events(0..120), vec(times, 120)).prop_map(|(events, times)| {
        let stamp = |(n, ((id, text), (kind, noise)))| {
            let now = 1000.0 + f64::from(n) * 1.5;
            let ts = match kind {
                0 | 1 => None,
                2 | 3 => Some(now - f64::from(noise)),
                4 => Some(now + f64::from(noise)),
                5 => Some((now.floor() * 10.0 - f64::from(noise)) / 10.0),
                _ => Some(now.floor()),
            };
            Stamped::new(id, text, ts)
        };
        (0u32..).zip(events.into_iter().zip(times)).map(stamp).collect()
    })
}

pub(crate) fn cut(events: &[Stamped], sizes: &[usize], wall: bool) -> Vec<Epoched> {
    let mut rest = events;
    let mut epochs = Vec::new();
    let mut now = 1000.0;
    for (n, size) in sizes.iter().cycle().enumerate() {
        if rest.is_empty() {
            break;
        }
        let (epoch, later) = rest.split_at((*size).min(rest.len()));
        // The time stays, advances, and goes back.
        now += [9.0, 0.0, 30.0, -5.0][n % 4] * f64::from(u32::try_from(*size).unwrap()) / 8.0;
        epochs.push(Epoched { events: epoch.to_vec(), at: wall.then_some(now) });
        rest = later;
        if wall && n % 3 == 0 {
            // No events, while time advances.
            now += 7.0;
            epochs.push(Epoched { events: Vec::new(), at: Some(now) });
        }
    }
    epochs
}

/// A text, and the facts of its document.
pub(crate) type Alive = BTreeMap<DocId, (String, Facts)>;

/// The live documents by definition: all events in order of position, the clock, the rule.
pub(crate) fn alive(
    events: &[(Position, Stamped)],
    clock: Option<f64>,
    retention: &Retention,
) -> BTreeMap<DocId, String> {
    all_alive(events, clock, retention).into_iter().map(|(id, (text, _))| (id, text)).collect()
}

/// Their facts.
pub(crate) fn facts(alive: Alive) -> BTreeMap<DocId, Facts> {
    alive.into_iter().map(|(id, (_, facts))| (id, facts)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "some thousand seconds")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// As [`alive`], with the facts of each.
pub(crate) fn all_alive(events: &[(Position, Stamped)], clock: Option<f64>, retention: &Retention) -> Alive {
    let mut last: BTreeMap<&DocId, (&Position, &Stamped)> = BTreeMap::new();
    let mut keys: BTreeMap<&DocId, (f64, Position)> = BTreeMap::new();
    for (position, event) in events {
        let key = (event.written.unwrap_or(f64::NEG_INFINITY), *position);
        let greatest = keys.entry(&event.id).or_insert(key);
        if key > *greatest {
            *greatest = key;
        }
    }
    // The home of an id is the partition of its newest event.
    for (position, event) in events.iter().filter(|(at, event)| at.partition == keys[&event.id].1.partition) {
        last.insert(&event.id, (position, event));
    }
    let in_time = |event: &Stamped| match (event.ts, clock, retention.max_age) {
        // In whole microseconds, which all of these times are.
        (Some(ts), Some(clock), Some(age)) => micros(ts) >= micros(clock) - micros(age.as_secs_f64()),
        _ => true,
    };
    let has_slot = |id: &DocId| {
        let newer = keys.values().filter(|key| **key > keys[id]).count() as u64;
        retention.max_documents.is_none_or(|most| newer < most)
    };
    let is_alive = |(id, (_, event)): &(&DocId, (&Position, &Stamped))| in_time(event) && has_slot(id);
    let told = |(id, (position, event)): (&DocId, (&Position, &Stamped))| {
        let text = event.text.clone()?;
        let bytes = u32::try_from(text.len()).unwrap();
        let facts = Facts { ts: event.ts, bytes, position: *position };
        Some((id.clone(), (text, facts)))
    };
    last.into_iter().filter(is_alive).filter_map(told).collect()
}

/// Events of one partition, with their positions.
pub(crate) fn placed<'a>(events: impl Iterator<Item = &'a Stamped>) -> Vec<(Position, Stamped)> {
    let at = |(offset, event): (u64, &Stamped)| (Position { partition: 0, offset }, event.clone());
    (0..).zip(events).map(at).collect()
}

/// The clock after each epoch.
pub(crate) fn clocks(epochs: &[Epoched], clock: RetentionClock) -> Vec<Option<f64>> {
    let mut now: Option<f64> = None;
    let told = |epoch: &Epoched| {
        let times: Vec<f64> = match clock {
            RetentionClock::Event => epoch.events.iter().filter_map(|event| event.ts).collect(),
            RetentionClock::Wall => epoch.at.into_iter().collect(),
        };
        times.into_iter().for_each(|time| now = Some(now.map_or(time, |now| now.max(time))));
        now
    };
    epochs.iter().map(told).collect()
}

pub(crate) fn pairs(stages: &Stages, alive: &BTreeMap<DocId, String>) -> BTreeSet<DocPair> {
    let mut maker = SketchMaker::new(&stages.scheme);
    let sketches: BTreeMap<_, _> =
        alive.iter().filter_map(|(id, text)| Some((id.clone(), maker.sketch(text)?))).collect();
    oracle::exact(&sketches, &*stages.blocking, &*stages.filter, stages.expand_limit)
}

fn stages(plan: &Plan, retention: Retention) -> Stages {
    let mut stages = dupflow::pipeline::stages(plan, false);
    stages.retention = retention;
    stages.emits_documents = true;
    stages
}

fn accumulated(told: &[ClosedEpoch]) -> Accumulated {
    Accumulated::new(told.iter().cloned().flat_map(script::deltas_of).collect())
}

/// Applies an epoch's changes of documents: at most one of a document, by id, and none without effect.
pub(crate) fn advance(documents: &mut BTreeMap<DocId, Facts>, changes: &[DocChange]) {
    assert!(changes.is_sorted_by(|a, b| a.id < b.id), "one change of a document, by id");
    for DocChange { id, now, .. } in changes {
        let was = match now {
            Some(facts) => documents.insert(id.clone(), *facts),
            None => documents.remove(id),
        };
        assert!(was.is_some() || now.is_some(), "{id} ends, and was not alive");
    }
}

fn assert_law(stages: &Stages, epochs: &[Epoched], run: Run) {
    let mut documents = BTreeMap::new();
    let told = closed(stages, epochs, &Past::default(), run);
    let mut found = accumulated(&told);
    let mut so_far = Vec::new();
    let mut live = stages.scheme.live().map(|_| live::Corpus::new(stages));
    let clocks = clocks(epochs, stages.retention.clock);
    let mut left = 0;
    for (epoch, (given, clock)) in (1..).zip(epochs.iter().zip(&clocks)) {
        so_far.extend(given.events.iter());
        let all = all_alive(&placed(so_far.iter().copied()), *clock, &stages.retention);
        for closed in told.iter().filter(|closed| closed.progress.epoch == epoch) {
            advance(&mut documents, &closed.documents);
        }
        assert_eq!(documents, facts(all.clone()), "after epoch {epoch}, {run:?}");
        let alive: BTreeMap<_, _> = all.into_iter().map(|(id, (text, _))| (id, text)).collect();
        left = alive.len();
        let expected = match &mut live {
            None => pairs(stages, &alive),
            Some(corpus) => {
                corpus.become_of(alive);
                corpus.pairs()
            }
        };
        found.advance(epoch);
        assert_same(&found.pairs, &expected, epoch, run);
        if let Some(progress) = told.iter().map(|closed| &closed.progress).find(|p| p.epoch == epoch) {
            let time = clock.filter(|_| stages.retention.max_age.is_some()).and_then(UnixTime::new);
            assert_eq!(progress.clock, time.map(|time| stages.retention.clock.at(time)));
        }
    }
    found.end();
    assert_eq!(stages.observers.metrics.counts().documents(), left as u64);
    let deltas = told.iter().map(|closed| closed.deltas.len() as u64).sum::<u64>();
    let count = |counter| stages.observers.metrics.get(counter);
    assert_eq!(deltas, count(Counter::Formed) + count(Counter::Dissolved));
}

fn by_age(clock: RetentionClock) -> Retention {
    Retention { max_age: Some(Duration::from_secs_f64(AGE)), max_documents: None, clock }
}

pub(crate) fn rules() -> impl Strategy<Value = Retention> {
    (any::<bool>(), option::weighted(0.7, 1u64..9), any::<bool>()).prop_map(|(ages, max_documents, wall)| {
        let clock = if wall { RetentionClock::Wall } else { RetentionClock::Event };
        Retention { max_age: ages.then_some(Duration::from_secs_f64(AGE)), max_documents, clock }
    })
}

#[test]
fn documents_expire_by_the_event_clock() {
    let plan = plan(CROWDED);
    check(150, (stamped(), sizes(), runs()), |(events, sizes, run)| {
        let stages = stages(&plan, by_age(RetentionClock::Event));
        assert_law(&stages, &cut(&events, &sizes, false), run);
    });
}

#[test]
fn documents_expire_by_the_wall_clock() {
    let plan = plan(CROWDED);
    check(100, (stamped(), sizes(), runs()), |(events, sizes, run)| {
        let stages = stages(&plan, by_age(RetentionClock::Wall));
        assert_law(&stages, &cut(&events, &sizes, true), run);
    });
}

#[test]
fn the_oldest_go_where_slots_are_limited() {
    let plan = plan(CROWDED);
    check(150, (stamped(), 1u64..9, sizes(), runs()), |(events, most, sizes, run)| {
        let stages = stages(&plan, Retention { max_documents: Some(most), ..Retention::default() });
        assert_law(&stages, &cut(&events, &sizes, false), run);
    });
}

#[test]
fn every_rule_under_live_weights() {
    let plan = plan(LIVE);
    check(80, (stamped(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
        let stages = stages(&plan, retention);
        assert_law(&stages, &cut(&events, &sizes, retention.clock == RetentionClock::Wall), run);
    });
}

#[test]
fn every_rule_and_any_cut_come_to_the_same_end() {
    let plan = plan(CROWDED);
    check(100, (stamped(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
        let of = |cuts: &[usize], as_one: Run| {
            let stages = stages(&plan, Retention { clock: RetentionClock::Event, ..retention });
            let epochs = cut(&events, cuts, false);
            assert_law(&stages, &epochs, as_one);
            let told = closed(&stages, &epochs, &Past::default(), as_one);
            let mut found = accumulated(&told);
            (1..).zip(&epochs).for_each(|(epoch, _)| found.advance(epoch));
            found.end()
        };
        let one = Run { workers: 1, serialized: false, seed: 0 };
        assert_eq!(of(&sizes, run), of(&[events.len().max(1)], one));
    });
}

/// What is kept of the first epochs restores the same documents, slots of ended ones and clocks included.
#[test]
fn a_restart_from_what_was_kept_does_not_show() {
    let inputs = (stamped(), rules(), sizes(), runs(), any::<prop::sample::Index>());
    check(150, inputs, |(events, retention, sizes, run, at)| {
        let plan = plan(CROWDED);
        let wall = retention.clock == RetentionClock::Wall;
        let epochs = cut(&events, &sizes, wall);
        if epochs.is_empty() {
            return;
        }
        let (first, second) = epochs.split_at(at.index(epochs.len()));
        let whole = stages(&plan, retention);
        let expected = closed(&whole, &epochs, &Past::default(), run);

        let mut before = stages(&plan, retention);
        before.keeps = true;
        let told = closed(&before, first, &Past::default(), run);
        let mut past = Past {
            epochs: first.len() as u64,
            events: first.iter().map(|epoch| epoch.events.len() as u64).sum(),
            ..Past::default()
        };
        for changes in told.iter().flat_map(|closed| &closed.kept) {
            for (id, value) in changes.iter() {
                match value {
                    Some(value) => drop(past.kept.insert(id.to_vec(), value.to_vec())),
                    None => drop(past.kept.remove(id)),
                }
            }
        }
        let alive = alive(
            &placed(first.iter().flat_map(|epoch| &epoch.events)),
            clocks(first, retention.clock).last().copied().flatten(),
            &retention,
        );
        let most = retention.max_documents.map_or(0, |most| usize::try_from(most).unwrap());
        let kept = past.kept.len();
        assert!((alive.len()..=alive.len().max(most)).contains(&kept), "{kept} are kept");

        let mut after = stages(&plan, retention);
        after.start.past.clock = told.last().and_then(|closed| closed.progress.clock);
        after.start.past.epoch = past.epochs;
        let restores = u64::from(!past.kept.is_empty());
        after.start.live = Arc::new(LiveFrom::default());
        after.start.live.set(past.epochs + restores + 1);
        let mut again = closed(&after, second, &past, run);
        let documents = |of: &[ClosedEpoch]| {
            let mut documents = BTreeMap::new();
            of.iter().for_each(|closed| advance(&mut documents, &closed.documents));
            documents
        };
        assert_eq!(documents(&again), documents(&expected), "lengths and times are kept too");
        if restores > 0 && !again.is_empty() {
            again.remove(0);
        }
        let deltas = |of: &[ClosedEpoch], less: u64| {
            let bare = of.iter().cloned().flat_map(script::deltas_of);
            bare.map(|(epoch, pair, diff)| (epoch - less, pair, diff)).collect::<Vec<_>>()
        };
        let rest: Vec<_> =
            expected.into_iter().filter(|closed| closed.progress.epoch > past.epochs).collect();
        assert_eq!(deltas(&again, restores), deltas(&rest, 0));
        let last = |closed: &[ClosedEpoch]| closed.last().and_then(|closed| closed.progress.clock);
        if !second.is_empty() {
            assert_eq!(last(&again), last(&rest));
        }
    });
}

fn event(id: &str, text: Option<&str>, ts: Option<f64>) -> Stamped {
    Stamped::new(DocId::new(id).unwrap(), text.map(str::to_owned), ts)
}

fn counts(stages: &Stages) -> [u64; 7] {
    let all = [
        Counter::Inserted,
        Counter::Deleted,
        Counter::Expired,
        Counter::Late,
        Counter::Undated,
        Counter::Unchanged,
        Counter::UnknownDeletes,
    ];
    all.map(|counter| stages.observers.metrics.get(counter))
}

/// A document of exactly the maximum age, a newer time with the same text, a late event, one without a time.
#[test]
fn idle_late_repeated_and_undated_documents() {
    let plan = plan(CROWDED);
    let stages = stages(&plan, by_age(RetentionClock::Event));
    let text = Some("one text of several words for all");
    let epochs: Vec<Epoched> = [
        vec![event("a", text, Some(100.0)), event("b", text, Some(100.0)), event("c", text, None)],
        // No event has a time: the clock does not advance.
        vec![event("d", text, None)],
        // The same text, later.
        vec![event("b", text, Some(110.0))],
        // Exactly the maximum age, inclusive, and then older.
        vec![event("x", None, Some(120.0))],
        vec![event("x", None, Some(120.5))],
        // Late: it ends the document, or has no effect.
        vec![event("b", text, Some(100.0)), event("e", text, Some(100.25))],
    ]
    .map(|events| Epoched { events, at: None })
    .into();
    let run = Run { workers: 2, serialized: false, seed: 1 };
    assert_law(&stages, &epochs, run);
    assert_eq!(counts(&stages), [4, 0, 2, 2, 2, 1, 2]);
    assert_eq!(stages.observers.metrics.counts().documents(), 2);
}

/// The time in a mark is that of its clock: a run with another clock begins without one.
#[test]
fn a_clock_does_not_take_the_time_of_another() {
    let plan = plan(CROWDED);
    let mut stages = stages(&plan, by_age(RetentionClock::Event));
    stages.start.past.clock = Some(RetentionTime::Wall(UnixTime::new(1e9).unwrap()));
    let epochs = [Epoched { events: vec![event("a", Some("x y z"), Some(5.0))], at: None }];
    let run = Run { workers: 1, serialized: false, seed: 1 };
    closed(&stages, &epochs, &Past::default(), run);
    assert_eq!(counts(&stages)[..4], [1, 0, 0, 0]);
}

/// A hundred thousand documents expire in one epoch; each is touched once, and all memory of them is freed.
#[test]
fn a_hundred_thousand_documents_expire_in_one_epoch() {
    const COUNT: u32 = 100_000;
    let plan = Plan::load("minhash", &[]).unwrap();
    let stages = stages(&plan, by_age(RetentionClock::Event));
    let text = |n: u32| format!("w{} w{} w{} w{} w{}", n, n / 2, n / 3, n / 5, n / 7);
    let fill =
        (0..COUNT).map(|n| event(&format!("d{n}"), Some(&text(n / 2)), Some(1000.0 + f64::from(n % 10))));
    let epochs = [fill.collect(), vec![event("last", Some("other"), Some(9000.0))]]
        .map(|events| Epoched { events, at: None });
    let run = Run { workers: 2, serialized: false, seed: 1 };
    let told = closed(&stages, &epochs, &Past::default(), run);
    assert_eq!(counts(&stages)[..4], [u64::from(COUNT) + 1, 0, u64::from(COUNT), 0]);
    assert_eq!(stages.observers.metrics.counts().documents(), 1);
    let count = |counter| stages.observers.metrics.get(counter);
    assert_eq!(count(Counter::SketchesBorn) - count(Counter::SketchesDied), 1);
    assert_eq!(count(Counter::Formed), count(Counter::Dissolved));
    let all = told.iter().flat_map(|closed| &closed.deltas).count() as u64;
    assert_eq!(all, count(Counter::Formed) + count(Counter::Dissolved));
    assert!(all > 0, "some are pairs");
}
