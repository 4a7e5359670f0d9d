//! Reads the footer of a file, whose sizes are checked against its bytes before the crate allocates memory
//! for them.
//!
//! The `parquet` crate allocates for the stated number of children of a group and of row groups. It reads
//! nested schemas by recursion, and copies the names above each leaf into the leaf.

use std::collections::BTreeSet;

use parquet::errors::Result;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use super::bytes::Chunks;
use super::thrift::{Compact, FieldType, wrong};

/// Maximum size of a footer in bytes; the crate's structures take up to about twenty times as much.
const MAX_BYTES: usize = 32 << 20;

/// Maximum depth of nested groups.
const MAX_DEPTH: usize = 64;

/// Maximum total length of the paths of all leaves, in bytes.
const MAX_PATHS: u64 = 32 << 20;

/// Minimum size of a row group's metadata, in bytes.
const LEAST_GROUP: u64 = 7;

/// Bytes that are read at once from the end of a file; most footers fit.
const TAIL: u64 = 16 << 10;

/// A file begins and ends with it.
const MAGIC: [u8; 4] = *b"PAR1";

/// Reads the metadata of a file, and which leaves are encrypted in one of its row groups.
pub(super) fn read(file: &Chunks) -> Result<(ParquetMetaData, BTreeSet<usize>)> {
    let bytes = file.0.bytes();
    let tail = file.bytes(bytes.saturating_sub(TAIL), usize::try_from(bytes.min(TAIL))?)?;
    let Some((rest, end)) = tail.split_last_chunk::<8>() else {
        return Err(wrong(format!("a file of {bytes} bytes is no Parquet")));
    };
    let end = FooterTail::try_new(end)?;
    if end.is_encrypted_footer() {
        return Err(wrong("its footer is encrypted, which is not read"));
    }
    let length = end.metadata_length();
    let start = bytes
        .checked_sub(8 + length as u64)
        .ok_or_else(|| wrong(format!("it says that {length} bytes describe it, and has {bytes}")))?;
    if length > MAX_BYTES {
        return Err(wrong(format!("{length} bytes describe it, which is more than {MAX_BYTES}")));
    }
    let decode = |footer: &[u8]| -> Result<_> {
        let encrypted = check(footer)?;
        Ok((ParquetMetaDataReader::decode_metadata(footer)?, encrypted))
    };
    let (about, encrypted) = match rest.len().checked_sub(length) {
        Some(from) => decode(&rest[from..])?,
        None => decode(&file.bytes(start, length)?)?,
    };
    if follows_another(file, &about, start)? {
        return Err(wrong(
            "it is several Parquet files end to end, of which readers see only the last: give each as a file",
        ));
    }
    Ok((about, encrypted))
}

/// Whether the file whose footer begins at `start` begins behind the end of another one.
fn follows_another(file: &Chunks, about: &ParquetMetaData, start: u64) -> Result<bool> {
    let range = |offset: Option<i64>, length: Option<i32>| {
        Some(u64::try_from(offset?).ok()?.saturating_add(u64::try_from(length?).ok()?))
    };
    let columns = about.row_groups().iter().flat_map(|group| group.columns());
    let ends = columns.flat_map(|column| {
        let pages = u64::try_from(column.compressed_size()).unwrap_or(0);
        let first = column.dictionary_page_offset().unwrap_or(i64::MAX).min(column.data_page_offset());
        [
            u64::try_from(first).ok().map(|first| first.saturating_add(pages)),
            range(column.bloom_filter_offset(), column.bloom_filter_length()),
            range(column.column_index_offset(), column.column_index_length()),
            range(column.offset_index_offset(), column.offset_index_length()),
        ]
    });
    let taken = ends.flatten().fold(MAGIC.len() as u64, u64::max);
    match start.checked_sub(taken + MAGIC.len() as u64) {
        Some(before) if before > 0 => Ok(*file.bytes(before, 2 * MAGIC.len())? == *[MAGIC; 2].as_flattened()),
        _ => Ok(false),
    }
}

/// Checks stated counts and depths against the bytes of the footer. Returns the encrypted leaves.
fn check(footer: &[u8]) -> Result<BTreeSet<usize>> {
    let mut encrypted = BTreeSet::new();
    let mut fields = Compact::new(footer, footer.len() as u64);
    let mut last = 0;
    while let Some((field, kind)) = fields.field(last)? {
        last = field;
        match (field, kind) {
            (2, FieldType::List) => schema(&mut fields)?,
            (4, FieldType::List) => {
                let (group, groups) = fields.list(LEAST_GROUP)?;
                for _ in 0..groups {
                    match group {
                        FieldType::Struct => columns(&mut fields, &mut encrypted)?,
                        _ => fields.skip(group)?,
                    }
                }
            }
            _ => fields.skip(kind)?,
        }
    }
    Ok(encrypted)
}

/// Reads a row group; adds the indices of its columns that are encrypted: their keys are in field 8, and
/// their metadata may be encrypted in field 9.
fn columns(fields: &mut Compact<&[u8]>, encrypted: &mut BTreeSet<usize>) -> Result<()> {
    let mut last = 0;
    while let Some((field, kind)) = fields.field(last)? {
        last = field;
        if (field, kind) != (1, FieldType::List) {
            fields.skip(kind)?;
            continue;
        }
        let (column, columns) = fields.list(1)?;
        for place in 0..columns {
            if column != FieldType::Struct {
                fields.skip(column)?;
                continue;
            }
            let mut before = 0;
            while let Some((inner, inner_kind)) = fields.field(before)? {
                before = inner;
                if matches!(inner, 8 | 9) {
                    encrypted.insert(usize::try_from(place)?);
                }
                fields.skip(inner_kind)?;
            }
        }
    }
    Ok(())
}

/// A group of the schema with children that have not been read.
struct OpenGroup {
    children: u64,
    /// Length of its path in bytes.
    path: u64,
}

fn schema(fields: &mut Compact<&[u8]>) -> Result<()> {
    // An element has at least a name and an end: two bytes.
    let (element, elements) = fields.list(2)?;
    if element != FieldType::Struct {
        return Err(wrong("its schema is no list of elements"));
    }
    let mut above: Vec<OpenGroup> = Vec::new();
    let mut paths = 0_u64;
    for place in 0..elements {
        let (mut name, mut children, mut last) = (0, 0, 0);
        while let Some((field, kind)) = fields.field(last)? {
            last = field;
            match (field, kind) {
                (4, FieldType::Binary) => name = fields.skip_binary()?,
                (5, FieldType::Int) => children = fields.int()?,
                _ => fields.skip(kind)?,
            }
        }
        let after = elements - place - 1;
        let children =
            u64::try_from(children).ok().filter(|children| *children <= after).ok_or_else(|| {
                wrong(format!("its schema says {children} columns in a group, and {after} elements follow"))
            })?;
        while above.pop_if(|open| open.children == 0).is_some() {}
        let path = above.last_mut().map_or(0, |open| {
            open.children -= 1;
            open.path + name
        });
        if children > 0 {
            above.push(OpenGroup { children, path });
            if above.len() > MAX_DEPTH {
                return Err(wrong(format!("its schema has more than {MAX_DEPTH} groups within one another")));
            }
        } else {
            paths = paths.saturating_add(path);
        }
        if paths > MAX_PATHS {
            return Err(wrong(format!("the paths of its columns take more than {MAX_PATHS} bytes")));
        }
    }
    Ok(())
}
