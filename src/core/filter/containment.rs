//! The filter by containment: decides whether one text lies in the other, by the values of scaled sketches.
//!
//! In: two [scaled sketches](crate::sketch::scaled). Out: a [`Verdict`]; the similarity of an accepted pair
//! has two [shares](crate::pair::Similarity::shares), of each text's features in the other. Accepted iff the
//! greater share is at least T, inclusive.
//!
//! The *sample* of a pair are its values up to the smaller one of the two sketches' limits, which are all
//! that the texts have up to there. Where all values are stored the sample is whole, and the shares are
//! exact. Else they are estimates: a share c of a sample of m values has the standard error
//! `sqrt(c (1 - c) / m)`.
//! With m below [`ScaledEstimator::LEAST`] nothing is claimed, and the pair is rejected.
//!
//! Equal sketches are copies: they are accepted with similarity 1, however short their texts are. Documents
//! of equal texts have different sketches where these hold fields too, or the side of a reference.
//!
//! Looks: 1, whether a text is too short, by its words or by the sample; 2, the values. With m in the smaller
//! and T m rounded up needed, the count ends as soon as too many values of the smaller one are missing. There
//! is no test by the sizes of both: a short text lies in a text of any size.
//!
//! Contract beyond that of [`PairFilter`]: exchanging the sketches [flips](crate::pair::Similarity::flipped)
//! the similarity.

use super::merge::shared_features;
use super::rejection::{Agreeing, RejectedBy};
use super::{FilterError, PairFilter, Verdict};
use crate::pair::{Overlap, Similarity, Threshold};
use crate::sketch::SketchRef;
use crate::sketch::scaled::{Scaled, ScaledEstimator, words_of};

/// Decides by the values of scaled sketches.
#[derive(Clone, Copy, Debug)]
pub struct ContainmentFilter {
    threshold: Threshold,
    scaled: Scaled,
    /// Least values of the smaller text in a sample.
    least_values: usize,
    /// Least words of each text.
    least_words: usize,
}

/// How much longer one list of values is from which on the values of the other are searched in it. A merge
/// reads all values, a search about twice the logarithm of the distance to the next one.
const SEARCHED: usize = 16;

impl ContainmentFilter {
    /// A text of at least `least_words` words lies in another one by at least `threshold` (inclusive; above 0
    /// and at most 1). `exact` says that sketches have all values.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub fn new(threshold: f64, scaled: Scaled, exact: bool, least_words: usize) -> Result<Self, FilterError> {
        let threshold = Threshold::new(threshold).ok_or(FilterError::Threshold { found: threshold })?;
        let least_values = if exact { 1 } else { ScaledEstimator::LEAST as usize };
        Ok(Self { threshold, scaled, least_values, least_words })
    }

    /// Least words of a text that is compared, inclusive.
    pub fn least_words(&self) -> usize {
        self.least_words
    }

    /// The values of both texts up to where all are known of both.
    fn sample<'s>(&self, a: SketchRef<'s>, b: SketchRef<'s>) -> [&'s [u64]; 2] {
        self.scaled.sample((a.words[0], a.features), (b.words[0], b.features))
    }
}

impl PairFilter for ContainmentFilter {
    #[inline]
    fn first_word(&self, a: u64, b: u64) -> bool {
        // Equal first words are those of copies, or of texts that `decide_passed` rejects.
        a == b || !self.is_too_short(a.min(b))
    }

    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        if a.words == b.words && a.features == b.features {
            let components = u32::try_from(a.features.len()).unwrap_or(u32::MAX);
            return Verdict { accepted: Some(Similarity::ONE), look: 2, components };
        }
        let [x, y] = self.sample(a, b);
        let least = x.len().min(y.len());
        let components = u32::try_from(least).unwrap_or(u32::MAX);
        if least < self.least_values || self.is_too_short(a.words[0].min(b.words[0])) {
            return Verdict { accepted: None, look: 1, components: 0 };
        }
        let found = shared(x, y, self.threshold.least_of(least));
        let overlap = |shared| Overlap { shared, of_a: x.len(), of_b: y.len() };
        Verdict { accepted: found.map(|found| overlap(found).similarity()), look: 2, components }
    }

    fn is_too_short(&self, word: u64) -> bool {
        words_of(word) < self.least_words
    }

    fn looks(&self) -> usize {
        2
    }

    fn rejected_by(&self, look: u16) -> RejectedBy {
        if look == 1 { RejectedBy::TooShort } else { RejectedBy::Features }
    }

    fn agreeing(&self, a: SketchRef<'_>, b: SketchRef<'_>, look: u16) -> Option<Agreeing> {
        let [x, y] = self.sample(a, b);
        let needed = self.threshold.least_of(x.len().min(y.len()));
        let found = shared(x, y, 0).filter(|_| look == 2)?;
        let [found, needed] = [found, needed].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Some(Agreeing { found, needed })
    }

    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity {
        let [x, y] = self.sample(a, b);
        let shared = shared(x, y, 0).unwrap_or(0);
        Overlap { shared, of_a: x.len(), of_b: y.len() }.similarity()
    }
}

