//! Ids of documents: hashes, shards, and a set of ids that is reused for each shard.

use hashbrown::HashTable;

use dupflow_core::hash;

/// Number of shards: a fixed partition of the ids, the same in every segment.
pub(super) const SHARDS: u8 = 64;

/// Hash of an id. Its highest bits select the shard.
pub(super) fn id_hash(id: &[u8]) -> u64 {
    hash::bytes(0, id)
}

/// Shard of an id: the six highest bits of its hash.
pub(super) fn shard_of(id_hash: u64) -> u8 {
    (id_hash >> 58) as u8
}

/// A set of ids: the ids in one buffer, and a hash table of their positions.
#[derive(Debug, Default)]
pub(super) struct IdSet {
    ids: Vec<u8>,
    /// Start and length of an id in `ids`.
    places: HashTable<(usize, u16)>,
}

impl IdSet {
    /// Adds an id with its hash. Returns whether it is new.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes, which a record cannot hold.
    pub(super) fn insert(&mut self, hash: u64, id: &[u8]) -> bool {
        let Self { ids, places } = self;
        if places.find(spread(hash), |place| id_at(ids, *place) == id).is_some() {
            return false;
        }
        let length = u16::try_from(id.len()).expect("a record holds ids of up to 65,535 bytes");
        let place = (ids.len(), length);
        ids.extend_from_slice(id);
        places.insert_unique(spread(hash), place, |place| spread(id_hash(id_at(ids, *place))));
        true
    }

    pub(super) fn contains(&self, hash: u64, id: &[u8]) -> bool {
        self.places.find(spread(hash), |place| id_at(&self.ids, *place) == id).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.places.clear();
    }
}

fn id_at(ids: &[u8], (start, length): (usize, u16)) -> &[u8] {
    &ids[start..start + usize::from(length)]
}

/// Rotates a hash. Ids of a shard have the same highest bits, which the table uses to compare slots.
fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments are partitioned by these values: they must never change.
    #[test]
    fn golden_shards() {
        let shards = [&b""[..], b"a", b"b", b"https://example.com/1"].map(|id| shard_of(id_hash(id)));
        assert_eq!(shards, [11, 57, 21, 21]);
    }

    #[test]
    fn an_id_is_new_once() {
        let mut seen = IdSet::default();
        let ids: Vec<Vec<u8>> = (0..10_000_u32).map(|i| i.to_le_bytes()[..2].to_vec()).collect();
        let new = |set: &mut IdSet| ids.iter().filter(|id| set.insert(id_hash(id), id)).count();
        assert!(seen.is_empty());
        assert_eq!((new(&mut seen), new(&mut seen)), (10_000, 0));
        assert!(seen.contains(id_hash(&ids[7]), &ids[7]) && !seen.contains(id_hash(b"seven"), b"seven"));
        // Equal hashes do not make ids equal.
        assert!(!seen.contains(id_hash(&ids[7]), &ids[8]) && seen.insert(id_hash(&ids[7]), b"other"));
        seen.clear();
        assert!(seen.is_empty());
        assert_eq!(new(&mut seen), 10_000);
    }
}
