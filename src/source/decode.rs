//! The workers' half of reading: batches in, events out.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use super::batch::{Batch, FileDocument, Payload};
use super::{BadRecordAt, BadRecords, MAX_RECORD_BYTES, SourceError};
use crate::doc::{DocEvent, Position, without_separators};
use crate::feed::{BadRecord, Parser};

/// Turns batches into events; keeps its buffers between them.
#[derive(Debug)]
pub struct Decoder {
    parser: Parser,
    file: Vec<u8>,
}

impl Decoder {
    /// A decoder with empty buffers that reads further fields of these names with the text of a line; a file has none.
    pub fn new(fields: &[String]) -> Self {
        Self { parser: Parser::with_fields(fields), file: Vec::new() }
    }

    /// Hands every event of the batch to `each`, in order of position, and every other record to `bad`.
    ///
    /// # Errors
    /// What [`BadRecords`] makes of a bad record; the events before it have been handed on.
    pub fn decode(
        &mut self,
        batch: &Batch,
        bad: &BadRecords,
        mut each: impl FnMut(Position, DocEvent<'_>),
    ) -> Result<(), SourceError> {
        match &batch.payload {
            Payload::Lines(lines) => {
                for line in batch.lines(lines) {
                    match self.parser.parse(line.bytes) {
                        Ok(record) => each(line.position, record.event),
                        Err(reason) => {
                            let input = Arc::clone(&batch.input);
                            let at = BadRecordAt { reason, input, line: Some(line.number), cause: None };
                            let raw = line.bytes.strip_suffix(b"\n").unwrap_or(line.bytes);
                            bad.report(at, raw, &mut io::empty())?;
                        }
                    }
                }
            }
            Payload::Files(files) => {
                let has_fields = self.parser.has_fields();
                for (position, file) in (batch.first.0..).map(Position).zip(files) {
                    match self.read(file) {
                        Ok(text) => {
                            let text = if has_fields { without_separators(text) } else { text.into() };
                            each(position, DocEvent { id: file.id.clone(), text: Some(text) });
                        }
                        Err((reason, cause)) => {
                            let input = file.path.to_string_lossy().into();
                            bad.report_file(BadRecordAt { reason, input, line: None, cause })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, file: &FileDocument) -> Result<&str, (BadRecord, Option<String>)> {
        self.file.clear();
        // One byte more, to notice that it is longer.
        let limit = MAX_RECORD_BYTES as u64 + 1;
        File::open(&file.path)
            .and_then(|open| open.take(limit).read_to_end(&mut self.file))
            .map_err(|error| (BadRecord::Unreadable, Some(error.to_string())))?;
        if self.file.len() > MAX_RECORD_BYTES {
            return Err((BadRecord::TooLong, None));
        }
        std::str::from_utf8(&self.file).map_err(|_| (BadRecord::NotUtf8, None))
    }
}
