//! What stands at the end of a file, held against its own bytes before the crate allocates what it says.
//!
//! The crate makes room for as many children of a group, and as many row groups, as are said; it goes down a
//! schema by calling itself; and each leaf gets a copy of the names above it.

use parquet::errors::Result;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use super::Chunks;
use super::thrift::{Compact, Kind, wrong};

/// Bytes of a footer, at most: what the crate makes of it takes up to some twenty times as much.
const MAX_BYTES: usize = 32 << 20;

/// Groups that stand in one another, at most.
const MAX_DEPTH: usize = 64;

/// Bytes of all paths of all leaves, at most.
const MAX_PATHS: u64 = 32 << 20;

/// Bytes that a row group takes at least.
const LEAST_GROUP: u64 = 7;

/// Bytes that are read at once at the end of a file; most footers are within.
const TAIL: u64 = 16 << 10;

/// Reads what a file says of itself.
pub(super) fn read(file: &Chunks) -> Result<ParquetMetaData> {
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
    let decode = |footer: &[u8]| {
        check(footer)?;
        ParquetMetaDataReader::decode_metadata(footer)
    };
    match rest.len().checked_sub(length) {
        Some(from) => decode(&rest[from..]),
        None => decode(&file.bytes(start, length)?),
    }
}

/// Holds counts and depths against the bytes that are there.
fn check(footer: &[u8]) -> Result<()> {
    let mut fields = Compact::new(footer, footer.len() as u64);
    let mut last = 0;
    while let Some((field, kind)) = fields.field(last)? {
        last = field;
        match (field, kind) {
            (2, Kind::List) => schema(&mut fields)?,
            (4, Kind::List) => {
                let (group, groups) = fields.list(LEAST_GROUP)?;
                for _ in 0..groups {
                    fields.skip(group)?;
                }
            }
            _ => fields.skip(kind)?,
        }
    }
    Ok(())
}

/// A group of the schema whose children are not all read.
struct Open {
    children: u64,
    /// Bytes of its path.
    path: u64,
}

fn schema(fields: &mut Compact<&[u8]>) -> Result<()> {
    // A name at least, and the end.
    let (element, elements) = fields.list(2)?;
    if element != Kind::Struct {
        return Err(wrong("its schema is no list of elements"));
    }
    let mut above: Vec<Open> = Vec::new();
    let mut paths = 0_u64;
    for place in 0..elements {
        let (mut name, mut children, mut last) = (0, 0, 0);
        while let Some((field, kind)) = fields.field(last)? {
            last = field;
            match (field, kind) {
                (4, Kind::Binary) => name = fields.skip_binary()?,
                (5, Kind::Int) => children = fields.int()?,
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
            above.push(Open { children, path });
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
