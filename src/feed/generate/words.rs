//! Sequences of words, and how they are edited and written.

use std::ops::Range;

use rand::Rng;

use super::vocabulary::Vocabulary;
use crate::hash;

/// Words by their numbers in a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(Vec<u32>);

impl Words {
    /// Words by Zipf's law.
    pub(super) fn sample(vocabulary: &Vocabulary, length: usize, rng: &mut impl Rng) -> Self {
        Self((0..length).map(|_| vocabulary.sample(rng)).collect())
    }

    /// Words that are all equally likely: the few words of two short texts are seldom the same.
    pub(super) fn sample_evenly(vocabulary: &Vocabulary, length: usize, rng: &mut impl Rng) -> Self {
        let all: Range<u32> = 0..vocabulary.size();
        Self((0..length).map(|_| rng.random_range(all.clone())).collect())
    }

    /// Each word is substituted, dropped, or followed by a new one, each with a probability of `rate / 3`. If that
    /// leaves them all, one is substituted.
    pub(super) fn edited(&self, rate: f64, vocabulary: &Vocabulary, rng: &mut impl Rng) -> Self {
        let mut edited = Vec::with_capacity(self.0.len() + 8);
        for &word in &self.0 {
            let edit: f64 = rng.random();
            if edit >= rate {
                edited.push(word);
                continue;
            }
            // Below the rate, the three thirds are the three edits; a dropped word leaves nothing.
            let third = edit / rate * 3.0;
            if third < 1.0 {
                edited.push(vocabulary.sample(rng));
            } else if third < 2.0 {
                edited.extend([word, vocabulary.sample(rng)]);
            }
        }
        if edited == self.0 && !edited.is_empty() {
            let place = rng.random_range(0..edited.len());
            edited[place] = rng.random_range(0..vocabulary.size());
        }
        Self(edited)
    }

    /// Appends the words as text: sentences that end after fixed words, so that equal words give equal text.
    pub(super) fn write(&self, vocabulary: &Vocabulary, text: &mut String) {
        let mut starts = true;
        for (n, &word) in self.0.iter().enumerate() {
            if n > 0 {
                text.push_str(if starts { vocabulary.stop() } else { vocabulary.space() });
            }
            text.push_str(if starts { vocabulary.capital(word) } else { vocabulary.word(word) });
            // A sentence has 12 words on average.
            starts = hash::mix(u64::from(word)).is_multiple_of(12);
        }
    }
}
