//! Texts to sketches.

use std::sync::Arc;

use super::{Scheme, Sketch, Sketcher};
use crate::hash::SketchId;
use crate::text::measures::Measure;
use crate::text::{Features, Featurizer, IdfTable, Terms, Weigher, Weights};

/// Texts to sketches by one scheme; keeps its buffers between texts.
#[derive(Debug)]
pub struct SketchMaker {
    scheme: Scheme,
    featurizer: Featurizer,
    weigher: Weigher,
    press: Press,
    /// The table that sketches were last made under, and the fingerprint of the scheme with it.
    under: Option<(u64, u64)>,
}

impl SketchMaker {
    /// Prepares a scheme.
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.clone(),
            featurizer: Featurizer::new(scheme.text.clone()),
            weigher: Weigher::new(),
            press: Press::new(scheme),
            under: None,
        }
    }

    /// The sketch of a text and its id; `None` for a text without a token, or without a feature of any weight.
    ///
    /// The id covers what is compared: the stored words or, where features are kept, the features with their weights.
    ///
    /// # Panics
    /// If weights are [live](Scheme::live): then sketches are made of [`Self::terms`], by [`Self::sketch_terms`].
    pub fn sketch(&mut self, text: &str) -> Option<(SketchId, Sketch)> {
        let features = match self.scheme.sketch.kind.measure() {
            Measure::Jaccard => Features::set(self.featurizer.features(text)),
            _ => self.weigher.weigh(self.featurizer.terms(text), &self.scheme.text.weights),
        };
        self.press.sketch(self.press.fingerprint, features)
    }

    /// What a text's sketches under any table are made of; `None` for a text without a token.
    pub fn terms(&mut self, text: &str) -> Option<Terms> {
        let terms = self.featurizer.terms(text);
        (!terms.ids.is_empty()).then(|| terms.to_owned())
    }

    /// The sketch of a text of these terms while `table` is in force: the one that [`Scheme::under`] gives it. `None` if no feature
    /// has any weight.
    ///
    /// # Panics
    /// If weights are not by document frequencies.
    pub fn sketch_terms(&mut self, terms: &Terms, table: &Arc<IdfTable>) -> Option<(SketchId, Sketch)> {
        let Weights::TfIdf(_, form) = self.scheme.text.weights else {
            panic!("no table has a part in {:?}", self.scheme.text.weights)
        };
        let fingerprint = match self.under {
            Some((known, fingerprint)) if known == table.fingerprint() => fingerprint,
            _ => self.scheme.under(Arc::clone(table)).fingerprint(),
        };
        self.under = Some((table.fingerprint(), fingerprint));
        self.press.sketch(fingerprint, self.weigher.tf_idf(terms.view(), table, form))
    }
}

/// Features to sketches.
#[derive(Debug)]
struct Press {
    fingerprint: u64,
    exact: bool,
    /// Whether features are kept with their weights.
    weighted: bool,
    /// The sketch, then the blocks' own if there is one.
    sketchers: Vec<Box<dyn Sketcher>>,
    words: Vec<u64>,
}

impl Press {
    fn new(scheme: &Scheme) -> Self {
        let params = std::iter::once(scheme.sketch).chain(scheme.blocks);
        Self {
            fingerprint: scheme.fingerprint(),
            exact: scheme.exact,
            weighted: scheme.measure() != Measure::Jaccard,
            sketchers: params.map(|params| params.sketcher()).collect(),
            words: Vec::new(),
        }
    }

    fn sketch(&mut self, fingerprint: u64, features: Features<'_>) -> Option<(SketchId, Sketch)> {
        if features.ids.is_empty() {
            return None;
        }
        self.words.clear();
        for sketcher in &mut self.sketchers {
            sketcher.sketch(features, &mut self.words);
        }
        let kept = if self.exact { kept(features, self.weighted) } else { Vec::new() };
        let id = SketchId::of(fingerprint, if self.exact { &kept } else { &self.words });
        Some((id, Sketch { words: self.words.as_slice().into(), features: kept.into() }))
    }
}

/// What is kept of features: see [`Sketch::features`].
fn kept(features: Features<'_>, weighted: bool) -> Vec<u64> {
    let mut kept = features.ids.to_vec();
    if weighted {
        kept.extend(features.weights.iter().map(|weight| weight.to_bits()));
    } else {
        kept.sort_unstable();
        kept.dedup();
    }
    kept
}
