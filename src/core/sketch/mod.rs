//! Features to sketches.
//!
//! A **sketch** has K components; under random hashing two texts agree in a component with a probability that
//! is their similarity. A component is stored by its low b bits, as **bit planes**: 64 components are a group
//! of b words, of which word p holds bit p of each, so `words[g * b + p]` holds bit p of components `64 g ..
//! 64 g + 64` (the first component in the lowest bit). A look at the first k components reads the first `b k
//! / 64` words and no cache line behind them. Components of 64 bits are words by themselves, `words[1 + j]`,
//! so that a look may lie anywhere. In either layout `words[0]` is the **first word**: the lowest bit of
//! components 0 to 63.
//!
//! Not all sketches have components. What a kind of sketch can do is said by [`SketchParams`]: its
//! [`shape`](SketchParams::shape) if it is compared place by place, its [`planes`](SketchParams::planes) if
//! bands can be cut from it, and an [`estimator`](SketchParams::estimator) in any case.

pub mod agreement;
mod bits;
pub mod bottom_k;
mod consistent;
mod cws;
mod dart;
mod draws;
pub mod estimate;
mod estimator;
pub mod fractional;
mod fss;
mod icws;
pub mod kernel;
mod maker;
mod min_max;
mod minhash;
mod odd;
pub mod oph;
mod rejection;
mod scheme;
pub mod sectional;
pub mod simhash;
mod superminhash;
pub mod variance;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use bottom_k::BottomK;
pub use cws::Cws;
pub use dart::Dart;
pub use estimator::{Estimator, Matches};
pub use fss::Fss;
pub use icws::Icws;
pub use maker::SketchMaker;
pub use min_max::MinMax;
pub use minhash::MinHash;
pub use odd::Odd;
pub use oph::{Oph, OphOriginal};
pub use rejection::Rejection;
pub use scheme::{Scheme, SketchKind, SketchParams, VERSION};
pub use sectional::{SectionBase, SectionMode, Sectional};
pub use simhash::SimHash;
pub use superminhash::SuperMinHash;

use crate::text::Features;

/// The sketch of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Bit planes for most kinds; those of the blocks' own sketch are the last.
    #[serde(with = "words")]
    pub words: Box<[u64]>,
    /// Where the scheme keeps them, the distinct features, ascending; and after these, unless its
    /// [measure](Scheme::measure) is the plain Jaccard similarity, as many words that are the bits of their
    /// weights. Otherwise empty.
    #[serde(with = "words")]
    pub features: Box<[u64]>,
}

impl Sketch {
    /// The sketch, borrowed.
    pub fn view(&self) -> SketchRef<'_> {
        SketchRef { words: &self.words, features: &self.features }
    }
}

/// A borrowed [`Sketch`].
#[derive(Clone, Copy, Debug)]
pub struct SketchRef<'a> {
    /// See [`Sketch::words`].
    pub words: &'a [u64],
    /// See [`Sketch::features`].
    pub features: &'a [u64],
}

impl<'a> SketchRef<'a> {
    /// The features of a sketch that keeps them with their weights: see [`Sketch::features`].
    pub fn weighted(self) -> Features<'a> {
        let (ids, weights) = self.features.split_at(self.features.len() / 2);
        Features { ids, weights: bytemuck::cast_slice(weights) }
    }

    /// A copy that owns its words.
    pub fn to_owned(self) -> Sketch {
        Sketch { words: self.words.into(), features: self.features.into() }
    }
}

/// Makes the words of a sketch.
///
/// Contract: a pure function of the features and of the construction's parameters; `features` is not empty;
/// the same number of words is appended each time.
pub trait Sketcher: Send + fmt::Debug {
    /// Appends the words of the sketch.
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>);
}

/// Makes the components of a sketch that is compared component by component.
///
/// Contract: a pure function of the features and of the construction's parameters; `features` is not empty;
/// `out` has K places and all are written. Unless the sampler says otherwise, the order and the repeats of
/// features have no part in it.
pub trait Sampler: Send + fmt::Debug {
    /// Writes the full-width components.
    fn components(&mut self, features: Features<'_>, out: &mut [u64]);
}

/// Each feature with its weight, 1 in a set, brought within 2^-400 and 2^400 (inclusive), so that sums,
/// products and powers of weights are neither 0 nor infinite.
fn weighted(features: Features<'_>) -> impl Iterator<Item = (u64, f64)> {
    const LEAST: f64 = f64::from_bits((1023 - 400) << 52);
    const MOST: f64 = f64::from_bits((1023 + 400) << 52);
    debug_assert!(features.weights.is_empty() || features.weights.len() == features.ids.len());
    let weight = |i| features.weights.get(i).map_or(1.0, |weight: &f64| weight.clamp(LEAST, MOST));
    features.ids.iter().enumerate().map(move |(i, x)| (*x, weight(i)))
}
