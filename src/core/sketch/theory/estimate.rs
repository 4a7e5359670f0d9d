//! The similarity estimated from a number of equal components.
//!
//! Components of two texts of similarity J agree in their b stored bits with probability `p = J + (1 - J) /
//! 2^b`: they are equal, or they differ and have the same b bits by accident. So X equal components of K
//! estimate `J = (X / K - 2^-b) / (1 - 2^-b)`, without bias, with variance `(1 - J) / K * (J + 1 / (2^b -
//! 1))`.
//!
//! References: P. Li and A. C. König, *b-bit minwise hashing* (WWW 2010). Here components are hashed again
//! before they are cut, so an accidental agreement has probability 2^-b for all sets. The variance is that of
//! independent components (MinHash); fast similarity sketching has at most this variance.

/// `2^-b`, the probability that two different components agree in `bits` stored bits.
pub(super) fn accident(bits: usize) -> f64 {
    (0..bits).fold(1.0, |chance, _| chance / 2.0)
}

/// `J + (1 - J) / 2^b`: the probability that a component of `bits` bits is equal, at this similarity.
pub fn match_probability(similarity: f64, bits: usize) -> f64 {
    similarity + (1.0 - similarity) * accident(bits)
}

/// The similarity at which components match with probability `p`. Not clamped: below 0 where p is less than
/// 2^-b.
pub fn similarity(p: f64, bits: usize) -> f64 {
    (p - accident(bits)) / (1.0 - accident(bits))
}

/// The similarity estimated from `matches` equal components of `size`. Not clamped: it may be slightly below
/// 0.
pub fn estimate(matches: usize, size: usize, bits: usize) -> f64 {
    similarity(matches as f64 / size as f64, bits)
}

/// The standard deviation of [`estimate`] at this similarity.
pub fn standard_error(similarity: f64, size: usize, bits: usize) -> f64 {
    let chance = accident(bits);
    ((1.0 - similarity) / size as f64 * (similarity + chance / (1.0 - chance))).sqrt()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "binary fractions, computed without rounding")]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(match_probability(0.8, 1), 0.9);
        assert_eq!(match_probability(0.5, 2), 0.625);
        assert_eq!(match_probability(0.25, 64), 0.25);
        assert_eq!(estimate(480, 512, 1), 0.875);
        assert_eq!(estimate(200, 512, 1), -0.21875);
        assert_eq!(estimate(16, 16, 8), 1.0);
        assert_eq!(standard_error(0.0, 512, 1), 0.001953125_f64.sqrt());
        assert_eq!(standard_error(1.0, 64, 1), 0.0);
    }
}
