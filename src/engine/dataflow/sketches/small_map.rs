//! A map stored as a sorted vector while it is small, and as a tree otherwise: most sketches have one or two
//! members and partners, some have thousands.

use std::collections::BTreeMap;

/// Most entries of a vector, inclusive. Up to this size a search and a shift cost less than a tree, whose
/// nodes are also less full.
const FEW: usize = 32;

#[derive(Debug)]
pub(in crate::dataflow) enum SmallMap<K, V> {
    Few(Vec<(K, V)>),
    Many(BTreeMap<K, V>),
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<K: Ord, V> SmallMap<K, V> {
    pub(in crate::dataflow) fn len(&self) -> usize {
        match self {
            Self::Few(entries) => entries.len(),
            Self::Many(entries) => entries.len(),
        }
    }

    pub(in crate::dataflow) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Self::Few(entries) => find(entries, key).ok().map(|at| &entries[at].1),
            Self::Many(entries) => entries.get(key),
        }
    }

    /// All entries, in ascending order of keys.
    pub(in crate::dataflow) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries.iter().map(|(key, value)| (key, value))), None),
            Self::Many(entries) => (None, Some(entries.iter())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// Sets a value; returns the one before.
    pub(in crate::dataflow) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self {
            Self::Few(entries) => match find(entries, &key) {
                Ok(at) => return Some(std::mem::replace(&mut entries[at].1, value)),
                Err(at) if entries.len() < FEW => {
                    // Most maps are small: the vectors of these have no spare capacity.
                    if entries.len() < 4 {
                        entries.reserve_exact(1);
                    }
                    entries.insert(at, (key, value));
                }
                Err(_) => {
                    let mut many: BTreeMap<K, V> = std::mem::take(entries).into_iter().collect();
                    many.insert(key, value);
                    *self = Self::Many(many);
                }
            },
            Self::Many(entries) => return entries.insert(key, value),
        }
        None
    }

    /// Removes an entry; returns its value.
    pub(in crate::dataflow) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Self::Few(entries) => find(entries, key).ok().map(|at| entries.remove(at).1),
            Self::Many(entries) => {
                let removed = entries.remove(key);
                // Half of the limit, so that a size about the limit does not rebuild at each step.
                if entries.len() <= FEW / 2 {
                    *self = Self::Few(std::mem::take(entries).into_iter().collect());
                }
                removed
            }
        }
    }
}

fn find<K: Ord, V>(entries: &[(K, V)], key: &K) -> Result<usize, usize> {
    entries.binary_search_by(|(other, _)| other.cmp(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::hash::mix;

    #[test]
    fn a_small_map_is_a_map() {
        let (mut small, mut map) = (SmallMap::default(), BTreeMap::new());
        let mut sizes = [false; 3 * FEW];
        for step in 0..20_000_u64 {
            let key = mix(step) % (3 * FEW as u64);
            // Grows and shrinks in turn, past the limit each time.
            if mix(step ^ 77) % 10 < if (step / 400).is_multiple_of(2) { 8 } else { 2 } {
                assert_eq!(small.insert(key, step), map.insert(key, step));
            } else {
                assert_eq!(small.remove(&key), map.remove(&key));
            }
            assert_eq!(small.get(&key), map.get(&key));
            assert!(small.iter().eq(map.iter()));
            assert_eq!(small.len(), map.len());
            sizes[small.len()] = true;
        }
        assert!(sizes[1] && sizes[2 * FEW], "both forms are tried");
    }
}
