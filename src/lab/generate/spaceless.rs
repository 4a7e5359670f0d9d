//! Words of languages that are written without spaces, with realistic lengths and letter frequencies.
//!
//! A rule for such scripts depends on the number of characters of a word and on how often two words share a
//! character. So letters follow Zipf's law (the r-th occurs in proportion to 1 / r), as Han characters and
//! Thai letters do. A Chinese word has one to three characters, mostly two. A Japanese word is Han with an
//! ending, or Hiragana, or Katakana. A Thai word has one to three syllables of two to five characters.
//! Nothing else of the languages is modelled.

use rand::{Rng, RngCore};

/// Number of Han characters in use.
const HAN: usize = 3_000;

/// Thai consonants, most frequent first.
const CONSONANTS: &str = "นรกงมอทยลสตวคหปดบพชจขผถซฟศธณฉภญฮฐฎฬ";
/// Thai vowels that are written before their consonant.
const BEFORE: &str = "เแโไใ";
/// Thai vowels that are written after, above or below it.
const AFTER: &str = "าัีิุูะื";
/// Thai tone marks. They are not letters: the tokenizer treats them as separators.
const TONES: &str = "่้";

/// A number r below `n`, with a probability of about 1 / r.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rank below a few thousand"
)]
fn rank(n: usize, rng: &mut dyn RngCore) -> usize {
    let draw: f64 = rng.random();
    ((n as f64 + 1.0).powf(draw) as usize - 1).min(n - 1)
}

fn letter(letters: &str, rng: &mut dyn RngCore) -> char {
    let place = rank(letters.chars().count(), rng);
    letters.chars().nth(place).expect("a place below the length")
}

fn han(rng: &mut dyn RngCore) -> char {
    // Spreads frequent characters over the block.
    let place = u32::try_from(rank(HAN, rng) * 7 % 20_000).expect("below 20,000");
    char::from_u32('一' as u32 + place).expect("within the block of unified ideographs")
}

fn hiragana(rng: &mut dyn RngCore) -> char {
    letter("のにはをたがでてとしれさいらなもるこかりうくそつまけせおあめわすき", rng)
}

/// A word of `parts` parts, 1 or more.
pub(super) fn chinese(parts: usize, rng: &mut dyn RngCore) -> String {
    let characters = match parts {
        1..=3 => parts.min(2),
        _ => parts - 1,
    };
    (0..characters).map(|_| han(rng)).collect()
}

/// A word of `parts` parts, 1 or more.
pub(super) fn japanese(parts: usize, rng: &mut dyn RngCore) -> String {
    if parts == 1 {
        let length = rng.random_range(1..3);
        return (0..length).map(|_| hiragana(rng)).collect();
    }
    match rng.random_range(0..10) {
        0..5 => (0..parts.max(3) - 1).map(|_| han(rng)).collect(),
        5..7 => [han(rng)].into_iter().chain((1..parts).map(|_| hiragana(rng))).collect(),
        7..9 => (0..=parts).map(|_| letter("ーンスルトリアイクシラドレジタプロフマテ", rng)).collect(),
        _ => (0..parts).map(|_| hiragana(rng)).collect(),
    }
}

/// A word of `syllables` syllables, 1 or more; every second one of several syllables is one shorter.
pub(super) fn thai(syllables: usize, rng: &mut dyn RngCore) -> String {
    let mut word = String::new();
    for _ in 0..syllables.div_ceil(2).max(syllables.saturating_sub(rng.random_range(1..3))) {
        let is_before = rng.random_ratio(1, 4);
        if is_before {
            word.push(letter(BEFORE, rng));
        }
        word.push(letter(CONSONANTS, rng));
        if !is_before && rng.random_ratio(3, 4) {
            word.push(letter(AFTER, rng));
        }
        if rng.random_ratio(1, 4) {
            word.push(letter(TONES, rng));
        }
        if rng.random_bool(0.5) {
            word.push(letter(CONSONANTS, rng));
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn words_are_as_long_as_real_ones() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        type Make = fn(usize, &mut dyn RngCore) -> String;
        for (make, expected) in [(chinese as Make, 1.9..2.6), (japanese, 2.3..3.3), (thai, 4.5..8.0)] {
            let words: Vec<String> = (0..3000).map(|n| make(2 + n % 3, &mut rng)).collect();
            let mean = words.iter().map(|word| word.chars().count()).sum::<usize>() as f64 / 3000.0;
            assert!(expected.contains(&mean), "{mean}");
            assert!(words.iter().all(|word| word.chars().all(|c| c.is_alphanumeric() || TONES.contains(c))));
        }
    }

    #[test]
    fn letters_follow_zipfs_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut counts = BTreeMap::<usize, u32>::new();
        (0..100_000).for_each(|_| *counts.entry(rank(HAN, &mut rng)).or_default() += 1);
        // The r-th, from 1, has the probability ln((r + 1) / r) / ln(3001).
        for (place, share) in [(0, 0.086_57), (1, 0.050_64), (9, 0.011_90)] {
            let error = f64::from(counts[&place]) - 100_000.0 * share;
            assert!(error.abs() < 5.0 * (100_000.0 * share).sqrt(), "{place}: {error}");
        }
    }
}
