//! The variance of estimates by theory, for each kind of sketch.
//!
//! J is the similarity, u the number of features of both texts together, a = J u the number of common ones, K
//! the number of components. Components that partition the features, instead of drawing them independently,
//! have less variance than `J (1 - J) / K`, by a factor α(K, u). Storing b bits adds the same variance for
//! all kinds, `(1 - J) / (K (2^b - 1))`, since accidental agreements are independent.
//!
//! References: O. Ertl, *SuperMinHash* (2017), theorem 1, for α; Li, Owen and Zhang, *One permutation
//! hashing* (NIPS 2012), theorem 3; Ji et al., *Min-max hash* (ICDM 2013); Mitzenmacher, Pagh and Pham, *Odd
//! sketches* (WWW 2014), for the variance of z.

use super::estimate;

/// `(α J (1 - J) + (1 - J) / (2^b - 1)) / K`: components of b bits.
pub fn of_bits(alpha: f64, similarity: f64, size: usize, bits: usize) -> f64 {
    let chance = estimate::accident(bits);
    (1.0 - similarity) * (alpha * similarity + chance / (1.0 - chance)) / size as f64
}

/// α(K, u) of SuperMinHash, at K >= 2: `1 - Σ_(l<K) l^u ((l+1)^u + (l-1)^u - 2 l^u) / ((K-1)^(u-1) K^u
/// (u-1))`. The α of fast similarity sketching is the same for texts of 20 or more features (measured). 0 if
/// the union is one feature.
pub fn alpha(size: usize, union: usize) -> f64 {
    if union < 2 {
        return 0.0;
    }
    let (m, u) = (size as f64, union as f64);
    let power = |x: f64| x.powf(u);
    let terms = (1..size).map(|l| {
        let l = l as f64;
        let bend = power((l + 1.0) / m) + power((l - 1.0) / m) - 2.0 * power(l / m);
        power(l / (m - 1.0)) * (m - 1.0) / (u - 1.0) * bend
    });
    1.0 - terms.sum::<f64>()
}

/// `J (1 - J) / k * (u - k) / (u - 1)`: a sample without replacement; 0 if it is the whole union.
pub fn bottom_k(similarity: f64, union: usize, size: usize) -> f64 {
    let left = union.saturating_sub(size) as f64 / (union.max(2) - 1) as f64;
    similarity * (1.0 - similarity) / size as f64 * left
}

/// α of min-max hashing, `(J (1 - J) + c (J (a - 1) / (u - 1) - J²)) / (J (1 - J))`, where `c = 2 ⌊K/2⌋ / K`
/// is the share of components in couples. For even K the variance is `J (u + a - 2) / ((u - 1) K) - 2 J² /
/// K`.
pub fn min_max_alpha(union: usize, size: usize) -> f64 {
    // J (a - 1) / (u - 1) - J² = -J (1 - J) / (u - 1).
    let couples = (size / 2 * 2) as f64 / size as f64;
    1.0 - couples / (union.max(2) - 1) as f64
}

/// The number of bins of K that u features fill: mean and variance.
fn filled(union: usize, size: usize) -> (f64, f64) {
    let (u, k) = (union as f64, size as f64);
    // Probabilities that one given bin is empty, and that two given bins are.
    let (one, two) = ((1.0 - 1.0 / k).powf(u), (1.0 - 2.0 / k).powf(u));
    (k * (1.0 - one), k * (k - 1.0) * two + k * one - k * k * one * one)
}

/// α of one permutation hashing with optimal densification. With m of K bins filled, e = K - m copies fall
/// evenly on those m. The squares of how often each filled bin counts sum up to `S = m + 3 e + e (e - 1) / m`
/// on average; the m samples are without replacement: `α = (S u / (u - 1) - K² / (u - 1)) / K`. S is taken at
/// the mean of m.
pub fn densified_alpha(union: usize, size: usize) -> f64 {
    if union < 2 {
        return 0.0;
    }
    let (u, k) = (union as f64, size as f64);
    let (m, spread) = filled(union, size);
    // e (e - 1) / m = K (K - 1) / m - 2 K + 1 + m, with 1 / m to second order.
    let inverse = (1.0 + spread / (m * m)) / m;
    let squares = m + 3.0 * (k - m) + k * (k - 1.0) * inverse - 2.0 * k + 1.0 + m;
    (squares * u - k * k) / ((u - 1.0) * k)
}

