//! A sketch as it is stored and compared.

use serde::{Deserialize, Serialize};

use super::words;
use crate::text::Features;

/// The sketch of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// Bit planes for most kinds. The words of a separate block sketch are the last ones.
    #[serde(with = "words")]
    pub words: Box<[u64]>,
    /// The distinct features, ascending, if the scheme keeps them; otherwise empty. If the
    /// [measure](super::Scheme::measure) has weights, they are followed by the same number of words that are
    /// the bits of their weights. Of a [scaled](super::Scaled) sketch: hash values of the features,
    /// ascending, all of them or those that are kept.
    #[serde(with = "words")]
    pub features: Box<[u64]>,
}

impl Sketch {
    /// Borrows the sketch.
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

    /// Copies into owned words.
    pub fn to_owned(self) -> Sketch {
        Sketch { words: self.words.into(), features: self.features.into() }
    }
}
