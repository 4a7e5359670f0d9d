//! Features to sketches.
//!
//! A **sketch** has K components; under random hashing two texts agree in a component with a probability that is
//! their similarity. A component is stored by its low b bits, as **bit planes**: plane p holds bit p of all
//! components, 64 components to a word, so `words[p * groups + g]` holds bit p of components `64 g .. 64 g + 64` (the
//! first component in the lowest bit) and `groups = ceil(K / 64)`. Hence the first `groups` words of a sketch *are* the one-bit
//! fingerprint of the same text, and one kernel compares sketches of any b.
//!
//! Not all sketches have components. What a kind of sketch can do is said by [`SketchParams`]: its [`shape`](SketchParams::shape)
//! if it is compared place by place, its [`planes`](SketchParams::planes) if bands can be cut from it, and an
//! [`estimator`](SketchParams::estimator) in any case.

pub mod agreement;
mod bits;
pub mod bottom_k;
pub mod estimate;
mod estimator;
pub mod fractional;
mod fss;
pub mod kernel;
mod maker;
mod min_max;
mod minhash;
mod odd;
pub mod oph;
mod scheme;
pub mod sectional;
mod superminhash;
pub mod variance;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use bottom_k::BottomK;
pub use estimator::{Estimator, Matches};
pub use fss::Fss;
pub use maker::SketchMaker;
pub use min_max::MinMax;
pub use minhash::MinHash;
pub use odd::Odd;
pub use oph::{Oph, OphOriginal};
pub use scheme::{Scheme, SketchKind, SketchParams, VERSION};
pub use sectional::{SectionMode, Sectional};
pub use superminhash::SuperMinHash;

use crate::text::Features;

/// The sketch of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Bit planes for most kinds; those of the blocks' own sketch come last.
    #[serde(with = "words")]
    pub words: Box<[u64]>,
    /// The distinct features, ascending, where the scheme keeps them; otherwise empty.
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

impl SketchRef<'_> {
    /// A copy that owns its words.
    pub fn to_owned(self) -> Sketch {
        Sketch { words: self.words.into(), features: self.features.into() }
    }
}

/// Makes the words of a sketch.
///
/// Contract: a pure function of the features and of the construction's parameters; `features` is not empty; the same
/// number of words is appended each time.
pub trait Sketcher: Send + fmt::Debug {
    /// Appends the words of the sketch.
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>);
}

/// Makes the components of a sketch that is compared component by component.
///
/// Contract: a pure function of the features and of the construction's parameters; `features` is not empty; `out` has K
/// places and all are written. Unless the sampler says otherwise, the order and the repeats of features have no part
/// in it.
pub trait Sampler: Send + fmt::Debug {
    /// Writes the full-width components.
    fn components(&mut self, features: Features<'_>, out: &mut [u64]);
}
