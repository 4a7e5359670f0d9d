//! State of a corpus in files: one record for each live document, so that a restart does not read its input
//! again.
//!
//! Input: changes of documents, with the position that they stand for. Output: the documents of a restart,
//! exactly as of one publish. Records are opaque: an id and a value. One owner publishes; other processes of
//! its run may [write](StateWriters) files with their documents, and any may read or copy files at the same
//! time.
//!
//! ```text
//! publish: changes ─► delta ─► manifest n                 a manifest lists all files of the state
//! thread:  deltas + bases ─► new bases, listed in manifest n + 1
//! restart: newest manifest ─► deltas, newest first ─► base, shard by shard ─► every document once
//! ```
//!
//! Invariants:
//! - A file is written once, as a whole, under a name that no other owner uses, and is never changed.
//!   Checksums cover every byte.
//! - The files in the manifest with the highest number are the state. A manifest is only written under a free
//!   number. If two owners write the same number, one of the writes fails, and that owner has lost the state.
//!   An owner begins by writing a manifest: its claim, under the number after the newest that it has seen.
//! - Only the owner removes files. It does so after a publish, and only files that it wrote, listed, or found
//!   when it opened the state, and that neither of the last two manifests lists, nor a [`Snapshot`] in use.
//!   Files of a later owner are neither, so an owner that has lost the state without noticing removes none of
//!   them. A writer removes only files that it wrote, and that the owner is certain not to have listed.
//! - A publish that fails leaves the earlier manifests intact.
//!
//! Guarantees against each kind of failure, and the formats byte by byte, are in `docs/state.md`.
//!
//! ```
//! use dupflow_connectors::state::{MemoryStore, StatePosition, StateError, StoredState};
//! use dupflow_core::doc::changes::Changes;
//!
//! let store = MemoryStore::default();
//! let mut state = StoredState::open(Box::new(store.clone()))?;
//! let mut changes = Changes::default();
//! changes.put(b"a", b"1");
//! changes.put(b"b", b"2");
//! let mut saved = StatePosition::default();
//! saved.mark.progress.epoch = 1;
//! state.publish(&saved, &[changes])?;
//!
//! let mut later = StoredState::open(Box::new(store))?;
//! let snapshot = later.latest(u64::MAX)?.expect("it was published");
//! let mut documents = 0;
//! snapshot.read(1 << 20, |slice| Ok::<_, StateError>(documents += slice.iter().count()))?;
//! assert_eq!((snapshot.saved().epoch(), documents), (1, 2));
//! assert!(matches!(state.publish(&saved, &[]), Err(StateError::TakenOver { .. })));
//! # Ok::<(), StateError>(())
//! ```

mod compaction;
mod error;
mod files;
mod frame;
mod ids;
mod input_spans;
mod manifest;
mod report;
mod segment;
mod snapshot;
mod store;
mod tables;
mod upkeep;
mod writers;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

pub use compaction::CompactionRule;
pub use error::StateError;
pub use manifest::StatePosition;
pub use report::{Inspection, ManifestReport, Verification, inspect, verify};
pub use snapshot::{OpenSnapshot, Snapshot, UnreadShards};
#[cfg(feature = "object-store")]
pub use store::Objects;
pub use store::{Folder, MemoryStore, Ownership, Store, Upload, at, local_folder};
pub use writers::{SharedState, StateOwner, StateWriter, StateWriters, WriterReply, WriterTask};

use compaction::{CompactionJob, CompactionResult};
use files::{SegmentNames, StateFiles};
use manifest::{DeltaFile, Manifest};
use segment::SegmentFile;
use tables::FrequencyTables;
use writers::AskedWriters;

use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Epoch;

/// Attempts to read the state, and to claim it, while other owners write there.
const TRIES: usize = 100;

/// Attempts to read a state while its owner writes there.
const READS: usize = 5;

/// The state: as a run has seen it, or opened by its owner.
#[derive(Debug)]
pub struct StoredState {
    files: StateFiles,
    owner: u64,
    names: SegmentNames,
    /// The other processes that write, if there are any.
    writers: Option<AskedWriters>,
    /// `None` before the state is claimed.
    ownership: Option<Ownership>,
    /// Number of the next manifest.
    next: u64,
    /// The manifests present, newest first; after the first publish, two.
    kept: Vec<Manifest>,
    /// The state that the next publish extends: the newest manifest, or the one that [`Self::latest`] went
    /// back to, with the results of the thread since.
    base: Manifest,
    /// Files present, except manifests and tables. They are removed once no manifest lists them.
    segments: BTreeSet<String>,
    /// The manifests of snapshots that [`Self::latest`] has returned: their files stay while they are in use.
    snapshots: Vec<Weak<Manifest>>,
    /// Whether the next publish discards the newest manifest.
    discards_newest: bool,
    tables: FrequencyTables,
    job: Option<CompactionJob>,
    rule: CompactionRule,
    /// No compaction starts while the deltas have fewer bytes. Set after a failed compaction.
    retry_bytes: u64,
}

