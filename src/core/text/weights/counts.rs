//! The counts that weights stand for, so that ties of similarities are decided by whole numbers.
//!
//! The weights of one text -> whole numbers and their divisor: 1 for counts, the total for shares of counts.
//! A share is rounded when it is stored, and its [fraction](Fraction) is had back from the double. Invariant:
//! each count divided by the divisor is the weight in every bit.

use super::features::Features;
use crate::fraction::Fraction;

/// Weights as whole numbers with a divisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// One for each feature, 1 or more; the total is below 2^53.
    pub counts: Vec<u64>,
    /// 1, or the total.
    pub divisor: u64,
}

/// Whole numbers below this are doubles.
const MOST: u64 = 1 << 53;

impl Counts {
    /// The counts of features; `None` if their weights are neither counts nor shares of counts. Those of up
    /// to 2^26 are found.
    pub fn new(features: Features<'_>) -> Option<Self> {
        let Features { ids, weights } = features;
        let shares = weights.iter().map(|weight| Fraction::new(*weight)).collect::<Option<Vec<_>>>()?;
        let divisor = shares.iter().try_fold(1, |all, share| least_common_multiple(all, share.whole))?;
        let mut counts: Vec<u64> = shares.iter().map(|share| divisor / share.whole * share.part).collect();
        counts.resize(ids.len(), 1);
        let total = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count))?;
        let is_exact =
            |(weight, count): (&f64, &u64)| (*count as f64 / divisor as f64).to_bits() == weight.to_bits();
        let found =
            total < MOST && (divisor == 1 || divisor == total) && weights.iter().zip(&counts).all(is_exact);
        found.then_some(Self { counts, divisor })
    }

    /// The sum of the counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the squared counts, if it is below 2^64.
    pub fn squares(&self) -> Option<u64> {
        self.counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(count.checked_mul(*count)?))
    }
}

/// The least common multiple of two positive numbers, if it is below 2^53.
fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b).filter(|multiple| *multiple < MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn counts(weights: &[f64]) -> Option<(Vec<u64>, u64)> {
        let ids: Vec<u64> = (0..weights.len() as u64).collect();
        Counts::new(Features { ids: &ids, weights }).map(|found| (found.counts, found.divisor))
    }

    #[test]
    fn counts_and_shares_are_had_back() {
        for seed in 0..3000_u64 {
            let most = 1 + mix(seed) % (1 << (seed % 20));
            let all: Vec<u64> = (0..1 + seed % 60).map(|i| 1 + mix(seed << 8 ^ i) % most).collect();
            let total: u64 = all.iter().sum();
            let whole: Vec<f64> = all.iter().map(|count| *count as f64).collect();
            assert_eq!(counts(&whole), Some((all.clone(), 1)));
            let shares: Vec<f64> = whole.iter().map(|count| count / total as f64).collect();
            let (found, divisor) = counts(&shares).unwrap();
            // In lowest terms, so the text is `scale` times what is found; a text of one feature is 1 of 1.
            let scale = total / divisor;
            assert_eq!(found.iter().map(|count| count * scale).collect::<Vec<_>>(), all);
            assert_eq!(divisor * scale, total);
        }
    }

    #[test]
    fn other_weights_are_none() {
        let third = 1.0 / 3.0;
        for weights in [
            &[0.5, 0.25][..],
            &[third, third],
            &[third, 2.0 * third, 1.5],
            &[2.0_f64.ln() + 1.0],
            &[2.0_f64.ln(), 3.0_f64.ln()],
            &[third.next_up(), 2.0 * third],
            &[1e300, 1.0],
            &[1e-300],
            &[9_007_199_254_740_991.0, 1.0],
        ] {
            assert_eq!(counts(weights), None, "{weights:?}");
        }
        assert_eq!(counts(&[]), Some((vec![], 1)));
        let unit = Counts::new(Features::set(&[3, 5])).unwrap();
        assert_eq!((unit.total(), unit.squares(), unit.divisor), (2, Some(2), 1));
        assert_eq!(Counts { counts: vec![1 << 32], divisor: 1 }.squares(), None);
    }
}
