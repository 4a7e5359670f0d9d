//! An object store: the same state, on the memory and folder stores of the crate `object_store`.

use std::sync::Arc;

use dupflow::connectors::state::{Objects, StateError, verify};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::script::{publish, restart, usual_documents};

#[test]
fn published_restored_and_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
    let stores: [Arc<dyn ObjectStore>; 2] = [Arc::new(InMemory::new()), Arc::new(local)];
    for store in stores {
        let open =
            || Objects::new(Arc::clone(&store), Path::from("some/state"), "memory://some/state").unwrap();
        let (mut first, ..) = restart(open());
        (1..=12).for_each(|epoch| publish(&mut first, epoch).unwrap());
        first.compact().unwrap();
        let (mut second, epoch, found) = restart(open());
        assert!((epoch, found) == (12, usual_documents(12)));
        publish(&mut second, 13).unwrap();
        assert!(matches!(publish(&mut first, 13), Err(StateError::TakenOver { .. })));
        let verified = verify(Box::new(open())).unwrap();
        assert!(verified.damages.is_empty(), "{:?}", verified.damages);
        assert_eq!(verified.documents, Some(usual_documents(13).len() as u64));
        drop((first, second));
        let (_, last, documents) = restart(open());
        assert!((last, documents) == (13, usual_documents(13)));
    }
}
