//! A segment: an immutable file of changes, each id at most once, partitioned by shard.
//!
//! ```text
//! magic, 16 bytes | version u32 | blocks | footer | xxh3 u64 of magic, version and footer
//! block   records as in `codec`, at most about a MiB, all of one shard
//! footer  of each block: shard u8 | offset u64 | bytes u64 | records u32 | ended u32 | xxh3 u64 of the block
//! ```
//!
//! All numbers are little-endian. Blocks are in ascending order of shards, with no gap between head, blocks
//! and footer. The manifest holds the position of the footer, the length of the file and the last checksum,
//! so that no other file can take its place.

mod read;
mod write;

use serde::{Deserialize, Serialize};

pub(super) use read::SegmentReader;
pub(super) use write::{SegmentWriter, write_delta};

use super::frame::Magic;

const MAGIC: Magic = *b"dupflow segment\n";

/// A segment as listed in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentFile {
    pub(super) name: String,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// Offset of the footer.
    pub(super) footer: u64,
    /// Checksum at the end of the file.
    pub(super) checksum: u64,
    /// Records, including deleted documents.
    pub(super) records: u64,
    /// Records of deleted documents.
    pub(super) ended: u64,
}

/// An entry of the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockEntry {
    shard: u8,
    /// Offset in the file.
    offset: u64,
    bytes: u64,
    records: u32,
    ended: u32,
    checksum: u64,
}

impl BlockEntry {
    const BYTES: usize = 33;

    fn encode(&self, to: &mut Vec<u8>) {
        to.push(self.shard);
        to.extend_from_slice(&self.offset.to_le_bytes());
        to.extend_from_slice(&self.bytes.to_le_bytes());
        to.extend_from_slice(&self.records.to_le_bytes());
        to.extend_from_slice(&self.ended.to_le_bytes());
        to.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn decode(from: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(*from[at..].first_chunk().expect("33 bytes hold it"));
        let half = |at: usize| u32::from_le_bytes(*from[at..].first_chunk().expect("33 bytes hold it"));
        Self {
            shard: from[0],
            offset: word(1),
            bytes: word(9),
            records: half(17),
            ended: half(21),
            checksum: word(25),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::error::StateError;
    use crate::state::files::StateFiles;
    use crate::state::ids::{SHARDS, id_hash, shard_of};
    use crate::state::store::MemoryStore;
    use dupflow_core::doc::changes::Changes;

    fn files() -> StateFiles {
        StateFiles::new(Box::new(MemoryStore::default()))
    }

    /// Ids and lengths of values, shard by shard.
    fn read(segment: &SegmentReader) -> Vec<(Vec<u8>, Option<usize>)> {
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            let each = |record: dupflow_core::doc::changes::ChangeRecord<'_>| {
                assert_eq!(shard_of(id_hash(record.id)), shard);
                found.push((record.id.to_vec(), record.value.map(<[u8]>::len)));
                Ok::<_, StateError>(())
            };
            segment.each(shard, each).unwrap();
        }
        found
    }

    #[test]
    fn the_last_change_of_an_id_is_kept() {
        let mut changes = [Changes::default(), Changes::default()];
        changes[0].put(b"a", b"first");
        changes[0].put(b"b", b"first");
        changes[0].end(b"c");
        changes[1].put(b"c", b"");
        changes[1].end(b"b");
        changes[1].put(b"a", b"last one");
        let files = files();
        let file = write_delta(&files, "delta".to_owned(), &changes).unwrap().unwrap();
        assert_eq!((file.records, file.ended), (3, 1));
        assert_eq!(file.bytes, files.get("delta").unwrap().len() as u64);
        let mut found = read(&SegmentReader::open(&files, &file).unwrap());
        found.sort_unstable();
        assert_eq!(found, [(b"a".to_vec(), Some(8)), (b"b".to_vec(), None), (b"c".to_vec(), Some(0))]);
    }

    #[test]
    fn without_a_record_there_is_no_file() {
        let files = files();
        assert_eq!(write_delta(&files, "delta".to_owned(), &[Changes::default()]).unwrap(), None);
        assert_eq!(SegmentWriter::new(&files, "base".to_owned()).unwrap().finish().unwrap(), None);
        assert!(files.list().unwrap().is_empty());
    }

    /// A file that is read by blocks, with a shard of several blocks and a record larger than a block.
    #[test]
    fn a_large_file_is_read_by_blocks() {
        let mut changes = Changes::default();
        let value = vec![7; 50_000];
        let mut expected = Vec::new();
        for number in 0..200_u32 {
            let large = value.repeat(if number == 100 { 60 } else { 1 });
            changes.put(&number.to_le_bytes(), &large);
            expected.push((number.to_le_bytes().to_vec(), Some(large.len())));
        }
        // A shard of many blocks.
        for number in (0..3_000_000_u32).filter(|n| shard_of(id_hash(&n.to_be_bytes())) == 5).take(60) {
            changes.put(&number.to_be_bytes(), &value);
            expected.push((number.to_be_bytes().to_vec(), Some(value.len())));
        }
        let files = files();
        let file = write_delta(&files, "delta".to_owned(), &[changes]).unwrap().unwrap();
        assert!(file.bytes > 15_000_000, "{file:?}");
        let mut found = read(&SegmentReader::open(&files, &file).unwrap());
        found.sort_unstable();
        expected.sort_unstable();
        expected.dedup();
        assert!(found == expected);
    }

    /// Older versions of the program wrote these bytes: the format must never change.
    #[test]
    fn golden_bytes() {
        let mut changes = Changes::default();
        changes.put(b"a", b"x");
        changes.end(b"");
        let files = files();
        let file = write_delta(&files, "delta".to_owned(), &[changes]).unwrap().unwrap();
        let bytes = files.get("delta").unwrap();
        let expected = "dupflow \
        segment\\n\\x01\\x00\\x00\\x00\\x00\\x00\\xff\\xff\\xff\\xff\\x01\\x00\\x01\\x00\\x00\\x00ax";
        assert_eq!(bytes[..34].escape_ascii().to_string(), expected);
        assert_eq!((file.footer, file.bytes, bytes.len()), (34, 34 + 2 * 33 + 8, 108));
        assert_eq!(dupflow_core::hash::bytes(0, &bytes), 14_904_273_528_847_861_381);
    }
}
