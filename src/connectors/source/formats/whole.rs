//! A whole text, or web page, as one record.

use std::io::{BufRead, Read};

use super::{Damage, Next, Row, Rows, Text};
use crate::feed::BadRecord;
use crate::source::{MAX_RECORD_BYTES, Place};

/// Reads one.
pub(super) struct Whole {
    pub(super) bytes: Option<Box<dyn BufRead + Send>>,
    pub(super) id: String,
    pub(super) is_html: bool,
}

impl Rows for Whole {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        let Some(bytes) = self.bytes.take() else { return Ok(Next::End) };
        let mut text = Vec::new();
        // One byte more, to notice that it is longer.
        let read = bytes.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut text);
        let damage =
            |reason, cause| Damage { reason, cause, place: Place::Whole, head: Vec::new(), ends: true };
        read.map_err(|error| damage(BadRecord::Truncated, Some(error.to_string())))?;
        if text.len() > MAX_RECORD_BYTES {
            return Err(damage(BadRecord::TooLong, None));
        }
        if self.is_html {
            text = dupflow_core::html::marked(&text, None).into_owned().into_bytes();
        }
        *row = Row { id: Some(self.id.clone().into_bytes()), text: Text::Is(text), ..Row::default() };
        Ok(Next::Row)
    }
}
