//! Reads the record batches of an Arrow file, in the order of its footer.
//!
//! The footer has the schema and the places of all batches. What is between the first bytes of a file and its
//! first batch differs between writers (polars 2.1 writes a schema there that no stream has, and others leave
//! zeros up to byte 64), so a file is not read as the stream that the format says it is.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::super::bad_record::BadRecord;
use super::super::storage::RandomAccess;
use super::magic::FILE;
use super::message::{BatchError, MAX_HEAD_BYTES, examine, unreadable};

/// Bytes between the last batch and the footer, inclusive: the mark of the end, and what aligns it.
const MAX_GAP: u64 = 1024;

/// The batches of a file.
pub(super) struct FileBatches {
    file: Arc<dyn RandomAccess>,
    footer: Option<Footer>,
}

/// What the footer says, and the batches that are left.
struct Footer {
    decoder: FileDecoder,
    schema: SchemaRef,
    batches: std::vec::IntoIter<Block>,
}

impl FileBatches {
    pub(super) fn new(file: Arc<dyn RandomAccess>) -> Self {
        Self { file, footer: None }
    }

    /// The schema.
    pub(super) fn schema(&mut self) -> Result<SchemaRef, BatchError> {
        if self.footer.is_none() {
            self.footer = Some(self.footer()?);
        }
        let schema = self.footer.as_ref().map(|footer| Arc::clone(&footer.schema));
        schema.ok_or_else(|| unreadable("it has no footer".to_owned()))
    }

    /// The next batch; `None` at the end, or before the schema was asked for.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, BatchError> {
        let Some(Footer { decoder, batches, .. }) = &mut self.footer else { return Ok(None) };
        let Some(block) = batches.next() else { return Ok(None) };
        let bytes = block_bytes(&*self.file, &block)?;
        let batch = decoder.read_record_batch(&block, &bytes);
        batch.map_err(|error| unreadable(error.to_string()))
    }

    /// Reads the footer, and all dictionaries.
    fn footer(&self) -> Result<Footer, BatchError> {
        let cut = || (BadRecord::Truncated, "it ends before its footer, as a file that is cut".to_owned());
        let length = self.file.bytes();
        let end: [u8; 10] =
            read(&*self.file, length.checked_sub(10).ok_or_else(cut)?, 10)?.try_into().map_err(|_| cut())?;
        if end[4..] != FILE[..6] {
            return Err(cut());
        }
        let of_footer = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
        let from = (length - 10).checked_sub(of_footer.into()).filter(|_| of_footer <= MAX_HEAD_BYTES);
        let bytes = read(&*self.file, from.ok_or_else(cut)?, u64::from(of_footer))?;
        let footer = root_as_footer(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| unreadable("its footer has no schema".to_owned()))?;
        let schema = try_fb_to_schema(schema).map_err(|error| unreadable(error.to_string()))?;
        let schema = Arc::new(schema);
        let mut decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
        for block in footer.dictionaries().into_iter().flatten() {
            let message = block_bytes(&*self.file, block)?;
            decoder.read_dictionary(block, &message).map_err(|error| unreadable(error.to_string()))?;
        }
        let batches: Vec<_> = footer.recordBatches().into_iter().flatten().copied().collect();
        let all = footer.dictionaries().into_iter().flatten().chain(&batches);
        let end_of = |block: &Block| {
            block.offset().saturating_add(block.metaDataLength().into()).saturating_add(block.bodyLength())
        };
        let named = all.map(end_of).max().and_then(|last| u64::try_from(last).ok());
        if named.is_some_and(|named| named.saturating_add(MAX_GAP) < length - 10 - u64::from(of_footer)) {
            let what = "its footer does not name all that is before it: files that were joined are not read";
            return Err(unreadable(what.to_owned()));
        }
        Ok(Footer { decoder, schema, batches: batches.into_iter() })
    }
}

/// The bytes of a message, head and body, after they were examined.
fn block_bytes(file: &dyn RandomAccess, block: &Block) -> Result<Buffer, BatchError> {
    let outside = || unreadable("a batch lies outside of the file".to_owned());
    let number = |length: i64| u64::try_from(length).map_err(|_| outside());
    let (from, head) = (number(block.offset())?, number(block.metaDataLength().into())?);
    let length = head.checked_add(number(block.bodyLength())?).ok_or_else(outside)?;
    from.checked_add(length).filter(|end| *end <= file.bytes()).ok_or_else(outside)?;
    let bytes = read(file, from, length)?;
    let (head, body) = bytes.split_at(usize::try_from(head).map_err(|_| outside())?);
    // Before the version 0.15 of the format no mark is before the length of the head.
    let before = if head.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = root_as_message(head.get(before..).unwrap_or_default());
    examine(&message.map_err(|error| unreadable(error.to_string()))?, body)?;
    Ok(Buffer::from_vec(bytes))
}

/// Bytes that are in the file.
fn read(file: &dyn RandomAccess, from: u64, length: u64) -> Result<Vec<u8>, BatchError> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_at(from, &mut bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(bytes)
}
