//! Features to sketches.
//!
//! A **sketch** has K components; under random hashing two texts agree in a component with a probability that is
//! their similarity. A component is stored by its low b bits, as **bit planes**: plane p holds bit p of all
//! components, 64 components to a word, so `words[p * groups + g]` holds bit p of components `64 g .. 64 g + 64` (the
//! first component in the lowest bit) and `groups = ceil(K / 64)`. Hence the first `groups` words of a sketch *are* the one-bit
//! fingerprint of the same text, and one kernel compares sketches of any b.

mod bits;
pub mod estimate;
mod fss;
pub mod kernel;
mod minhash;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use fss::Fss;
pub use minhash::MinHash;

use crate::hash::{self, SketchId};
use crate::text::{Featurizer, TextRules};

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

    /// What makes the components.
    pub fn sketcher(&self) -> Box<dyn Sketcher> {
        match self.kind {
            SketchKind::Fss => Box::new(Fss::new(self.size, self.seed)),
            SketchKind::MinHash => Box::new(MinHash::new(self.size, self.seed)),
        }
    }

    /// Stable 64-bit hash of all fields: equal schemes have equal fingerprints, on every machine.
    pub fn fingerprint(&self) -> u64 {
        hash::bytes(0, format!("{self:?}").as_bytes())
    }
}

/// The sketch of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Bit planes; `bits * groups` words.
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

/// Makes the components of a sketch.
///
/// Contract: a pure function of the *set* of features (order and repeats have no part in it) and of the construction's
/// parameters; `features` is not empty; `out` has K places and all are written.
pub trait Sketcher: Send + fmt::Debug {
    /// Writes the full-width components.
    fn components(&mut self, features: &[u64], out: &mut [u64]);
}

/// Texts to sketches by one scheme; keeps its buffers between texts.
#[derive(Debug)]
pub struct SketchMaker {
    fingerprint: u64,
    bits: usize,
    exact: bool,
    featurizer: Featurizer,
    sketcher: Box<dyn Sketcher>,
    components: Vec<u64>,
    words: Vec<u64>,
}

impl SketchMaker {
    /// Prepares a scheme.
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            fingerprint: scheme.fingerprint(),
            bits: scheme.bits,
            exact: scheme.exact,
            featurizer: Featurizer::new(scheme.text.clone()),
            sketcher: scheme.sketcher(),
            components: vec![0; scheme.size],
            words: Vec::new(),
        }
    }

    /// The sketch of a text and its id; `None` for a text without a token.
    ///
    /// The id covers what is compared: the stored components or, where features are kept, the set of features.
    pub fn sketch(&mut self, text: &str) -> Option<(SketchId, Sketch)> {
        let features = self.featurizer.features(text);
        if features.is_empty() {
            return None;
        }
        self.sketcher.components(features, &mut self.components);
        self.words.clear();
        bits::pack(&self.components, self.bits, &mut self.words);
        let mut kept = Vec::new();
        if self.exact {
            kept.extend_from_slice(features);
            kept.sort_unstable();
            kept.dedup();
        }
        let id = SketchId::of(self.fingerprint, if self.exact { &kept } else { &self.words });
        Some((id, Sketch { words: self.words.as_slice().into(), features: kept.into() }))
    }
}

/// Words as one block of little-endian bytes: element by element, bincode takes ten times as long.
mod words {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(words: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        if cfg!(target_endian = "little") {
            serializer.serialize_bytes(bytemuck::cast_slice(words))
        } else {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            serializer.serialize_bytes(&bytes)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[u64]>, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Box<[u64]>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes, eight to a word")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                let (words, rest) = bytes.as_chunks();
                if rest.is_empty() {
                    Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
                } else {
                    Err(E::invalid_length(bytes.len(), &self))
                }
            }
        }
        deserializer.deserialize_bytes(Words)
    }
}
