//! Writing a segment, block by block.

use super::{BlockEntry, MAGIC, SegmentFile};
use crate::state::error::StateError;
use crate::state::files::StateFiles;
use crate::state::frame;
use crate::state::ids::{IdSet, SHARDS, id_hash, shard_of};
use crate::state::store::Upload;
use dupflow_core::doc::changes::{ChangeRecord, Changes};
use dupflow_core::hash;

/// A block ends with the record that brings it to this many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// A segment being written. If it is dropped before `finish`, no file remains.
pub(in crate::state) struct SegmentWriter<'f> {
    files: &'f StateFiles,
    name: String,
    upload: Box<dyn Upload + 'f>,
    /// Bytes written.
    written: u64,
    blocks: Vec<BlockEntry>,
    shard: u8,
    /// The open block, and the counts of its records.
    open: Vec<u8>,
    records: u32,
    ended: u32,
}

impl<'f> SegmentWriter<'f> {
    pub(in crate::state) fn new(files: &'f StateFiles, name: String) -> Result<Self, StateError> {
        let mut upload = files.create(&name)?;
        let head = frame::head(&MAGIC);
        upload.write(&head).map_err(files.failed(&name))?;
        Ok(Self {
            files,
            name,
            upload,
            written: head.len() as u64,
            blocks: Vec::new(),
            shard: 0,
            open: Vec::new(),
            records: 0,
            ended: 0,
        })
    }

    /// Appends a record. Shards must ascend from call to call.
    pub(in crate::state) fn record(&mut self, shard: u8, record: ChangeRecord<'_>) -> Result<(), StateError> {
        debug_assert!(shard >= self.shard, "shards ascend");
        if shard != self.shard {
            self.end_block()?;
            self.shard = shard;
        }
        self.open.extend_from_slice(record.bytes);
        self.records += 1;
        self.ended += u32::from(record.value.is_none());
        if self.open.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), StateError> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.upload.write(&self.open).map_err(self.files.failed(&self.name))?;
        let bytes = self.open.len() as u64;
        self.blocks.push(BlockEntry {
            shard: self.shard,
            offset: self.written,
            bytes,
            records: self.records,
            ended: self.ended,
            checksum: hash::bytes(0, &self.open),
        });
        self.written += bytes;
        self.open.clear();
        (self.records, self.ended) = (0, 0);
        Ok(())
    }

    /// Completes the file. Without a record, returns `None` and leaves no file.
    pub(in crate::state) fn finish(mut self) -> Result<Option<SegmentFile>, StateError> {
        self.end_block()?;
        if self.blocks.is_empty() {
            return Ok(None);
        }
        let mut sealed = frame::head(&MAGIC).to_vec();
        self.blocks.iter().for_each(|block| block.encode(&mut sealed));
        let checksum = hash::bytes(0, &sealed);
        let mut footer = sealed.split_off(frame::HEAD_BYTES);
        footer.extend_from_slice(&checksum.to_le_bytes());
        self.upload.write(&footer).map_err(self.files.failed(&self.name))?;
        self.upload.finish().map_err(self.files.failed(&self.name))?;
        Ok(Some(SegmentFile {
            name: self.name,
            bytes: self.written + footer.len() as u64,
            footer: self.written,
            checksum,
            records: self.blocks.iter().map(|block| u64::from(block.records)).sum(),
            ended: self.blocks.iter().map(|block| u64::from(block.ended)).sum(),
        }))
    }
}

/// Writes changes as a segment, the last one of each id. Without a record, returns `None` and leaves no file.
pub(in crate::state) fn write_delta(
    files: &StateFiles,
    name: String,
    changes: &[Changes],
) -> Result<Option<SegmentFile>, StateError> {
    let mut shards: Vec<Vec<(u64, ChangeRecord<'_>)>> = vec![Vec::new(); usize::from(SHARDS)];
    for record in changes.iter().flat_map(Changes::records) {
        let hash = id_hash(record.id);
        shards[usize::from(shard_of(hash))].push((hash, record));
    }
    if shards.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let mut writer = SegmentWriter::new(files, name)?;
    let mut seen = IdSet::default();
    for (shard, records) in (0..SHARDS).zip(&shards) {
        seen.clear();
        for (hash, record) in records.iter().rev() {
            if seen.insert(*hash, record.id) {
                writer.record(shard, *record)?;
            }
        }
    }
    writer.finish()
}
