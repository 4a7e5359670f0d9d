//! Exact similarities of two texts, by definition, from their features.
//!
//! Two lists of distinct features, ascending, with their weights, x and y -> a number from 0 to 1
//! (inclusive). Two texts without features have 1; if only one has none, 0.
//!
//! | | | |
//! |---|---|---|
//! | [`jaccard`] | `J = \|A ∩ B\| / \|A ∪ B\|` | ignores weights |
//! | [`weighted_jaccard`] | `J_w = Σ min(x_i, y_i) / Σ max(x_i, y_i)` | depends on the scale of each side |
//! | [`cosine`] | `Σ x_i y_i / (\|x\| \|y\|)` | scale-invariant |
//! | [`containment`] | `C = \|A ∩ B\| / \|A\|` | not symmetric |
//! | [`hamming`] | `\|A ∩ B\| / max(\|A\|, \|B\|)` | of fingerprints: the share of equal bits |
//! | [`probability_jaccard`] | `J_P = Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)` | scale-invariant |
//!
//! Invariants: all measures except containment are symmetric, and equal lists have 1, exactly except for J_P,
//! which is rounded. Every sum runs over ascending features, so it is the same on every machine, and exact
//! for weights that are whole numbers.
//!
//! References: Yuan et al. (2019), eq. 1, for J_w; R. Moulton and Y. Jiang, *Maximally consistent sampling
//! and the Jaccard index of probability distributions* (ICDM 2018), for J_P.

use serde::{Deserialize, Serialize};

use super::weights::Features;

/// The definition of similarity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// [`jaccard`].
    #[default]
    Jaccard,
    /// [`weighted_jaccard`].
    WeightedJaccard,
    /// [`cosine`].
    Cosine,
    /// The greater one of the [`containment`]s of two texts in each other: `|A ∩ B| / min(|A|, |B|)`.
    Containment,
    /// [`hamming`].
    Hamming,
}

impl Measure {
    /// Its name in pipeline files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jaccard => "jaccard",
            Self::WeightedJaccard => "weighted-jaccard",
            Self::Cosine => "cosine",
            Self::Containment => "containment",
            Self::Hamming => "hamming",
        }
    }

    /// The similarity of two texts.
    pub fn similarity(self, x: Features<'_>, y: Features<'_>) -> f64 {
        match self {
            Self::Jaccard => jaccard(x, y),
            Self::WeightedJaccard => weighted_jaccard(x, y),
            Self::Cosine => cosine(x, y),
            Self::Containment => containment(x, y).max(containment(y, x)),
            Self::Hamming => hamming(x, y),
        }
    }

    /// Whether the similarity depends on the weights of features.
    pub fn is_weighted(self) -> bool {
        match self {
            Self::Jaccard | Self::Containment | Self::Hamming => false,
            Self::WeightedJaccard | Self::Cosine => true,
        }
    }
}

/// `|A ∩ B| / |A ∪ B|`.
pub fn jaccard(x: Features<'_>, y: Features<'_>) -> f64 {
    let common = common(x, y);
    share(common as f64, (x.ids.len() + y.ids.len() - common) as f64)
}

/// `Σ min(x_i, y_i) / Σ max(x_i, y_i)`.
pub fn weighted_jaccard(x: Features<'_>, y: Features<'_>) -> f64 {
    let mut least = 0.0;
    each_common(x, y, |x, y| least += x.min(y));
    weighted_jaccard_of(least, total(x), total(y))
}

/// [`weighted_jaccard`] from `Σ min(x_i, y_i)` and the [totals](total) of both texts.
pub fn weighted_jaccard_of(least: f64, x: f64, y: f64) -> f64 {
    share(least, x + y - least)
}

/// `Σ x_i y_i / (|x| |y|)`.
pub fn cosine(x: Features<'_>, y: Features<'_>) -> f64 {
    let mut product = 0.0;
    each_common(x, y, |x, y| product += x * y);
    cosine_of(product, squares(x), squares(y)) * agree_in_emptiness(x, y)
}

