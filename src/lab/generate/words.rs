//! Sequences of words: sampling, editing and writing.

use std::ops::Range;

use rand::Rng;

use super::vocabulary::{ScriptVocabulary, Zipf};
use dupflow_core::hash;

/// Words by their numbers in a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordSequence(Vec<u32>);

impl FromIterator<u32> for WordSequence {
    fn from_iter<I: IntoIterator<Item = u32>>(words: I) -> Self {
        Self(words.into_iter().collect())
    }
}

impl WordSequence {
    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Samples words by Zipf's law.
    pub(super) fn sample(law: &Zipf, length: usize, rng: &mut impl Rng) -> Self {
        Self((0..length).map(|_| law.sample(rng)).collect())
    }

    /// Samples words uniformly, so that two short texts rarely share a word.
    pub(super) fn sample_evenly(law: &Zipf, length: usize, rng: &mut impl Rng) -> Self {
        let all: Range<u32> = 0..law.size();
        Self((0..length).map(|_| rng.random_range(all.clone())).collect())
    }

    /// Substitutes, drops, or appends a new word after each word, each with a probability of `rate / 3`.
    pub(super) fn altered(&self, rate: f64, law: &Zipf, rng: &mut impl Rng) -> Self {
        let mut edited = Vec::with_capacity(self.0.len() + 8);
        for &word in &self.0 {
            let edit: f64 = rng.random();
            if edit >= rate {
                edited.push(word);
                continue;
            }
            // Each third of the interval below the rate is one of the edits; a dropped word adds nothing.
            let third = edit / rate * 3.0;
            if third < 1.0 {
                edited.push(law.sample(rng));
            } else if third < 2.0 {
                edited.extend([word, law.sample(rng)]);
            }
        }
        Self(edited)
    }

    /// As [`altered`](Self::altered); if no word changes, one is substituted.
    pub(super) fn edited(&self, rate: f64, law: &Zipf, rng: &mut impl Rng) -> Self {
        let mut edited = self.altered(rate, law, rng);
        if edited == *self && edited.len() > 0 {
            let place = rng.random_range(0..edited.len());
            edited.0[place] = rng.random_range(0..law.size());
        }
        edited
    }

    /// Replaces `count` words at different places, or all if there are fewer.
    pub(super) fn replaced(&self, count: usize, law: &Zipf, rng: &mut impl Rng) -> Self {
        let mut words = self.0.clone();
        for place in rand::seq::index::sample(rng, words.len(), count.min(words.len())) {
            // Any word except the present one, if there is another.
            let step = rng.random_range(1..law.size().max(2));
            words[place] = (words[place] + step) % law.size();
        }
        Self(words)
    }

    /// Appends the words as text. Sentences end after fixed words, so that equal words give equal text.
    pub(super) fn write(&self, vocabulary: &ScriptVocabulary, text: &mut String) {
        let (mut starts, mut pauses) = (true, false);
        for (n, &word) in self.0.iter().enumerate() {
            if n > 0 {
                text.push_str(match vocabulary.comma() {
                    _ if starts => vocabulary.stop(),
                    Some(comma) if pauses => comma,
                    _ => vocabulary.space(),
                });
            }
            text.push_str(if starts { vocabulary.capital(word) } else { vocabulary.word(word) });
            // A sentence has 12 words on average.
            starts = hash::mix(u64::from(word)).is_multiple_of(12);
            pauses = hash::mix(!u64::from(word)).is_multiple_of(12);
        }
    }
}
