//! Two owners: the last one to open the state has it, whatever the other one is doing.

use std::sync::mpsc::channel;

use dupflow::connectors::state::{Folder, MemoryStore, StateError, Store, StoredState, verify};

use super::broken::{Broken, Fault};
use super::script::{SMALL, publish, restart, usual_documents};

#[test]
fn an_earlier_owner_cannot_write() {
    let memory = MemoryStore::default();
    let (mut first, ..) = restart(memory.clone());
    (1..=6).for_each(|epoch| publish(&mut first, epoch).unwrap());
    let (mut second, ..) = restart(memory.clone());
    for later in [0, 1, 5] {
        // The manifest that the first owner would write exists, or has been removed already.
        (0..later).for_each(|epoch| publish(&mut second, 20 + epoch).unwrap());
        let error = publish(&mut first, 7).unwrap_err();
        let named = "another run has taken over the state: expected \"memory/manifest-";
        assert!(error.to_string().starts_with(named), "{error}");
        let compacted = first.compact().unwrap_err();
        assert!(matches!(compacted, StateError::TakenOver { .. }), "{compacted}");
    }
    assert!(verify(Box::new(memory.clone())).unwrap().damages.is_empty());
    assert_eq!(restart(memory).1, 24);
}

/// Number of operations of `open`. An owner that opens the state between them is the earlier one.
const OPENING: u64 = 3;

/// Another owner opens, publishes and compacts before any single operation of an owner's publishes, including
/// deletions.
#[test]
fn taken_over_between_any_two_operations() {
    let run = |store: &Broken| {
        let mut state = StoredState::open(Box::new(store.clone())).unwrap().with_rule(SMALL);
        (1..=14).take_while(|epoch| publish(&mut state, *epoch).is_ok()).count() as u64
    };
    let whole = Broken::new(MemoryStore::default(), u64::MAX, Fault::Stop);
    assert_eq!(run(&whole), 14);
    assert!(whole.count() > 60, "{}", whole.count());
    for at in OPENING..whole.count() {
        let memory = MemoryStore::default();
        let (sender, receiver) = channel();
        let others = memory.clone();
        let take_over = move || {
            let (mut second, taken_at, found) = restart(others);
            assert!(found == usual_documents(taken_at));
            let last = taken_at + at % 6;
            (taken_at..last).for_each(|epoch| publish(&mut second, epoch + 1).unwrap());
            if at % 2 == 0 {
                second.compact().unwrap();
            }
            sender.send((second, last)).unwrap();
        };
        let published = run(&Broken::new(memory.clone(), at, Fault::Before(Box::new(take_over))));
        // The thread of the first owner may have executed fewer operations this time.
        let Ok((mut second, last)) = receiver.try_recv() else { continue };
        let damages = verify(Box::new(memory.clone())).unwrap().damages;
        assert!(damages.is_empty(), "operation {at}: {damages:?}");
        // The second owner has every publish that the first was told to be durable.
        assert!(published <= last, "operation {at}: {published} published, {last} found");
        publish(&mut second, last + 1).unwrap();
        drop(second);
        let (_, epoch, found) = restart(memory);
        assert!((epoch, found) == (last + 1, usual_documents(last + 1)), "operation {at}");
    }
}

/// Before any single operation of an owner an empty place takes that of its files: no owner has taken it
/// over.
#[test]
fn an_empty_place_is_no_other_owner() {
    let run = |store: &Broken| {
        let mut state = StoredState::open(Box::new(store.clone())).unwrap().with_rule(SMALL);
        (1..=14).find_map(|epoch| publish(&mut state, epoch).err())
    };
    let whole = Broken::new(MemoryStore::default(), u64::MAX, Fault::Stop);
    assert!(run(&whole).is_none());
    let mut removed = 0;
    for at in OPENING..whole.count() {
        let memory = MemoryStore::default();
        let files = memory.clone();
        let empty = move || files.list().unwrap().iter().for_each(|name| files.delete(name).unwrap());
        let Some(error) = run(&Broken::new(memory, at, Fault::Before(Box::new(empty)))) else { continue };
        let said = error.to_string();
        assert!(said.contains("removed while this run had the state"), "operation {at}: {said}");
        removed += 1;
    }
    assert!(removed > whole.count() / 2, "{removed} of {}", whole.count());
}

