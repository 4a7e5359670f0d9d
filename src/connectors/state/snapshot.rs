//! The documents of one manifest, read shard by shard.
//!
//! For each shard the newest segment is read first. An id that a newer segment contains is skipped in older
//! ones. Memory: one slice, one block, and the ids of one shard in the deltas.

use super::error::StateError;
use super::files::StateFiles;
use super::ids::{IdSet, id_hash};
use super::manifest::{GROUPS, Manifest, StatePosition, shards_of};
use super::segment::SegmentReader;
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// The state as of one publish. Readable while the files of its manifest exist: until two later manifests are
/// published.
#[derive(Debug)]
pub struct Snapshot {
    files: StateFiles,
    manifest: Manifest,
    saved: StatePosition,
}

impl Snapshot {
    /// The documents of a manifest; `None` if it was written before the first publish.
    pub(super) fn from_manifest(files: &StateFiles, manifest: &Manifest) -> Option<Self> {
        let saved = manifest.saved.clone()?;
        Some(Self { files: files.clone(), manifest: manifest.clone(), saved })
    }

    /// The position that the documents stand for.
    pub fn saved(&self) -> &StatePosition {
        &self.saved
    }

    /// Checks the heads and footers of all segments.
    pub(super) fn check(&self) -> Result<(), StateError> {
        self.manifest.segments().try_for_each(|file| SegmentReader::open(&self.files, file).map(drop))
    }

    /// Calls `each` with slices of the live documents; each document is in one slice. A slice ends with the
    /// record that fills it to `slice_bytes`. The order is unspecified. Deleted documents are left out.
    ///
    /// # Errors
    /// Any error of the store or of `each`, or a damaged file. The slices passed before the error are
    /// correct.
    pub fn read<E: From<StateError>>(
        &self,
        slice_bytes: usize,
        mut each: impl FnMut(Changes) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut slice = Changes::default();
        let mut stack = SegmentStack::open_deltas(&self.files, &self.manifest)?;
        for group in 0..GROUPS {
            stack.open_base(&self.files, &self.manifest, group)?;
            for shard in shards_of(group) {
                stack.each(shard, DeletedRecords::Skip, |record| {
                    slice.copy(record);
                    if slice.len_bytes() >= slice_bytes { each(std::mem::take(&mut slice)) } else { Ok(()) }
                })?;
            }
        }
        if slice.is_empty() { Ok(()) } else { each(slice) }
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

/// Segments in layers, the newest first.
#[derive(Debug)]
pub(super) struct SegmentStack {
    /// Each with its last sequence number.
    deltas: Vec<(u64, SegmentReader)>,
    /// Sequence number of the base, inclusive.
    through: u64,
    base: Option<SegmentReader>,
    seen: IdSet,
}

impl SegmentStack {
    /// Opens all deltas of a manifest, without a base.
    pub(super) fn open_deltas(files: &StateFiles, manifest: &Manifest) -> Result<Self, StateError> {
        let newest_first = manifest.deltas.iter().rev();
        let open = newest_first.map(|delta| Ok((delta.last, SegmentReader::open(files, &delta.segment)?)));
        let deltas = open.collect::<Result<_, StateError>>()?;
        Ok(Self { deltas, through: 0, base: None, seen: IdSet::default() })
    }

    /// Opens the base of a group as the lowest layer, in place of the one before.
    pub(super) fn open_base(
        &mut self,
        files: &StateFiles,
        manifest: &Manifest,
        group: u8,
    ) -> Result<(), StateError> {
        let group = &manifest.groups[usize::from(group)];
        self.through = group.through;
        self.base = group.base.as_ref().map(|base| SegmentReader::open(files, base)).transpose()?;
        Ok(())
    }

    /// Calls `each` with the newest record of each id of a shard.
    pub(super) fn each<E: From<StateError>>(
        &mut self,
        shard: u8,
        ended: DeletedRecords,
        mut each: impl FnMut(ChangeRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { deltas, through, base, seen } = self;
        seen.clear();
        let segments =
            deltas.iter().filter(|(last, _)| last > through).map(|(_, delta)| delta).chain(base.as_ref());
        let mut segments = segments.peekable();
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
