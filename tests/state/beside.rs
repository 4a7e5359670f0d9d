//! Readers while an owner publishes and compacts.

use std::sync::atomic::{AtomicBool, Ordering};

use dupflow::connectors::state::{
    Folder, MemoryStore, OpenSnapshot, SharedState, StateError, UnreadShards, inspect, verify,
};
use parking_lot::Mutex;

use super::script::{Documents, publish, restart, usual_documents};

#[test]
fn readers_never_find_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Box::new(Folder::new(folder.path()));
    let (mut state, ..) = restart(*store());
    publish(&mut state, 1).unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut epochs = Vec::new();
            while !has_ended.load(Ordering::SeqCst) {
                let found = inspect(store()).unwrap();
                let expected = usual_documents(found.progress.epoch);
                let bytes: usize = expected.iter().map(|(id, value)| id.len() + value.len()).sum();
                assert_eq!((found.documents, found.document_bytes), (expected.len() as u64, bytes as u64));
                epochs.push(found.progress.epoch);
                let damages = verify(store()).unwrap().damages;
                assert!(damages.is_empty(), "{damages:?}");
            }
            epochs
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        // The readers end with this scope, not before.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (2..=400).for_each(|epoch| publish(&mut state, epoch).unwrap());
        }));
        has_ended.store(true, Ordering::SeqCst);
        for reader in readers {
            let epochs = reader.join().unwrap();
            assert!(epochs.is_sorted() && !epochs.is_empty());
        }
        result.unwrap();
    });
}

#[test]
fn contents_of_an_inspection() {
    let folder = tempfile::tempdir().unwrap();
    let (mut state, ..) = restart(Folder::new(folder.path()));
    publish(&mut state, 1).unwrap();
    publish(&mut state, 2).unwrap();
    let found = inspect(Box::new(Folder::new(folder.path()))).unwrap();
    assert_eq!(
        found.manifests.iter().map(|m| (m.number, m.epoch)).collect::<Vec<_>>(),
        [(3, Some(2)), (2, Some(1))]
    );
    assert_eq!(found.scheme, [("sketch.size".to_owned(), "448".to_owned())].into());
    assert_eq!((found.progress.epoch, found.progress.next.len(), found.table), (2, 2, None));
    assert_eq!((found.documents, found.deltas, found.bases), (usual_documents(2).len() as u64, 2, 0));
    let on_disk: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("delta-"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!((found.delta_bytes, found.base_bytes, state.stored_bytes()), (on_disk, 0, on_disk));
}

/// The documents of the shares of a snapshot, each read by two threads.
fn read_shares(snapshot: &OpenSnapshot, shares: &[UnreadShards]) -> Documents {
    let found = Mutex::new(Documents::new());
    std::thread::scope(|scope| {
        for share in shares.iter().chain(shares) {
            scope.spawn(|| {
                let each = |slice: dupflow::core::doc::changes::Changes| {
                    let mut found = found.lock();
                    for (id, value) in slice.iter() {
                        let before = found.insert(id.to_vec(), value.expect("it is alive").to_vec());
                        assert_eq!(before, None, "{} is read twice", id.escape_ascii());
                    }
                    Ok::<_, StateError>(())
                };
                snapshot.read(share, 100, each).unwrap();
            });
        }
    });
    found.into_inner()
}

/// A restart reads a snapshot while it publishes, and compactions replace its files.
#[test]
fn the_files_of_a_snapshot_stay_while_threads_and_other_processes_read_it() {
    let store = MemoryStore::default();
    let (mut state, ..) = restart(store.clone());
    (1..=20).for_each(|epoch| publish(&mut state, epoch).unwrap());
    let snapshot = state.latest(u64::MAX).unwrap().unwrap();
    let there = SharedState::new(Box::new(store.clone())).snapshot(&snapshot.encode()).unwrap().unwrap();
    assert_eq!(there.saved(), snapshot.saved());
    (21..=60).for_each(|epoch| publish(&mut state, epoch).unwrap());
    state.compact().unwrap();
    let unnamed = || verify(Box::new(store.clone())).unwrap().unnamed;
    assert!(!unnamed().is_empty(), "no manifest lists the files of the snapshot any more");
    for (reader, count) in [(&snapshot, 1), (&there, 3)] {
        let shares: Vec<_> = (0..count).map(|index| UnreadShards::share(index, count)).collect();
        assert_eq!(read_shares(&reader.open().unwrap(), &shares), usual_documents(20));
    }
    drop(snapshot);
    publish(&mut state, 61).unwrap();
    assert_eq!(unnamed(), [""; 0]);
    let gone = there.open().unwrap_err().to_string();
    assert!(gone.starts_with("state file \"memory/"), "{gone}");
    drop(state);
    assert_eq!(restart(store).2, usual_documents(61));
}
