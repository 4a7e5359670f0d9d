//! A map whose entries are stored in order, in chunks: it takes little more than they do.
//!
//! A B-tree's nodes of eleven entries stay half full where keys are inserted in ascending order, as those of
//! an epoch are. A chunk here has up to [`CHUNK`] entries. A full one is split in two halves; but a key that
//! is behind all of a full chunk is put into the next one, or a new one if that is full: ascending keys fill
//! chunks.
//! Two neighbours that have become small are joined.
//!
//! Costs: a search, and the entries of a chunk that are moved by an insertion or a removal. One of 64
//! insertions at random places moves the list of chunks, 24 bytes for each.

use std::cmp::Ordering;
use std::ops::Bound;

/// The most entries of a chunk, inclusive.
const CHUNK: usize = 128;

/// A chunk, and where an entry is in it or would be.
type Place = (usize, Result<usize, usize>);

/// A map of ordered keys.
#[derive(Clone, Debug)]
pub struct OrderedRows<K, V> {
    /// None is empty.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for OrderedRows<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

/// By the order of keys.
impl<K: Ord, V> OrderedRows<K, V> {
    /// Inserts an entry. Returns the value that it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.place(|other| other.cmp(&key));
        self.put(place, key, value)
    }

    /// Removes an entry, and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_by(|other| other.cmp(key))
    }

    /// The entry of a key.
    pub fn entry(&self, key: &K) -> Option<(&K, &V)> {
        self.entry_by(|other| other.cmp(key))
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut_by(|other| other.cmp(key))
    }

    /// The entries from a key on, in order.
    pub fn range<'r>(&'r self, from: Bound<&K>) -> impl Iterator<Item = (&'r K, &'r V)> + use<'r, K, V> {
        self.entries(self.begin(from.map(|key| move |other: &K| other.cmp(key))))
    }
}

/// By an order that keys do not know: `order` says how the key of an entry compares with the wanted one. It
/// is the same order in all calls.
impl<K, V> OrderedRows<K, V> {
    /// Inserts an entry. Returns the value that it replaces.
    pub fn insert_by(&mut self, key: K, value: V, order: impl Fn(&K) -> Ordering) -> Option<V> {
        self.put(self.place(order), key, value)
    }

    /// Removes an entry, and returns its value.
    pub fn remove_by(&mut self, order: impl Fn(&K) -> Ordering) -> Option<V> {
        let (chunk, found) = self.place(order);
        let (_, value) = self.chunks.get_mut(chunk)?.remove(found.ok()?);
        self.len -= 1;
        if self.chunks[chunk].is_empty() {
            self.chunks.remove(chunk);
        } else {
            self.join(chunk);
            self.join(chunk.saturating_sub(1));
        }
        Some(value)
    }

    /// The wanted entry.
    pub fn entry_by(&self, order: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        let (chunk, found) = self.place(order);
        self.chunks.get(chunk)?.get(found.ok()?).map(|(own, value)| (own, value))
    }

    /// The value of the wanted entry, to change it.
    pub fn get_mut_by(&mut self, order: impl Fn(&K) -> Ordering) -> Option<&mut V> {
        let (chunk, found) = self.place(order);
        self.chunks.get_mut(chunk)?.get_mut(found.ok()?).map(|(_, value)| value)
    }

