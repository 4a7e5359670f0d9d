//! Any sequence of publishes, restarts and compactions, interrupted anywhere, against a map; by one process
//! and by several.

use std::sync::Arc;

use dupflow::connectors::state::{MemoryStore, StateError, Store, StoredState, verify};
use dupflow::core::doc::changes::Changes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::broken::{Broken, Fault};
use super::script::{Change, Documents, SMALL, changes, documents, publish, restart, saved, usual_documents};
use super::several::Several;

/// A step of a run.
#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<Change>),
    /// Stores the table of the next publishes.
    Table,
    Compact,
    Restart,
    /// Restarts from the publish before the last one. The next publish, with these changes, discards the last
    /// one.
    GoBack(Vec<Change>),
}

/// A run up to its first failure.
struct Outcome {
    /// Epoch and documents after the last acknowledged publish.
    acknowledged: (u64, Documents),
    /// Those of a publish that was not acknowledged, and of the one that it goes back to.
    attempted: Vec<(u64, Documents)>,
}

/// Repeats an operation while it fails with an error that may be repeated.
fn repeat<T>(
    may_repeat: impl Fn(&StateError) -> bool,
    mut operation: impl FnMut() -> Result<T, StateError>,
) -> Result<T, StateError> {
    loop {
        match operation() {
            Err(error) if may_repeat(&error) => {}
            ended => return ended,
        }
    }
}

/// A state, and the other processes that write it.
struct Opened {
    state: StoredState,
    several: Option<Arc<Several>>,
}

impl Opened {
    fn new(store: &Broken, writers: usize) -> Result<Self, StateError> {
        let mut state = StoredState::open(Box::new(store.clone()))?.with_rule(SMALL);
        if writers == 0 {
            return Ok(Self { state, several: None });
        }
        let several = Several::new(&vec![store.clone(); writers], &state.owner())?;
        state.share_with(Arc::clone(&several) as _);
        Ok(Self { state, several: Some(several) })
    }

    /// Publishes changes, and repeats that while it fails with an error that may be repeated.
    fn publish(
        &mut self,
        epoch: u64,
        table: Option<u64>,
        changes: &[Changes],
        may_repeat: impl Fn(&StateError) -> bool,
    ) -> Result<(), StateError> {
        let own = self.several.as_ref().map(|several| several.share(epoch, changes));
        let changes = own.as_deref().unwrap_or(changes);
        repeat(may_repeat, || self.state.publish_through(&saved(epoch, table), changes, epoch))
    }
}

/// Executes steps on a store, which `writers` other processes reach too. If `is_patient`, a failed publish is
/// repeated until it succeeds.
fn run(store: &Broken, writers: usize, steps: &[Step], is_patient: bool) -> Outcome {
    let mut history = vec![(0, Documents::new())];
    let mut attempted = Vec::new();
    let any = |_: &StateError| is_patient;
    let io = |error: &StateError| is_patient && matches!(error, StateError::Io { .. });
    let outcome = (|| -> Result<(), StateError> {
        let open = || repeat(io, || Opened::new(store, writers));
        let mut opened = open()?;
        let mut table = None;
        for (number, step) in (1..).zip(steps) {
            match step {
                Step::Publish(list) => {
                    let (_, mut alive) = history.last().unwrap().clone();
                    let buffers = changes(number, list, &mut alive);
                    attempted = vec![(number, alive.clone())];
                    opened.publish(number, table, &buffers, io)?;
                    attempted.clear();
                    history.push((number, alive));
                }
                Step::Table => {
                    repeat(any, || opened.state.put_table(number, &number.to_le_bytes()))?;
                    table = Some(number);
                }
                Step::Compact => {
                    repeat(any, || opened.state.compact())?;
                    assert!(documents(&mut opened.state, u64::MAX)? == *history.last().unwrap());
                }
                Step::Restart => {
                    drop(opened);
                    opened = open()?;
                    assert!(documents(&mut opened.state, u64::MAX)? == *history.last().unwrap());
                    if let Some(table) = table {
                        assert_eq!(opened.state.table(table)?.unwrap(), table.to_le_bytes());
                    }
                }
                Step::GoBack(list) => {
                    drop(opened);
                    opened = open()?;
                    let before = history.last().unwrap().0.saturating_sub(1);
                    let back = documents(&mut opened.state, before)?;
                    // A compaction publishes twice, so the publish before it may have been removed.
                    let at = history.iter().position(|known| *known == back).expect("it was published");
                    let mut alive = back.1;
                    let buffers = changes(number, list, &mut alive);
                    attempted = vec![history[at].clone(), (number, alive.clone())];
                    opened.publish(number, table, &buffers, any)?;
                    attempted.clear();
                    history.truncate(at + 1);
                    history.push((number, alive));
                }
            }
        }
        Ok(())
    })();
    assert!(attempted.is_empty() || outcome.is_err());
    Outcome { acknowledged: history.pop().unwrap(), attempted }
}

