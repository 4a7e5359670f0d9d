//! Texts to sketches.

use std::sync::Arc;

use super::sampler::Sketcher;
use super::scheme::Scheme;
use super::sets::scaled::{Scaled, packed};
use super::stored::Sketch;
use crate::hash::SketchId;
use crate::text::{Features, Featurizer, IdfTable, MeasuredFeatures, Terms, Weigher, Weights};

/// Makes the sketches of texts by one scheme; reuses its buffers.
#[derive(Debug)]
pub struct SketchMaker {
    scheme: Scheme,
    featurizer: Featurizer,
    weigher: Weigher,
    builder: SketchBuilder,
    /// Fingerprint of the table used last, and the fingerprint of the scheme with this table.
    under: Option<(u64, u64)>,
}

impl SketchMaker {
    /// A maker for this scheme.
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.clone(),
            featurizer: Featurizer::new(scheme.text.clone()),
            weigher: Weigher::new(),
            builder: SketchBuilder::new(scheme),
            under: None,
        }
    }

    /// The sketch of a text and its id. `None` if the text has no token, or if all its weights are 0.
    ///
    /// The id is a hash of everything that is compared: the stored words and, if features are kept, the
    /// features with their weights.
    ///
    /// # Panics
    /// If weights are [live](Scheme::live). Such sketches are made from [`Self::terms`] by
    /// [`Self::sketch_terms`].
    pub fn sketch(&mut self, text: &str) -> Option<(SketchId, Sketch)> {
        self.sketch_with(text, &[])
    }

    /// The sketch of a text with fields, of which it has the [hashes](crate::pair_rule::PairRule::hashes),
    /// one for each field of the scheme's rule. The sketch of a query text has none.
    ///
    /// # Panics
    /// As [`Self::sketch`].
    pub fn sketch_with(&mut self, text: &str, fields: &[u64]) -> Option<(SketchId, Sketch)> {
        if self.scheme.sketch.kind.measure().is_weighted() {
            let weighed = self.weigher.weigh(self.featurizer.terms(text), &self.scheme.text.weights);
            return self.builder.sketch(self.builder.fingerprint, weighed, fields);
        }
        let measured = self.featurizer.measured(text);
        if self.builder.scaled.is_some() {
            return self.builder.scaled(measured, fields);
        }
        self.builder.sketch(self.builder.fingerprint, Features::set(measured.features), fields)
    }

    /// The number of [words](MeasuredFeatures::words) of a text.
    pub fn words(&mut self, text: &str) -> usize {
        self.featurizer.measured(text).words
    }

    /// The terms of a text, from which its sketches under any table are made; `None` for a text without
    /// tokens.
    pub fn terms(&mut self, text: &str) -> Option<Terms> {
        let terms = self.featurizer.terms(text);
        (!terms.ids.is_empty()).then(|| terms.to_owned())
    }

    /// The sketch of a text with these terms while `table` is in force: the sketch that [`Scheme::under`]
    /// gives it. `None` if all weights are 0. `fields` as in [`Self::sketch_with`].
    ///
    /// # Panics
    /// If weights do not use document frequencies.
    pub fn sketch_terms(
        &mut self,
        terms: &Terms,
        table: &Arc<IdfTable>,
        fields: &[u64],
    ) -> Option<(SketchId, Sketch)> {
        let Weights::TfIdf(_, form) = self.scheme.text.weights else {
            panic!("no table has a part in {:?}", self.scheme.text.weights)
        };
        let fingerprint = match self.under {
            Some((known, fingerprint)) if known == table.fingerprint() => fingerprint,
            _ => self.scheme.under(Arc::clone(table)).fingerprint(),
        };
        self.under = Some((table.fingerprint(), fingerprint));
        self.builder.sketch(fingerprint, self.weigher.tf_idf(terms.view(), table, form), fields)
    }

    /// Rebuilds a sketch from its stored words, followed by its kept features. `None` if there are too few
    /// words, or too many for a scheme that keeps no features.
    pub fn restore(&self, words: &[u64]) -> Option<(SketchId, Sketch)> {
        let SketchBuilder { len, fingerprint, .. } = self.builder;
        let fits = if self.scheme.keeps_features() { words.len() > len } else { words.len() == len };
        fits.then(|| self.builder.named(fingerprint, words, len))
    }
}

/// Makes the sketches of features.
#[derive(Debug)]
struct SketchBuilder {
    /// Words of a stored sketch, without its features.
    len: usize,
    fingerprint: u64,
    exact: bool,
    /// Whether features are kept with their weights.
    weighted: bool,
    /// Which values are kept, if the sketch is scaled.
    scaled: Option<Scaled>,
    /// The sketcher of the sketch, then that of the separate block sketch, if there is one.
    sketchers: Vec<Box<dyn Sketcher>>,
    words: Vec<u64>,
}

impl SketchBuilder {
    fn new(scheme: &Scheme) -> Self {
        let params = std::iter::once(scheme.sketch).chain(scheme.blocks);
        Self {
            len: scheme.words(),
            fingerprint: scheme.fingerprint(),
            exact: scheme.exact,
            weighted: scheme.measure().is_weighted(),
            scaled: scheme.sketch.scaled(),
            sketchers: params.map(|params| params.sketcher()).collect(),
            words: Vec::new(),
        }
    }

