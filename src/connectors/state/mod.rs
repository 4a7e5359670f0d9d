//! The state of a corpus in files: one record for each document alive, so that a restart does not read its
//! input again.
//!
//! Changes of documents, with what they stand for -> a restart's documents, exactly as of one publish.
//! Records are opaque: an id and a value. One owner writes; anyone may read or copy the files meanwhile.
//!
//! ```text
//! publish: changes ─► delta ─► manifest n                 a manifest names all files that are the state
//! thread:  deltas + bases ─► new bases, named by manifest n + 1
//! restart: newest manifest ─► deltas, newest first ─► base, shard by shard ─► every document once
//! ```
//!
//! Invariants:
//! - A file is written once, whole, under a name that no other owner uses, and is never changed. Every byte
//!   is under a checksum.
//! - The state is what the manifest of the highest number names. A manifest is written where none is: of two
//!   owners that write the same number one fails, and finds that it is no owner any more. An owner begins by
//!   writing one.
//! - Only the owner removes files, after a publish, and only what neither of the last two manifests names:
//!   files that it made, or found when it opened the state. Files of a later owner are neither: an owner that
//!   does not know yet that it is none removes none of them.
//! - A publish that fails leaves the manifests before it whole.
//!
//! What is promised against what, and the formats byte by byte, are in `docs/state.md`.
//!
//! ```
//! use dupflow_core::doc::changes::Changes;
//! use dupflow_connectors::state::{Memory, Saved, State, StateError};
//!
//! let store = Memory::default();
//! let mut state = State::open(Box::new(store.clone()))?;
//! let mut changes = Changes::default();
//! changes.put(b"a", b"1");
//! changes.put(b"b", b"2");
//! let mut saved = Saved::default();
//! saved.mark.progress.epoch = 1;
//! state.publish(&saved, &[changes])?;
//!
//! let mut later = State::open(Box::new(store))?;
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
mod manifest;
mod report;
mod segment;
mod snapshot;
mod store;
mod tables;
mod upkeep;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use compaction::CompactionRule;
pub use error::StateError;
pub use manifest::Saved;
pub use report::{Inspection, ManifestReport, Verification, inspect, verify};
pub use snapshot::Snapshot;
#[cfg(feature = "object-store")]
pub use store::Objects;
pub use store::{Folder, Memory, Ownership, Store, Upload, at};

use compaction::{Job, Made};
use files::Files;
use manifest::{Delta, Manifest};
use segment::SegmentFile;
use tables::Tables;

use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Epoch;

/// Others that may open the state at the same moment.
const TRIES: usize = 100;

/// The state, opened by its owner.
#[derive(Debug)]
pub struct State {
    files: Files,
    owner: u64,
    /// Of the names of files that are made; shared with the thread.
    serial: Arc<AtomicU64>,
    ownership: Ownership,
    /// The number of the next manifest.
    next: u64,
    /// The manifests that are there, newest first; from the first publish on two.
    kept: Vec<Manifest>,
    /// What the next publish adds to: the newest manifest, or the one that [`Self::latest`] went back to, and
    /// what the thread has made since.
    base: Manifest,
    /// Files that are there, but for manifests and tables: removed when no manifest names them.
    segments: BTreeSet<String>,
    /// Whether the newest manifest is one that the next publish gives up.
    has_gone_back: bool,
    tables: Tables,
    job: Option<Job>,
    rule: CompactionRule,
    /// No compaction is started while the deltas have fewer bytes: set when one has failed.
    retry_bytes: u64,
}

impl State {
    /// Takes the state over: from here on every publish of an owner before fails with
    /// [`StateError::TakenOver`].
    ///
    /// # Errors
    /// What the store says; if no manifest is whole, or the newest is of another version.
    pub fn open(store: Box<dyn Store>) -> Result<Self, StateError> {
        let files = Files::new(store);
        let ownership = files.own()?;
        if let Ownership::Shared(lock) = &ownership {
            tracing::warn!(lock, "another process has this state open: it is taken over");
        }
        Self::take_over(files, ownership)
    }

    /// With another rule of when it is compacted.
    #[must_use]
    pub fn with_rule(mut self, rule: CompactionRule) -> Self {
        self.rule = rule;
        self
    }