/// The number of common values of two strictly ascending lists, if at least `needed`.
fn shared(x: &[u64], y: &[u64], needed: usize) -> Option<usize> {
    let (few, mut many) = if x.len() <= y.len() { (x, y) } else { (y, x) };
    if few.len() * SEARCHED > many.len() {
        return shared_features(few, many, needed);
    }
    // How many values of the shorter list may be missing.
    let mut spare = few.len().checked_sub(needed)?;
    for (at, value) in few.iter().enumerate() {
        // Steps of doubled length, then a search within the last one.
        let mut end = 1;
        while many.get(end - 1).is_some_and(|other| other < value) {
            end *= 2;
        }
        let step = &many[..end.min(many.len())];
        let behind = step.partition_point(|other| other < value);
        many = &many[behind..];
        if many.first() != Some(value) {
            if many.is_empty() {
                spare = spare.checked_sub(few.len() - at)?;
                break;
            }
            spare = spare.checked_sub(1)?;
        }
    }
    Some(needed + spare)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;
    use crate::sketch::scaled::packed;
    use crate::sketch::{Scheme, Sketch, SketchKind, SketchMaker, SketchParams};
    use crate::text::{Shingle, TextRules};

    fn filter(threshold: f64, scale: u32, exact: bool) -> ContainmentFilter {
        ContainmentFilter::new(threshold, Scaled::new(scale, 4, 0), exact, 3).unwrap()
    }

    /// A sketch with these values of a text of 9 words and so many features.
    fn sketch(features: usize, values: &[u64]) -> Sketch {
        Sketch { words: [packed(9, features)].into(), features: values.into() }
    }

    #[test]
    fn shares_by_hand() {
        let filter = filter(0.75, 8, true);
        let (a, b) = (sketch(4, &[1, 2, 3, 9]), sketch(8, &[2, 3, 4, 5, 6, 7, 8, 9]));
        let verdict = filter.decide(a.view(), b.view());
        assert_eq!(
            verdict.accepted.map(Similarity::shares),
            Some([0.75, 0.375]),
            "the threshold is inclusive"
        );
        assert_eq!((verdict.look, verdict.components), (2, 4));
        let back = filter.decide(b.view(), a.view());
        assert_eq!(back, Verdict { accepted: verdict.accepted.map(Similarity::flipped), ..verdict });
        let c = sketch(8, &[2, 3, 4, 5, 6, 7, 8, 10]);
        let rejected = filter.decide(a.view(), c.view());
        assert_eq!((rejected.accepted, rejected.look), (None, 2));
        assert_eq!(filter.rejected_by(2), RejectedBy::Features);
        assert_eq!(filter.agreeing(a.view(), c.view(), 2), Some(Agreeing { found: 2, needed: 3 }));
        assert_eq!(filter.similarity(a.view(), c.view()), Similarity::of_shares([0.5, 0.25]));
        assert!(ContainmentFilter::new(0.0, Scaled::new(8, 4, 0), true, 0).is_err());
    }

    /// Only values up to the smaller limit are known of both texts.
    #[test]
    fn a_sample_ends_at_the_smaller_limit() {
        let filter = filter(0.5, 8, false);
        let sample = |a: &Sketch, b: &Sketch| filter.sample(a.view(), b.view()).map(<[u64]>::len);
        let last = u64::MAX / 8;
        // A short text that keeps values above the limit, and a long one that keeps all below it.
        let (short, long) = (sketch(9, &[1, 2, 3, last + 5]), sketch(90, &[1, 2, last - 1, last]));
        assert_eq!(sample(&short, &long), [3, 4]);
        // All values of a text are stored: its limit is that of the other one.
        assert_eq!(sample(&sketch(4, &[1, 2, 3, last + 5]), &short), [4, 4]);
        assert_eq!(sample(&sketch(5, &[1, 2, 3, last + 5, last + 6]), &short), [4, 4]);
        assert_eq!(sample(&sketch(4, &[1, 2, 3, last + 5]), &sketch(2, &[1, u64::MAX])), [4, 2]);
    }

    #[test]
    fn short_texts_and_small_samples_are_rejected() {
        let filter = filter(0.5, 8, false);
        let values: Vec<u64> = (0..50).collect();
        let (many, few) = (sketch(400, &values), sketch(400, &values[..49]));
        assert_eq!(filter.decide(many.view(), many.view()).accepted, Some(Similarity::ONE));
        let rejected = filter.decide(few.view(), many.view());
        assert_eq!((rejected.accepted, rejected.look, rejected.components), (None, 1, 0));
        let other = Sketch { words: [packed(2, 3)].into(), features: [1, 2, 3].into() };
        for (copy, features) in [(true, [1, 2, 3]), (false, [1, 2, 4])] {
            let short = Sketch { features: features.into(), ..other.clone() };
            let verdict = filter.decide(other.view(), short.view());
            assert_eq!(verdict.accepted, Some(Similarity::ONE).filter(|_| copy), "{features:?}");
        }
        assert_eq!(
            filter.decide(few.view(), few.view()).accepted,
            Some(Similarity::ONE),
            "copies are copies"
        );
        assert_eq!(filter.rejected_by(1), RejectedBy::TooShort);
        assert_eq!(filter.agreeing(few.view(), many.view(), 1), None);
        assert!(filter.first_word(packed(3, 1), packed(4, 100)));
        assert!(filter.first_word(packed(2, 9), packed(2, 9)) && filter.is_too_short(packed(2, 9)));
        assert!(
            !filter.first_word(packed(2, 100), packed(40, 1))
                && !filter.first_word(packed(4, 1), packed(2, 9))
        );
    }

    /// Both ways of counting, against sets.
    #[test]
    fn common_values_are_counted() {
        for seed in 0..400_u64 {
            let list = |salt: u64, most: u64| -> BTreeSet<u64> {
                (0..mix(seed ^ salt) % most).map(|i| mix(i ^ salt << 40) % 3000).collect()
            };
            let (x, y) = (list(1, 40), list(2, 1500));
            let expected = x.intersection(&y).count();
            let [x, y] = [x, y].map(|set| set.into_iter().collect::<Vec<_>>());
            for needed in 0..x.len() + 2 {
                let found = Some(expected).filter(|count| *count >= needed);
                assert_eq!((shared(&x, &y, needed), shared(&y, &x, needed)), (found, found), "seed {seed}");
            }
        }
    }

    /// Estimates from kept values are without bias, with the declared error; all values give the exact share.
    #[test]
    fn estimates_have_their_declared_error() {
        let text = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
        let words = |range: std::ops::Range<u32>, salt: u32| -> String {
            range.map(|i| format!("w{salt}x{i} ")).collect()
        };
        let kind = SketchKind::Scaled { scale: 8, least: 16 };
        let (mut sum, mut squares, mut trials, mut declared) = (0.0, 0.0, 0.0, 0.0);
        for seed in 0..60 {
            let sketch = SketchParams { kind, seed, ..SketchParams::default() };
            // 900 of the 1,000 words of the first text are in the second, which has 9,000.
            let similarity = |exact| {
                let scheme = Scheme { text: text.clone(), sketch, exact, ..Scheme::default() };
                let mut maker = SketchMaker::new(&scheme);
                let a = words(0..900, 1) + &words(0..100, 2);
                let [(_, a), (_, b)] = [a, words(0..9000, 1)].map(|one| maker.sketch(&one).unwrap());
                let filter = ContainmentFilter::new(0.1, sketch.scaled().unwrap(), exact, 30).unwrap();
                let verdict = filter.decide(a.view(), b.view());
                (verdict.accepted.unwrap().shares(), verdict.components)
            };
            let ([exact, back], all) = similarity(true);
            assert_eq!((exact, back, all), (0.9, 0.1, 1000));
            let ([estimate, _], components) = similarity(false);
            declared += 0.09 / f64::from(components);
            sum += estimate - 0.9;
            squares += (estimate - 0.9).powi(2);
            trials += 1.0;
        }
        let (bias, error) = (sum / trials, (declared / trials).sqrt());
        assert!(bias.abs() < 4.0 * error / f64::sqrt(trials), "bias {bias}, standard error {error}");
        let ratio = (squares / trials).sqrt() / error;
        assert!((0.7..1.3).contains(&ratio), "the errors are {ratio} times the declared one");
    }
}
