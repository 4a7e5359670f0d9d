//! The documents of one manifest, read shard by shard, by any number of threads and processes.
//!
//! For each shard the newest segment is read first. An id that a newer segment contains is skipped in older
//! ones. Memory: deltas of up to 256 KiB, once; for each thread one slice, one block, and the ids of one
//! shard in the deltas.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::error::StateError;
use super::files::StateFiles;
use super::ids::{IdSet, SHARDS, id_hash};
use super::input_spans;
use super::manifest::{GROUPS, Manifest, StatePosition, group_of};
use super::segment::SegmentReader;
use crate::mark::InputList;
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// The state as of one publish. While it exists, the owner that returned it removes none of its files.
#[derive(Debug)]
pub struct Snapshot {
    files: StateFiles,
    manifest: Arc<Manifest>,
    saved: StatePosition,
}

impl Snapshot {
    /// The documents of a manifest; `None` if it was written before the first publish.
    pub(super) fn from_manifest(files: &StateFiles, manifest: &Arc<Manifest>) -> Option<Self> {
        let saved = manifest.saved.clone()?;
        Some(Self { files: files.clone(), manifest: Arc::clone(manifest), saved })
    }

    /// The list of its files, for [`SharedState::snapshot`](super::SharedState::snapshot) in another process.
    pub fn encode(&self) -> Vec<u8> {
        self.manifest.encode()
    }

    /// The position that the documents stand for.
    pub fn saved(&self) -> &StatePosition {
        &self.saved
    }

    /// The number of documents, an upper bound: there may be several versions of one.
    pub fn documents(&self) -> u64 {
        self.manifest.segments().map(|file| file.records - file.ended).sum()
    }

    /// The list of inputs with all of its spans; `None` if an earlier version stored the state, or its input
    /// is not files.
    ///
    /// # Errors
    /// Any error of the store, or a damaged file.
    pub fn inputs(&self) -> Result<Option<InputList>, StateError> {
        let Some(list) = &self.saved.mark.inputs else { return Ok(None) };
        let spans = input_spans::read(&self.files, &self.manifest.inputs)?;
        Ok(Some(InputList { stored: 0, digest: 0, spans, ..list.clone() }))
    }

    /// Checks the heads and footers of all segments.
    pub(super) fn check(&self) -> Result<(), StateError> {
        self.manifest.all_segments().try_for_each(|file| SegmentReader::open(&self.files, file).map(drop))
    }

    /// Opens all segments, and checks their heads and footers.
    ///
    /// # Errors
    /// Any error of the store, or a damaged file.
    pub fn open(&self) -> Result<OpenSnapshot, StateError> {
        OpenSegments::open(&self.files, &self.manifest, 0..GROUPS).map(|segments| OpenSnapshot { segments })
    }

    /// Calls `each` with slices of all live documents, as [`OpenSnapshot::read`] does.
    ///
    /// # Errors
    /// The same, and those of [`Self::open`].
    pub fn read<E: From<StateError>>(
        &self,
        slice_bytes: usize,
        each: impl FnMut(Changes) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open()?.read(&UnreadShards::default(), slice_bytes, each)
    }
}

/// A snapshot that threads read together.
#[derive(Debug)]
pub struct OpenSnapshot {
    segments: OpenSegments,
}

impl OpenSnapshot {
    /// Calls `each` with slices of the live documents of unread shards, until there is none left; threads
    /// that share `unread` have disjoint slices, and together all. A slice ends with the record that fills it
    /// to `slice_bytes`. The order is unspecified. Deleted documents are left out.
    ///
    /// # Errors
    /// Any error of the store or of `each`, or a damaged file. The slices passed before the error are
    /// correct.
    pub fn read<E: From<StateError>>(
        &self,
        unread: &UnreadShards,
        slice_bytes: usize,
        mut each: impl FnMut(Changes) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut slice = Changes::default();
        let mut seen = IdSet::default();
        while let Some(shard) = unread.take() {
            self.segments.each(shard, DeletedRecords::Skip, &mut seen, |record| {
                slice.copy(record);
                if slice.len_bytes() >= slice_bytes { each(std::mem::take(&mut slice)) } else { Ok(()) }
            })?;
        }
        if slice.is_empty() { Ok(()) } else { each(slice) }
    }
}

