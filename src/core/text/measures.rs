//! Similarities by their definitions, from the features of two texts.
//!
//! Two lists of distinct features, ascending, with their weights, x and y -> a number from 0 to 1, 1 for two
//! texts without a feature and 0 if only one has none.
//!
//! | | | |
//! |---|---|---|
//! | [`jaccard`] | `J = \|A ∩ B\| / \|A ∪ B\|` | weights have no part in it |
//! | [`weighted_jaccard`] | `J_w = Σ min(x_i, y_i) / Σ max(x_i, y_i)` | scaling one side changes it |
//! | [`cosine`] | `Σ x_i y_i / (\|x\| \|y\|)` | scaling changes nothing |
//! | [`containment`] | `C = \|A ∩ B\| / \|A\|` | not symmetric |
//! | [`probability_jaccard`] | `J_P = Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)` | scaling changes nothing |
//!
//! Invariants: all but containment are symmetric, and equal lists give 1: to the last bit, but for J_P. Every
//! sum runs over ascending features: it is the same on every machine, and exact for weights that are whole
//! numbers.
//!
//! References: Yuan et al. (2019), eq. 1, for J_w; R. Moulton and Y. Jiang, *Maximally consistent sampling
//! and the Jaccard index of probability distributions* (ICDM 2018), for J_P.

use serde::{Deserialize, Serialize};

use super::Features;

/// What similarity means.
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
}

impl Measure {
    /// Its name in pipeline files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jaccard => "jaccard",
            Self::WeightedJaccard => "weighted-jaccard",
            Self::Cosine => "cosine",
        }
    }

    /// The similarity of two texts.
    pub fn of(self, x: Features<'_>, y: Features<'_>) -> f64 {
        match self {
            Self::Jaccard => jaccard(x, y),
            Self::WeightedJaccard => weighted_jaccard(x, y),
            Self::Cosine => cosine(x, y),
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
    // The square root of a square is exact, the square of a square root is not.
    share(product, (x * y).sqrt()).min(1.0)
}

/// `|A ∩ B| / |A|`: how much of the first text is in the second; 1 if the first has no feature, and nor has
/// the second.
pub fn containment(x: Features<'_>, y: Features<'_>) -> f64 {
    share(common(x, y) as f64, x.ids.len() as f64) * agree_in_emptiness(x, y)
}

/// `Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)`, to within rounding.
///
/// With features in the order of `x_j / y_j`, the maximum is `x_j / x_i` from i on and `y_j / y_i` before it,
/// so that sums of the one and of the other do.
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

/// A part of a whole; all of it where there is nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// 0 if just one text has no feature, else 1.
fn agree_in_emptiness(x: Features<'_>, y: Features<'_>) -> f64 {
    if x.ids.is_empty() == y.ids.is_empty() { 1.0 } else { 0.0 }
}

/// `|A ∩ B|`, of features whose weights are above 0.
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

/// Calls `then` with both weights of every feature of either text, ascending; 0 stands for absent.
fn each(x: Features<'_>, y: Features<'_>, mut then: impl FnMut(f64, f64)) {
    let weight = |of: Features<'_>, at: usize| of.weights.get(at).copied().unwrap_or(1.0);
    let (mut i, mut j) = (0, 0);
    while i < x.ids.len() || j < y.ids.len() {
        let is_x = j == y.ids.len() || x.ids.get(i).is_some_and(|id| *id <= y.ids[j]);
        let is_y = i == x.ids.len() || y.ids.get(j).is_some_and(|id| *id <= x.ids[i]);
        then(if is_x { weight(x, i) } else { 0.0 }, if is_y { weight(y, j) } else { 0.0 });
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

    /// Lists of up to `most` of twenty features, with weights that no sum is exact for.
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
        // Of 2: max(2, 0) + 1 + 3 + 4 = 10. Of 3: 2 + 1 + 1 + 4 / 3.
        assert!((probability_jaccard(x, y) - (0.1 + 3.0 / 16.0)).abs() < 1e-15);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exactly 0 or 1")]
    fn nothing_is_like_nothing_and_nothing_else() {
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
            for measure in [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine] {
                assert_eq!(measure.of(x, y).to_bits(), measure.of(y, x).to_bits());
                assert_eq!(measure.of(x, x).to_bits(), 1.0_f64.to_bits());
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
