//! Reads the record batches of an Arrow file or stream, one after another.
//!
//! A file is a stream between eight bytes and a footer, so both are read in order, from standard input too. A
//! message is taken from the input as a whole, and examined before it is decoded: the lengths that it states
//! must fit in its bytes, and what its compressed buffers say they are must fit in [`MAX_BATCH_BYTES`].

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{MessageHeader, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::super::bad_record::BadRecord;
use super::magic::FILE;

/// Bytes of a batch after decompression, inclusive: 4 GiB.
const MAX_BATCH_BYTES: u64 = 4 << 30;

/// Words of zeros behind the first bytes of a file, inclusive: up to the next 64 bytes, to which some writers
/// align.
const MAX_ZEROS: usize = 14;

/// Bytes of what describes a message, inclusive: 256 MiB.
const MAX_HEAD_BYTES: u32 = 256 << 20;

/// Why no further batch is read.
pub(super) type BatchError = (BadRecord, String);

/// The batches of an input.
pub(super) struct Batches {
    bytes: Box<dyn BufRead + Send>,
    decoder: StreamDecoder,
    /// Batches that were decoded and not taken yet: the decoder returns one without a body late.
    decoded: VecDeque<RecordBatch>,
    /// Number of batches that were decoded.
    count: usize,
    /// Whether a footer follows; `None`: nothing has been read yet.
    is_file: Option<bool>,
    /// Words of zeros that may still follow the first bytes of a file.
    zeros: usize,
    /// Whether lengths have marks before them, as since the version 0.15 of the format.
    has_marks: bool,
    /// Whether the end was reached, and by its mark.
    is_over: bool,
    is_ended: bool,
}

impl Batches {
    pub(super) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        Self {
            bytes,
            decoder: StreamDecoder::new(),
            decoded: VecDeque::new(),
            count: 0,
            is_file: None,
            zeros: 0,
            has_marks: false,
            is_over: false,
            is_ended: false,
        }
    }

    /// Whether a stream has ended without a mark, as one does that was cut between two batches.
    pub(super) fn may_be_cut(&self) -> bool {
        self.is_file == Some(false) && self.is_over && !self.is_ended
    }

    /// The schema, which is read first.
    pub(super) fn schema(&mut self) -> Result<SchemaRef, BatchError> {
        loop {
            if let Some(schema) = self.decoder.schema() {
                return Ok(schema);
            }
            if self.is_over {
                return Err((BadRecord::Truncated, "it ends before its schema".to_owned()));
            }
            self.message()?;
        }
    }

    /// The next batch; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, BatchError> {
        loop {
            if let Some(batch) = self.decoded.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            self.message()?;
        }
    }

    /// Reads a message, or the end.
    fn message(&mut self) -> Result<(), BatchError> {
        if self.is_file.is_none() {
            let begin = self.bytes.fill_buf().map_err(|error| failed(&error))?;
            let is_file = begin.starts_with(&FILE[..1]);
            self.is_file = Some(is_file);
            if is_file {
                self.take(FILE.len() as u64)?;
                self.zeros = MAX_ZEROS;
            }
        }
        let length = self.head_length()?.unwrap_or_default();
        if length == 0 {
            // What the decoder still holds has no body.
            self.decode(vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?;
            self.is_over = true;
            return if self.is_file == Some(true) { self.footer() } else { Ok(()) };
        }
        if length > MAX_HEAD_BYTES {
            return Err(unreadable(format!("a message has a head of {length} bytes")));
        }
        let head = self.take(u64::from(length))?;
        let message = root_as_message(&head).map_err(|error| unreadable(error.to_string()))?;
        let of_body = u64::try_from(message.bodyLength());
        let of_body = of_body.map_err(|_| unreadable("a body of a negative length".to_owned()))?;
        let body = self.take(of_body)?;
        examine(&message, &body)?;
        self.decode([&[0xff; 4], &length.to_le_bytes(), &head[..]].concat())?;
        self.decode(body)
    }

    fn decode(&mut self, bytes: Vec<u8>) -> Result<(), BatchError> {
        let mut bytes = Buffer::from_vec(bytes);
        while !bytes.is_empty() {
            let batch = self.decoder.decode(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
            self.count += usize::from(batch.is_some());
            self.decoded.extend(batch);
        }
        Ok(())
    }

    /// The length of the head of the next message; 0 at the mark of the end, `None` at the end of the bytes.
    fn head_length(&mut self) -> Result<Option<u32>, BatchError> {
        if self.bytes.fill_buf().map_err(|error| failed(&error))?.is_empty() {
            return match self.is_file {
                Some(true) => Err((BadRecord::Truncated, "it ends before its footer".to_owned())),
                _ => Ok(None),
            };
        }
        let mut length = self.four()?;
        while length == [0; 4] && self.zeros > 0 {
            self.zeros -= 1;
            length = self.four()?;
        }
        self.zeros = 0;
        if length == [0xff; 4] {
            self.has_marks = true;
            length = self.four()?;
        } else if self.has_marks {
            return Err(unreadable("no message begins where one is expected".to_owned()));
        }
        self.is_ended = length == [0; 4];
        Ok(Some(u32::from_le_bytes(length)))
    }

    fn four(&mut self) -> Result<[u8; 4], BatchError> {
        let bytes = self.take(4)?;
        Ok(bytes.try_into().unwrap_or_default())
    }

    /// The next bytes. Memory grows with what is there, not with what is stated.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, BatchError> {
        let mut bytes = Vec::new();
        let read = (&mut self.bytes).take(length).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if (read as u64) < length {
            return Err((BadRecord::Truncated, "it ends within a message".to_owned()));
        }
        Ok(bytes)
    }

    /// Reads what follows the stream in a file: a footer, which says how many batches there are, its length,
    /// and the bytes that the file begins with.
    fn footer(&mut self) -> Result<(), BatchError> {
        let cut = || (BadRecord::Truncated, "it ends within its footer".to_owned());
        let mut rest = Vec::new();
        (&mut self.bytes)
            .take(MAX_HEAD_BYTES.into())
            .read_to_end(&mut rest)
            .map_err(|error| failed(&error))?;
        let rest = rest.strip_suffix(&FILE[..6]).ok_or_else(cut)?;
        let (rest, length) = rest.split_last_chunk().ok_or_else(cut)?;
        let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| cut())?;
        let footer = rest.len().checked_sub(length).map(|from| &rest[from..]).ok_or_else(cut)?;
        let footer = root_as_footer(footer).map_err(|error| unreadable(error.to_string()))?;
        let stated = footer.recordBatches().map_or(0, |batches| batches.len());
        let count = self.count;
        let what = || unreadable(format!("{count} batches of rows were found, and its footer says {stated}"));
        (stated == count).then_some(()).ok_or_else(what)
    }
}

/// Checks what a message states against its bytes.
fn examine(message: &arrow_ipc::Message<'_>, body: &[u8]) -> Result<(), BatchError> {
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

fn unreadable(what: String) -> BatchError {
    (BadRecord::Unreadable, what)
}

/// A compressed input that is damaged.
fn failed(error: &io::Error) -> BatchError {
    (BadRecord::Truncated, error.to_string())
}
