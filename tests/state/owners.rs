//! Two owners: the one that opens the state last is it, whatever the other one is doing.

use std::sync::mpsc::channel;

use dupflow::connectors::state::{Folder, Memory, State, StateError, verify};

use super::broken::{Broken, Fault};
use super::script::{SMALL, publish, restart, usual_documents};

#[test]
fn an_owner_before_writes_no_more() {
    let memory = Memory::default();
    let (mut first, ..) = restart(memory.clone());
    (1..=6).for_each(|epoch| publish(&mut first, epoch).unwrap());
    let (mut second, ..) = restart(memory.clone());
    for later in [0, 1, 5] {
        // The manifest that the first one would write is there, or is removed already.
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

/// Operations of opening; whoever comes between them is the one before.
const OPENING: u64 = 3;

/// Another one opens, publishes and compacts before any operation of an owner's publishes, deletions
/// included.
#[test]
fn taken_over_between_any_two_operations() {
    let run = |store: &Broken| {
        let mut state = State::open(Box::new(store.clone())).unwrap().with_rule(SMALL);
        (1..=14).take_while(|epoch| publish(&mut state, *epoch).is_ok()).count() as u64
    };
    let whole = Broken::new(Memory::default(), u64::MAX, Fault::Stop);
    assert_eq!(run(&whole), 14);
    assert!(whole.count() > 60, "{}", whole.count());
    for at in OPENING..whole.count() {
        let memory = Memory::default();
        let (tell, told) = channel();
        let others = memory.clone();
        let take_over = move || {
            let (mut second, taken_at, found) = restart(others);
            assert!(found == usual_documents(taken_at));
            let last = taken_at + at % 6;
            (taken_at..last).for_each(|epoch| publish(&mut second, epoch + 1).unwrap());
            if at % 2 == 0 {
                second.compact().unwrap();
            }
            tell.send((second, last)).unwrap();
        };
        let published = run(&Broken::new(memory.clone(), at, Fault::Before(Box::new(take_over))));
        // The thread of the first one may have had less to do this time.
        let Ok((mut second, last)) = told.try_recv() else { continue };
        let damages = verify(Box::new(memory.clone())).unwrap().damages;
        assert!(damages.is_empty(), "operation {at}: {damages:?}");
        // What the first one was told to be published, the second one has.
        assert!(published <= last, "operation {at}: {published} published, {last} found");
        publish(&mut second, last + 1).unwrap();
        drop(second);
        let (_, epoch, found) = restart(memory);
        assert!((epoch, found) == (last + 1, usual_documents(last + 1)), "operation {at}");
    }
}

#[test]
fn of_two_that_open_at_once_one_is_the_owner() {
    for at in 0..OPENING {
        let memory = Memory::default();
        let (tell, told) = channel();
        let others = memory.clone();
        let open = move || {
            let (mut other, ..) = restart(others);
            (1..=at * 2).for_each(|epoch| publish(&mut other, epoch).unwrap());
            tell.send(other).unwrap();
        };
        let (mut state, epoch, found) =
            restart(Broken::new(memory.clone(), at, Fault::Before(Box::new(open))));
        assert!((epoch, found) == (at * 2, usual_documents(at * 2)), "operation {at}");
        let error = publish(&mut told.recv().unwrap(), 9).unwrap_err();
        assert!(matches!(error, StateError::TakenOver { .. }), "{error}");
        publish(&mut state, epoch + 1).unwrap();
        assert_eq!(restart(memory).1, epoch + 1);
    }
}

#[test]
fn a_folder_that_is_owned_is_not_compacted_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Box::new(Folder::new(folder.path()));
    assert!(matches!(State::open_alone(store()).unwrap_err(), StateError::Missing { .. }));
    let mut owner = State::open(store()).unwrap();
    publish(&mut owner, 1).unwrap();
    let error = State::open_alone(store()).unwrap_err();
    assert!(matches!(&error, StateError::Owned { file } if file.ends_with("owner.lock")), "{error}");
    // The one that takes over has the lock once the other one has ended.
    let mut second = State::open(store()).unwrap();
    drop(owner);
    publish(&mut second, 2).unwrap();
    assert!(matches!(State::open_alone(store()).unwrap_err(), StateError::Owned { .. }));
    drop(second);
    State::open_alone(store()).unwrap().compact().unwrap();
    assert_eq!(restart(Folder::new(folder.path())).1, 2);
}
