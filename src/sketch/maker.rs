//! Texts to sketches.

use super::{Scheme, Sketch, Sketcher};
use crate::hash::SketchId;
use crate::text::{Features, Featurizer};

/// Texts to sketches by one scheme; keeps its buffers between texts.
#[derive(Debug)]
pub struct SketchMaker {
    fingerprint: u64,
    exact: bool,
    featurizer: Featurizer,
    /// The sketch, then the blocks' own if there is one.
    sketchers: Vec<Box<dyn Sketcher>>,
    words: Vec<u64>,
}

impl SketchMaker {
    /// Prepares a scheme.
    pub fn new(scheme: &Scheme) -> Self {
        let params = std::iter::once(scheme.sketch).chain(scheme.blocks);
        Self {
            fingerprint: scheme.fingerprint(),
            exact: scheme.exact,
            featurizer: Featurizer::new(scheme.text.clone()),
            sketchers: params.map(|params| params.sketcher()).collect(),
            words: Vec::new(),
        }
    }

    /// The sketch of a text and its id; `None` for a text without a token.
    ///
    /// The id covers what is compared: the stored words or, where features are kept, the set of features.
    pub fn sketch(&mut self, text: &str) -> Option<(SketchId, Sketch)> {
        let features = Features::set(self.featurizer.features(text));
        if features.ids.is_empty() {
            return None;
        }
        self.words.clear();
        for sketcher in &mut self.sketchers {
            sketcher.sketch(features, &mut self.words);
        }
        let mut kept = Vec::new();
        if self.exact {
            kept.extend_from_slice(features.ids);
            kept.sort_unstable();
            kept.dedup();
        }
        let id = SketchId::of(self.fingerprint, if self.exact { &kept } else { &self.words });
        Some((id, Sketch { words: self.words.as_slice().into(), features: kept.into() }))
    }
}
