//! Stop words: tokens that are removed before shingling.
//!
//! They are known by their token hashes alone, which is as exact as features are: two tokens of equal hash
//! are the same token to everything that follows.

use crate::hash;

/// A set of token hashes: open addressing with linear probing, at most an eighth full.
#[derive(Debug)]
pub(super) struct StopWords {
    /// A power of two of places; 0 is an empty one.
    places: Box<[u64]>,
}

impl StopWords {
    pub(super) fn new(words: &[String]) -> Self {
        let places = vec![0; (8 * words.len()).next_power_of_two()].into();
        let mut set = Self { places };
        for word in words {
            let token = hash::token(word.as_bytes());
            let place = set.place(token);
            set.places[place] = token;
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.len() == 1
    }

    #[inline]
    pub(super) fn contains(&self, token: u64) -> bool {
        self.places[self.place(token)] == token
    }

    /// Where the token is, or the empty place that would be its own.
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
    fn holds_its_words_and_no_others() {
        for count in [0, 1, 2, 127, 1000] {
            let words: Vec<String> = (0..2 * count).map(|i| format!("w{i}")).collect();
            let (inside, outside) = words.split_at(count);
            let set = StopWords::new(inside);
            assert_eq!(set.is_empty(), count == 0);
            assert!(inside.iter().all(|w| set.contains(hash::token(w.as_bytes()))));
            assert!(!outside.iter().any(|w| set.contains(hash::token(w.as_bytes()))));
        }
    }
}