impl StoredState {
    /// [Inspects](Self::inspect) the state and [claims](Self::claim) it, whoever writes it meanwhile.
    ///
    /// # Errors
    /// As of these two.
    pub fn open(store: Box<dyn Store>) -> Result<Self, StateError> {
        let mut state = Self::inspect(store)?;
        state.claim_as_found()?;
        Ok(state)
    }

    /// Reads what the state is, without taking it from its owner: a run that is refused leaves it as it is.
    /// Checks that the store can be written.
    ///
    /// # Errors
    /// Any error of the store; if all manifests are damaged, or the newest is of another version.
    pub fn inspect(store: Box<dyn Store>) -> Result<Self, StateError> {
        Self::inspect_files(StateFiles::new(store))
    }

    fn inspect_files(files: StateFiles) -> Result<Self, StateError> {
        files.probe()?;
        let owner = rand::random();
        let mut state = Self {
            files,
            owner,
            names: SegmentNames::new(owner, None),
            writers: None,
            ownership: None,
            next: 1,
            kept: Vec::new(),
            base: Manifest::empty(),
            segments: BTreeSet::new(),
            snapshots: Vec::new(),
            discards_newest: false,
            tables: FrequencyTables::default(),
            job: None,
            rule: CompactionRule::default(),
            retry_bytes: 0,
        };
        state.look_again()?;
        Ok(state)
    }

    /// Replaces the thresholds of compaction.
    #[must_use]
    pub fn with_rule(mut self, rule: CompactionRule) -> Self {
        self.rule = rule;
        self
    }

    /// As [`Self::open`], but only if state exists and no process has it open.
    ///
    /// # Errors
    /// The same; [`StateError::Owned`], [`StateError::Missing`]. In a store without locks another owner
    /// cannot be detected.
    pub fn open_alone(store: Box<dyn Store>) -> Result<Self, StateError> {
        let files = StateFiles::new(store);
        report::manifests(&files)?;
        let ownership = match files.own()? {
            Ownership::Shared(file) => return Err(StateError::Owned { file }),
            ownership => ownership,
        };
        let mut state = Self::inspect_files(files)?;
        state.ownership = Some(ownership);
        state.claim_as_found()?;
        Ok(state)
    }

    /// Reads again what the state is. Only before it is claimed.
    ///
    /// # Errors
    /// As of [`Self::inspect`].
    pub fn look_again(&mut self) -> Result<(), StateError> {
        for _ in 0..TRIES {
            let names = self.files.list_if_any()?;
            let numbers = Manifest::numbers(&names);
            let Some(kept) = read_whole(&self.files, &numbers)? else { continue };
            self.next = numbers.first().map_or(1, |number| number + 1);
            self.base = kept.first().cloned().unwrap_or_else(Manifest::empty);
            self.kept = kept;
            self.tables = FrequencyTables::from_names(&names);
            self.segments = names.into_iter().filter(|name| files::is_segment_or_part(name)).collect();
            self.discards_newest = false;
            return Ok(());
        }
        Err(StateError::TakenOver { file: self.files.place().to_owned() })
    }

