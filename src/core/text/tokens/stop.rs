//! Stop words: tokens that are removed before shingling.
//!
//! Stop words are compared by token hash only. That is as exact as features are: all later steps treat two
//! tokens of equal hash as the same token.

use crate::hash::TokenHash;

/// A set of token hashes: open addressing with linear probing, at most one eighth full.
#[derive(Debug)]
pub(in crate::text) struct StopWords {
    /// Slots, a power of two of them; 0 is an empty slot.
    places: Box<[u64]>,
}

impl StopWords {
    pub(in crate::text) fn new(words: &[String], hash: TokenHash) -> Self {
        let places = vec![0; (8 * words.len()).next_power_of_two()].into();
        let mut set = Self { places };
        for word in words {
            let token = hash.token(word.as_bytes());
            let place = set.place(token);
            set.places[place] = token;
        }
        set
    }

    pub(in crate::text) fn is_empty(&self) -> bool {
        self.places.len() == 1
    }

    #[inline]
    pub(in crate::text) fn contains(&self, token: u64) -> bool {
        self.places[self.place(token)] == token
    }

    /// The slot of the token, or the empty slot where it would be inserted.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    fn place(&self, token: u64) -> usize {
        let last = self.places.len() - 1;
        let mut at = token as usize & last;
        while self.places[at] != 0 && self.places[at] != token {
            at = (at + 1) & last;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_exactly_its_words() {
        let hash = TokenHash::default();
        for count in [0, 1, 2, 127, 1000] {
            let words: Vec<String> = (0..2 * count).map(|i| format!("w{i}")).collect();
            let (inside, outside) = words.split_at(count);
            let set = StopWords::new(inside, hash);
            assert_eq!(set.is_empty(), count == 0);
            assert!(inside.iter().all(|w| set.contains(hash.token(w.as_bytes()))));
            assert!(!outside.iter().any(|w| set.contains(hash.token(w.as_bytes()))));
        }
    }
}