/// The state is that of the last acknowledged publish or of the interrupted one. It is undamaged, and
/// continues without unneeded files.
fn holds(memory: &MemoryStore, outcome: &Outcome) {
    let (mut state, epoch, found) = restart(memory.clone());
    let found = (epoch, found);
    assert!(found == outcome.acknowledged || outcome.attempted.contains(&found), "epoch {epoch}");
    let damages = verify(Box::new(memory.clone())).unwrap().damages;
    assert!(damages.is_empty(), "{damages:?}");
    let (_, mut alive) = found;
    for later in 1000..1003 {
        let buffers = changes(later, &[(1, Some(4)), (2, None)], &mut alive);
        state.publish(&saved(later, None), &buffers).unwrap();
    }
    state.compact().unwrap();
    assert!(documents(&mut state, u64::MAX).unwrap() == (1002, alive));
    let unnamed = verify(Box::new(memory.clone())).unwrap().unnamed;
    assert!(unnamed.iter().all(|name| name.starts_with("table-")), "{unnamed:?}");
}

/// A run without faults, to count its operations.
fn sound(memory: &MemoryStore) -> Broken {
    Broken::new(memory.clone(), u64::MAX, Fault::Stop)
}

fn fault(kind: usize) -> Fault {
    [Fault::Stop, Fault::StopAfter, Fault::Fail, Fault::FailAfter].into_iter().nth(kind).unwrap()
}

/// A run with every kind of step, with compactions and merges by the thread in between.
fn long_run() -> Vec<Step> {
    let mut steps = Vec::new();
    for epoch in 0..24_u16 {
        let of = |n: u16| (epoch * 11 + n * 7) % 80;
        steps.push(Step::Publish((0..15).map(|n| (of(n), (n % 5 != 4).then_some(n * 9))).collect()));
        match epoch {
            5 | 15 => steps.push(Step::Table),
            9 => steps.push(Step::Restart),
            12 => steps.push(Step::Compact),
            18 => steps.push(Step::GoBack(vec![(1, Some(100)), (2, None)])),
            _ => {}
        }
    }
    steps.push(Step::Publish((0..80).map(|n| (n, None)).collect()));
    steps.push(Step::Compact);
    steps
}

#[test]
fn interrupted_before_and_after_every_operation() {
    let steps = long_run();
    for writers in [0, 2] {
        let whole = sound(&MemoryStore::default());
        let acknowledged = run(&whole, writers, &steps, false).acknowledged;
        assert!(acknowledged.1.is_empty() && whole.count() > 150, "{}", whole.count());
        for at in 0..whole.count() {
            for kind in 0..2 {
                let memory = MemoryStore::default();
                let outcome = run(&Broken::new(memory.clone(), at, fault(kind)), writers, &steps, false);
                holds(&memory, &outcome);
            }
        }
    }
}

