//! The exact similarity of weighted features, by a merge that stops as soon as it is below the threshold.
//!
//! In: the features that two sketches store, ids and then weights. Out: their similarity if it is at least T
//! (inclusive): that of [`measures`] in every bit, or T where rounding puts it below. Two kinds of overlap:
//!
//! | | overlap of a common feature | mass of a feature | similarity for overlap o |
//! |---|---|---|---|
//! | weighted Jaccard | `min(x, y)` | `x` | `o / (X + Y - o)` |
//! | cosine | `x y` | `x²` | `o / sqrt(X Y)` |
//!
//! with the masses X and Y of the two texts. The overlap of the features not yet merged is at most the
//! smaller of the remaining masses (weighted Jaccard), or the square root of their product (cosine, by Cauchy
//! and Schwarz). So the merge stops as soon as the threshold can no longer be reached. Weighted Jaccard needs
//! no merge if the masses alone are too different (`min / max < T`). Bounds have a slack for rounding errors,
//! twice what [`measures::rounding`] states.
//!
//! A similarity that is nearer to T than its rounding error is decided by whole numbers where the weights are
//! [counts or shares of counts](Counts); with other weights it counts as T.

use super::merge::STRIDE;
use crate::pair::Threshold;
use crate::sketch::SketchRef;
use crate::text::measures::{self, Measure};
use crate::text::{Counts, Features};

/// A kind of overlap of weighted texts.
trait OverlapKind {
    /// The overlap of a common feature with these two weights.
    fn common(x: f64, y: f64) -> f64;
    /// The mass of a feature.
    fn mass(x: f64) -> f64;
    /// The largest possible overlap of two texts with these masses.
    fn most(x: f64, y: f64) -> f64;
    /// The least overlap for a similarity of `threshold`.
    fn needed(threshold: f64, x: f64, y: f64) -> f64;
}

struct MinOverlap;

impl OverlapKind for MinOverlap {
    fn common(x: f64, y: f64) -> f64 {
        x.min(y)
    }

    fn mass(x: f64) -> f64 {
        x
    }

    fn most(x: f64, y: f64) -> f64 {
        x.min(y)
    }

    fn needed(threshold: f64, x: f64, y: f64) -> f64 {
        threshold / (1.0 + threshold) * (x + y)
    }
}

struct ProductOverlap;

impl OverlapKind for ProductOverlap {
    fn common(x: f64, y: f64) -> f64 {
        x * y
    }

    fn mass(x: f64) -> f64 {
        x * x
    }

    fn most(x: f64, y: f64) -> f64 {
        (x * y).sqrt()
    }

    fn needed(threshold: f64, x: f64, y: f64) -> f64 {
        threshold * (x * y).sqrt()
    }
}

/// Whether the masses of two texts alone rule out a similarity of `threshold`. Never for the cosine, which
/// does not depend on scale.
pub(super) fn is_hopeless(
    measure: Measure,
    a: SketchRef<'_>,
    b: SketchRef<'_>,
    threshold: Threshold,
) -> bool {
    let (a, b) = (a.weighted(), b.weighted());
    measure == Measure::WeightedJaccard && {
        let (x, y) = (measures::total(a), measures::total(b));
        MinOverlap::most(x, y) < MinOverlap::needed(threshold.get(), x, y) * (1.0 - slack(a, b))
    }
}

/// Relative slack of a bound for rounding errors.
fn slack(a: Features<'_>, b: Features<'_>) -> f64 {
    2.0 * measures::rounding(a, b)
}

/// The similarity of two texts, if it is at least `threshold`, inclusive.
pub(super) fn similarity_above(
    measure: Measure,
    a: SketchRef<'_>,
    b: SketchRef<'_>,
    threshold: Threshold,
) -> Option<f64> {
    let (a, b) = (a.weighted(), b.weighted());
    let similarity = if measure == Measure::Cosine {
        let (x, y) = (measures::squares(a), measures::squares(b));
        measures::cosine_of(overlap::<ProductOverlap>(a, b, threshold.get(), x, y)?, x, y)
    } else {
        let (x, y) = (measures::total(a), measures::total(b));
        measures::weighted_jaccard_of(overlap::<MinOverlap>(a, b, threshold.get(), x, y)?, x, y)
    };
    let rounding = similarity * measures::rounding(a, b);
    let is_pair = threshold.admits(similarity, rounding, || admits_exactly(measure, a, b, threshold));
    is_pair.then(|| similarity.max(threshold.get()))
}

/// Whether the similarity of two texts is at least `threshold`, by whole numbers; `None` unless the weights
/// are counts or shares of counts, and sums of their squares fit into 64 bits.
fn admits_exactly(measure: Measure, a: Features<'_>, b: Features<'_>, threshold: Threshold) -> Option<bool> {
    let (x, y) = (Counts::new(a)?, Counts::new(b)?);
    let sum = |overlap: fn(u128, u128) -> u128, [of_x, of_y]: [u64; 2]| {
        let mut all = 0_u128;
        measures::each_place(a.ids, b.ids, |i, j| {
            if let (Some(i), Some(j)) = (i, j) {
                all += overlap(
                    u128::from(x.counts[i]) * u128::from(of_x),
                    u128::from(y.counts[j]) * u128::from(of_y),
                );
            }
        });
        all
    };
    if measure == Measure::Cosine {
        // Independent of scale, so shares are as their counts.
        let product = u64::try_from(sum(|one, other| one * other, [1, 1])).ok()?;
        return Some(threshold.admits_cosine(product, x.squares()?, y.squares()?));
    }
    // Both sides times both divisors.
    let common = sum(u128::min, [y.divisor, x.divisor]);
    let both = u128::from(x.total()) * u128::from(y.divisor) + u128::from(y.total()) * u128::from(x.divisor);
    Some(threshold.admits_ratio(common, both - common))
}

