//! The documents of one manifest, read shard by shard.
//!
//! Of each shard the newest segment is read first; an id that was seen in a newer one is passed over. Memory
//! is a slice, a block and the ids of one shard that are in deltas.

use super::error::StateError;
use super::files::Files;
use super::ids::{Seen, id_hash};
use super::manifest::{GROUPS, Manifest, Saved, shards_of};
use super::segment::Segment;
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// The state as of one publish. Readable as long as the files of its manifest are there: until two later ones
/// are published.
#[derive(Debug)]
pub struct Snapshot {
    files: Files,
    manifest: Manifest,
    saved: Saved,
}

impl Snapshot {
    /// Of a manifest; `None` if nothing was published when it was written.
    pub(super) fn of(files: &Files, manifest: &Manifest) -> Option<Self> {
        let saved = manifest.saved.clone()?;
        Some(Self { files: files.clone(), manifest: manifest.clone(), saved })
    }

    /// What the documents stand for.
    pub fn saved(&self) -> &Saved {
        &self.saved
    }

    /// Whether the heads and footers of all segments are whole.
    pub(super) fn check(&self) -> Result<(), StateError> {
        self.manifest.segments().try_for_each(|file| Segment::open(&self.files, file).map(drop))
    }

    /// Every document alive, once, in slices of about `slice_bytes`: a slice ends with the record that fills
    /// it up. In no order that means anything. None is an end.
    ///
    /// # Errors
    /// What the store says, or which file is damaged; and whatever `each` fails with. What was handed out
    /// before is right.
    pub fn read<E: From<StateError>>(
        &self,
        slice_bytes: usize,
        mut each: impl FnMut(Changes) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut slice = Changes::default();
        let mut stack = Stack::open_deltas(&self.files, &self.manifest)?;
        for group in 0..GROUPS {
            stack.open_base(&self.files, &self.manifest, group)?;
            for shard in shards_of(group) {
                stack.each(shard, Ended::PassOver, |record| {
                    slice.copy(record);
                    if slice.len_bytes() >= slice_bytes { each(std::mem::take(&mut slice)) } else { Ok(()) }
                })?;
            }
        }
        if slice.is_empty() { Ok(()) } else { each(slice) }
    }
}

/// What becomes of ended documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// They are not alive.
    PassOver,
    /// They end something that is not in the stack.
    Keep,
}

/// Segments over each other, the newest first.
#[derive(Debug)]
pub(super) struct Stack {
    /// Each with its last sequence number.
    deltas: Vec<(u64, Segment)>,
    /// The sequence number of the base, inclusive, and the base.
    through: u64,
    base: Option<Segment>,
    seen: Seen,
}

impl Stack {
    /// All deltas of a manifest, without a base.
    pub(super) fn open_deltas(files: &Files, manifest: &Manifest) -> Result<Self, StateError> {
        let newest_first = manifest.deltas.iter().rev();
        let open = newest_first.map(|delta| Ok((delta.last, Segment::open(files, &delta.segment)?)));
        let deltas = open.collect::<Result<_, StateError>>()?;
        Ok(Self { deltas, through: 0, base: None, seen: Seen::default() })
    }

    /// The base of a group below them, in the place of the one before.
    pub(super) fn open_base(
        &mut self,
        files: &Files,
        manifest: &Manifest,
        group: u8,
    ) -> Result<(), StateError> {
        let group = &manifest.groups[usize::from(group)];
        self.through = group.through;
        self.base = group.base.as_ref().map(|base| Segment::open(files, base)).transpose()?;
        Ok(())
    }

    /// Goes through the newest record of each id of a shard.
    pub(super) fn each<E: From<StateError>>(
        &mut self,
        shard: u8,
        ended: Ended,
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
                // Below the last one nothing asks.
                let is_newest = match (is_last, is_last && seen.is_empty()) {
                    (_, true) => true,
                    (true, _) => !seen.contains(id_hash(record.id), record.id),
                    (false, _) => seen.insert(id_hash(record.id), record.id),
                };
                let is_told = is_newest && (record.value.is_some() || ended == Ended::Keep);
                if is_told { each(record) } else { Ok(()) }
            })?;
        }
        Ok(())
    }
}
