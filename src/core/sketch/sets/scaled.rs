//! Scaled sketches: the hash values of a text's features below a fixed limit, for containment. O(n log n).
//!
//! Features -> one word, the numbers of words and of distinct features ([`packed`]), and the *kept* values,
//! ascending ([`Sketch::features`](crate::sketch::Sketch::features)). Kept are all values up to `2^64 /
//! scale`, a share of `1 / scale` of them; at least the `least` smallest ones, or all if there are fewer.
//!
//! In scripts without spaces a word has several shingles: one begins at each token, a part of a word.
//! Of a shingle whose first token is one of p parts, the values below 2^63 are p times its hash, so that a
//! share of `1 / (p scale)` is kept: in every script as many for each word. A scale of 1 keeps all. In a text
//! of several scripts an estimate counts each shingle by `1 / p`.
//!
//! Every value up to the smaller one of the limits of two sketches is known of both texts.
//! These values are a random sample of the features of each, so the share of one text's sample that the other
//! has too estimates its containment without bias, with variance `c (1 - c) / m` for a sample of m values. A
//! short text in a long one has a sample of its own `1 / scale`, however long the other is; a sketch of fixed
//! size has a share of the *union*.
//!
//! References: A. Broder, *On the resemblance and containment of documents* (1997), where the sketch is M(A)
//! mod m; L. Irber et al., *Lightweight compositional analysis of metagenomes with FracMinHash* (2022).

use crate::hash::{PI, mix};
use crate::sketch::sampler::Sketcher;
use crate::sketch::theory::Estimator;
use crate::text::Features;

/// Which hash values a sketch keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The greatest value of the share of `1 / scale`, inclusive.
    last: u64,
    least: usize,
    salt: u64,
}

impl Scaled {
    /// One of `scale` values (at least 1), and at least `least` values, under the hash function derived from
    /// `seed`.
    ///
    /// # Panics
    /// If the scale is 0.
    pub fn new(scale: u32, least: u32, seed: u64) -> Self {
        assert!(scale > 0, "a scale is at least 1");
        let last = u64::MAX / u64::from(scale);
        Self { last, least: least as usize, salt: mix(PI[6] ^ seed) }
    }

    /// Appends the distinct values of features, ascending. `parts` is empty, or has the
    /// [parts](crate::text::MeasuredFeatures::parts) of each. The hash is a bijection: different features of
    /// whole words have different values, others have the same with probability 2^-63.
    pub fn values(&self, features: &[u64], parts: &[u8], out: &mut Vec<u64>) {
        let start = out.len();
        out.extend(features.iter().map(|x| mix(x ^ self.salt)));
        out[start..].iter_mut().zip(parts).for_each(|(value, parts)| *value = of_part(*value, *parts));
        out[start..].sort_unstable();
        let (mut kept, mut last) = (start, None);
        for at in start..out.len() {
            let value = out[at];
            if last.replace(value) != Some(value) {
                out[kept] = value;
                kept += 1;
            }
        }
        out.truncate(kept);
    }

    /// The kept values: the first ones of these values, which are those of a whole text or of a sketch.
    pub fn kept<'v>(&self, values: &'v [u64]) -> &'v [u64] {
        let below = values.partition_point(|value| *value <= self.last);
        &values[..below.max(self.least).min(values.len())]
    }

    /// The sample of two texts, each given by its [word](packed) and its stored values: those of each up to
    /// the smaller limit, which are all that the text has up to there.
    pub fn sample<'v>(&self, a: (u64, &'v [u64]), b: (u64, &'v [u64])) -> [&'v [u64]; 2] {
        let limit = |(word, stored)| self.limit(features_of(word), stored);
        let last = limit(a).min(limit(b));
        [a, b].map(|(_, stored)| &stored[..stored.partition_point(|value| *value <= last)])
    }

    /// The greatest value, inclusive, up to which the stored values of a text with so many distinct features
    /// are all that it has.
    fn limit(&self, features: usize, stored: &[u64]) -> u64 {
        match stored.last() {
            Some(greatest) if stored.len() < features => self.last.max(*greatest),
            _ => u64::MAX,
        }
    }
}

