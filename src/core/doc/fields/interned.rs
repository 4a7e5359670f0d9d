//! Texts that are stored once in a process.
//!
//! A text that only the table still holds is freed when its part of the table has doubled since the last
//! look: memory follows the texts in use, and the cost of the looks is a constant for each new text.

use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::hash;

/// Parts of the table, each with a lock of its own, so that workers seldom wait for each other.
const PARTS: usize = 32;

/// Texts below which a part is not searched for unused ones.
const FEW: usize = 1024;

static TEXTS: [Mutex<TextTable>; PARTS] = [const { Mutex::new(TextTable::new()) }; PARTS];

struct TextTable {
    texts: HashTable<Arc<str>>,
    /// The number of texts at which unused ones are freed.
    full: usize,
}

impl TextTable {
    const fn new() -> Self {
        Self { texts: HashTable::new(), full: FEW }
    }

    fn get(&mut self, hash: u64, text: &str) -> Arc<str> {
        if let Some(found) = self.texts.find(hash, |other| **other == *text) {
            return Arc::clone(found);
        }
        if self.texts.len() >= self.full {
            // The lock is held, so nothing can take a text that only the table holds.
            self.texts.retain(|held| Arc::strong_count(held) > 1);
            self.full = (2 * self.texts.len()).max(FEW);
            self.texts.shrink_to(self.full, |held| hashed(held));
        }
        let new: Arc<str> = text.into();
        self.texts.insert_unique(hash, Arc::clone(&new), |held| hashed(held));
        new
    }
}

fn hashed(text: &str) -> u64 {
    hash::bytes(0, text.as_bytes())
}

/// The shared copy of a text.
pub(super) fn interned(text: &str) -> Arc<str> {
    let hash = hashed(text);
    // The table uses the highest and the lowest bits itself.
    let part = usize::try_from(hash >> 32).unwrap_or(0) % PARTS;
    TEXTS[part].lock().get(hash, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let (a, b) = (interned("de\u{1e}example.org"), interned("de\u{1e}example.org"));
        assert!(Arc::ptr_eq(&a, &b));
        assert!(!Arc::ptr_eq(&a, &interned("fr\u{1e}example.org")));
    }

    #[test]
    fn unused_texts_are_freed() {
        let mut table = TextTable::new();
        let mut get = |text: &str| table.get(hashed(text), text);
        let kept: Vec<_> = (0..10).map(|n| get(&format!("kept {n}"))).collect();
        for n in 0..20 * FEW {
            drop(get(&format!("unused {n}")));
        }
        for (n, text) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(text, &get(&format!("kept {n}"))));
        }
        assert!(table.texts.len() <= FEW, "{}", table.texts.len());
    }
}
