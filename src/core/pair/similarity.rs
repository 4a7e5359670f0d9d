//! The similarity of a pair, and its shares.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A similarity in `0.0..=1.0`, with the total order and the identity that a dataflow record needs.
///
/// Containment has a direction: the similarity of two texts a and b has two [shares](Self::shares), of a's
/// features in b and of b's in a. It is the greater of the two, and [flipped](Self::flipped) it is that of b
/// and a. Any other similarity s has the shares s and s, and is the same both ways.
// Shares in a pair's own field would take memory of every pair of every pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Similarity {
    /// If positive or 0, the bits of a number, which both shares are. Else, below [`TWO_SHARES`], the two
    /// different shares in billionths, that of a's features in the upper 31 bits.
    bits: u64,
}

/// Bit of a [`Similarity`] that has two different shares.
const TWO_SHARES: u64 = 1 << 63;

/// Bits of a share.
const SHARE_BITS: u32 = 31;

/// A share is stored in units of one billionth, so that it has nine decimals at most in text, and is read
/// back as the same value.
const SHARE_UNITS: f64 = 1e9;

/// What a filter has counted of two texts a and b, of all their features or of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Features of both.
    pub shared: usize,
    /// Features of a, at least 1.
    pub of_a: usize,
    /// Features of b, at least 1.
    pub of_b: usize,
}

impl Overlap {
    /// The containment of the two texts in each other.
    pub fn similarity(self) -> Similarity {
        let Self { shared, of_a, of_b } = self;
        Similarity::of_shares([of_a, of_b].map(|all| shared as f64 / all.max(1) as f64))
    }
}

impl Similarity {
    /// The similarity of a text to its copy.
    pub const ONE: Self = Self { bits: 0x3ff0_0000_0000_0000 };

    /// Greatest difference of a stored share and the share, exclusive.
    pub const SHARE_ROUNDING: f64 = 1.0 / SHARE_UNITS;

    /// Clamps an estimate to `0.0..=1.0`; a NaN becomes 0.
    pub fn clamped(estimate: f64) -> Self {
        // `max` first: it turns a NaN and a negative zero into 0.
        Self { bits: if estimate > 0.0 { estimate.min(1.0) } else { 0.0 }.to_bits() }
    }

    /// The similarity with these shares: of a's features in b, and of b's features in a. They are clamped as
    /// in [`Self::clamped`], and two different ones are rounded to billionths.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10^9")]
    pub fn of_shares(shares: [f64; 2]) -> Self {
        let [a, b] = shares.map(|share| (Self::clamped(share).get() * SHARE_UNITS).round() as u64);
        if a == b {
            Self::clamped(a as f64 / SHARE_UNITS)
        } else {
            Self { bits: TWO_SHARES | a << SHARE_BITS | b }
        }
    }

    /// The similarity of a and b that was written as its value, beside the shares of a's features in b and of
    /// b's in a. Shares that are missing or equal say no more than the value.
    pub fn read_beside(value: f64, in_b: Option<f64>, in_a: Option<f64>) -> Self {
        match (in_b, in_a) {
            (Some(in_b), Some(in_a)) if in_b.total_cmp(&in_a).is_ne() => Self::of_shares([in_b, in_a]),
            _ => Self::clamped(value),
        }
    }

    /// The value, in `0.0..=1.0`: the greater share.
    pub fn get(self) -> f64 {
        let [a, b] = self.shares();
        a.max(b)
    }

    /// Of a similarity of a and b: the share of a's features that b has, and the share of b's that a has. For
    /// other similarities than containment both are its [value](Self::get).
    pub fn shares(self) -> [f64; 2] {
        if !self.is_directed() {
            return [f64::from_bits(self.bits); 2];
        }
        let share = |shift: u32| (self.bits >> shift & ((1 << SHARE_BITS) - 1)) as f64 / SHARE_UNITS;
        [share(SHARE_BITS), share(0)]
    }

    /// Whether the shares differ.
    pub fn is_directed(self) -> bool {
        self.bits & TWO_SHARES != 0
    }

    /// All of it as bits, for [`Self::from_bits`]. Those of a number, unless the shares differ.
    pub fn to_bits(self) -> u64 {
        self.bits
    }

    /// The similarity of these [bits](Self::to_bits); of others, any similarity.
    pub fn from_bits(bits: u64) -> Self {
        if bits & TWO_SHARES == 0 {
            Self::clamped(f64::from_bits(bits))
        } else {
            Self::of_shares(Self { bits }.shares())
        }
    }

    /// The similarity of the two texts in the other order.
    #[must_use]
    pub fn flipped(self) -> Self {
        if !self.is_directed() {
            return self;
        }
        let [a, b] = [SHARE_BITS, 0].map(|shift| self.bits >> shift & ((1 << SHARE_BITS) - 1));
        Self { bits: TWO_SHARES | b << SHARE_BITS | a }
    }
}