#[test]
fn every_operation_may_fail_once() {
    let steps = long_run();
    for writers in [0, 2] {
        let whole = sound(&MemoryStore::default());
        let expected = run(&whole, writers, &steps, true).acknowledged;
        for at in 0..whole.count() {
            for kind in 2..4 {
                let memory = MemoryStore::default();
                let outcome = run(&Broken::new(memory.clone(), at, fault(kind)), writers, &steps, true);
                assert!(outcome.acknowledged == expected, "{writers} writers, operation {at}");
                holds(&memory, &outcome);
            }
        }
    }
}

#[test]
fn the_next_publish_discards_newer_ones() {
    let memory = MemoryStore::default();
    {
        let (mut state, ..) = restart(memory.clone());
        (1..=5).for_each(|epoch| publish(&mut state, epoch).unwrap());
        assert!(documents(&mut state, 4).unwrap() == (4, usual_documents(4)));
    }
    let mut alive = usual_documents(4);
    {
        let (mut state, epoch, _) = restart(memory.clone());
        assert_eq!(epoch, 5, "nothing was published, so it still exists");
        assert!(documents(&mut state, 4).unwrap() == (4, usual_documents(4)));
        state.publish(&saved(7, None), &changes(7, &[(3, Some(3))], &mut alive)).unwrap();
        // Epoch 5 does not have these documents.
        assert!(documents(&mut state, 6).unwrap() == (4, usual_documents(4)));
    }
    let mut alone = Documents::new();
    {
        let (mut state, epoch, found) = restart(memory.clone());
        assert!((epoch, found) == (7, alive));
        assert!(documents(&mut state, 1).unwrap() == (0, Documents::new()), "before everything stored");
        state.publish(&saved(9, None), &changes(9, &[(4, Some(3))], &mut alone)).unwrap();
    }
    let (_, epoch, found) = restart(memory);
    assert!((epoch, found) == (9, alone));
}

#[test]
fn a_table_is_stored_before_its_epoch_and_until_superseded() {
    let memory = MemoryStore::default();
    let publish = |state: &mut StoredState, epoch, table| state.publish(&saved(epoch, Some(table)), &[]);
    let (mut earlier, ..) = restart(memory.clone());
    let error = publish(&mut earlier, 1, 5).unwrap_err();
    assert_eq!(error.to_string(), "no table 0000000000000005 in \"memory\", which the saved progress names");
    earlier.put_table(5, b"five").unwrap();
    publish(&mut earlier, 1, 5).unwrap();
    // Stored, and interrupted before a publish lists it: the next owner finds it, and keeps it if it starts
    // from an earlier epoch.
    earlier.put_table(6, b"six").unwrap();
    drop(earlier);
    let (mut state, ..) = restart(memory.clone());
    (2..6).for_each(|epoch| publish(&mut state, epoch, 5).unwrap());
    assert_eq!(state.table(6).unwrap().unwrap(), b"six");
    (6..9).for_each(|epoch| publish(&mut state, epoch, 6).unwrap());
    state.put_table(7, b"seven").unwrap();
    (9..12).for_each(|epoch| publish(&mut state, epoch, 7).unwrap());
    let tables = [5, 6, 7].map(|fingerprint| state.table(fingerprint).unwrap());
    assert_eq!(tables, [None, None, Some(b"seven".to_vec())]);
    let files = memory.list().unwrap();
    assert_eq!(files.iter().filter(|name| name.starts_with("table-")).count(), 1);
}

fn step() -> impl Strategy<Value = Step> {
    let change = || (0..40_u16, prop::option::weighted(0.75, 0..300_u16));
    prop_oneof![
        8 => vec(change(), 0..20).prop_map(Step::Publish),
        1 => Just(Step::Table),
        1 => Just(Step::Compact),
        1 => Just(Step::Restart),
        1 => vec(change(), 0..5).prop_map(Step::GoBack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_interrupted_anywhere(
        writers in 0..3_usize,
        steps in vec(step(), 1..30),
        at in 0..300_u64,
        kind in 0..4_usize,
    ) {
        let memory = MemoryStore::default();
        let outcome = run(&Broken::new(memory.clone(), at, fault(kind)), writers, &steps, kind >= 2);
        holds(&memory, &outcome);
    }
}
