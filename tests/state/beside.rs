//! Readers while an owner publishes and compacts.

use std::sync::atomic::{AtomicBool, Ordering};

use dupflow::connectors::state::{Folder, inspect, verify};

use super::script::{publish, restart, usual_documents};

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