    /// As [`Self::open`], where no process has it open and there is something to open.
    ///
    /// # Errors
    /// The same; [`StateError::Owned`], [`StateError::Missing`]. Where there are no locks, an owner cannot be
    /// seen.
    pub fn open_alone(store: Box<dyn Store>) -> Result<Self, StateError> {
        let files = Files::new(store);
        report::manifests(&files)?;
        match files.own()? {
            Ownership::Shared(file) => Err(StateError::Owned { file }),
            ownership => Self::take_over(files, ownership),
        }
    }

    fn take_over(files: Files, ownership: Ownership) -> Result<Self, StateError> {
        let owner = rand::random();
        for _ in 0..TRIES {
            let names = files.list()?;
            let numbers = Manifest::numbers(&names);
            let Some(mut kept) = read_whole(&files, &numbers)? else { continue };
            let base = kept.first().cloned().unwrap_or_else(Manifest::empty);
            let number = numbers.first().map_or(1, |number| number + 1);
            let taken = Manifest { number, owner, ..base };
            if !files.put_if_absent(&Manifest::name(number), &taken.encode())? {
                continue;
            }
            // Others may have opened it, published and removed since the list was made.
            if Manifest::numbers(&files.list()?).first() != Some(&number) {
                continue;
            }
            kept.insert(0, taken.clone());
            return Ok(Self {
                tables: Tables::found(&names),
                segments: names.into_iter().filter(|name| files::is_segment_or_part(name)).collect(),
                files,
                owner,
                serial: Arc::default(),
                ownership,
                next: number + 1,
                kept,
                base: taken,
                has_gone_back: false,
                job: None,
                rule: CompactionRule::default(),
                retry_bytes: 0,
            });
        }
        Err(StateError::TakenOver { file: files.place().to_owned() })
    }

