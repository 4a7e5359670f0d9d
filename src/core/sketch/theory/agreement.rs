//! The probability that a place of two sketches agrees, as a function of the similarity of their texts, and
//! its inverse.
//!
//! A sketch that is compared place by place has K places. Under random hashing each place agrees with the
//! same probability p(s), and the places are exchangeable. All decisions that count places use p(s): bands,
//! filters, estimates.
//!
//! | | p(s) | s is |
//! |---|---|---|
//! | [`Bits`](Agreement::Bits) | `J + (1 - J) / 2^b` | Jaccard similarity, plain or weighted |
//! | [`Run`](Agreement::Run) | `(J + (1 - J) / 2^b)^n` | the same |
//! | [`Odd`](Agreement::Odd) | `(1 + exp(-4 (1 - J) / c)) / 2` | the same |
//! | [`Angle`](Agreement::Angle) | `1 - acos(s) / pi` | cosine similarity |
//! | [`Bit`](Agreement::Bit) | `s` | the share of equal bits |
//!
//! References: P. Li and A. C. König, *b-bit minwise hashing* (WWW 2010); Tang et al., *Connected bit minwise
//! hashing* (2015), for runs; M. Mitzenmacher, R. Pagh and N. Pham, *Efficient estimation for high
//! similarities using odd sketches* (WWW 2014); M. Charikar, *Similarity estimation techniques from rounding
//! algorithms* (STOC 2002).

use std::f64::consts::PI;

use serde::Serialize;

use super::{estimate, variance};

/// The law p(s) by which places agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// A place is a component, of which b bits are stored.
    Bits(usize),
    /// A place is a run of consecutive components of b bits each; it agrees if all of them do.
    Run {
        /// b.
        bits: usize,
        /// n, components in a run.
        length: usize,
    },
    /// A place is a bit of an odd sketch, which has c bits for each component.
    Odd(usize),
    /// A place is the side of a random hyperplane on which the text lies.
    Angle,
    /// A place is a bit of a given fingerprint.
    Bit,
}

impl Agreement {
    /// p(s), the probability that a place agrees at this similarity.
    pub fn probability(self, similarity: f64) -> f64 {
        match self {
            Self::Bits(bits) => estimate::match_probability(similarity, bits),
            Self::Run { bits, length } => estimate::match_probability(similarity, bits).powf(length as f64),
            Self::Odd(load) => f64::midpoint(1.0, (-4.0 * (1.0 - similarity) / load as f64).exp()),
            Self::Angle => 1.0 - similarity.clamp(-1.0, 1.0).acos() / PI,
            Self::Bit => similarity,
        }
    }

    /// The similarity at which places agree with probability `p`. It is not clamped: it may be below 0, and
    /// is minus infinity for a saturated odd sketch.
    pub fn similarity(self, p: f64) -> f64 {
        match self {
            Self::Bits(bits) => estimate::similarity(p, bits),
            Self::Run { bits, length } => estimate::similarity(p.powf(1.0 / length as f64), bits),
            Self::Odd(load) => 1.0 + load as f64 / 4.0 * (2.0 * p - 1.0).max(0.0).ln(),
            Self::Angle => (PI * (1.0 - p)).cos(),
            Self::Bit => p,
        }
    }

    /// The standard deviation of the estimate from `size` places of independent components at this
    /// similarity. Exact for [`Bits`](Self::Bits). For the others it is first order, `sqrt(p (1 - p) / K) /
    /// p'(s)` where the places are independent too. 0 at similarity 1.
    pub fn standard_error(self, similarity: f64, size: usize) -> f64 {
        let slope = match self {
            Self::Bits(bits) => return estimate::standard_error(similarity, size, bits),
            // A fingerprint is all there is.
            Self::Bit => return 0.0,
            _ if similarity >= 1.0 => return 0.0,
            Self::Run { bits, length } => {
                let one = estimate::match_probability(similarity, bits);
                let n = length as f64;
                n * one.powf(n - 1.0) * (1.0 - estimate::match_probability(0.0, bits))
            }
            Self::Odd(load) => return variance::odd(1.0, similarity, size / load, size).sqrt(),
            Self::Angle => 1.0 / (PI * (1.0 - similarity * similarity).sqrt()),
        };
        let p = self.probability(similarity);
        (p * (1.0 - p) / size as f64).sqrt() / slope
    }

    /// By how much the similarity may be below 1 where all of `size` places agree: `1 - s` at `p(s) = 1 - 3 /
    /// K`. At that similarity all agree with probability 0.05 (the rule of three).
    pub fn unseen(self, size: usize) -> f64 {
        match self {
            Self::Bit => 0.0,
            _ => (1.0 - self.similarity((1.0 - 3.0 / size as f64).max(0.0))).min(1.0),
        }
    }
}