#[test]
fn concurrent_openings_leave_one_owner() {
    for at in 0..OPENING {
        let memory = MemoryStore::default();
        let (sender, receiver) = channel();
        let others = memory.clone();
        let open = move || {
            let (mut other, ..) = restart(others);
            (1..=at * 2).for_each(|epoch| publish(&mut other, epoch).unwrap());
            sender.send(other).unwrap();
        };
        let (mut state, epoch, found) =
            restart(Broken::new(memory.clone(), at, Fault::Before(Box::new(open))));
        assert!((epoch, found) == (at * 2, usual_documents(at * 2)), "operation {at}");
        let error = publish(&mut receiver.recv().unwrap(), 9).unwrap_err();
        assert!(matches!(error, StateError::TakenOver { .. }), "{error}");
        publish(&mut state, epoch + 1).unwrap();
        assert_eq!(restart(memory).1, epoch + 1);
    }
}

/// A run that inspects a state takes nothing, and claims it only as it has seen it.
#[test]
fn a_state_is_claimed_as_it_was_seen() {
    let memory = MemoryStore::default();
    let mut owner = restart(memory.clone()).0;
    publish(&mut owner, 1).unwrap();
    let inspect = || StoredState::inspect(Box::new(memory.clone())).unwrap();
    let mut refused = inspect();
    assert_eq!((refused.epoch(), refused.latest(9).unwrap().unwrap().saved().epoch()), (Some(1), 1));
    drop(refused);
    publish(&mut owner, 2).unwrap();
    let (mut early, mut late) = (inspect(), inspect());
    publish(&mut owner, 3).unwrap();
    assert!(!early.claim().unwrap(), "its owner has written since");
    publish(&mut owner, 4).unwrap();
    // Of two runs that have seen the same, one claims it.
    early.look_again().unwrap();
    late.look_again().unwrap();
    assert_eq!(late.latest(9).unwrap().unwrap().saved().epoch(), 4);
    assert!(late.claim().unwrap() && !early.claim().unwrap());
    assert!(matches!(publish(&mut owner, 5).unwrap_err(), StateError::TakenOver { .. }));
    publish(&mut late, 5).unwrap();
    assert_eq!(restart(memory).1, 5);
}

/// An owner removes files of older publishes while another run reads the state.
#[test]
fn a_state_can_be_inspected_while_its_owner_writes() {
    let memory = MemoryStore::default();
    let mut owner = restart(memory.clone()).0;
    for epoch in (10..600).step_by(10) {
        publish(&mut owner, epoch).unwrap();
        let mut seen = StoredState::inspect(Box::new(memory.clone())).unwrap();
        (1..=3).for_each(|more| publish(&mut owner, epoch + more).unwrap());
        let latest = seen.latest(u64::MAX).unwrap().unwrap().saved().epoch();
        assert!(latest == epoch || latest == epoch + 3, "{latest}");
        // Where files were gone it has looked again, and would take over what it has seen.
        assert!(latest == epoch + 3 || !seen.claim().unwrap());
    }
}

/// What a store cannot write is known before anything is taken.
#[test]
fn a_store_that_cannot_be_written_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = StoredState::inspect(Box::new(Folder::new(&place))).unwrap_err();
        assert!(
            matches!(&error, StateError::Io { file: named, .. } if *named == place.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn an_owned_folder_is_not_compacted_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Box::new(Folder::new(folder.path()));
    assert!(matches!(StoredState::open_alone(store()).unwrap_err(), StateError::Missing { .. }));
    let mut owner = StoredState::open(store()).unwrap();
    publish(&mut owner, 1).unwrap();
    let error = StoredState::open_alone(store()).unwrap_err();
    assert!(matches!(&error, StateError::Owned { file } if file.ends_with("owner.lock")), "{error}");
    // The new owner gets the lock once the old one has ended.
    let mut second = StoredState::open(store()).unwrap();
    drop(owner);
    publish(&mut second, 2).unwrap();
    assert!(matches!(StoredState::open_alone(store()).unwrap_err(), StateError::Owned { .. }));
    drop(second);
    StoredState::open_alone(store()).unwrap().compact().unwrap();
    assert_eq!(restart(Folder::new(folder.path())).1, 2);
}
