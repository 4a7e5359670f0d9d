//! Similarities by their definitions, from the features of two texts.
//!
//! Two lists of distinct features, ascending, with their weights, x and y -> a number from 0 to 1, 1 for two texts without a
//! feature and 0 if only one has none.
//!
//! | | | |
//! |---|---|---|
//! | [`jaccard`] | `J = \|A ∩ B\| / \|A ∪ B\|` | weights have no part in it |
//! | [`weighted_jaccard`] | `J_w = Σ min(x_i, y_i) / Σ max(x_i, y_i)` | scaling one side changes it |
//! | [`cosine`] | `Σ x_i y_i / (\|x\| \|y\|)` | scaling changes nothing |
//! | [`containment`] | `C = \|A ∩ B\| / \|A\|` | not symmetric |
//! | [`probability_jaccard`] | `J_P = Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)` | scaling changes nothing |
//!
//! Invariants: all but containment are symmetric to the last bit; equal lists give exactly 1. Sums run over ascending features:
//! they are the same on every machine, and exact for weights that are whole numbers.
//!
//! References: Yuan et al. (2019), eq. 1, for J_w; R. Moulton and Y. Jiang, *Maximally consistent sampling and the Jaccard index of
//! probability distributions* (ICDM 2018), for J_P.

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
    share(least, total(x) + total(y) - least)
}

/// `Σ x_i y_i / (|x| |y|)`.
pub fn cosine(x: Features<'_>, y: Features<'_>) -> f64 {
    let mut product = 0.0;
    each_common(x, y, |x, y| product += x * y);
    // The square root of a square is exact, the square of a square root is not.
    share(product, (squares(x) * squares(y)).sqrt()).min(1.0) * agree_in_emptiness(x, y)
}

/// `|A ∩ B| / |A|`: how much of the first text is in the second; 1 if the first has no feature, and nor has the second.
pub fn containment(x: Features<'_>, y: Features<'_>) -> f64 {
    share(common(x, y) as f64, x.ids.len() as f64) * agree_in_emptiness(x, y)
}

/// `Σ_{i in both} 1 / Σ_j max(x_j / x_i, y_j / y_i)`, to within rounding.
///
/// With features in the order of `x_j / y_j`, the maximum is `x_j / x_i` from i on and `y_j / y_i` before it, so that sums of the
/// one and of the other do.
pub fn probability_jaccard(x: Features<'_>, y: Features<'_>) -> f64 {
    let mut pairs = Vec::new();
    each(x, y, |x, y| pairs.push((x, y)));
    if pairs.is_empty() {
        return 1.0;
    }
    pairs.sort_by(|(a, b), (c, d)| (a / b).total_cmp(&(c / d)));
    let mut later: f64 = pairs.iter().map(|(x, _)| x).sum();
    let mut before = 0.0;
    let mut similarity = 0.0;
    for (x, y) in pairs {
        if x > 0.0 && y > 0.0 {
            similarity += 1.0 / (later / x + before / y);
        }
        later -= x;
        before += y;
    }
    similarity
}

/// The sum of the weights, |x|_1.
pub fn total(x: Features<'_>) -> f64 {
    if x.weights.is_empty() { x.ids.len() as f64 } else { sum(x.weights, |weight| weight) }
}

/// The sum of the squared weights, |x|².
fn squares(x: Features<'_>) -> f64 {
    if x.weights.is_empty() { x.ids.len() as f64 } else { sum(x.weights, |weight| weight * weight) }
}

/// A sum in four lanes, which processors add side by side.
fn sum(weights: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let (fours, rest) = weights.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for four in fours {
        for (lane, weight) in lanes.iter_mut().zip(four) {
            *lane += term(*weight);
        }
    }
    let rest: f64 = rest.iter().map(|weight| term(*weight)).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}

/// A part of a whole; all of it where there is nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// 0 if just one text has no feature, else 1.
fn agree_in_emptiness(x: Features<'_>, y: Features<'_>) -> f64 {
    if x.ids.is_empty() == y.ids.is_empty() { 1.0 } else { 0.0 }
}

fn common(x: Features<'_>, y: Features<'_>) -> usize {
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
