//! One pass of consistent sampling: a feature takes the components in which it is least so far.

use std::fmt;

use crate::hash::mix;

/// Components looked at together: a register of 512 bits.
pub(in crate::sketch) const LANES: usize = 8;

/// For some components side by side: salts, or ids.
pub(in crate::sketch) type Words = [u64; LANES];

/// The same: ranks.
pub(in crate::sketch) type Ranks = [f64; LANES];

/// What rounding may do to a bound, generously.
const SLACK: f64 = 1.0 + 1e-9;

/// Gives features their ranks and levels; see the module.
pub(in crate::sketch) trait Law: Copy + fmt::Debug + Send + 'static {
    /// What the law knows of a weight.
    fn of(weight: f64) -> Self;

    /// Whether the rank under this word, the hash of a feature and a component's number, may be below
    /// `least`: `false` promises that it is not, but for rounding.
    fn may_be_below(&self, word: u64, least: f64) -> bool;

    /// The rank, and 64 bits that stand for the level.
    fn sample(&self, word: u64) -> (f64, u64);
}

/// Lets one feature, of a weight, take the components in which it is least so far: salts, ranks, ids.
pub(in crate::sketch) type Pass = fn(u64, f64, &[Words], &mut [Ranks], &mut [Words]);

/// The portable [`Pass`], and the body of those that are compiled for certain processors.
#[inline(always)]
pub(in crate::sketch) fn pass<L: Law>(
    x: u64,
    weight: f64,
    salts: &[Words],
    ranks: &mut [Ranks],
    ids: &mut [Words],
) {
    let law = L::of(weight);
    for ((salt, least), held) in salts.iter().zip(ranks).zip(ids) {
        // Every lane is asked, and only then is any looked at: no branch within what becomes vectors.
        let may: [bool; LANES] =
            std::array::from_fn(|lane| law.may_be_below(mix(x ^ salt[lane]), least[lane] * SLACK));
        if may == [false; LANES] {
            continue;
        }
        for lane in (0..LANES).filter(|lane| may[*lane]) {
            let word = mix(x ^ salt[lane]);
            let (rank, level) = law.sample(word);
            // The component's number is in the word; a tie of two features must not go by their order.
            let sample = (rank, mix(word ^ mix(level)));
            if sample < (least[lane], held[lane]) {
                (least[lane], held[lane]) = sample;
            }
        }
    }
}
