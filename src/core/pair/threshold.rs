//! The threshold: the least similarity of a pair, inclusive, and the decision whether a similarity reaches
//! it.
//!
//! T is the [fraction](Fraction) that its number stands for: 0.8 is 4/5, 0.6666666666666666 is 2/3, and
//! 0.66666666667 is greater than 2/3. Similarities that are quotients of counts are compared with it as whole
//! numbers. Of others, a similarity within its stated rounding error of T counts as T.

use crate::fraction::{Fraction, product};

/// The least similarity of a pair, T, inclusive; above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    value: f64,
    fraction: Fraction,
}

/// Up to this denominator of T, counts were decided alike before T was a fraction: by floating point, with a
/// slack of 1e-9 of a count.
const SIMPLE: u64 = 1_000_000;

impl Threshold {
    /// A threshold above 0 and at most 1; `None` for others.
    pub fn new(value: f64) -> Option<Self> {
        // No quotient of counts is below 2^-60, which is positive.
        let fraction = || Fraction::new(value).unwrap_or(Fraction { part: 1, whole: 1 << 60 });
        (value > 0.0 && value <= 1.0).then(|| Self { value, fraction: fraction() })
    }

    /// T.
    pub fn get(self) -> f64 {
        self.value
    }

    /// Whether T is a fraction with a denominator of at most a million.
    pub fn is_simple(self) -> bool {
        self.fraction.whole <= SIMPLE
    }

    /// Whether a similarity is at least T: by `exactly` if the two are within `rounding` (absolute, of the
    /// similarity) of each other, where that is known; else it counts as T.
    pub fn admits(self, similarity: f64, rounding: f64, exactly: impl FnOnce() -> Option<bool>) -> bool {
        if (similarity - self.value).abs() <= rounding {
            exactly().unwrap_or(true)
        } else {
            similarity > self.value
        }
    }

    /// Whether `part / whole` is at least T.
    pub fn admits_ratio(self, part: u128, whole: u128) -> bool {
        product(part, self.fraction.whole.into()) >= product(whole, self.fraction.part.into())
    }

    /// Whether `part / sqrt(x * y)` is at least T.
    pub fn admits_cosine(self, part: u64, x: u64, y: u64) -> bool {
        let [left, right] = [(part, self.fraction.whole), (self.fraction.part, 1)]
            .map(|(a, b)| u128::from(a) * u128::from(b));
        product(left, left) >= product(right * right, u128::from(x) * u128::from(y))
    }

    /// The least count that is at least T of `whole`.
    pub fn least_of(self, whole: usize) -> usize {
        self.least(whole, self.fraction.whole.into())
    }

    /// The least number of common features of two sets with a Jaccard similarity of at least T, which have
    /// `total` features together: `a / (total - a) >= T`.
    pub fn least_common(self, total: usize) -> usize {
        self.least(total, u128::from(self.fraction.part) + u128::from(self.fraction.whole))
    }

    /// `ceil(count * part / whole)`, with the part of T; at most the count.
    fn least(self, count: usize, whole: u128) -> usize {
        let least = (count as u128 * u128::from(self.fraction.part)).div_ceil(whole);
        usize::try_from(least).expect("a share of a count is at most the count")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(value: f64) -> Threshold {
        Threshold::new(value).unwrap()
    }

    #[test]
    fn thresholds_are_in_their_range() {
        for value in [0.0, -0.1, 1.0_f64.next_up(), f64::NAN] {
            assert_eq!(Threshold::new(value), None);
        }
        assert!(threshold(f64::MIN_POSITIVE).admits_ratio(1, 1 << 40));
        assert!(threshold(2.0 / 3.0).is_simple() && !threshold(0.666_666_666_67).is_simple());
    }

    /// All fractions of up to 60, with thresholds as decimals and as fractions, by whole numbers.
    #[test]
    fn ties_are_decided_by_whole_numbers() {
        let mut ties = 0;
        for (whole_of_t, part_of_t) in (1..40_u64).flat_map(|q| (1..=q).map(move |p| (q, p))) {
            let at = threshold(part_of_t as f64 / whole_of_t as f64);
            for (whole, part) in (1..60_u64).flat_map(|u| (0..=u).map(move |a| (u, a))) {
                let reaches = part * whole_of_t >= part_of_t * whole;
                let [parts, wholes] = [part, whole].map(|count| usize::try_from(count).unwrap());
                ties += usize::from(part * whole_of_t == part_of_t * whole);
                assert_eq!(at.admits_ratio(part.into(), whole.into()), reaches);
                assert_eq!(parts >= at.least_of(wholes), reaches);
                assert_eq!(parts >= at.least_common(wholes + parts), reaches);
                // The cosine of `part / sqrt(whole * whole)`.
                assert_eq!(at.admits_cosine(part, whole, whole), reaches);
                let similarity = part as f64 / whole as f64;
                assert_eq!(at.admits(similarity, 1e-9, || Some(reaches)), reaches);
                assert_eq!(at.admits(similarity, 1e-9, || None), reaches);
            }
        }
        assert!(ties > 2000, "{ties}");
    }

    #[test]
    fn a_number_near_a_fraction_is_another_one() {
        // 0.66666666667 is above 2/3, by less than a slack of 1e-9 of a count.
        for (value, admits) in [
            (0.666_666_666_67, false),
            (0.666_666_666_666_666_6, true),
            (2.0 / 3.0, true),
            (0.666_666_666_66, true),
        ] {
            assert_eq!(threshold(value).admits_ratio(2, 3), admits, "{value}");
            assert_eq!(threshold(value).least_of(3) == 2, admits, "{value}");
        }
        assert_eq!(threshold(0.8).least_of(10_000_000_000), 8_000_000_000);
        assert_eq!(threshold(1.0).least_common(usize::MAX), usize::MAX / 2 + 1);
    }
}
