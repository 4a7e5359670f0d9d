//! Reading a segment, block by block.

use super::{BlockEntry, MAGIC, SegmentFile};
use crate::state::error::StateError;
use crate::state::files::StateFiles;
use crate::state::frame;
use crate::state::ids::SHARDS;
use dupflow_core::doc::changes::{ChangeRecord, ChangeRecords};
use dupflow_core::hash;

/// A file of up to this many bytes, inclusive, is read at once and kept in memory while open; a larger one is
/// read by blocks.
const SMALL_BYTES: u64 = 256 << 10;

/// A segment whose head and footer have been checked.
#[derive(Debug)]
pub(in crate::state) struct SegmentReader {
    files: StateFiles,
    file: SegmentFile,
    blocks: Vec<BlockEntry>,
    /// All bytes of a small file.
    whole: Option<Vec<u8>>,
}

impl SegmentReader {
    pub(in crate::state) fn open(files: &StateFiles, file: &SegmentFile) -> Result<Self, StateError> {
        let damaged = |what: String| files.damaged(&file.name, what);
        let whole = if file.bytes <= SMALL_BYTES { Some(files.get(&file.name)?) } else { None };
        let head_bytes = frame::HEAD_BYTES as u64;
        if file.footer < head_bytes || file.footer > file.bytes {
            return Err(damaged(format!(
                "expected a footer within {} bytes, found it at {}",
                file.bytes, file.footer
            )));
        }
        let mut sealed = get(files, file, whole.as_deref(), 0, head_bytes)?;
        sealed.extend(get(files, file, whole.as_deref(), file.footer, file.bytes - file.footer)?);
        let (sealed, stored) =
            sealed.split_last_chunk::<8>().ok_or_else(|| damaged("expected a checksum".to_owned()))?;
        let (stored, computed) = (u64::from_le_bytes(*stored), hash::bytes(0, sealed));
        if stored != computed || stored != file.checksum {
            let what =
                format!("expected checksum {:016x} of head and footer, found {computed:016x}", file.checksum);
            return Err(damaged(what));
        }
        let (head, footer) = sealed.split_at(frame::HEAD_BYTES);
        frame::check_head(&MAGIC, &files.full_name(&file.name), head)?;
        let (blocks, rest) = footer.as_chunks::<{ BlockEntry::BYTES }>();
        let blocks: Vec<BlockEntry> = blocks.iter().map(BlockEntry::decode).collect();
        let (mut offset, mut shard) = (head_bytes, 0);
        for block in &blocks {
            if block.offset != offset || block.shard < shard || block.shard >= SHARDS {
                return Err(damaged(format!(
                    "expected a block of shard {shard} or more at {offset}, found {block:?}"
                )));
            }
            (offset, shard) = (offset.saturating_add(block.bytes), block.shard);
        }
        if offset != file.footer || !rest.is_empty() {
            return Err(damaged(format!("expected blocks up to {}, found them up to {offset}", file.footer)));
        }
        Ok(Self { files: files.clone(), file: file.clone(), blocks, whole })
    }

    /// Calls `each` with the records of a shard.
    pub(in crate::state) fn each<E: From<StateError>>(
        &self,
        shard: u8,
        mut each: impl FnMut(ChangeRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = self.blocks.partition_point(|block| block.shard < shard);
        for block in self.blocks[first..].iter().take_while(|block| block.shard == shard) {
            let bytes = get(&self.files, &self.file, self.whole.as_deref(), block.offset, block.bytes)?;
            self.check(block, &bytes)?;
            ChangeRecords::new(&bytes).try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Checks the checksum and the counts of a block.
    fn check(&self, block: &BlockEntry, bytes: &[u8]) -> Result<(), StateError> {
        let damaged = |what: String| {
            let at = format!("in the block of shard {} at {}, ", block.shard, block.offset);
            self.files.damaged(&self.file.name, at + &what)
        };
        let found = hash::bytes(0, bytes);
        if found != block.checksum {
            return Err(damaged(format!("expected checksum {:016x}, found {found:016x}", block.checksum)));
        }
        let mut records = ChangeRecords::new(bytes);
        let (count, ended) = records
            .by_ref()
            .fold((0, 0), |(count, ended), record| (count + 1, ended + u32::from(record.value.is_none())));
        if (count, ended) != (block.records, block.ended) || !records.rest().is_empty() {
            let expected = format!("expected {} records, {} of them ended", block.records, block.ended);
            let left = records.rest().len();
            return Err(damaged(format!(
                "{expected}, found {count}, {ended} of them ended, and {left} bytes"
            )));
        }
        Ok(())
    }
}

/// Bytes of a segment, from memory or from its file.
fn get(
    files: &StateFiles,
    file: &SegmentFile,
    whole: Option<&[u8]>,
    offset: u64,
    bytes: u64,
) -> Result<Vec<u8>, StateError> {
    let range = offset..offset.saturating_add(bytes);
    let Some(whole) = whole else { return files.get_range(&file.name, range) };
    let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
    let part = whole.get(place(range.start)..place(range.end)).map(<[u8]>::to_vec);
    part.ok_or_else(|| {
        files.damaged(&file.name, format!("expected at least {} bytes, found {}", range.end, whole.len()))
    })
}
