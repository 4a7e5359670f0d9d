//! One pass of consistent sampling: updates the components in which a feature has the least rank so far.

use std::fmt;

use crate::hash::mix;

/// Components processed together: a 512-bit register.
pub(in crate::sketch) const LANES: usize = 8;

/// Salts or ids of adjacent components.
pub(in crate::sketch) type LaneWords = [u64; LANES];

/// Ranks of adjacent components.
pub(in crate::sketch) type LaneRanks = [f64; LANES];

/// Generous bound for rounding errors.
const SLACK: f64 = 1.0 + 1e-9;

/// A law of ranks and levels; see `weighted::consistent`.
pub(in crate::sketch) trait SamplingLaw: Copy + fmt::Debug + Send + 'static {
    /// Precomputes what the law needs of a weight.
    fn new(weight: f64) -> Self;

    /// Whether the rank of `word` may be below `least`. `word` is the hash of a feature and a component's
    /// number. `false` guarantees that it is not, up to rounding.
    fn may_be_below(&self, word: u64, least: f64) -> bool;

    /// The rank, and 64 bits that identify the level.
    fn sample(&self, word: u64) -> (f64, u64);
}

/// Updates the components in which a feature has the least rank so far. Arguments: feature, weight, salts,
/// ranks, ids.
pub(in crate::sketch) type PassFn = fn(u64, f64, &[LaneWords], &mut [LaneRanks], &mut [LaneWords]);

/// The portable [`PassFn`], and the body of the versions compiled for certain processors.
#[inline(always)]
pub(in crate::sketch) fn pass<L: SamplingLaw>(
    x: u64,
    weight: f64,
    salts: &[LaneWords],
    ranks: &mut [LaneRanks],
    ids: &mut [LaneWords],
) {
    let law = L::new(weight);
    for ((salt, least), held) in salts.iter().zip(ranks).zip(ids) {
        // The bound is computed for all lanes first: a branch inside would prevent vectorization.
        let may: [bool; LANES] =
            std::array::from_fn(|lane| law.may_be_below(mix(x ^ salt[lane]), least[lane] * SLACK));
        if may == [false; LANES] {
            continue;
        }
        for lane in (0..LANES).filter(|lane| may[*lane]) {
            let word = mix(x ^ salt[lane]);
            let (rank, level) = law.sample(word);
            // `word` includes the component's number. A tie of two features must not depend on their order.
            let sample = (rank, mix(word ^ mix(level)));
            if sample < (least[lane], held[lane]) {
                (least[lane], held[lane]) = sample;
            }
        }
    }
}
