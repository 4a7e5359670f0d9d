//! Pairs of texts, as features, with known similarity.
//!
//! A pair has u features together. The fraction J of them is common, the rest is divided evenly. Trials
//! differ only in the hashes of the features.

use dupflow_core::hash::mix;
use dupflow_core::sketch::{SectionMode, SketchKind, sectional};
use dupflow_core::text::Features;

/// The kind of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeatureForm {
    /// Sets; common features have equal positions.
    Set,
    /// Sets; a quarter of the common features swaps positions, the first ones with the last ones.
    Shuffled,
    /// Weights from 1/2 to 4; some common features have different weights in the two texts.
    Weighted,
}

/// Two texts.
#[derive(Clone, Debug)]
pub(super) struct TextPair {
    /// The features of each text by number, with their weights.
    sides: [Vec<(usize, f64)>; 2],
    form: FeatureForm,
    /// The similarity that sketches of the kind estimate.
    pub(super) similarity: f64,
    /// Number of different features of both texts as the sampler sees them; sections make several of one
    /// feature.
    pub(super) union: usize,
}

impl TextPair {
    /// Texts for sketches of this kind, with `union` features of which the fraction `jaccard` is common.
    pub(super) fn new(form: FeatureForm, kind: SketchKind, union: usize, jaccard: f64) -> Self {
        let common =
            (1..=union).find(|n| *n as f64 >= jaccard * union as f64 - 1e-9).expect("J is at most 1");
        let half = common + (union - common) / 2;
        let mut second: Vec<usize> = (0..common).chain(half..union).collect();
        if form == FeatureForm::Shuffled {
            (0..common / 8).for_each(|i| second.swap(i, common - 1 - i));
        }
        let weigh = |feature: usize, side: u64| {
            let varied = feature < common && feature.is_multiple_of(3);
            let draw = mix(feature as u64 ^ if varied { side << 32 } else { 0 });
            (feature, 0.5 * (1 + draw % 8) as f64)
        };
        let sides = [
            (0..half).map(|feature| weigh(feature, 1)).collect(),
            second.into_iter().map(|feature| weigh(feature, 2)).collect(),
        ];
        let mut texts = Self { sides, form, similarity: jaccard, union };
        match kind {
            SketchKind::Sectional { sections, mode, .. } => {
                let [a, b] = texts.trial(0);
                let (shared, aligned) = sectional::common(&a.ids, &b.ids, sections);
                texts.similarity = mode.expectation(jaccard, aligned as f64 / shared as f64);
                if mode == SectionMode::Pair {
                    texts.union += shared - aligned;
                }
            }
            _ => {
                let [a, b] = texts.trial(0);
                texts.similarity = kind.measure().similarity(a.features(), b.features());
            }
        }
        texts
    }

    /// The texts with the hashes of one trial.
    pub(super) fn trial(&self, trial: u64) -> [TrialText; 2] {
        [0, 1].map(|side: usize| {
            let hash = |(feature, weight): &(usize, f64)| (mix(mix(trial) ^ *feature as u64), *weight);
            let mut features: Vec<(u64, f64)> = self.sides[side].iter().map(hash).collect();
            // The order of a set is the order in the text.
            if self.form == FeatureForm::Weighted {
                features.sort_unstable_by_key(|(id, _)| *id);
            }
            let (ids, weights) = features.into_iter().unzip();
            TrialText { ids, weights: if self.form == FeatureForm::Weighted { weights } else { Vec::new() } }
        })
    }
}

/// One text.
#[derive(Clone, Debug)]
pub(super) struct TrialText {
    ids: Vec<u64>,
    weights: Vec<f64>,
}

impl TrialText {
    /// Its features.
    pub(super) fn features(&self) -> Features<'_> {
        Features { ids: &self.ids, weights: &self.weights }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sets_have_the_similarity() {
        for (union, jaccard) in [(60, 0.2), (60, 0.95), (300, 0.5), (2000, 0.8)] {
            let texts = TextPair::new(FeatureForm::Shuffled, SketchKind::Odd, union, jaccard);
            let [a, b] = texts.trial(7).map(|text| BTreeSet::from_iter(text.ids));
            assert_eq!(a.union(&b).count(), union);
            let exact = a.intersection(&b).count() as f64 / union as f64;
            assert!((exact - jaccard).abs() < 1e-12, "{exact} for {jaccard}");
        }
    }
}