/// The layout of a sketch that is compared place by place: K places of the same number of bits, stored as bit
/// planes or as words; see [`sketch`](crate::sketch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// K, places; 1 to 32768 inclusive.
    pub size: usize,
    /// Bits of a place, 1 to 64 inclusive.
    pub bits: usize,
    /// The law by which places agree.
    pub agreement: Agreement,
}

impl Shape {
    /// `size` components of `bits` bits.
    pub fn components(size: usize, bits: usize) -> Self {
        Self { size, bits, agreement: Agreement::Bits(bits) }
    }

    /// Whether each place is one word.
    pub fn by_word(&self) -> bool {
        self.bits == 64
    }

    /// Number of words in the sketch.
    pub fn words(&self) -> usize {
        if self.by_word() { 1 + self.size } else { self.bits * self.size.div_ceil(64) }
    }

    /// Packs the low bits of `places` into the words of a sketch of this shape.
    pub fn pack(&self, places: &[u64]) -> Vec<u64> {
        let places = &places[..self.size];
        let plane = |group: &[u64], p: usize| group.iter().rev().fold(0, |word, x| word << 1 | x >> p & 1);
        if self.by_word() {
            let first = plane(&places[..self.size.min(64)], 0);
            return [first].into_iter().chain(places.iter().copied()).collect();
        }
        places.chunks(64).flat_map(|group| (0..self.bits).map(move |p| plane(group, p))).collect()
    }

    /// Reads place `j` from the words of a sketch of this shape.
    pub fn place(&self, words: &[u64], j: usize) -> u64 {
        if self.by_word() {
            return words[1 + j];
        }
        let planes = &words[j / 64 * self.bits..][..self.bits];
        planes.iter().rev().fold(0, |place, plane| place << 1 | plane >> (j % 64) & 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_hold_every_place_after_the_first_word() {
        let places: Vec<u64> = (0..130).map(crate::hash::mix).collect();
        for (size, bits) in [(16, 64), (130, 64), (130, 1), (100, 4), (64, 6), (128, 32)] {
            let shape = Shape::components(size, bits);
            let words = shape.pack(&places);
            assert_eq!(words.len(), shape.words());
            for (j, place) in places[..size].iter().enumerate() {
                assert_eq!(shape.place(&words, j), place & !0 >> (64 - bits), "{j} of {size}, {bits} bits");
                assert!(j >= 64 || words[0] >> j & 1 == place & 1, "{j} of {size}, {bits} bits");
            }
        }
    }

    #[test]
    fn by_hand() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(Agreement::Bits(1).probability(0.8), 0.9);
        near(Agreement::Run { bits: 1, length: 2 }.probability(0.8), 0.81);
        near(Agreement::Run { bits: 1, length: 2 }.similarity(0.81), 0.8);
        near(Agreement::Angle.probability(0.0), 0.5);
        near(Agreement::Angle.similarity(0.75), 0.5_f64.sqrt());
        // 100 of 1000 bits differ, of 500 components: 1 + 1000 / 2000 ln(0.8).
        near(Agreement::Odd(2).similarity(0.9), 1.0 + 0.8_f64.ln() / 2.0);
        assert!(Agreement::Odd(1).similarity(0.5).is_infinite());
    }

    #[test]
    fn similarity_inverts_probability_and_error_follows_the_slope() {
        let all = [
            Agreement::Bits(4),
            Agreement::Run { bits: 2, length: 3 },
            Agreement::Odd(1),
            Agreement::Odd(4),
            Agreement::Angle,
        ];
        for agreement in all {
            for s in [0.1, 0.5, 0.8, 0.95] {
                let p = agreement.probability(s);
                assert!((agreement.similarity(p) - s).abs() < 1e-12, "{agreement:?} {s}");
                if let Agreement::Odd(_) = agreement {
                    continue;
                }
                let slope = (agreement.probability(s + 1e-6) - agreement.probability(s - 1e-6)) / 2e-6;
                let expected = (p * (1.0 - p) / 100.0).sqrt() / slope;
                let error = agreement.standard_error(s, 100);
                assert!((error / expected - 1.0).abs() < 1e-6, "{agreement:?} {s}: {error} {expected}");
            }
            assert!(agreement.standard_error(1.0, 100) < 1e-12);
            // All of 300 places agree with the probability 0.05, and of few places nothing follows.
            let agree = agreement.probability(1.0 - agreement.unseen(300)).powi(300);
            assert!((agree - 0.05).abs() < 2e-3, "{agreement:?}: {agree}");
            assert!((agreement.unseen(2) - 1.0).abs() < 1e-12, "{agreement:?}");
        }
        assert!(Agreement::Bit.unseen(64) < 1e-15);
    }
}
