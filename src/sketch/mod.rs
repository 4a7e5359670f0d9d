//! Features to sketches.
//!
//! A **sketch** has K components; under random hashing two texts agree in a component with a probability that is
//! their similarity. A component is stored by its low b bits, as **bit planes**: plane p holds bit p of all
//! components, 64 components to a word, so `words[p * groups + g]` holds bit p of components `64 g .. 64 g + 64` (the
//! first component in the lowest bit) and `groups = ceil(K / 64)`. Hence the first `groups` words of a sketch *are* the one-bit
//! fingerprint of the same text, and one kernel compares sketches of any b.

pub mod estimate;
mod fss;
pub mod kernel;
mod minhash;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use fss::Fss;
pub use minhash::MinHash;

use crate::hash::{self, SketchId};
use crate::text::TextRules;

/// The sketches that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SketchKind {
    /// Fast similarity sketching (Dahlgaard, Knudsen and Thorup 2017).
    Fss,
    /// K independent minima (Broder 1997): the reference, slow.
    MinHash,
}

/// Everything that decides a sketch. Sketches of different schemes are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheme {
    /// Version of the hash family and of the layout; raised when a golden vector changes.
    pub version: u32,
    /// Text to features.
    pub text: TextRules,
    /// Which sketch.
    pub kind: SketchKind,
    /// K, components, 16 to 32768 inclusive.
    pub size: usize,
    /// b, stored bits of a component: 1, 2, 4, 8, 16, 32 or 64.
    pub bits: usize,
    /// Seed of the sketch's hash functions.
    pub seed: u64,
    /// Whether the features are kept beside the sketch, for exact verification.
    pub exact: bool,
}

impl Scheme {
    /// Words of 64 components each: `ceil(size / 64)`.
    pub fn groups(&self) -> usize {
        self.size.div_ceil(64)
    }
}

/// The sketch of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Bit planes; `bits * groups` words.
    pub words: Box<[u64]>,
    /// The distinct features, ascending, where the scheme keeps them; otherwise empty.
    pub features: Box<[u64]>,
}

/// Makes the components of a sketch.
///
/// Contract: a pure function of the *set* of features (order and repeats have no part in it) and of the construction's
/// parameters; `features` is not empty; `out` has K places and all are written.
pub trait Sketcher: Send + fmt::Debug {
    /// Writes the full-width components.
    fn components(&mut self, features: &[u64], out: &mut [u64]);
}