    fn sketch(
        &mut self,
        fingerprint: u64,
        features: Features<'_>,
        fields: &[u64],
    ) -> Option<(SketchId, Sketch)> {
        if features.ids.is_empty() {
            return None;
        }
        self.words.clear();
        for sketcher in &mut self.sketchers {
            sketcher.sketch(features, &mut self.words);
        }
        self.words.extend_from_slice(fields);
        let end = self.words.len();
        if self.exact {
            // Words can differ for equal features (a sketch that depends on their order), and features for
            // equal words.
            keep(features, self.weighted, &mut self.words);
        }
        debug_assert!(end == self.len || fields.is_empty(), "a sketch has all hashes of fields, or none");
        Some(self.named(fingerprint, &self.words, end))
    }

    /// The scaled sketch of a text; `None` if it has no features, or the scheme is not scaled.
    fn scaled(&mut self, text: MeasuredFeatures<'_>, fields: &[u64]) -> Option<(SketchId, Sketch)> {
        let scaled = self.scaled?;
        self.words.clear();
        self.words.push(0);
        self.words.extend_from_slice(fields);
        let end = self.words.len();
        scaled.values(text.features, text.parts, &mut self.words);
        let count = self.words.len() - end;
        self.words[0] = packed(text.words, count);
        if !self.exact {
            let kept = scaled.kept(&self.words[end..]).len();
            self.words.truncate(end + kept);
        }
        (count > 0).then(|| self.named(self.fingerprint, &self.words, end))
    }

    /// A sketch of `end` words and of features, with its id.
    fn named(&self, fingerprint: u64, all: &[u64], end: usize) -> (SketchId, Sketch) {
        // All stored sketches of a scheme have the same number of words, so the boundary need not be hashed.
        let id = SketchId::new(fingerprint, all);
        let (words, kept) = all.split_at(end);
        (id, Sketch { words: words.into(), features: kept.into() })
    }
}

/// Appends what is kept of the features: see [`Sketch::features`].
fn keep(features: Features<'_>, weighted: bool, words: &mut Vec<u64>) {
    if weighted {
        words.extend_from_slice(features.ids);
        words.extend(features.weights.iter().map(|weight| weight.to_bits()));
    } else {
        let mut distinct = features.ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        words.append(&mut distinct);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{SectionBase, SectionMode, SketchKind, SketchParams, VERSION};
    use crate::text::{Shingle, TextRules};

    fn scheme(kind: SketchKind, bits: usize, exact: bool) -> Scheme {
        let sketch = SketchParams { kind, size: 64, bits, wide: 0, seed: 0 };
        let text = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
        Scheme { version: VERSION, text, sketch, exact, ..Scheme::default() }
    }

    /// A scaled sketch is the size of its text, the hashes of its fields, and kept values.
    #[test]
    fn scaled_sketches() {
        let kind = SketchKind::Scaled { scale: 4, least: 3 };
        let text: String = (0..50).map(|i| format!("w{} ", i % 40)).collect();
        let made = |exact, fields: &[u64]| {
            let scheme = scheme(kind, 1, exact);
            assert!(scheme.keeps_features() && scheme.words() == 1 && scheme.sketch.shape().is_none());
            SketchMaker::new(&scheme).sketch_with(&text, fields).unwrap()
        };
        let ((id, kept), (_, all)) = (made(false, &[]), made(true, &[]));
        assert_eq!((&*kept.words, &*all.words), (&[packed(50, 40)][..], &[packed(50, 40)][..]));
        let scaled = Scaled::new(4, 3, 0);
        assert!(all.features.len() == 40 && *kept.features == *scaled.kept(&all.features));
        assert!((3..20).contains(&kept.features.len()), "{}", kept.features.len());
        let maker = SketchMaker::new(&scheme(kind, 1, false));
        let words: Vec<u64> = kept.words.iter().chain(&*kept.features).copied().collect();
        assert_eq!(maker.restore(&words), Some((id, kept)));
        assert_eq!(maker.restore(&words[..1]), None, "a text has at least one value");
        assert_eq!(*made(false, &[7]).1.words, [packed(50, 40), 7]);
        assert_eq!(SketchMaker::new(&scheme(kind, 1, true)).sketch(" . "), None);
    }

    /// An id covers everything that is compared. Regression: where features were kept, the id covered only
    /// these. Two texts of the same words in another order were then copies of one sketch, with similarity 1,
    /// although the sketch depends on the order.
    #[test]
    fn an_id_covers_components_and_features() {
        let kind = SketchKind::Sectional { sections: 2, mode: SectionMode::Attach, base: SectionBase::Fss };
        let mut words: Vec<String> = (0..40).map(|i| format!("w{i}")).collect();
        let there = words.join(" ");
        words.reverse();
        let back = words.join(" ");
        let similarity = |exact| {
            let scheme = scheme(kind, 8, exact);
            let mut maker = SketchMaker::new(&scheme);
            let [(a, of_a), (b, of_b)] = [&there, &back].map(|text| maker.sketch(text).unwrap());
            assert_eq!(of_a.features, of_b.features);
            assert_ne!(a, b);
            scheme.sketch.estimator().estimate(&of_a.words, &of_b.words)
        };
        assert!(similarity(true) < 0.1);
        assert_eq!(similarity(true).to_bits(), similarity(false).to_bits());
        // One bit each of 64 components that all agree: only the features differ.
        let mut maker = SketchMaker::new(&scheme(SketchKind::MinHash, 1, true));
        let mut of = |n: usize| maker.sketch(&(0..n).map(|i| format!("w{i} ")).collect::<String>()).unwrap();
        let alike = (500..600).map(&mut of).collect::<Vec<_>>();
        let same = alike.windows(2).filter(|two| two[0].1.words == two[1].1.words);
        assert!(same.clone().count() > 10);
        assert!(same.clone().all(|two| two[0].0 != two[1].0));
    }
}