/// [`cosine`] from `Σ x_i y_i` and the [squares] of both texts.
pub fn cosine_of(product: f64, x: f64, y: f64) -> f64 {
    // The square root of a square is exact; the square of a square root is not.
    share(product, (x * y).sqrt()).min(1.0)
}

/// `|A ∩ B| / |A|`: the share of the first text's features that the second has. If the first has none: 1 if
/// the second has none either, else 0.
pub fn containment(x: Features<'_>, y: Features<'_>) -> f64 {
    share(common(x, y) as f64, x.ids.len() as f64) * agree_in_emptiness(x, y)
}

/// `|A ∩ B| / max(|A|, |B|)`: the share of equal bits of two fingerprints, whose features are their bits.
pub fn hamming(x: Features<'_>, y: Features<'_>) -> f64 {
    share(common(x, y) as f64, x.ids.len().max(y.ids.len()) as f64)
}

/// `Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)`, up to rounding.
///
/// With features sorted by `x_j / y_j`, the maximum is `x_j / x_i` from i on and `y_j / y_i` before i. So two
/// running sums are enough.
pub fn probability_jaccard(x: Features<'_>, y: Features<'_>) -> f64 {
    let mut pairs = Vec::new();
    each(x, y, |x, y| pairs.push((x, y)));
    if pairs.is_empty() {
        return 1.0;
    }
    pairs.sort_by(|(a, b), (c, d)| (a / b).total_cmp(&(c / d)));
    let mut later: f64 = pairs.iter().map(|(of_x, _)| of_x).sum();
    let mut before = 0.0;
    let mut similarity = 0.0;
    for (of_x, of_y) in pairs {
        if of_x > 0.0 && of_y > 0.0 {
            similarity += 1.0 / (later / of_x + before / of_y);
        }
        later -= of_x;
        before += of_y;
    }
    similarity
}

/// The sum of the weights, `|x|_1`.
pub fn total(x: Features<'_>) -> f64 {
    if x.weights.is_empty() { x.ids.len() as f64 } else { x.weights.iter().sum() }
}

/// The sum of the squared weights, `|x|²`.
pub fn squares(x: Features<'_>) -> f64 {
    if x.weights.is_empty() {
        x.ids.len() as f64
    } else {
        x.weights.iter().map(|weight| weight * weight).sum()
    }
}

/// Bound of the relative rounding error of [`weighted_jaccard`] and [`cosine`]: `(n + 8) 2^-51` with n
/// features of both texts. A weight has an error of 4 units of 2^-53 at most, a sum of n terms n more, and
/// `x + y - least` is at least a third of what its errors are relative to.
pub fn rounding(x: Features<'_>, y: Features<'_>) -> f64 {
    (x.ids.len() + y.ids.len() + 8) as f64 * (f64::EPSILON * 2.0)
}

/// `part / whole`; 1 if `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// 0 if exactly one text has no features, else 1.
fn agree_in_emptiness(x: Features<'_>, y: Features<'_>) -> f64 {
    if x.ids.is_empty() == y.ids.is_empty() { 1.0 } else { 0.0 }
}

/// `|A ∩ B|`, of features with weights above 0.
pub fn common(x: Features<'_>, y: Features<'_>) -> usize {
    let mut common = 0;
    each_common(x, y, |_, _| common += 1);
    common
}

/// Calls `then` with both weights of every feature that both texts have.
fn each_common(x: Features<'_>, y: Features<'_>, mut then: impl FnMut(f64, f64)) {
    each(x, y, |x, y| {
        if x > 0.0 && y > 0.0 {
            then(x, y);
        }
    });
}

/// Calls `then` with both weights of every feature of either text, ascending; the weight of an absent feature
/// is 0.
fn each(x: Features<'_>, y: Features<'_>, mut then: impl FnMut(f64, f64)) {
    let weight =
        |of: Features<'_>, at: Option<usize>| at.map_or(0.0, |at| of.weights.get(at).copied().unwrap_or(1.0));
    each_place(x.ids, y.ids, |i, j| then(weight(x, i), weight(y, j)));
}

