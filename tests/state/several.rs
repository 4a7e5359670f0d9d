//! A state that several processes write: the writers as the owner reaches them, and what is theirs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};

use dupflow::connectors::state::{
    MemoryStore, Ownership, SharedState, StateError, StateOwner, StateWriter, StateWriters, Store,
    StoredState, Upload, WriterReply, WriterTask, verify,
};
use dupflow::core::doc::changes::Changes;
use dupflow::core::hash;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::broken::{Broken, Fault};
use super::script::{self, Documents, SMALL, saved, usual};

/// Other processes of a run. Each does a task before `send` returns, except a rebase.
#[derive(Debug)]
pub(crate) struct Several {
    processes: Vec<Mutex<Process>>,
    replies: Arc<(Mutex<Replies>, Condvar)>,
}

/// By writer and number of the task.
type Replies = BTreeMap<(usize, u64), WriterReply>;

#[derive(Debug)]
struct Process {
    /// `None`: it does not reach the state.
    writer: Option<StateWriter>,
    /// By epoch, what it has not stored.
    kept: BTreeMap<u64, Vec<Changes>>,
}

impl Several {
    /// Writers in these stores, and after them a process that does not reach the state.
    pub(crate) fn new<S: Store + Clone + 'static>(
        stores: &[S],
        owner: &StateOwner,
    ) -> Result<Arc<Self>, StateError> {
        let mut processes = Vec::new();
        for (index, store) in stores.iter().enumerate() {
            let writer = SharedState::new(Box::new(store.clone())).writer(owner, index + 1)?;
            processes.push(Mutex::new(Process { writer: Some(writer), kept: BTreeMap::new() }));
        }
        processes.push(Mutex::new(Process { writer: None, kept: BTreeMap::new() }));
        Ok(Arc::new(Self { processes, replies: Arc::default() }))
    }

    /// Gives each process the changes of its documents in an epoch. Returns those of the owner.
    pub(crate) fn share(&self, epoch: u64, changes: &[Changes]) -> Vec<Changes> {
        let mut own = Changes::default();
        let mut theirs: Vec<_> = self.processes.iter().map(|_| Changes::default()).collect();
        for record in changes.iter().flat_map(Changes::records) {
            let index = usize::try_from(hash::bytes(9, record.id) % (theirs.len() as u64 + 1)).unwrap();
            let reaches = |process: &Mutex<Process>| process.lock().unwrap().writer.is_some();
            match self.processes.get(index) {
                Some(process) if reaches(process) => theirs[index].copy(record),
                _ => own.copy(record),
            }
        }
        for (process, its) in self.processes.iter().zip(theirs) {
            process.lock().unwrap().kept.entry(epoch).or_default().push(its);
        }
        vec![own]
    }
}

/// A message after it was sent.
fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(message).unwrap()).unwrap()
}

impl StateWriters for Several {
    fn count(&self) -> usize {
        self.processes.len()
    }

    fn name(&self, writer: usize) -> String {
        format!("process {}", writer + 1)
    }

    fn send(&self, writer: usize, task: WriterTask) {
        let replies = Arc::clone(&self.replies);
        let reply = move |reply: WriterReply| {
            replies.0.lock().unwrap().insert((writer, reply.serial), sent(&reply));
            replies.1.notify_all();
        };
        let Process { writer, kept } = &mut *self.processes[writer].lock().unwrap();
        match writer {
            None => WriterReply::unreached(&task).into_iter().for_each(reply),
            Some(writer) => {
                let take = |through| {
                    let later = kept.split_off(&(through + 1));
                    std::mem::replace(kept, later).into_values().flatten().collect()
                };
                writer.work(sent(&task), take, reply);
            }
        }
    }

    fn reply(&self, writer: usize, serial: u64) -> Option<WriterReply> {
        let replies = self.replies.0.lock().unwrap();
        let mut replies =
            self.replies.1.wait_while(replies, |all| !all.contains_key(&(writer, serial))).unwrap();
        replies.remove(&(writer, serial))
    }
}

/// Publishes the usual changes of an epoch, by all.
fn publish(state: &mut StoredState, several: &Several, epoch: u64) -> Result<(), StateError> {
    let changes = script::changes(epoch, &usual(epoch), &mut Documents::new());
    let own = several.share(epoch, &changes);
    state.publish_through(&saved(epoch, None), &own, epoch)
}

fn opened(store: &Broken, theirs: &[Broken]) -> (StoredState, Arc<Several>) {
    let mut state = StoredState::open(Box::new(store.clone())).unwrap().with_rule(SMALL);
    let several = Several::new(theirs, &state.owner()).unwrap();
    state.share_with(Arc::clone(&several) as _);
    (state, several)
}

fn sound(memory: &MemoryStore) -> Broken {
    Broken::new(memory.clone(), u64::MAX, Fault::Stop)
}

#[test]
fn each_process_writes_its_share_and_its_part_of_the_compactions() {
    let memory = MemoryStore::default();
    let theirs = [sound(&memory), sound(&memory)];
    let (mut state, several) = opened(&sound(&memory), &theirs);
    let mut by = BTreeMap::<(String, usize), usize>::new();
    let mut seen = std::collections::BTreeSet::new();
    (1..=60).for_each(|epoch| {
        publish(&mut state, &several, epoch).unwrap();
        for name in memory.list().unwrap() {
            let parts: Vec<&str> = name.split('-').collect();
            if parts[0] != "manifest" && seen.insert(name.clone()) {
                *by.entry((parts[0].to_owned(), parts.len())).or_default() += 1;
            }
        }
    });
    // The names of writers have their number.
    let count = |kind: &str, parts| by.get(&(kind.to_owned(), parts)).copied().unwrap_or(0);
    assert!(count("delta", 3) >= 60 && count("delta", 4) > 100, "{by:?}");
    assert!(count("base", 4) > count("base", 3), "two thirds of the bases: {by:?}");
    drop(state);
    assert_eq!(script::restart(memory).2, script::usual_documents(60));
}

