//! The traits of sketchers: whole sketches, and components.

use std::fmt;

use crate::text::Features;

/// Makes the words of a sketch.
///
/// Contract: a pure function of the features and of the constructor's parameters; `features` is not empty;
/// every call appends the same number of words.
pub trait Sketcher: Send + fmt::Debug {
    /// Appends the words of the sketch.
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>);
}

/// Makes the components of a sketch that is compared component by component.
///
/// Contract: a pure function of the features and of the constructor's parameters; `features` is not empty;
/// `out` has K places and all are written. Unless an implementation states otherwise, the result does not
/// depend on the order or the repeats of features.
pub trait Sampler: Send + fmt::Debug {
    /// Writes the full-width components.
    fn components(&mut self, features: Features<'_>, out: &mut [u64]);
}

/// Each feature with its weight; 1 in a set. Weights are clamped to 2^-400 to 2^400 (inclusive), so that
/// sums, products and powers of weights are neither 0 nor infinite.
pub(super) fn weighted(features: Features<'_>) -> impl Iterator<Item = (u64, f64)> {
    const LEAST: f64 = f64::from_bits((1023 - 400) << 52);
    const MOST: f64 = f64::from_bits((1023 + 400) << 52);
    debug_assert!(features.weights.is_empty() || features.weights.len() == features.ids.len());
    let weight = |i| features.weights.get(i).map_or(1.0, |weight: &f64| weight.clamp(LEAST, MOST));
    features.ids.iter().enumerate().map(move |(i, x)| (*x, weight(i)))
}