    /// Takes the state over, as it was when it was last looked at: from now on every publish of an earlier
    /// owner fails with [`StateError::TakenOver`]. Returns false, and takes nothing, if an owner has written
    /// since: then [`Self::look_again`] comes first.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn claim(&mut self) -> Result<bool, StateError> {
        if self.ownership.is_none() {
            let ownership = self.files.own()?;
            if let Ownership::Shared(lock) = &ownership {
                tracing::warn!(lock, "another process has this state open: it is taken over");
            }
            self.ownership = Some(ownership);
        }
        let newest = self.kept.first().cloned().unwrap_or_else(Manifest::empty);
        let taken = Manifest { number: self.next, owner: self.owner, ..newest };
        // Another owner may also have published and removed files, so that the number is free again.
        if !self.files.put_if_absent(&Manifest::name(taken.number), &taken.encode())?
            || Manifest::numbers(&self.files.list()?).first() != Some(&taken.number)
        {
            return Ok(false);
        }
        self.next += 1;
        self.kept.insert(0, taken);
        Ok(true)
    }

    /// Claims the state as it is found, however often its owner writes meanwhile.
    ///
    /// # Errors
    /// As of [`Self::claim`] and [`Self::look_again`].
    pub fn claim_as_found(&mut self) -> Result<(), StateError> {
        for _ in 0..TRIES {
            if self.claim()? {
                return Ok(());
            }
            self.look_again()?;
        }
        Err(StateError::TakenOver { file: self.files.place().to_owned() })
    }

    /// The epoch of the newest publish; `None` if the state is empty.
    pub fn epoch(&self) -> Option<Epoch> {
        Some(self.kept.first()?.saved.as_ref()?.epoch())
    }

    /// The folder or prefix.
    pub fn place(&self) -> &str {
        self.files.place()
    }

    /// The encoded scheme of the newest publish; `None` if the state is empty.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.kept.first()?.saved.as_ref().map(|saved| &*saved.scheme)
    }

    /// The newest undamaged publish at or before epoch `at_most`; `None` if there is none. The next publish
    /// extends it and discards any newer ones.
    ///
    /// # Errors
    /// Any error of the store, or a damaged segment as far as heads and footers show it; [`Snapshot::read`]
    /// detects other damage.
    pub fn latest(&mut self, at_most: Epoch) -> Result<Option<Snapshot>, StateError> {
        for _ in 0..READS {
            match self.latest_as_seen(at_most) {
                // Before it is claimed, its owner removes files.
                Err(error) if error.is_gone() && self.ownership.is_none() => self.look_again()?,
                found => return found,
            }
        }
        self.latest_as_seen(at_most)
    }

    fn latest_as_seen(&mut self, at_most: Epoch) -> Result<Option<Snapshot>, StateError> {
        let newest = self.kept.first().and_then(|manifest| manifest.saved.as_ref());
        let newest_epoch = newest.map_or(0, |saved| saved.epoch());
        let mut chosen = Manifest::empty();
        for manifest in &self.kept {
            if manifest.saved.as_ref().is_some_and(|saved| saved.epoch() > at_most) {
                continue;
            }
            let snapshot = Snapshot::from_manifest(&self.files, &Arc::new(manifest.clone()));
            match snapshot.map_or(Ok(()), |snapshot| snapshot.check()) {
                // It was written by an owner that had already lost the state.
                Err(error) if error.is_gone() && newest_epoch > at_most => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    chosen = manifest.clone();
                    break;
                }
            }
        }
        let epoch = chosen.saved.as_ref().map_or(0, |saved| saved.epoch());
        if newest_epoch > at_most && at_most > 0 {
            tracing::warn!(
                newest_epoch,
                at_most,
                epoch,
                "the newest stored state is too new: an older one is taken"
            );
        }
        let listed = Arc::new(chosen.clone());
        let snapshot = Snapshot::from_manifest(&self.files, &listed);
        self.snapshots.push(Arc::downgrade(&listed));
        if (&chosen.groups, &chosen.deltas) != (&self.base.groups, &self.base.deltas)
            && let Some(mut job) = self.job.take()
        {
            // Its results are not needed, nor is its error.
            drop(job.stop());
            self.segments
                .extend(job.take().iter().filter_map(CompactionResult::file).map(|file| file.name.clone()));
        }
        self.discards_newest = self.kept.first().is_some_and(|kept| kept.saved != chosen.saved);
        self.base = chosen;
        Ok(snapshot)
    }

    /// Writes one delta and one manifest. After that the state includes the changes and stands for `saved`.
    /// The last change of an id counts.
    ///
    /// # Errors
    /// Any error of the store. The state may then include the changes or not, and the next publish must
    /// contain them again. When the disk is full, the publish is tried again after a compaction, and only
    /// fails if that frees too little. [`StateError::TakenOver`]: another owner has the state now.
    /// [`StateError::NoTable`]: the table in force was not stored.
    ///
    /// For a state without writers.
    pub fn publish(&mut self, saved: &StatePosition, changes: &[Changes]) -> Result<(), StateError> {
        debug_assert!(self.writers.is_none(), "what writers have is published through an epoch");
        self.publish_through(saved, changes, Epoch::MAX)
    }

    /// [`publish`](Self::publish) with what the [writers](StateWriters) have of the epochs through this one,
    /// inclusive.
    ///
    /// # Errors
    /// As there. [`StateError::NotShared`]: a writer has stored its changes elsewhere.
    pub fn publish_through(
        &mut self,
        saved: &StatePosition,
        changes: &[Changes],
        through: Epoch,
    ) -> Result<(), StateError> {
        if !matches!(self.ownership, Some(Ownership::Alone(_))) {
            self.ownership = Some(self.files.own()?);
        }
        self.catch_up();
        match self.publish_once(saved, changes, through) {
            Err(error) if error.is_full() && self.make_room() => self.publish_once(saved, changes, through),
            Err(StateError::Io { file, source }) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(removed(file))
            }
            published => published,
        }
    }

    fn publish_once(
        &mut self,
        saved: &StatePosition,
        changes: &[Changes],
        through: Epoch,
    ) -> Result<(), StateError> {
        if self.discards_newest {
            // Neither of the two manifests kept may be one that is discarded.
            let base = self.base.clone();
            self.put_next(base.saved, base.table, base.inputs, Vec::new())?;
            self.discards_newest = false;
        }
        let table = saved.table().map(|fingerprint| self.table_file(fingerprint)).transpose()?;
        let (inputs, saved) = self.with_inputs(saved)?;
        let asked = self.writers.as_mut().map(|writers| writers.store(through));
        let own = segment::write_delta(&self.files, self.names.next("delta"), changes);
        let mut name = own.as_ref().ok().and_then(|own| Some(own.as_ref()?.name.clone()));
        self.segments.extend(name.clone());
        let theirs = match self.writers.as_mut().zip(asked) {
            Some((writers, asked)) => writers.stored(&self.files, asked),
            None => Ok(Vec::new()),
        };
        if theirs.is_err() {
            // No manifest is written that could list it. While a writer fails, each attempt would leave one.
            name = name.filter(|name| !self.delete_segment(name));
        }
        let published = own.and_then(|own| Ok((own, theirs?))).and_then(|(own, theirs)| {
            let names: Vec<String> = theirs.iter().map(|delta| delta.name.clone()).collect();
            let deltas = own.into_iter().chain(theirs).collect();
            let manifests = self.put_next(Some(saved), table, inputs, deltas)?;
            // Not before: a file that the next attempt publishes must not be removed as unlisted.
            self.segments.extend(names);
            Ok(manifests)
        });
        let manifests = match published {
            Ok(manifests) => manifests,
            Err(error) => {
                self.delete_unlisted_deltas(&error, name.as_deref());
                return Err(error);
            }
        };
        if let Some(writers) = &mut self.writers {
            writers.published();
        }
        self.remove_unlisted(&manifests);
        self.start_due();
        Ok(())
    }

    /// Stores the spans of inputs that a position has. Returns the files of all spans, and the position
    /// without them.
    fn with_inputs(
        &mut self,
        saved: &StatePosition,
    ) -> Result<(Vec<SegmentFile>, StatePosition), StateError> {
        let mut saved = saved.clone();
        let Some(list) = &saved.mark.inputs else { return Ok((Vec::new(), saved)) };
        let (files, list) = input_spans::add(&self.files, &self.names, &self.base.inputs, list)?;
        self.segments.extend(files.iter().map(|file| file.name.clone()));
        saved.mark.inputs = Some(list);
        Ok((files, saved))
    }

    /// Number of the spans of inputs that are stored.
    pub fn stored_inputs(&self) -> u64 {
        self.base.inputs.iter().map(|file| file.records).sum()
    }

    /// Publishes the base with deltas. Returns the numbers of the manifests present now.
    fn put_next(
        &mut self,
        saved: Option<StatePosition>,
        table: Option<String>,
        inputs: Vec<SegmentFile>,
        deltas: Vec<SegmentFile>,
    ) -> Result<Vec<u64>, StateError> {
        let mut manifest = Manifest { owner: self.owner, saved, table, inputs, ..self.base.clone() };
        let manifests = self.put(&mut manifest, deltas)?;
        self.base = manifest.clone();
        self.next = manifest.number + 1;
        self.kept.insert(0, manifest);
        self.kept.truncate(2);
        Ok(manifests)
    }

    /// Writes a manifest under the next number, and checks that no owner has written a higher one. Returns
    /// the numbers of the manifests present.
    fn put(&mut self, manifest: &mut Manifest, deltas: Vec<SegmentFile>) -> Result<Vec<u64>, StateError> {
        let number = self.next;
        manifest.number = number;
        let of_number = |segment| DeltaFile { first: number, last: number, segment };
        manifest.deltas.extend(deltas.into_iter().map(of_number));
        self.check_segments(manifest)?;
        let bytes = manifest.encode();
        let name = Manifest::name(manifest.number);
        if !self.files.put_if_absent(&name, &bytes)? {
            let found = match Manifest::read(&self.files, number) {
                Err(error) if error.is_gone() => return Err(self.lost(number)),
                found => found?,
            };
            if found.owner != self.owner {
                return Err(StateError::TakenOver { file: self.files.full_name(&name) });
            }
            if found != *manifest {
                // An earlier publish that reported a failure but was written.
                self.next += 1;
                self.kept.insert(0, found);
                let own = manifest.deltas.partition_point(|delta| delta.last < number);
                let own = manifest.deltas.split_off(own).into_iter().map(|delta| delta.segment).collect();
                return self.put(manifest, own);
            }
        }
        // If a later owner has removed the manifest of this number, there are higher ones. If it has begun
        // with this manifest, it removes none of its files.
        let numbers = Manifest::numbers(&self.files.list()?);
        if numbers.first() == Some(&number) { Ok(numbers) } else { Err(self.lost(number)) }
    }

    /// Why the manifest of a number, which was there, is not the newest: of a later owner there is a higher
    /// one, of a folder that another one has replaced there is none.
    fn lost(&self, number: u64) -> StateError {
        let file = self.files.full_name(&Manifest::name(number));
        match self.files.list() {
            Err(error) => error,
            Ok(names) if Manifest::numbers(&names).first() > Some(&number) => StateError::TakenOver { file },
            Ok(_) => removed(file),
        }
    }

    /// Checks that the segments are there that a manifest lists, as long as they were written: it must not
    /// list what others have removed. Where another owner has written manifests since, it is not checked.
    fn check_segments(&self, manifest: &Manifest) -> Result<(), StateError> {
        let sizes = self.files.sizes()?;
        let names: Vec<String> = sizes.keys().cloned().collect();
        if Manifest::numbers(&names).first().is_some_and(|there| *there >= manifest.number) {
            return Ok(());
        }
        let lost = manifest.all_segments().find(|segment| sizes.get(&segment.name) != Some(&segment.bytes));
        let Some(lost) = lost else { return Ok(()) };
        let what = match sizes.get(&lost.name) {
            None => "it was removed while this run had the state".to_owned(),
            Some(size) => format!("it holds {size} bytes, and {} were written", lost.bytes),
        };
        Err(self.files.damaged(&lost.name, what))
    }

    /// Stores a table of document frequencies, before the commit of the epoch that makes it the next one.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn put_table(&mut self, fingerprint: u64, bytes: &[u8]) -> Result<(), StateError> {
        self.tables.put(&self.files, self.owner, fingerprint, bytes)
    }

    /// The table with this fingerprint, if it was stored and no later one has been published since.
    ///
    /// # Errors
    /// Any error of the store, or that the file is damaged.
    pub fn table(&self, fingerprint: u64) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.tables.get(&self.files, fingerprint)?.map(|(_, bytes)| bytes))
    }

    /// Bytes of the segments of the state.
    pub fn stored_bytes(&self) -> u64 {
        self.base.base_bytes() + self.base.delta_bytes()
    }

    /// File name of a table.
    fn table_file(&self, fingerprint: u64) -> Result<String, StateError> {
        let is_known = self.base.saved.as_ref().is_some_and(|saved| saved.table() == Some(fingerprint));
        if let Some(known) = self.base.table.as_ref().filter(|_| is_known) {
            return Ok(known.clone());
        }
        let place = || self.files.place().to_owned();
        let found = self.tables.get(&self.files, fingerprint)?;
        found
            .map(|(name, _)| name.to_owned())
            .ok_or_else(|| StateError::NoTable { place: place(), fingerprint })
    }
}

fn removed(file: String) -> StateError {
    StateError::Damaged { file, what: "its folder was removed while this run had the state".to_owned() }
}

/// Reads the manifests of these numbers, except damaged ones; `None` if one was removed meanwhile.
fn read_whole(files: &StateFiles, numbers: &[u64]) -> Result<Option<Vec<Manifest>>, StateError> {
    let mut whole = Vec::new();
    let mut damage = None;
    for number in numbers {
        match Manifest::read(files, *number) {
            Ok(manifest) => whole.push(manifest),
            Err(error) if error.is_gone() => return Ok(None),
            Err(error @ StateError::Damaged { .. }) => {
                tracing::warn!(%error, "a manifest is damaged: an older one is taken");
                damage = damage.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    match damage {
        Some(damage) if whole.is_empty() => Err(damage),
        _ => Ok(Some(whole)),
    }
}
