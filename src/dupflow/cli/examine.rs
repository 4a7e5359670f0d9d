//! Takes one text, or two, through all stages, and keeps every value that `compare` and `trace` print.

use std::sync::Arc;

use crate::config::{FilterPlan, Plan};
use dupflow_core::block::{BlockKey, Blocking, HotRule};
use dupflow_core::filter::{PairFilter, RejectedBy, Verdict, Verify};
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Similarity;
use dupflow_core::pair_rule::Realm;
use dupflow_core::sketch::agreement::Shape;
use dupflow_core::sketch::sectional;
use dupflow_core::sketch::{Estimator, PlaceEstimator, Scheme, Sketch, SketchKind, SketchMaker};
use dupflow_core::text::measures::{self, Measure};
use dupflow_core::text::{Features, Featurizer, Terms, Weigher, Weights};

/// Takes texts through the stages of one pipeline.
pub(super) struct Examiner {
    scheme: Scheme,
    featurizer: Featurizer,
    weighers: [Weigher; 2],
    maker: SketchMaker,
    estimator: Arc<dyn Estimator>,
    blocking: Arc<dyn Blocking>,
    filter: Arc<dyn PairFilter>,
    /// Whether the filter's answer is the exact similarity.
    verifies: bool,
}

/// The values of one text, stage by stage.
pub(super) struct Specimen {
    pub(super) bytes: usize,
    /// Number of tokens.
    pub(super) tokens: usize,
    /// Hashed shingles in text order, with repeats.
    pub(super) features: Vec<u64>,
    /// Distinct features with their counts.
    pub(super) terms: Terms,
    /// `None` if the text has no token, or no shingle with a weight.
    pub(super) sketched: Option<SketchedText>,
}

/// The values of a text that has a sketch.
#[derive(Clone)]
pub(super) struct SketchedText {
    pub(super) id: SketchId,
    pub(super) sketch: Sketch,
    pub(super) keys: Vec<BlockKey>,
    /// See [`Blocking::realm`].
    pub(super) realm: Option<Realm>,
}

/// Two sketches compared.
pub(super) struct SketchComparison {
    /// Number of equal components; `None` for sketches that are not compared component by component.
    pub(super) equal: Option<usize>,
    /// The estimated similarity, from 0 to 1. Of scaled sketches with all values it is exact.
    pub(super) estimate: f64,
    /// The [error stated](Estimator::stated_error) beside it.
    pub(super) standard_error: f64,
    /// Blocks that hold both sketches.
    pub(super) shared: Vec<BlockKey>,
    /// The filter's verdict.
    pub(super) verdict: Verdict,
}