/// Calls `then` with the indices of every feature of either text, ascending by feature.
pub fn each_place(x: &[u64], y: &[u64], mut then: impl FnMut(Option<usize>, Option<usize>)) {
    let (mut i, mut j) = (0, 0);
    while i < x.len() || j < y.len() {
        let is_x = j == y.len() || x.get(i).is_some_and(|id| *id <= y[j]);
        let is_y = i == x.len() || y.get(j).is_some_and(|id| *id <= x[i]);
        then(is_x.then_some(i), is_y.then_some(j));
        (i, j) = (i + usize::from(is_x), j + usize::from(is_y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn features<'a>(ids: &'a [u64], weights: &'a [f64]) -> Features<'a> {
        Features { ids, weights }
    }

    /// A random list: each of 20 features is in it with probability `most` / 20; weights are sevenths, so
    /// sums are not exact.
    fn list(seed: u64, most: u64) -> (Vec<u64>, Vec<f64>) {
        let ids: Vec<u64> = (0..20).filter(|id| mix(seed ^ (id << 32)) % 20 < most).collect();
        let weights = ids.iter().map(|id| (1 + mix(id ^ seed << 7) % 9) as f64 / 7.0).collect();
        (ids, weights)
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers and their quotients")]
    fn by_hand() {
        let (x, y) = (features(&[1, 2, 3], &[2.0, 1.0, 1.0]), features(&[2, 3, 4], &[1.0, 3.0, 4.0]));
        assert_eq!(jaccard(x, y), 0.5);
        assert_eq!(weighted_jaccard(x, y), 2.0 / 10.0);
        assert_eq!(cosine(x, y), 4.0 / 156.0_f64.sqrt());
        assert_eq!((containment(x, y), containment(features(&[2], &[]), y)), (2.0 / 3.0, 1.0));
        assert_eq!(Measure::Containment.similarity(y, features(&[2], &[])), 1.0);
        // Feature 2: max(2, 0) + 1 + 3 + 4 = 10. Feature 3: 2 + 1 + 1 + 4 / 3.
        assert!((probability_jaccard(x, y) - (0.1 + 3.0 / 16.0)).abs() < 1e-15);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exactly 0 or 1")]
    fn empty_texts_equal_only_each_other() {
        let (none, some) = (features(&[], &[]), features(&[7], &[0.1]));
        for measure in [jaccard, weighted_jaccard, cosine, containment, probability_jaccard] {
            assert_eq!([measure(none, none), measure(none, some), measure(some, none)], [1.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn symmetric_and_1_for_equals() {
        for seed in 0..200 {
            let ((i, v), (j, w)) = (list(seed, 12), list(seed ^ 0xff00, 12));
            let (x, y) = (features(&i, &v), features(&j, &w));
            let measures =
                [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine, Measure::Containment];
            for measure in measures {
                assert_eq!(measure.similarity(x, y).to_bits(), measure.similarity(y, x).to_bits());
                assert_eq!(measure.similarity(x, x).to_bits(), 1.0_f64.to_bits());
            }
            assert!((probability_jaccard(x, x) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn probability_jaccard_by_its_definition_and_at_any_scale() {
        for seed in 0..200 {
            let ((i, v), (j, w)) = (list(seed, 12), list(seed ^ 0xff00, 12));
            let weight =
                |ids: &[u64], weights: &[f64], id: u64| ids.binary_search(&id).map_or(0.0, |at| weights[at]);
            let (x, y) = (|id| weight(&i, &v, id), |id| weight(&j, &w, id));
            let expected: f64 = (0..20)
                .filter(|id| x(*id) > 0.0 && y(*id) > 0.0)
                .map(|id| 1.0 / (0..20).map(|other| (x(other) / x(id)).max(y(other) / y(id))).sum::<f64>())
                .sum();
            let scaled: Vec<f64> = v.iter().map(|of_x| of_x * 3.7).collect();
            for weights in [&v, &scaled] {
                let found = probability_jaccard(features(&i, weights), features(&j, &w));
                assert!((found - expected).abs() < 1e-12, "{seed}: {found} {expected}");
            }
        }
    }
}