    /// The newest publish that is whole and not after an epoch; `None` if nothing was published up to it. The
    /// next publish adds to what this returns, and gives up what is newer.
    ///
    /// # Errors
    /// What the store says, or which segment is damaged, as far as heads and footers tell; the rest is told
    /// by [`Snapshot::read`].
    pub fn latest(&mut self, at_most: Epoch) -> Result<Option<Snapshot>, StateError> {
        let newest = self.kept.first().and_then(|manifest| manifest.saved.as_ref());
        let newest_epoch = newest.map_or(0, |saved| saved.epoch());
        let mut chosen = Manifest::empty();
        for manifest in &self.kept {
            if manifest.saved.as_ref().is_some_and(|saved| saved.epoch() > at_most) {
                continue;
            }
            match Snapshot::of(&self.files, manifest).map_or(Ok(()), |snapshot| snapshot.check()) {
                // It was written by an owner that was none any more.
                Err(error) if error.is_gone() && newest_epoch > at_most => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    chosen = manifest.clone();
                    break;
                }
            }
        }
        let epoch = chosen.saved.as_ref().map_or(0, |saved| saved.epoch());
        if newest_epoch > at_most {
            tracing::warn!(
                newest_epoch,
                at_most,
                epoch,
                "the newest stored state is too new: an older one is taken"
            );
        }
        let snapshot = Snapshot::of(&self.files, &chosen);
        if (&chosen.groups, &chosen.deltas) != (&self.base.groups, &self.base.deltas)
            && let Some(mut job) = self.job.take()
        {
            // Whatever becomes of it, it is not needed.
            drop(job.stop());
            self.segments.extend(job.take().iter().filter_map(Made::file).map(|file| file.name.clone()));
        }
        self.has_gone_back = self.kept.first().is_some_and(|kept| kept.saved != chosen.saved);
        self.base = chosen;
        Ok(snapshot)
    }

    /// One delta and one manifest: after it the state is what it was, with the changes, and stands for
    /// `saved`. Of the changes of an id the last one counts.
    ///
    /// # Errors
    /// What the store says: then the state is as before or has the changes already, and they are to be in the
    /// next publish again; where there is no room, only after a compaction has made none.
    /// [`StateError::TakenOver`]: then it is the state of another. [`StateError::NoTable`] if the table was
    /// not put.
    pub fn publish(&mut self, saved: &Saved, changes: &[Changes]) -> Result<(), StateError> {
        if !matches!(self.ownership, Ownership::Alone(_)) {
            self.ownership = self.files.own()?;
        }
        self.catch_up();
        match self.publish_once(saved, changes) {
            Err(error) if upkeep::is_full(&error) && self.make_room() => self.publish_once(saved, changes),
            published => published,
        }
    }

    fn publish_once(&mut self, saved: &Saved, changes: &[Changes]) -> Result<(), StateError> {
        if self.has_gone_back {
            // Of the two manifests that are kept none is to be of what was given up.
            let base = self.base.clone();
            self.put_next(base.saved, base.table, None)?;
            self.has_gone_back = false;
        }
        let table = saved.table().map(|fingerprint| self.file_of(fingerprint)).transpose()?;
        let delta = segment::write_delta(&self.files, self.new_name()("delta"), changes)?;
        let name = delta.as_ref().map(|delta| delta.name.clone());
        self.segments.extend(name.clone());
        let manifests = match self.put_next(Some(saved.clone()), table, delta) {
            Ok(manifests) => manifests,
            Err(error) => {
                self.withdraw(&error, name.as_deref());
                return Err(error);
            }
        };
        self.clear_away(&manifests);
        self.start_due();
        Ok(())
    }

    /// Publishes the base with a delta. The numbers of the manifests that are there now.
    fn put_next(
        &mut self,
        saved: Option<Saved>,
        table: Option<String>,
        delta: Option<SegmentFile>,
    ) -> Result<Vec<u64>, StateError> {
        let mut manifest = Manifest { owner: self.owner, saved, table, ..self.base.clone() };
        let manifests = self.put(&mut manifest, delta)?;
        self.base = manifest.clone();
        self.next = manifest.number + 1;
        self.kept.insert(0, manifest);
        self.kept.truncate(2);
        Ok(manifests)
    }

    /// Writes a manifest at the next number, and makes sure that nobody is further: by the numbers that are
    /// there, which it tells.
    fn put(&mut self, manifest: &mut Manifest, delta: Option<SegmentFile>) -> Result<Vec<u64>, StateError> {
        manifest.number = self.next;
        manifest.deltas.extend(delta.map(|segment| Delta { first: self.next, last: self.next, segment }));
        let bytes = manifest.encode();
        let name = Manifest::name(manifest.number);
        let taken_over = || StateError::TakenOver { file: self.files.full_name(&name) };
        if !self.files.put_if_absent(&name, &bytes)? {
            let found = match Manifest::read(&self.files, manifest.number) {
                Err(error) if error.is_gone() => return Err(taken_over()),
                found => found?,
            };
            if found.owner != self.owner {
                return Err(taken_over());
            }
            if found != *manifest {
                // A publish that has failed, and succeeded.
                self.next += 1;
                self.kept.insert(0, found);
                let own = manifest.deltas.pop_if(|last| last.last == manifest.number);
                return self.put(manifest, own.map(|own| own.segment));
            }
        }
        // Where a later owner has removed the manifest of this number, there are higher ones. Or it has begun
        // with this manifest: so nothing of it is removed.
        let numbers = Manifest::numbers(&self.files.list()?);
        if numbers.first() == Some(&manifest.number) { Ok(numbers) } else { Err(taken_over()) }
    }

    /// Keeps a table of document frequencies, before the commit of the epoch that decides for it.
    ///
    /// # Errors
    /// What the store says.
    pub fn put_table(&mut self, fingerprint: u64, bytes: &[u8]) -> Result<(), StateError> {
        self.tables.put(&self.files, self.owner, fingerprint, bytes)
    }

    /// The table of a fingerprint, if it was put and no table that was put later has been published since.
    ///
    /// # Errors
    /// What the store says, or that it is damaged.
    pub fn table(&self, fingerprint: u64) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.tables.get(&self.files, fingerprint)?.map(|(_, bytes)| bytes))
    }

    /// Bytes of the segments that are the state.
    pub fn stored_bytes(&self) -> u64 {
        self.base.base_bytes() + self.base.delta_bytes()
    }

    /// The file of a table.
    fn file_of(&self, fingerprint: u64) -> Result<String, StateError> {
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

    /// Gives names of segments, none twice and none that another owner gives.
    fn new_name(&self) -> impl Fn(&str) -> String + Send + use<> {
        let (owner, serial) = (self.owner, Arc::clone(&self.serial));
        move |kind| format!("{kind}-{owner:016x}-{:08}", serial.fetch_add(1, Ordering::Relaxed))
    }
}

/// The manifests of these numbers that are whole; none if one went meanwhile.
fn read_whole(files: &Files, numbers: &[u64]) -> Result<Option<Vec<Manifest>>, StateError> {
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
