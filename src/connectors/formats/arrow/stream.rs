//! Reads the record batches of an Arrow stream, one after another.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::root_as_message;
use arrow_schema::SchemaRef;

use super::super::bad_record::BadRecord;
use super::message::{BatchError, MAX_HEAD_BYTES, examine, failed, unreadable};

/// The batches of a stream.
pub(super) struct StreamBatches {
    bytes: Box<dyn BufRead + Send>,
    decoder: StreamDecoder,
    /// The decoder has it only once bytes follow.
    schema: Option<SchemaRef>,
    /// Batches that were decoded and not taken yet: the decoder returns one without a body late.
    decoded: VecDeque<RecordBatch>,
    /// Whether lengths have marks before them, as since the version 0.15 of the format.
    has_marks: bool,
    /// Whether the end was reached, and by its mark.
    is_over: bool,
    is_ended: bool,
}

impl StreamBatches {
    pub(super) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        let (decoder, decoded) = (StreamDecoder::new(), VecDeque::new());
        Self { bytes, decoder, schema: None, decoded, has_marks: false, is_over: false, is_ended: false }
    }

    /// Whether it has ended without a mark, as a stream does that was cut between two batches.
    pub(super) fn may_be_cut(&self) -> bool {
        self.is_over && !self.is_ended
    }

    /// The schema, which is read first.
    pub(super) fn schema(&mut self) -> Result<SchemaRef, BatchError> {
        loop {
            if let Some(schema) = &self.schema {
                return Ok(Arc::clone(schema));
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

    /// Reads a message, or the end. A message is taken as a whole, so that it can be examined first.
    fn message(&mut self) -> Result<(), BatchError> {
        let length = self.head_length()?;
        if length == 0 {
            // What the decoder still holds has no body.
            self.decode(vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?;
            self.is_over = true;
            // A compressed input is checked where it ends.
            let is_last = self.bytes.fill_buf().map_err(|error| failed(&error))?.is_empty();
            let more = || unreadable("bytes follow the end of the stream, which are not read".to_owned());
            return is_last.then_some(()).ok_or_else(more);
        }
        if length > MAX_HEAD_BYTES {
            return Err(unreadable(format!("a message has a head of {length} bytes")));
        }
        let head = self.take(u64::from(length))?;
        let message = root_as_message(&head).map_err(|error| unreadable(error.to_string()))?;
        if let Some(schema) = message.header_as_schema() {
            let schema = try_fb_to_schema(schema).map_err(|error| unreadable(error.to_string()))?;
            self.schema = Some(Arc::new(schema));
        }
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
            self.decoded.extend(batch);
        }
        Ok(())
    }

    /// The length of the head of the next message; 0 at the end.
    fn head_length(&mut self) -> Result<u32, BatchError> {
        if self.bytes.fill_buf().map_err(|error| failed(&error))?.is_empty() {
            return Ok(0);
        }
        let mut length = self.four()?;
        if length == [0xff; 4] {
            self.has_marks = true;
            length = self.four()?;
        } else if self.has_marks {
            return Err(unreadable("no message begins where one is expected".to_owned()));
        }
        self.is_ended = length == [0; 4];
        Ok(u32::from_le_bytes(length))
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
}
