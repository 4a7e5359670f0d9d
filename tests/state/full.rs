//! A full disk.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dupflow::connectors::state::{
    CompactionRule, Folder, Ownership, StateError, Store, StoredState, Upload, inspect, verify,
};
use dupflow::core::doc::changes::Changes;

use super::script::{Change, Documents, SMALL, changes, documents, publish, restart, saved, usual_documents};
use super::several::Several;

/// A folder on a disk with a limited number of free bytes.
#[derive(Clone, Debug)]
struct Disk {
    folder: Folder,
    room: Arc<AtomicI64>,
}

impl Disk {
    fn take(&self, bytes: usize) -> io::Result<()> {
        let bytes = i64::try_from(bytes).unwrap();
        if self.room.fetch_sub(bytes, Ordering::SeqCst) >= bytes {
            return Ok(());
        }
        self.room.fetch_add(bytes, Ordering::SeqCst);
        Err(io::ErrorKind::StorageFull.into())
    }
}

impl Store for Disk {
    fn place(&self) -> &str {
        self.folder.place()
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        Ok(Box::new(OnDisk { disk: self, inner: Some(self.folder.create(name)?), taken: 0 }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.take(bytes.len())?;
        self.folder.put_if_absent(name, bytes)
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.folder.get_range(name, range)
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        self.folder.size(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let freed = self.folder.size(name).unwrap_or(0);
        self.folder.delete(name)?;
        self.room.fetch_add(i64::try_from(freed).unwrap(), Ordering::SeqCst);
        Ok(())
    }

    fn own(&self) -> io::Result<Ownership> {
        self.folder.own()
    }
}

struct OnDisk<'s> {
    disk: &'s Disk,
    inner: Option<Box<dyn Upload + 's>>,
    taken: usize,
}

impl Upload for OnDisk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.take(bytes.len())?;
        self.taken += bytes.len();
        self.inner.as_mut().unwrap().write(bytes)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.inner.take().unwrap().finish()
    }
}

impl Drop for OnDisk<'_> {
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            self.disk.room.fetch_add(i64::try_from(self.taken).unwrap(), Ordering::SeqCst);
        }
    }
}

#[test]
fn a_publish_on_a_full_disk_fails_and_the_next_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let room = Arc::new(AtomicI64::new(1 << 30));
    let disk = Disk { folder: Folder::new(folder.path()), room: Arc::clone(&room) };
    let mut state = StoredState::open(Box::new(disk.clone())).unwrap().with_rule(SMALL);
    (1..=10).for_each(|epoch| publish(&mut state, epoch).unwrap());
    let mut epoch = 10;
    // From no bytes at all to enough for the delta but not for the manifest.
    for left in (0..6000).step_by(150) {
        room.store(left, Ordering::SeqCst);
        match publish(&mut state, epoch + 1) {
            Ok(()) => epoch += 1,
            Err(StateError::Io { source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                let parts: Vec<_> =
                    disk.list().unwrap().into_iter().filter(|name| name.ends_with(".part")).collect();
                // The thread may be writing a base.
                assert!(parts.iter().all(|name| name.starts_with("base-")), "{parts:?}");
                assert_eq!(inspect(Box::new(disk.clone())).unwrap().progress.epoch, epoch);
            }
            Err(error) => panic!("{error}"),
        }
        assert!(verify(Box::new(disk.clone())).unwrap().damages.is_empty());
        // There is free space again.
        room.store(1 << 30, Ordering::SeqCst);
        publish(&mut state, epoch + 1).unwrap();
        epoch += 1;
        assert!(documents(&mut state, u64::MAX).unwrap() == (epoch, usual_documents(epoch)));
    }
    state.compact().unwrap();
    drop(state);
    assert_eq!(verify(Box::new(disk.clone())).unwrap().unnamed, [""; 0]);
    let (_, found, alive) = restart(disk);
    assert!((found, alive) == (epoch, usual_documents(epoch)));
}

/// A disk filled with replaced records has room after a compaction.
#[test]
fn a_disk_that_is_full_of_deltas_is_compacted() {
    // About 80,000 bytes are alive, and a publish has half of that. Without a compaction eight publishes fill
    // the disk, except for the 16,000 bytes of a new base of one group, and manifests, which are longer by
    // several processes.
    for (writers, room) in [(0, 420_000), (2, 430_000)] {
        let folder = tempfile::tempdir().unwrap();
        let room = Arc::new(AtomicI64::new(room));
        full_of_deltas(&Disk { folder: Folder::new(folder.path()), room }, writers);
    }
}

fn full_of_deltas(disk: &Disk, writers: usize) {
    let never = CompactionRule { least_bytes: 1 << 30, most_deltas: 1 << 20 };
    let mut state = StoredState::open(Box::new(disk.clone())).unwrap().with_rule(never);
    let several = Several::new(&vec![disk.clone(); writers], &state.owner()).unwrap();
    if writers > 0 {
        state.share_with(Arc::clone(&several) as _);
    }
    let mut alive = Documents::new();
    for epoch in 1..=100 {
        let list: Vec<Change> = (0..40).map(|n| ((epoch * 7 + n * 3) % 80, Some(900 + n))).collect();
        let epoch = u64::from(epoch);
        let own = several.share(epoch, &changes(epoch, &list, &mut alive));
        state.publish_through(&saved(epoch, None), &own, epoch).unwrap();
        if epoch == 5 {
            // From now on there are bases, which new ones replace.
            state.compact().unwrap();
        }
    }
    let snapshot = state.latest(u64::MAX).unwrap().unwrap();
    let mut found = Documents::new();
    let each = |slice: Changes| {
        found.extend(slice.iter().map(|(id, value)| (id.to_vec(), value.unwrap().to_vec())));
        Ok::<_, StateError>(())
    };
    snapshot.read(1000, each).unwrap();
    assert!(found == alive && alive.len() == 80);
}
