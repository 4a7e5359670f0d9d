//! Reads a whole text or web page as one record.

use std::io::{BufRead, Read};

use super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::rows::{Damage, FileRow, NextRow, RowReader, RowText};

/// The reader of one document.
pub(super) struct WholeDocument {
    pub(super) bytes: Option<Box<dyn BufRead + Send>>,
    pub(super) id: String,
    pub(super) is_html: bool,
}

impl RowReader for WholeDocument {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        let Some(bytes) = self.bytes.take() else { return Ok(NextRow::End) };
        let mut text = Vec::new();
        // One byte more than the limit, to detect a longer document.
        let read = bytes.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut text);
        let damage =
            |reason, cause| Damage { reason, cause, place: RecordPlace::Whole, head: Vec::new(), ends: true };
        read.map_err(|error| damage(BadRecord::Truncated, Some(error.to_string())))?;
        if text.len() > MAX_RECORD_BYTES {
            return Err(damage(BadRecord::TooLong, None));
        }
        if self.is_html {
            text = dupflow_core::html::with_doctype(&text, None).into_owned().into_bytes();
        }
        *row =
            FileRow { id: Some(self.id.clone().into_bytes()), text: RowText::Is(text), ..FileRow::default() };
        Ok(NextRow::Row)
    }
}