/// One permutation hashing with its original estimator: `J (1 - J) (E[1/m] (1 + 1/(u-1)) - 1/(u-1))`, where m
/// is the number of bins that either text fills and E[1/m] is taken to second order; plus the accidental
/// agreements in bins that both texts fill, for texts of equal length.
pub fn one_permutation(similarity: f64, union: usize, size: usize, bits: usize) -> f64 {
    if union < 2 {
        return 0.0;
    }
    let (u, k) = (union as f64, size as f64);
    let (m, spread) = filled(union, size);
    let inverse = (1.0 + spread / (m * m)) / m;
    let full = similarity * (1.0 - similarity) * (inverse * u - 1.0) / (u - 1.0);
    let one_empty = (1.0 - 1.0 / k).powf(u * (1.0 + similarity) / 2.0);
    let differing = (m * (1.0 - similarity) - 2.0 * (k * one_empty - (k - m))).max(0.0);
    let chance = estimate::accident(bits);
    full + differing * chance / (1.0 - chance) * inverse * inverse
}

/// Odd sketches of n bits, to first order: of `m = 2 K (1 - J)` differing items, z bits differ with the
/// variance `n² ((1 - 4/n)^m - (1 - 2/n)^(2m)) / 4 + n (1 - (1 - 4/n)^m) / 4`; `Var = Var[z] / (4 K² (1 -
/// 2/n)^(2m)) + α J (1 - J) / K`.
pub fn odd(alpha: f64, similarity: f64, size: usize, bits: usize) -> f64 {
    let (k, n) = (size as f64, bits as f64);
    let m = 2.0 * k * (1.0 - similarity);
    let (four, two) = ((1.0 - 4.0 / n).powf(m), (1.0 - 2.0 / n).powf(2.0 * m));
    let z = n * n * (four - two) / 4.0 + n * (1.0 - four) / 4.0;
    z / (4.0 * k * k * two) + of_bits(alpha, similarity, size, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, slack: f64) {
        assert!((found - expected).abs() <= slack, "{found}, expected {expected}");
    }

    #[test]
    fn by_hand() {
        near(of_bits(1.0, 0.5, 100, 64), 0.0025, 1e-15);
        near(of_bits(0.0, 0.5, 100, 1), 0.005, 1e-15);
        near(bottom_k(0.5, 11, 6), 0.25 / 6.0 * 0.5, 1e-15);
        near(min_max_alpha(100, 16), 1.0 - 1.0 / 99.0, 1e-15);
        near(min_max_alpha(100, 17), 1.0 - 16.0 / 17.0 / 99.0, 1e-15);
        // Evaluated with exact integers.
        near(alpha(448, 20), 0.4879, 1e-4);
        near(alpha(448, 2000), 0.7815, 1e-4);
    }

    #[test]
    fn one_feature_has_no_variance() {
        for of in [alpha(100, 1), densified_alpha(1, 100), one_permutation(0.5, 1, 100, 1)] {
            near(of, 0.0, 1e-15);
        }
        near(bottom_k(0.5, 1, 100), 0.0, 1e-15);
    }

    /// Two features in two bins fill one or both, equally likely: by enumeration of samples and copies.
    #[test]
    fn two_features_in_two_bins() {
        let (mean, spread) = filled(2, 2);
        near(mean, 1.5, 1e-15);
        near(spread, 0.25, 1e-15);
        // Both filled: the two are the whole union, no variance. One filled: a sample of one, variance 1/4 at
        // J = 1/2.
        near(one_permutation(0.5, 2, 2, 64), 0.125, 0.02);
    }

    /// If all bins are filled, they are a sample without replacement for both estimators, which then have
    /// equal variance. If few are filled, copies cost up to half as much variance again.
    #[test]
    fn densification_costs_where_features_are_few() {
        let original = |u| one_permutation(0.5, u, 256, 64) / of_bits(1.0, 0.5, 256, 64);
        near(densified_alpha(4000, 256), original(4000), 1e-3);
        assert!((1.2..1.5).contains(&densified_alpha(60, 256)), "{}", densified_alpha(60, 256));
        assert!((0.4..0.6).contains(&original(60)), "{}", original(60));
    }

    #[test]
    fn an_odd_sketch_of_many_bits_is_as_good_as_its_components() {
        near(odd(1.0, 0.95, 100, 1 << 20) / of_bits(1.0, 0.95, 100, 64), 1.0, 0.01);
        assert!(odd(1.0, 0.8, 100, 100) > 1.5 * of_bits(1.0, 0.8, 100, 64));
    }
}