/// The overlap of two texts with masses x and y; `None` if it is less than the threshold needs.
fn overlap<O: OverlapKind>(a: Features<'_>, b: Features<'_>, threshold: f64, x: f64, y: f64) -> Option<f64> {
    let slack = slack(a, b);
    let needed = O::needed(threshold, x, y) * (1.0 - slack);
    // What is left is never less than it is without rounding: the cosine takes the root of it.
    let (mut left_a, mut left_b) = (x * (1.0 + slack), y * (1.0 + slack));
    let (mut i, mut j, mut overlap) = (0, 0, 0.0);
    while i < a.ids.len() && j < b.ids.len() {
        if overlap + O::most(left_a.max(0.0), left_b.max(0.0)) < needed {
            return None;
        }
        let steps = STRIDE.min(a.ids.len() - i).min(b.ids.len() - j);
        for _ in 0..steps {
            let (p, q) = (a.ids[i], b.ids[j]);
            let (v, w) = (a.weights[i], b.weights[j]);
            overlap += if p == q { O::common(v, w) } else { 0.0 };
            left_a -= if p <= q { O::mass(v) } else { 0.0 };
            left_b -= if q <= p { O::mass(w) } else { 0.0 };
            (i, j) = (i + usize::from(p <= q), j + usize::from(q <= p));
        }
    }
    Some(overlap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{ExactFilter, FilterParams, PairFilter, Target, Verify};
    use crate::hash::mix;
    use crate::pair::Similarity;
    use crate::sketch::Sketch;

    /// A sketch that stores the features `2 i` with the weights w_i; weights of 0 are left out.
    fn weighted(weights: &[f64]) -> Sketch {
        let (ids, bits): (Vec<u64>, Vec<u64>) = (0..)
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(i, weight): (u64, _)| (2 * i, weight.to_bits()))
            .unzip();
        Sketch { words: [0].into(), features: [ids, bits].concat().into() }
    }

    #[test]
    fn exact_by_weights_is_the_measure() {
        let mut number = (0..).map(mix);
        let mut next = || number.next().unwrap();
        let (mut accepted, mut rejected) = (0, 0);
        for threshold in [0.3, 0.8] {
            let params = FilterParams { verify: Verify::Exact, ..FilterParams::default() };
            let filter = ExactFilter::new(Target::new(threshold, 64, 1).unwrap(), &params).unwrap();
            for case in 0..3000 {
                // Up to 100 features; edits of one of the texts' weights give all similarities.
                let mut weight = || (next() % 5) as f64 / 3.0;
                let x: Vec<f64> = (0..1 + case % 100).map(|_| weight()).chain([1.0]).collect();
                let edits = case % 11;
                let y: Vec<f64> = x.iter().map(|w| if next() % 11 < edits { 0.7 } else { *w }).collect();
                let (a, b) = (weighted(&x), weighted(&y));
                for measure in [Measure::WeightedJaccard, Measure::Cosine] {
                    let filter = filter.clone().by(measure);
                    let verdict = filter.decide(a.view(), b.view());
                    assert_eq!(verdict, filter.decide(b.view(), a.view()));
                    let similarity = measure.similarity(a.view().weighted(), b.view().weighted());
                    let is_pair = similarity >= threshold * (1.0 - 1e-13);
                    let expected = is_pair.then(|| Similarity::clamped(similarity.max(threshold)));
                    assert_eq!(verdict.accepted, expected, "{measure:?} {x:?} {y:?}");
                    assert_eq!(filter.similarity(a.view(), b.view()), Similarity::clamped(similarity));
                    accepted += usize::from(expected.is_some());
                    rejected += usize::from(expected.is_none());
                }
            }
        }
        assert!(accepted > 1000 && rejected > 1000, "{accepted} accepted, {rejected} rejected");
    }

    #[test]
    fn exact_threshold_of_weights_is_inclusive() {
        let params = FilterParams { verify: Verify::Exact, ..FilterParams::default() };
        let filter = ExactFilter::new(Target::new(0.8, 64, 1).unwrap(), &params).unwrap();
        let decide = |measure, x: &[f64], y: &[f64]| {
            let verdict = filter.clone().by(measure).decide(weighted(x).view(), weighted(y).view());
            (verdict.accepted.map(|similarity| similarity.get()), verdict.look)
        };
        // Looks: the first word, the masses, all 64 components, the features.
        assert_eq!(decide(Measure::WeightedJaccard, &[3.0, 1.0, 1.0], &[3.0, 1.0]), (Some(0.8), 4));
        assert_eq!(decide(Measure::WeightedJaccard, &[3.0, 1.0, 1.0], &[2.0, 2.0, 1.0]), (None, 4));
        assert_eq!(decide(Measure::WeightedJaccard, &[3.0, 1.0, 1.0], &[3.0, 0.9]), (None, 2));
        assert_eq!(decide(Measure::Cosine, &[4.0, 3.0], &[4.0]), (Some(0.8), 4));
        assert_eq!(decide(Measure::Cosine, &[3.0, 4.0], &[9.0]), (None, 4));
    }
}