#[test]
fn a_writer_in_another_place_is_named_and_nothing_is_published() {
    let (memory, other) = (MemoryStore::default(), MemoryStore::default());
    let (mut state, several) = opened(&sound(&memory), &[sound(&memory)]);
    publish(&mut state, &several, 1).unwrap();
    // Its folder has become another one.
    for name in memory.list().unwrap() {
        other.put(&name, &memory.get(&name).unwrap()).unwrap();
    }
    let apart = SharedState::new(Box::new(other)).writer(&state.owner(), 1).unwrap();
    several.processes[0].lock().unwrap().writer = Some(apart);
    let error = publish(&mut state, &several, 2).unwrap_err();
    assert!(matches!(error, StateError::NotShared { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("process 1 has stored \"memory/delta-"), "{text}");
    drop(state);
    assert_eq!(script::restart(memory).1, 1);
}

#[test]
fn a_store_that_does_not_hold_the_state_of_the_owner_has_no_writer() {
    let memory = MemoryStore::default();
    let earlier = StoredState::open(Box::new(memory.clone())).unwrap();
    let shared = |store: &MemoryStore| SharedState::new(Box::new(store.clone()));
    assert!(shared(&memory).writer(&earlier.owner(), 1).is_ok());
    assert!(memory.list().unwrap().iter().all(|name| name.starts_with("manifest-")), "no probe is left");
    let missing = shared(&MemoryStore::default()).writer(&earlier.owner(), 1).unwrap_err();
    assert!(matches!(missing, StateError::Io { .. }), "{missing}");
    // Two copies of a state that were opened apart.
    let copy = MemoryStore::default();
    let of_copy = StoredState::open(Box::new(copy.clone())).unwrap();
    assert_ne!(of_copy.owner(), earlier.owner());
    let another = shared(&copy).writer(&earlier.owner(), 1).unwrap_err();
    assert!(matches!(another, StateError::AnotherState { .. }), "{another}");
}

/// A store whose next manifests fail, each with this error; one with another error than a full disk is
/// written nevertheless.
#[derive(Clone, Debug)]
struct Manifests {
    inner: MemoryStore,
    failures: Arc<Mutex<VecDeque<io::ErrorKind>>>,
}

impl Store for Manifests {
    fn place(&self) -> &str {
        self.inner.place()
    }

    fn create<'s>(&'s self, name: &str) -> io::Result<Box<dyn Upload + 's>> {
        self.inner.create(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        if self.inner.size(name).is_ok() {
            return Ok(false);
        }
        let failure = self.failures.lock().unwrap().pop_front();
        if failure != Some(io::ErrorKind::StorageFull) {
            assert!(self.inner.put_if_absent(name, bytes)?);
        }
        failure.map_or(Ok(true), |kind| Err(kind.into()))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.inner.get_range(name, range)
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        self.inner.size(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.inner.delete(name)
    }

    fn own(&self) -> io::Result<Ownership> {
        self.inner.own()
    }
}

/// A manifest that was written although that was reported as a failure lists deltas of writers, which they
/// must not remove when the disk is full at the next attempt.
#[test]
fn deltas_that_an_attempt_has_listed_are_not_removed_on_a_full_disk() {
    let memory = MemoryStore::default();
    let failures = Arc::<Mutex<VecDeque<_>>>::default();
    let store = Manifests { inner: memory.clone(), failures: Arc::clone(&failures) };
    let mut state = StoredState::open(Box::new(store)).unwrap().with_rule(SMALL);
    let several = Several::new(&[sound(&memory), sound(&memory)], &state.owner()).unwrap();
    state.share_with(Arc::clone(&several) as _);
    publish(&mut state, &several, 1).unwrap();
    let changes = script::changes(2, &usual(2), &mut Documents::new());
    let own = several.share(2, &changes);
    failures.lock().unwrap().push_back(io::ErrorKind::Other);
    state.publish_through(&saved(2, None), &own, 2).unwrap_err();
    // The number is taken by the attempt before; then there is no room, also for what a compaction writes.
    failures.lock().unwrap().extend([io::ErrorKind::StorageFull; 9]);
    let error = state.publish_through(&saved(2, None), &own, 2).unwrap_err();
    assert!(matches!(&error, StateError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull));
    let damages = verify(Box::new(memory.clone())).unwrap().damages;
    assert!(damages.is_empty(), "{damages:?}");
    failures.lock().unwrap().clear();
    state.publish_through(&saved(2, None), &own, 2).unwrap();
    drop(state);
    assert_eq!(script::restart(memory).2, script::usual_documents(2));
}

/// While a writer cannot write, the owner tries again and again, perhaps for days.
#[test]
fn attempts_that_fail_at_a_writer_leave_no_files_of_the_owner() {
    let memory = MemoryStore::default();
    let mut state = StoredState::open(Box::new(memory.clone())).unwrap();
    let found = sound(&memory);
    Several::new(std::slice::from_ref(&found), &state.owner()).unwrap();
    let failing = Broken::new(memory.clone(), found.count(), Fault::Stop);
    let several = Several::new(&[failing], &state.owner()).unwrap();
    state.share_with(Arc::clone(&several) as _);
    let own = several.share(1, &script::changes(1, &usual(1), &mut Documents::new()));
    let before = memory.list().unwrap();
    for _ in 0..5 {
        let error = state.publish_through(&saved(1, None), &own, 1).unwrap_err().to_string();
        assert!(error.contains("process 1"), "{error}");
        assert_eq!(memory.list().unwrap(), before);
    }
}
