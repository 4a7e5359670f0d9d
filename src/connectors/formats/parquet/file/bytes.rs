//! Byte ranges of a file, and how many of its rows are read at once.

use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};

use super::super::super::storage::RandomAccess;

/// Rows that are read at once.
pub(super) const STEP: usize = 256;

/// Access to the byte ranges of a file.
#[derive(Debug)]
pub(super) struct Chunks(pub(super) Arc<dyn RandomAccess>);

impl Chunks {
    pub(super) fn bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Checked before memory is allocated, since lengths are read from the file.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.bytes()) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from {start} on, in a file of {}",
                self.0.bytes()
            )));
        }
        let mut bytes = vec![0; length];
        self.0.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}