/// The two shares of a similarity, written beside its value if they differ: of a subject, which is a document
/// or a watch, and of another document, its `id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharesBeside {
    /// The share of the subject's features that `id` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_id: Option<f64>,
    /// The share of the features of `id` that the subject has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_id: Option<f64>,
}

impl SharesBeside {
    /// Of a similarity of the subject and `id`.
    pub fn new(similarity: Similarity) -> Self {
        let [in_id, of_id] = match similarity.shares() {
            [a, b] if similarity.is_directed() => [Some(a), Some(b)],
            _ => [None; 2],
        };
        Self { in_id, of_id }
    }

    /// The similarity with this value, beside which they are written.
    pub fn similarity(self, value: f64) -> Similarity {
        Similarity::read_beside(value, self.in_id, self.of_id)
    }
}

impl fmt::Debug for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shares() {
            [a, b] if self.is_directed() => write!(f, "Similarity({a} in b, {b} in a)"),
            [value, _] => f.debug_tuple("Similarity").field(&value).finish(),
        }
    }
}

impl Ord for Similarity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().total_cmp(&other.get()).then(self.bits.cmp(&other.bits))
    }
}

impl PartialOrd for Similarity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "numbers that are stored, and fractions of few digits")]
mod tests {
    use super::*;

    #[test]
    fn a_similarity_is_a_number_or_two_shares() {
        let shares = |a, b| Similarity::of_shares([a, b]);
        let (within, around) = (shares(0.9, 0.25), shares(0.25, 0.9));
        assert_eq!((within.get(), within.shares()), (0.9, [0.9, 0.25]));
        assert_eq!((within.flipped(), around.flipped()), (around, within));
        assert_ne!(within, around);
        // Equal shares are the number, and a number is the same both ways.
        assert_eq!((shares(1.0, 1.0), shares(0.5, 0.5)), (Similarity::ONE, Similarity::clamped(0.5)));
        assert_eq!(Similarity::ONE.get(), 1.0);
        let third = Similarity::clamped(1.0 / 3.0);
        assert_eq!((third.shares(), third.flipped()), ([1.0 / 3.0; 2], third));
        assert_eq!([f64::NAN, -0.0, -1.0, 2.0].map(|n| Similarity::clamped(n).get()), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(shares(f64::NAN, 7.0).shares(), [0.0, 1.0]);
        assert_eq!(
            format!("{third:?} {within:?}"),
            "Similarity(0.3333333333333333) Similarity(0.9 in b, 0.25 in a)"
        );
        assert_eq!(size_of::<Similarity>(), 8);
    }

    /// By value first, whatever the form.
    #[test]
    fn similarities_are_ordered() {
        let ascending = [
            Similarity::clamped(0.0),
            Similarity::clamped(0.1),
            Similarity::of_shares([0.0, 0.5]),
            Similarity::of_shares([0.5, 0.0]),
            Similarity::clamped(0.6),
            Similarity::of_shares([0.2, 1.0]),
            Similarity::of_shares([1.0, 0.2]),
        ];
        assert!(ascending.is_sorted() && ascending.windows(2).all(|two| two[0] != two[1]));
        assert!(Similarity::clamped(0.5) < Similarity::of_shares([0.5, 0.0]));
    }

    /// Shares are read back from their digits.
    #[test]
    fn shares_have_nine_decimals() {
        for of_a in 1..60 {
            for of_b in 1..60 {
                for shared in [1, of_a.min(of_b)] {
                    let overlap = Overlap { shared, of_a, of_b };
                    let similarity = overlap.similarity();
                    let typed = similarity.shares().map(|share| share.to_string());
                    assert!(typed.iter().all(|share| share.len() <= 11), "{typed:?}");
                    assert_eq!(Similarity::of_shares(typed.map(|share| share.parse().unwrap())), similarity);
                    let exact = shared as f64 / of_a.min(of_b) as f64;
                    assert!((similarity.get() - exact).abs() < 1e-9);
                    assert_eq!(Overlap { shared, of_a: of_b, of_b: of_a }.similarity(), similarity.flipped());
                }
            }
        }
    }

    #[test]
    fn similarities_are_read_back() {
        let all = [Similarity::ONE, Similarity::clamped(1.0 / 3.0), Similarity::of_shares([1.0 / 3.0, 0.5])];
        for similarity in all {
            assert_eq!(Similarity::from_bits(similarity.to_bits()), similarity);
            let beside = SharesBeside::new(similarity);
            assert_eq!(beside.similarity(similarity.get()), similarity);
            assert_eq!(beside == SharesBeside::default(), similarity.flipped() == similarity);
        }
        assert_eq!(Similarity::clamped(0.3).to_bits(), 0.3_f64.to_bits());
        // Bits of no similarity.
        for bits in [u64::MAX, f64::NAN.to_bits(), 7.0_f64.to_bits(), TWO_SHARES, (-1.0_f64).to_bits()] {
            let similarity = Similarity::from_bits(bits);
            assert!((0.0..=1.0).contains(&similarity.get()));
            assert_eq!(Similarity::from_bits(similarity.to_bits()), similarity);
        }
    }
}
