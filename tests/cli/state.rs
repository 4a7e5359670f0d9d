//! `dupflow state`: what it tells of stored state, sound and damaged, and what it exits with.

use std::fs;
use std::path::Path;

use dupflow::connectors::mark::Mark;
use dupflow::connectors::state::{Folder, StatePosition, StoredState};
use dupflow::core::description::Description;
use dupflow::core::doc::changes::Changes;
use dupflow::core::time::Progress;

use super::dupflow::{Ended, Place, dupflow};

/// A state of two epochs and one document alive, and its owner.
fn owner(folder: &Path) -> StoredState {
    let mut state = StoredState::open(Box::new(Folder::new(folder))).expect("a state");
    let scheme = Description::new().with("sketch.kind", "fss").with("sketch.size", 448_u64).encode();
    for epoch in 1..=2 {
        let progress = Progress { epoch, next: [(3, epoch * 5)].into(), ..Progress::default() };
        let mut changes = Changes::default();
        changes.put(b"a", &[b'0'; 99]);
        if epoch == 1 {
            changes.put(b"b", b"1");
        } else {
            changes.end(b"b");
        }
        state
            .publish(
                &StatePosition {
                    mark: Mark { progress, ..Mark::default() },
                    scheme: scheme.clone(),
                    ..StatePosition::default()
                },
                &[changes],
            )
            .expect("it is published");
    }
    state
}

fn run(action: &[&str], folder: &Path) -> Ended {
    dupflow(["state"].iter().chain(action).copied().map(AsRef::as_ref).chain([folder.as_os_str()]))
}

fn as_json(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&run(&["inspect", "--json"], folder).out).expect("it is JSON")
}

#[test]
fn a_state_is_inspected_verified_and_compacted() {
    let place = Place::new();
    let folder = place.path("state");
    let owner = owner(&folder);
    let found = run(&["inspect"], &folder);
    assert_eq!((found.code, found.err.as_str()), (0, ""));
    for line in [
        "epoch       2\n",
        "positions   3:10\n",
        "documents   1 alive, 100 B of ids and values\n",
        "  records   4, 1 of them ended\n",
        "  sketch.kind  \"fss\"\n  sketch.size  448\n",
        "  3  epoch 2, by owner ",
    ] {
        assert!(found.out.contains(line), "{line:?} is not in\n{}", found.out);
    }
    let json = as_json(&folder);
    assert_eq!((&json["documents"], &json["progress"]["epoch"]), (&1.into(), &2.into()));
    let verified = run(&["verify"], &folder);
    assert_eq!((verified.code, verified.err.as_str()), (0, ""));
    assert!(verified.out.starts_with("whole: 4 files read, "), "{verified:?}");

    let refused = run(&["compact"], &folder);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.starts_with("error: a run owns the state: "), "{refused:?}");
    drop(owner);
    let compacted = run(&["compact"], &folder);
    assert_eq!((compacted.code, compacted.err.as_str()), (0, ""));
    let after = as_json(&folder);
    assert_eq!((&after["documents"], &after["records"], &after["deltas"]), (&1.into(), &1.into(), &0.into()));
}

#[test]
fn every_damage_is_named() {
    let place = Place::new();
    let folder = place.path("state");
    drop(owner(&folder));
    let deltas: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("delta-"))
        .collect();
    let mut bytes = fs::read(&deltas[0]).unwrap();
    bytes[30] ^= 1;
    fs::write(&deltas[0], bytes).unwrap();
    fs::remove_file(&deltas[1]).unwrap();
    let found = run(&["verify"], &folder);
    assert_eq!((found.code, found.err.as_str()), (1, ""));
    assert!(found.out.contains("\n2 damages: "), "{found:?}");
    for delta in deltas {
        let named = |line: &str| line.starts_with("damaged: ") && line.contains(delta.to_str().unwrap());
        assert!(found.out.lines().any(named), "{found:?}");
    }
    let refused = run(&["inspect"], &folder);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
}

#[test]
fn a_place_without_state() {
    let place = Place::new();
    for action in ["inspect", "verify", "compact"] {
        let refused = run(&[action], &place.path("nothing"));
        assert_eq!((refused.code, refused.out.as_str()), (1, ""));
        assert!(refused.err.starts_with("error: no state in "), "{refused:?}");
        assert!(!place.path("nothing").exists(), "nothing is made");
        assert_eq!(run(&[action], Path::new("ftp://host/state")).code, 2);
    }
}