impl Examiner {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            scheme: plan.scheme.clone(),
            featurizer: Featurizer::new(plan.scheme.text.clone()),
            weighers: [Weigher::new(), Weigher::new()],
            maker: SketchMaker::new(&plan.scheme),
            estimator: plan.scheme.sketch.estimator(),
            blocking: plan.blocking(),
            filter: plan.filter(),
            verifies: matches!(
                plan.filter,
                FilterPlan::Exact(..) | FilterPlan::Containment(Verify::Exact, _)
            ),
        }
    }

    /// Examines a text without fields.
    pub(super) fn examine(&mut self, text: &str) -> Specimen {
        self.examine_with(text, &[])
    }

    /// Examines a text with the [hashes](dupflow_core::pair_rule::PairRule::hashes) of its fields.
    pub(super) fn examine_with(&mut self, text: &str, fields: &[u64]) -> Specimen {
        Specimen {
            bytes: text.len(),
            tokens: self.featurizer.tokens(text),
            features: self.featurizer.features(text).to_owned(),
            terms: self.featurizer.terms(text).to_owned(),
            sketched: self.sketch(text, fields),
        }
    }

    pub(super) fn sketch(&mut self, text: &str, fields: &[u64]) -> Option<SketchedText> {
        let (id, sketch) = self.maker.sketch_with(text, fields)?;
        let mut keys = Vec::new();
        self.blocking.keys(sketch.view(), &mut keys);
        let realm = self.blocking.realm(sketch.view());
        Some(SketchedText { id, sketch, keys, realm })
    }

    /// The exact similarity by the pipeline's own measure.
    pub(super) fn exact(&mut self, a: &Specimen, b: &Specimen) -> f64 {
        match self.scheme.sketch.kind {
            SketchKind::Sectional { sections, mode, .. } if !self.verifies => {
                let jaccard = self.measure(Measure::Jaccard, &Weights::Unit, a, b);
                mode.expectation(jaccard, a.alignment(b, sections).unwrap_or(0.0))
            }
            _ => {
                let weights = self.scheme.text.weights.clone();
                self.measure(self.scheme.measure(), &weights, a, b)
            }
        }
    }

    /// The exact similarity by any measure and weights.
    pub(super) fn measure(&mut self, by: Measure, weights: &Weights, a: &Specimen, b: &Specimen) -> f64 {
        let [left, right] = &mut self.weighers;
        by.similarity(left.weigh(a.terms.view(), weights), right.weigh(b.terms.view(), weights))
    }

    /// Whether the filter has rejected a pair since a text is too short.
    pub(super) fn is_too_short(&self, verdict: &Verdict) -> bool {
        verdict.accepted.is_none() && self.filter.rejected_by(verdict.look) == RejectedBy::TooShort
    }

    /// The name of the pipeline's measure.
    pub(super) fn measured(&self) -> &'static str {
        match (self.scheme.sketch.kind, self.scheme.measure()) {
            (SketchKind::Sectional { .. }, _) if !self.verifies => "sectional",
            (_, measure) => named(measure),
        }
    }

    pub(super) fn compare(&self, a: &SketchedText, b: &SketchedText) -> SketchComparison {
        let [x, y] = [a, b].map(|text| &text.sketch.words[..self.scheme.text_words()]);
        let estimate = match self.scheme.sketch.scaled() {
            Some(_) => self.filter.similarity(a.sketch.view(), b.sketch.view()).get(),
            None => self.estimator.estimate(x, y).max(0.0),
        };
        let verdict = self.filter.decide(a.sketch.view(), b.sketch.view());
        let standard_error = match self.scheme.sketch.scaled() {
            Some(_) if self.verifies => 0.0,
            _ => self.estimator.stated_error(estimate),
        };
        SketchComparison {
            equal: self.shape().map(|shape| PlaceEstimator::new(shape).count(x, y)),
            estimate,
            standard_error,
            shared: a.keys.iter().filter(|key| b.keys.contains(key)).copied().collect(),
            verdict,
        }
    }

    /// Two texts compared, with the standard error for their lengths; `None` if one has no sketch.
    pub(super) fn compare_texts(&self, a: &Specimen, b: &Specimen) -> Option<SketchComparison> {
        let mut compared = self.compare(a.sketched.as_ref()?, b.sketched.as_ref()?);
        let variance = self.scheme.sketch.variance(compared.estimate, a.overlap(b).1);
        if let Some(variance) = variance.filter(|_| compared.estimate < 1.0) {
            compared.standard_error = variance.sqrt();
        }
        Some(compared)
    }

    /// The shape of the sketch; `None` if it is not compared component by component.
    pub(super) fn shape(&self) -> Option<Shape> {
        self.scheme.sketch.shape()
    }

    /// Component `j` of a sketch of this shape, as stored.
    pub(super) fn place(shape: Shape, sketch: &Sketch, j: usize) -> u64 {
        shape.place(&sketch.words, j)
    }

    /// When a block of this table is hot, and which of its pairs are candidates then.
    pub(super) fn rule(&self, table: u16) -> HotRule {
        self.blocking.rule(table)
    }

    /// Whether two sketches are of one realm, and near enough to be candidates in a block of this table that
    /// is not hot.
    pub(super) fn may_meet(&self, table: u16, a: &SketchedText, b: &SketchedText) -> bool {
        a.realm == b.realm
            && self.blocking.near(table).is_none_or(|near| near.meet(a.sketch.words[0], b.sketch.words[0]))
    }

    /// Fewest shared blocks that make two sketches a candidate.
    pub(super) fn least(&self) -> usize {
        self.blocking.least()
    }

    /// Whether sketches are scaled: their first word is a size, and their values are compared.
    pub(super) fn is_scaled(&self) -> bool {
        self.scheme.sketch.scaled().is_some()
    }

    /// Number of looks.
    pub(super) fn looks(&self) -> usize {
        self.filter.looks()
    }
}

