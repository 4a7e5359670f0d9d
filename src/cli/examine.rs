//! One text, or two side by side, through all stages, with everything that `compare` and `trace` show.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::block::{BlockKey, Blocking};
use crate::config::Plan;
use crate::filter::{PairFilter, Verdict};
use crate::hash::SketchId;
use crate::sketch::estimate;
use crate::sketch::kernel::Kernel;
use crate::sketch::{Scheme, Sketch, SketchMaker};
use crate::text::{self, Featurizer, Terms, Weigher};

/// Takes texts through the stages of one pipeline.
pub(super) struct Examiner {
    scheme: Scheme,
    featurizer: Featurizer,
    weighers: [Weigher; 2],
    maker: SketchMaker,
    kernel: Kernel,
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
    /// Components that are equal.
    pub(super) equal: usize,
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
            kernel: Kernel::new(plan.scheme.sketch.size, plan.scheme.sketch.bits),
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
        let (size, bits) = (self.scheme.sketch.size, self.scheme.sketch.bits);
        let equal = size - self.kernel.differing(&a.sketch.words, &b.sketch.words, 0, size) as usize;
        let estimate = estimate::estimate(equal, size, bits).max(0.0);
        Comparison {
            equal,
            estimate,
            standard_error: estimate::standard_error(estimate, size, bits),
            shared: a.keys.iter().filter(|key| b.keys.contains(key)).copied().collect(),
            verdict: self.filter.decide(a.sketch.view(), b.sketch.view()),
        }
    }

    /// Component `j`, as it is stored.
    pub(super) fn component(&self, sketch: &Sketch, j: usize) -> u64 {
        let groups = self.scheme.sketch.size.div_ceil(64);
        let bit = |plane: usize| sketch.words[plane * groups + j / 64] >> (j % 64) & 1;
        (0..self.scheme.sketch.bits).map(|plane| bit(plane) << plane).sum()
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
