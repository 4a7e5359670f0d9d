//! The rows of a file as JSON objects, for the few that are no documents: a table's checkpoints.

use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, FileReader as _, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::Type;
use serde_json::Value;

use super::super::super::storage::RandomAccess;
use super::bytes::Chunks;
use super::footer;
use super::group::caught;

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.bytes()
    }
}

impl ChunkReader for Chunks {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let length = usize::try_from(self.0.bytes().saturating_sub(start))?;
        Ok(self.bytes(start, length)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.bytes(start, length)
    }
}

/// Calls `each` with the rows. `is_wanted` gets the paths of columns, and of fields in them, and says which
/// are read.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn objects(
    file: Arc<dyn RandomAccess>,
    is_wanted: impl Fn(&[&str]) -> bool,
    mut each: impl FnMut(Value),
) -> Result<(), String> {
    caught(|| {
        let chunks = Chunks(file);
        footer::read(&chunks)?;
        let reader = SerializedFileReader::new(chunks)?;
        let wanted = part(reader.metadata().file_metadata().schema(), &[], &is_wanted)?;
        if !wanted.get_fields().is_empty() {
            for row in reader.get_row_iter(Some(wanted))? {
                each(row?.to_json_value());
            }
        }
        Ok(())
    })
}

/// A group with the fields that are wanted.
fn part(of: &Type, path: &[&str], is_wanted: &impl Fn(&[&str]) -> bool) -> Result<Type> {
    let mut fields = Vec::new();
    for field in of.get_fields() {
        let path = [path, &[field.name()]].concat();
        if is_wanted(&path) {
            let is_whole = path.len() > 1 || field.is_primitive();
            fields.push(if is_whole { Arc::clone(field) } else { Arc::new(part(field, &path, is_wanted)?) });
        }
    }
    let group = Type::group_type_builder(of.name()).with_fields(fields);
    let about = of.get_basic_info();
    if about.has_repetition() { group.with_repetition(about.repetition()) } else { group }.build()
}