impl Specimen {
    /// Number of distinct shingles. Two shingles with equal hashes count as one, as everywhere else; the
    /// probability is 2^-64 per pair.
    pub(super) fn distinct(&self) -> usize {
        self.terms.ids.len()
    }

    /// Number of shingles in both texts, and in either.
    pub(super) fn overlap(&self, other: &Self) -> (usize, usize) {
        let common = measures::common(Features::set(&self.terms.ids), Features::set(&other.terms.ids));
        (common, self.distinct() + other.distinct() - common)
    }

    /// q, the share of common features whose first occurrences are in sections of the same number; `None` if
    /// there is no common feature.
    pub(super) fn alignment(&self, other: &Self, sections: usize) -> Option<f64> {
        sectional::alignment(&self.features, &other.features, sections)
    }
}

/// The name of a measure.
pub(super) fn named(measure: Measure) -> &'static str {
    match measure {
        Measure::Jaccard => "Jaccard",
        Measure::WeightedJaccard => "weighted Jaccard",
        Measure::Cosine => "cosine",
        Measure::Hamming => "Hamming",
        Measure::Containment => "containment",
    }
}

/// Why a text has no sketch.
pub(super) fn without_sketch(text: &Specimen) -> &'static str {
    if text.tokens == 0 {
        "a text without a token has no sketch and is in no pair"
    } else {
        "a text whose shingles all weigh 0 has no sketch and is in no pair"
    }
}

/// The shares of two texts in each other, if they differ.
pub(super) fn shares_text(similarity: Similarity, a: &str, b: &str) -> Option<String> {
    let [in_b, in_a] = similarity.shares();
    similarity.is_directed().then(|| format!("{in_b:.4} of {a} in {b}, {in_a:.4} of {b} in {a}"))
}

/// A verdict as text.
pub(super) fn verdict_text(verdict: &Verdict, [a, b]: [&str; 2], examiner: &Examiner) -> String {
    if *verdict == Verdict::RULED_OUT {
        return "rejected by pairs.where, before the filter".to_owned();
    }
    if examiner.is_too_short(verdict) {
        return "rejected as too short: a text has fewer words than filter.least_words, or too few values to \
                estimate from"
            .to_owned();
    }
    let (look, components) = (verdict.look, verdict.components);
    let answer = verdict.accepted.map_or_else(
        || "rejected".to_owned(),
        |similarity| {
            let shares = shares_text(similarity, a, b).map(|shares| format!(" ({shares})"));
            format!("accepted with similarity {:.4}{}", similarity.get(), shares.unwrap_or_default())
        },
    );
    let what = if examiner.is_scaled() { "values" } else { "components" };
    format!("{answer} at look {look} of {}, after {components} {what}", examiner.looks())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a b c d in two sections against c d a b, where every word changes its section, and against a c b d,
    /// where two of four do.
    #[test]
    #[expect(clippy::float_cmp, reason = "quotients of whole numbers")]
    fn the_exact_similarity_of_a_sectional_pipeline() {
        let settings = ["text.shingle=words:1"].map(str::to_owned);
        let mut examiner = Examiner::new(&Plan::load("sectional", &settings).unwrap());
        let [a, b, c, d] = ["a b c d", "c d a b", "a c b d e f g h", "x"].map(|text| examiner.examine(text));
        assert_eq!(
            (a.alignment(&a, 2), a.alignment(&b, 2), a.alignment(&d, 2)),
            (Some(1.0), Some(0.0), None)
        );
        // All four words are in the first half of c.
        assert_eq!(a.alignment(&c, 2), Some(0.5));
        assert_eq!([&a, &b, &c, &d].map(|other| examiner.exact(&a, other)), [1.0, 0.0, 0.25, 0.0]);
        assert_eq!(examiner.measured(), "sectional");
    }
}
