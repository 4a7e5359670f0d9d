//! What a message states, checked against its bytes before it is decoded.

use std::io;

use arrow_ipc::MessageHeader;

use super::super::bad_record::BadRecord;

/// Bytes of a batch after decompression, inclusive: 4 GiB.
const MAX_BATCH_BYTES: u64 = 4 << 30;

/// Bytes of what describes a message, inclusive: 256 MiB.
pub(super) const MAX_HEAD_BYTES: u32 = 256 << 20;

/// Why no further batch is read.
pub(super) type BatchError = (BadRecord, String);

/// Checks the buffers of a batch: they lie in its body, and what the compressed ones state to be fits in
/// [`MAX_BATCH_BYTES`].
pub(super) fn examine(message: &arrow_ipc::Message<'_>, body: &[u8]) -> Result<(), BatchError> {
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|batch| batch.data()),
        _ => None,
    };
    let Some(batch) = batch else { return Ok(()) };
    let mut stated = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(from, length)| body.get(from..from.checked_add(length)?));
        let bytes = bytes.ok_or_else(|| unreadable("a buffer lies outside of its message".to_owned()))?;
        // A compressed buffer begins with its length after decompression; -1: it is not compressed.
        if batch.compression().is_some()
            && let Some(length) = bytes.first_chunk::<8>()
        {
            stated = stated.saturating_add(u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0));
        }
    }
    if stated > MAX_BATCH_BYTES {
        let what = format!("a batch is {stated} bytes after decompression, more than {MAX_BATCH_BYTES}");
        return Err(unreadable(what));
    }
    Ok(())
}

pub(super) fn unreadable(what: String) -> BatchError {
    (BadRecord::Unreadable, what)
}

/// A compressed input that is damaged.
pub(super) fn failed(error: &io::Error) -> BatchError {
    (BadRecord::Truncated, error.to_string())
}