/// The value of a shingle with this hash, of which `parts` begin in a word.
fn of_part(hash: u64, parts: u8) -> u64 {
    const HALF: u64 = 1 << 63;
    match hash.checked_mul(parts.into()) {
        Some(value) if parts == 1 || value < HALF => value,
        _ => hash | HALF,
    }
}

/// The word of a scaled sketch: `words << 32 | features`. Larger numbers than 2^32 - 1 are stored as this.
pub fn packed(words: usize, features: usize) -> u64 {
    let [words, features] = [words, features].map(|n| u64::from(u32::try_from(n).unwrap_or(u32::MAX)));
    words << 32 | features
}

/// The number of words of a text, whose parts count by their weight, from the [word](packed) of its sketch.
pub fn words_of(word: u64) -> usize {
    usize::try_from(word >> 32).unwrap_or(usize::MAX)
}

/// The number of distinct features of a text, from the [word](packed) of its sketch.
pub fn features_of(word: u64) -> usize {
    usize::try_from(word & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}

impl Sketcher for Scaled {
    /// Appends the word alone, of a text whose number of words is not known: 0.
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        let mut values = Vec::new();
        self.values(features.ids, &[], &mut values);
        words.push(packed(0, values.len()));
    }
}

/// The estimator for scaled sketches: it takes the word of a sketch, and behind it the stored values.
#[derive(Clone, Copy, Debug)]
pub struct ScaledEstimator(pub Scaled);

impl ScaledEstimator {
    /// The least number of values of the smaller text from which a containment is estimated: the standard
    /// error is 0.07 at most, and 0.042 at 0.9.
    pub const LEAST: u32 = 50;
}

impl Estimator for ScaledEstimator {
    fn estimate(&self, a: &[u64], b: &[u64]) -> f64 {
        let (Some((first, x)), Some((second, y))) = (a.split_first(), b.split_first()) else { return 0.0 };
        let [x, y] = self.0.sample((*first, x), (*second, y));
        let shared = x.iter().filter(|value| y.binary_search(value).is_ok()).count();
        match x.len().min(y.len()) {
            0 => f64::from(u8::from(a == b)),
            least => shared as f64 / least as f64,
        }
    }

    /// An upper bound: the value for the [least](Self::LEAST) sample.
    fn standard_error(&self, similarity: f64) -> f64 {
        (similarity * (1.0 - similarity) / f64::from(Self::LEAST)).sqrt()
    }