    /// The entries from a key on, in order.
    pub fn range_by<'r, F: Fn(&K) -> Ordering>(
        &'r self,
        from: Bound<F>,
    ) -> impl Iterator<Item = (&'r K, &'r V)> + use<'r, K, V, F> {
        self.entries(self.begin(from))
    }

    /// All entries in order, to change their values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.chunks.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunk that holds a key or would, and its place there; the first chunk if there is none.
    fn place(&self, order: impl Fn(&K) -> Ordering) -> Place {
        let chunk = self.chunks.partition_point(|chunk| order(&chunk[0].0).is_le()).saturating_sub(1);
        let entries = self.chunks.get(chunk).map_or(&[][..], |entries| entries);
        (chunk, entries.binary_search_by(|(other, _)| order(other)))
    }

    /// The chunk and the place of the first entry from a key on.
    fn begin(&self, from: Bound<impl Fn(&K) -> Ordering>) -> (usize, usize) {
        let is_behind = matches!(from, Bound::Excluded(_));
        let (Bound::Included(order) | Bound::Excluded(order)) = from else { return (0, 0) };
        let (chunk, found) = self.place(order);
        (chunk, found.map_or_else(|at| at, |at| at + usize::from(is_behind)))
    }

    /// The entries from a place on.
    fn entries(&self, (chunk, at): (usize, usize)) -> impl Iterator<Item = (&K, &V)> {
        let (first, rest) = match self.chunks.get(chunk) {
            Some(entries) => (&entries[at..], &self.chunks[chunk + 1..]),
            None => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flatten()).map(|(key, value)| (key, value))
    }

    /// Puts an entry into its place. Returns the value that it replaces.
    fn put(&mut self, (mut chunk, found): Place, key: K, value: V) -> Option<V> {
        let mut at = match found {
            Ok(at) => return Some(std::mem::replace(&mut self.chunks[chunk][at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        let Some(entries) = self.chunks.get_mut(chunk) else {
            self.chunks.push(vec![(key, value)]);
            return None;
        };
        if at == CHUNK {
            match self.chunks.get_mut(chunk + 1).filter(|next| next.len() < CHUNK) {
                Some(next) => next.insert(0, (key, value)),
                None => self.chunks.insert(chunk + 1, vec![(key, value)]),
            }
            return None;
        }
        if entries.len() == CHUNK {
            let half = entries.split_off(CHUNK / 2);
            self.chunks.insert(chunk + 1, half);
            if at > CHUNK / 2 {
                (chunk, at) = (chunk + 1, at - CHUNK / 2);
            }
        }
        self.chunks[chunk].insert(at, (key, value));
        None
    }

    /// Joins a chunk with the next one if both are small.
    fn join(&mut self, chunk: usize) {
        let all = self.chunks[chunk..].iter().take(2).map(Vec::len).sum::<usize>();
        if chunk + 1 < self.chunks.len() && all <= CHUNK / 2 {
            let mut next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].append(&mut next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hash::mix;

    /// Entries are inserted, replaced and removed at random, ascending and descending, until none is left.
    #[test]
    fn entries_are_those_of_a_tree() {
        let (mut rows, mut tree) = (OrderedRows::default(), BTreeMap::new());
        for step in 0..60_000_u64 {
            let random = mix(step);
            let key = match step / 10_000 {
                1 => step,
                2 => 100_000 - step,
                _ => random % 3_000,
            };
            let grows = step < 40_000 && random >> 60 < 11;
            if grows {
                assert_eq!(rows.insert(key, step), tree.insert(key, step));
            } else {
                let key = tree.range(key..).next().map_or(key, |(key, _)| *key);
                assert_eq!(rows.remove(&key), tree.remove(&key));
            }
            assert_eq!((rows.len(), rows.entry(&key)), (tree.len(), tree.get_key_value(&key)));
            if let (Some(one), Some(other)) = (rows.get_mut(&key), tree.get_mut(&key)) {
                (*one, *other) = (step, step);
            }
            if step % 500 == 0 {
                for from in [Bound::Unbounded, Bound::Included(&key), Bound::Excluded(&key)] {
                    assert!(rows.range(from).eq(tree.range((from, Bound::Unbounded))), "{step} {from:?}");
                }
                assert!(rows.iter_mut().eq(tree.iter_mut()));
                assert!(rows.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK));
            }
        }
        while let Some((key, value)) = tree.pop_first() {
            assert_eq!(rows.remove(&key), Some(value));
        }
        assert!(rows.is_empty() && rows.chunks.is_empty() && rows.range(Bound::Unbounded).next().is_none());
    }

    #[test]
    fn chunks_are_full_of_ascending_keys_and_few_where_few_are_left() {
        let mut rows = OrderedRows::default();
        (0..100_000_u32).for_each(|key| assert_eq!(rows.insert(key, ()), None));
        assert_eq!(rows.chunks.len(), 100_000_usize.div_ceil(CHUNK));
        // Descending keys between two full chunks.
        let mut between = OrderedRows::default();
        (0..128_u32).for_each(|key| assert_eq!(between.insert(key, ()), None));
        (1_000..41_000).rev().for_each(|key| assert_eq!(between.insert(key, ()), None));
        assert!(between.chunks.len() < 2 * 40_000 / (CHUNK / 2), "{}", between.chunks.len());
        (0..100_000).filter(|key| key % 100 > 0).for_each(|key| assert_eq!(rows.remove(&key), Some(())));
        assert!(
            rows.len() == 1_000 && rows.chunks.len() <= 2 * 1_000_usize.div_ceil(CHUNK / 2),
            "{}",
            rows.chunks.len()
        );
    }
}