/// The shards that no thread has begun to read.
#[derive(Debug)]
pub struct UnreadShards {
    next: AtomicU8,
    /// Shards from one to the next.
    step: u8,
}

impl Default for UnreadShards {
    /// All shards.
    fn default() -> Self {
        Self::share(0, 1)
    }
}

impl UnreadShards {
    /// The share of one of `count` (at least 1) readers, numbered from 0. The shares of all have each shard
    /// once; with more readers than the 64 shards, some shares are empty.
    pub fn share(index: usize, count: usize) -> Self {
        let next = u8::try_from(index).unwrap_or(SHARDS).min(SHARDS);
        let step = u8::try_from(count).unwrap_or(SHARDS).clamp(1, SHARDS);
        Self { next: AtomicU8::new(next), step }
    }

    /// Leaves no shard to read.
    pub fn take_all(&self) {
        self.next.store(SHARDS, Ordering::Relaxed);
    }

    fn take(&self) -> Option<u8> {
        let after = |next: u8| (next < SHARDS).then(|| next.saturating_add(self.step));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()
    }
}

/// What to do with records of deleted documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletedRecords {
    /// Skip them: the documents are not alive.
    Skip,
    /// Return them: they delete records of segments outside the stack.
    Keep,
}

/// The open segments of a manifest.
#[derive(Debug)]
pub(super) struct OpenSegments {
    /// The newest first, each with its last sequence number.
    deltas: Vec<(u64, SegmentReader)>,
    /// By group, the sequence number of its base, inclusive, and the base.
    groups: [(u64, Option<SegmentReader>); GROUPS as usize],
}

impl OpenSegments {
    /// Opens all deltas of a manifest, and the bases of these groups.
    pub(super) fn open(
        files: &StateFiles,
        manifest: &Manifest,
        groups: impl IntoIterator<Item = u8>,
    ) -> Result<Self, StateError> {
        let newest_first = manifest.deltas.iter().rev();
        let open = newest_first.map(|delta| Ok((delta.last, SegmentReader::open(files, &delta.segment)?)));
        let deltas = open.collect::<Result<_, StateError>>()?;
        let mut opened = Self { deltas, groups: Default::default() };
        for group in groups {
            opened.open_base(files, manifest, group)?;
        }
        Ok(opened)
    }

    /// Opens the base of a group.
    pub(super) fn open_base(
        &mut self,
        files: &StateFiles,
        manifest: &Manifest,
        group: u8,
    ) -> Result<(), StateError> {
        let listed = &manifest.groups[usize::from(group)];
        let base = listed.base.as_ref().map(|base| SegmentReader::open(files, base)).transpose()?;
        self.groups[usize::from(group)] = (listed.through, base);
        Ok(())
    }

    /// Calls `each` with the newest record of each id of a shard. `seen` is cleared first.
    pub(super) fn each<E: From<StateError>>(
        &self,
        shard: u8,
        ended: DeletedRecords,
        seen: &mut IdSet,
        mut each: impl FnMut(ChangeRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (through, base) = &self.groups[usize::from(group_of(shard))];
        seen.clear();
        let newer = self.deltas.iter().filter(|(last, _)| last > through).map(|(_, delta)| delta);
        let mut segments = newer.chain(base).peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            segment.each(shard, |record| {
                // Ids of the lowest layer need not be remembered.
                let is_newest = match (is_last, is_last && seen.is_empty()) {
                    (_, true) => true,
                    (true, _) => !seen.contains(id_hash(record.id), record.id),
                    (false, _) => seen.insert(id_hash(record.id), record.id),
                };
                let is_visible = is_newest && (record.value.is_some() || ended == DeletedRecords::Keep);
                if is_visible { each(record) } else { Ok(()) }
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_readers_have_each_shard_once() {
        for count in [1, 2, 3, 7, 63, 64, 65, 300, 1000] {
            let mut all: Vec<u8> = (0..count)
                .flat_map(|index| {
                    let share = UnreadShards::share(index, count);
                    std::iter::from_fn(move || share.take()).collect::<Vec<_>>()
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..SHARDS).collect::<Vec<_>>(), "{count}");
        }
    }
}