    /// The same.
    fn unseen(&self) -> f64 {
        3.0 / f64::from(Self::LEAST)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The splitmix64 finaliser and the salt of seed 5, written out again.
    fn value(feature: u64) -> u64 {
        let finalised = |start: u64| {
            let first = (start ^ start >> 30).wrapping_mul(13_787_848_793_156_543_929);
            let second = (first ^ first >> 27).wrapping_mul(10_723_151_780_598_845_931);
            second ^ second >> 31
        };
        finalised(feature ^ finalised(0xc0ac_29b7_c97c_50dd ^ 5))
    }

    fn values(scaled: Scaled, features: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut values = vec![42, 42];
        scaled.values(&features.into_iter().collect::<Vec<_>>(), &[], &mut values);
        values.split_off(2)
    }

    #[test]
    fn kept_are_the_values_below_the_limit() {
        let scaled = Scaled::new(8, 16, 5);
        let values = values(scaled, (0..4000).map(|i| i % 2500));
        let expected: BTreeSet<u64> = (0..2500).map(value).collect();
        assert!(values.iter().eq(&expected), "distinct, ascending");
        let kept = scaled.kept(&values);
        assert!(
            kept.iter().eq(expected.iter().filter(|value| **value >> 61 == 0)),
            "an eighth of all values"
        );
        assert!((kept.len() as f64 - 2500.0 / 8.0).abs() < 60.0, "{}", kept.len());
        assert_eq!(scaled.kept(kept), kept, "the kept ones of what is kept");
        assert_eq!(scaled.limit(2500, kept), (1 << 61) - 1);
        assert_eq!(scaled.limit(2500, &values), u64::MAX, "all values are stored");
        assert_eq!(Scaled::new(1, 16, 5).kept(&values), values);
    }

    /// Of whole words the values are the hashes; of parts p times as few are kept, of any hash.
    #[test]
    fn a_word_of_parts_keeps_as_many() {
        let scaled = Scaled::new(8, 1, 5);
        for parts in [1, 2, 4, 6, 8] {
            let features: Vec<u64> = (0..6000).collect();
            let mut values = Vec::new();
            scaled.values(&features, &vec![parts; features.len()], &mut values);
            assert_eq!(values.len(), 6000, "different features have different values");
            let expected = 6000.0 / 8.0 / f64::from(parts);
            let kept = scaled.kept(&values).len() as f64;
            assert!((kept - expected).abs() < 4.0 * expected.sqrt(), "{parts} parts: {kept}");
        }
        assert_eq!(
            [3, 1 << 60, 3 << 60, 15 << 60].map(|hash| of_part(hash, 1)),
            [3, 1 << 60, 3 << 60, 15 << 60]
        );
        assert_eq!([3, 1 << 60, 3 << 60].map(|hash| of_part(hash, 4)), [12, 1 << 62, 11 << 60]);
        assert_eq!(of_part(u64::MAX, 6), u64::MAX);
    }

    #[test]
    fn short_texts_keep_their_least_values() {
        let scaled = Scaled::new(8, 16, 5);
        let all = values(scaled, 0..40);
        let kept = scaled.kept(&all);
        assert_eq!(kept, &all[..16]);
        assert!(kept[15] > (1 << 61) - 1, "five values are expected below the limit");
        assert_eq!(scaled.limit(40, kept), kept[15]);
        let few = values(scaled, 0..16);
        assert_eq!((scaled.kept(&few), scaled.limit(16, &few)), (&few[..], u64::MAX));
        assert_eq!((scaled.kept(&few[..1]), scaled.limit(1, &few[..1])), (&few[..1], u64::MAX));
    }

    /// Sketch ids and block keys depend on these: they must never change.
    #[test]
    fn golden_values() {
        let features = [0, 1, 2, 1 << 40, u64::MAX];
        let mut expected = features.map(value);
        expected.sort_unstable();
        assert_eq!(values(Scaled::new(2, 1, 5), features), expected);
        assert_eq!(values(Scaled::new(8, 16, 0), [0, 1]), GOLDEN);
    }

    const GOLDEN: [u64; 2] = [0x0f9c_34f1_f80b_f024, 0xe349_a3f3_04a4_2ac6];

    #[test]
    fn numbers_are_packed_into_a_word() {
        assert_eq!(packed(3, 7), 3 << 32 | 7);
        assert_eq!((words_of(packed(300, 298)), features_of(packed(300, 298))), (300, 298));
        assert_eq!(packed(usize::MAX, 1 << 40), u64::MAX);
        let mut words = Vec::new();
        Scaled::new(8, 16, 5).sketch(Features::set(&[9, 4, 9]), &mut words);
        assert_eq!(words, [2]);
    }

    #[test]
    fn the_estimator_counts_stored_values() {
        let estimator = ScaledEstimator(Scaled::new(8, 4, 0));
        let estimate = |a: &[u64], b: &[u64]| estimator.estimate(a, b);
        assert!((estimate(&[4, 1, 2, 3, 4], &[6, 2, 3, 4, 5, 6, 7]) - 0.75).abs() < 1e-15);
        assert!((estimate(&[3], &[3]) - 1.0).abs() < 1e-15 && estimate(&[3], &[4]) < 1e-15);
        assert!((estimator.standard_error(0.5) - 0.0707).abs() < 1e-4);
    }
}
