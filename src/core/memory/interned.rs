//! Keys that are numbered, each once: a number takes four bytes where the key would take many.

use std::borrow::Borrow;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::Rows;
use crate::hash;

/// Keys by number: 0, 1, 2, …, and the number of each key. That of a key which is removed is given again.
/// Memory: a key, and about 8 bytes for its entry in the index.
#[derive(Debug)]
pub struct Interned<K> {
    numbers: HashTable<u32>,
    keys: Rows<K>,
    free: Vec<u32>,
}

impl<K> Default for Interned<K> {
    fn default() -> Self {
        Self { numbers: HashTable::new(), keys: Rows::new(1), free: Vec::new() }
    }
}

impl<K: Clone + Eq + Borrow<str>> Interned<K> {
    /// The number of a key, which gets one if it has none.
    ///
    /// # Panics
    /// If there are more than 2^32 keys.
    pub fn number(&mut self, key: &K) -> u32 {
        let Self { numbers, keys, free } = self;
        match numbers.entry(hash_of(key), |n| at(keys, *n) == key, |n| hash_of(at(keys, *n))) {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(vacant) => {
                let number = match free.pop() {
                    Some(number) => {
                        keys.row_mut(number as usize)[0] = key.clone();
                        number
                    }
                    None => {
                        keys.push(std::iter::once(key.clone()));
                        u32::try_from(keys.len() - 1).expect("memory ends before 2^32 keys")
                    }
                };
                vacant.insert(number);
                number
            }
        }
    }

    /// The number of a key, if it has one.
    pub fn find(&self, key: &K) -> Option<u32> {
        self.numbers.find(hash_of(key), |n| self.key(*n) == key).copied()
    }

    /// The key of a number.
    pub fn key(&self, number: u32) -> &K {
        at(&self.keys, number)
    }

    /// Removes the key of a number.
    pub fn remove(&mut self, number: u32) {
        let hash = hash_of(self.key(number));
        if let Ok(entry) = self.numbers.find_entry(hash, |n| *n == number) {
            entry.remove();
            self.free.push(number);
        }
    }

    /// The numbers of all keys, in any order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied()
    }
}

fn at<K>(keys: &Rows<K>, number: u32) -> &K {
    &keys.row(number as usize)[0]
}

fn hash_of(key: &impl Borrow<str>) -> u64 {
    hash::bytes(0, key.borrow().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_key_has_one_number_until_it_is_removed() {
        let (mut interned, mut plain) = (Interned::default(), BTreeMap::new());
        for step in 0..20_000_u64 {
            let key = (hash::mix(step) % 700).to_string();
            if step % 3 == 2 {
                let number = plain.remove(&key);
                assert_eq!(interned.find(&key), number);
                number.into_iter().for_each(|number| interned.remove(number));
            } else {
                let number = interned.number(&key);
                assert_eq!(*plain.entry(key.clone()).or_insert(number), number);
                assert!(*interned.key(number) == key && number < 700);
            }
        }
        let mut numbers: Vec<_> = interned.numbers().collect();
        numbers.sort_unstable();
        let mut all: Vec<_> = plain.into_values().collect();
        all.sort_unstable();
        assert_eq!(numbers, all);
    }
}
