//! One text, or two side by side, through all stages, with everything that `compare` and `trace` show.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::block::{BlockKey, Blocking};
use crate::config::Plan;
use crate::filter::{PairFilter, Verdict};
use crate::hash::SketchId;
use crate::sketch::agreement::Shape;
use crate::sketch::{Estimator, Matches, Scheme, Sketch, SketchMaker};
use crate::text::{self, Featurizer, Terms, Weigher};

/// Takes texts through the stages of one pipeline.
pub(super) struct Examiner {
    scheme: Scheme,
    featurizer: Featurizer,
    weighers: [Weigher; 2],
    maker: SketchMaker,
    estimator: Arc<dyn Estimator>,
    blocking: Arc<dyn Blocking>,
    filter: Arc<dyn PairFilter>,
}

/// A text, stage by stage.
pub(super) struct Specimen {
    pub(super) bytes: usize,
    pub(super) tokens: Vec<String>,
    /// In text order, repeats included.
    pub(super) shingles: Vec<String>,
    /// Distinct features, counted.
    pub(super) terms: Terms,
    /// Nothing if the text has no token.
    pub(super) sketched: Option<Sketched>,
}

/// What becomes of a text that has a token.
#[derive(Clone)]
pub(super) struct Sketched {
    pub(super) id: SketchId,
    pub(super) sketch: Sketch,
    pub(super) keys: Vec<BlockKey>,
}

/// Two sketches side by side.
pub(super) struct Comparison {
    /// Places that are equal, where sketches are compared place by place.
    pub(super) equal: Option<usize>,
    /// The similarity that they say, within 0 and 1.
    pub(super) estimate: f64,
    /// The standard error of an estimate at that similarity.
    pub(super) standard_error: f64,
    /// Blocks that both are in.
    pub(super) shared: Vec<BlockKey>,
    /// What the filter says, if it is asked.
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
        }
    }

    pub(super) fn examine(&mut self, text: &str) -> Specimen {
        Specimen {
            bytes: text.len(),
            tokens: text::tokens(text, &self.scheme.text),
            shingles: text::shingles(text, &self.scheme.text),
            terms: self.featurizer.terms(text).to_owned(),
            sketched: self.sketch(text),
        }
    }

    pub(super) fn sketch(&mut self, text: &str) -> Option<Sketched> {
        let (id, sketch) = self.maker.sketch(text)?;
        let mut keys = Vec::new();
        self.blocking.keys(sketch.view(), &mut keys);
        Some(Sketched { id, sketch, keys })
    }

    /// The similarity by the pipeline's measure, from the texts.
    pub(super) fn exact(&mut self, a: &Specimen, b: &Specimen) -> f64 {
        let [left, right] = &mut self.weighers;
        let weights = &self.scheme.text.weights;
        self.scheme.measure().of(left.weigh(a.terms.view(), weights), right.weigh(b.terms.view(), weights))
    }

    pub(super) fn compare(&self, a: &Sketched, b: &Sketched) -> Comparison {
        let (x, y) = (&a.sketch.words, &b.sketch.words);
        let estimate = self.estimator.estimate(x, y).max(0.0);
        Comparison {
            equal: self.shape().map(|shape| Matches::new(shape).count(x, y)),
            estimate,
            standard_error: self.estimator.standard_error(estimate),
            shared: a.keys.iter().filter(|key| b.keys.contains(key)).copied().collect(),
            verdict: self.filter.decide(a.sketch.view(), b.sketch.view()),
        }
    }

    /// The sketch's shape, if it is compared place by place.
    pub(super) fn shape(&self) -> Option<Shape> {
        self.scheme.sketch.shape()
    }

    /// Place `j` of a sketch of this shape, as it is stored.
    pub(super) fn place(shape: Shape, sketch: &Sketch, j: usize) -> u64 {
        let bit = |plane: usize| sketch.words[plane * shape.groups() + j / 64] >> (j % 64) & 1;
        (0..shape.bits).map(|plane| bit(plane) << plane).sum()
    }

    /// Most sketches of a live block, inclusive.
    pub(super) fn cap(&self) -> usize {
        self.blocking.cap()
    }

    /// Number of looks.
    pub(super) fn looks(&self) -> usize {
        self.filter.looks()
    }
}

impl Specimen {
    /// The shingles as a set.
    pub(super) fn distinct(&self) -> BTreeSet<&str> {
        self.shingles.iter().map(String::as_str).collect()
    }

    /// Distinct shingles of both, and of either.
    pub(super) fn overlap(&self, other: &Self) -> (usize, usize) {
        let (a, b) = (self.distinct(), other.distinct());
        let common = a.intersection(&b).count();
        (common, a.len() + b.len() - common)
    }
}

/// A verdict in words.
pub(super) fn said(verdict: &Verdict, looks: usize) -> String {
    let (look, components) = (verdict.look, verdict.components);
    let answer = verdict.accepted.map_or_else(
        || "rejected".to_owned(),
        |similarity| format!("accepted with similarity {}", similarity.get()),
    );
    format!("{answer} at look {look} of {looks}, after {components} components")
}
