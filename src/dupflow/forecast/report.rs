//! The numbers of a plan.
//!
//! A pair of similarity s is *compared* if it is a candidate in a block. The probability follows the
//! blocking's curve, minus the loss by hot blocks for the number of documents. A compared pair is *reported*
//! if the filter accepts it: by the binomial model of its looks or, for sketches that are compared as a
//! whole, by the normal distribution of their estimates.
//!
//! Blocking and filter are assumed independent: the filter reads components from the first one on, and bands
//! are cut from the last one on. Blocking by Hamming distance reads all components that the filter reads.
//! With two blockings, a pair is a candidate if either one selects it.

use serde::Serialize;

use super::banding::BandingReport;
use super::filter::FilterReport;
use super::hamming::Hamming;
use super::memory::{self, MemoryPart};
use super::plot::similarities;
use super::quotes::{self, QuoteRecall};
use super::retention::RetentionReport;
#[cfg(feature = "lab")]
use super::sample::SampleReport;
use super::spill::SpillReport;
use crate::config::{BlockingPlan, FilterPlan, Plan};
use dupflow_connectors::intake::OnError;
use dupflow_core::block::HotRule;
use dupflow_core::filter::Verify;
use dupflow_core::probability::normal;
use dupflow_core::sketch::Scheme;
use dupflow_core::sketch::scaled::ScaledEstimator;
use dupflow_core::text::measures::Measure;

/// Similarities below the threshold at which false candidates are counted.
const BELOW: [f64; 3] = [0.2, 0.3, 0.5];
/// Similarities at which recall is reported if they are above the threshold.
const ABOVE: [f64; 4] = [0.8, 0.85, 0.9, 0.95];

/// What a plan will do for a number of documents. Its text and its JSON are those of `dupflow plan`.
#[derive(Clone, Debug, Serialize)]
pub struct PlanReport {
    pub(super) pipeline: String,
    /// The fingerprint, 16 hexadecimal digits.
    pub(super) fingerprint: String,
    pub(super) threshold: f64,
    pub(super) scheme: Scheme,
    pub(super) sketch_bytes: usize,
    /// Standard error of an estimate at the threshold, for texts of any length.
    pub(super) standard_error: f64,
    /// The same for two texts of so many distinct shingles each, if it depends on their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) standard_errors: Vec<LengthError>,
    pub(super) blocking: Blocks,
    /// The second blocking: a pair that shares a block of either is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) also: Option<Blocks>,
    /// What `pairs.where` changes in hot blocks, if there is a rule and a block may be hot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<RuleReport>,
    pub(super) filter: FilterReport,
    pub(super) points: Vec<CurvePoint>,
    /// Of containment, the recall of quotes by their length; instead of the curve, which does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quotes: Option<Vec<QuoteRecall>>,
    /// The curve at evenly spaced similarities.
    #[serde(skip)]
    pub(super) curve: Vec<CurvePoint>,
    pub(super) expand_limit: usize,
    pub(super) on_error: OnError,
    /// The retention, if any documents expire.
    pub(super) retention: Option<RetentionReport>,
    pub(super) memory: MemoryReport,
    /// The same under a memory budget, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spill: Option<SpillReport>,
    /// What was measured on a sample, if there is one.
    #[cfg(feature = "lab")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample: Option<SampleReport>,
}

/// The standard error of an estimate at the threshold, for texts of one length.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LengthError {
    /// Distinct shingles of each text.
    pub(super) shingles: u32,
    pub(super) standard_error: f64,
}

/// Which pairs are compared.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Blocks {
    Banding(BandingReport),
    Hamming(Hamming),
    Shingles {
        #[serde(flatten)]
        rule: HotRule,
        /// Of scaled sketches: how many of the 500 shingles of a text have a block.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<usize>,
    },
    Reference,
    Scan,
}

/// Which documents a block counts under `pairs.where`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RuleReport {
    /// The fields of `==`: those of equal values are counted together, and apart from others.
    pub(super) counted_for_each: Vec<String>,
    /// The fields of `!=`: documents are counted together whatever their values.
    pub(super) not_counted: Vec<String>,
}

/// The fate of pairs of one similarity.
#[derive(Clone, Debug, Serialize)]
pub struct CurvePoint {
    /// Their similarity.
    pub similarity: f64,
    /// Probability of being compared.
    pub compared: f64,
    /// Probability of being compared and accepted.
    pub reported: f64,
    /// Mean number of components that are read of a compared pair.
    pub components: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct MemoryReport {
    pub(super) documents: u64,
    pub(super) workers: usize,
    /// Bytes per document by kind, without the bytes of its id.
    pub(super) parts: Vec<MemoryPart>,
    pub(super) bytes_per_document: f64,
    pub(super) total_bytes: f64,
    /// Bytes per deleted id of a topic that is remembered.
    pub(super) bytes_per_deleted_id: f64,
    /// What takes memory besides, and is not part of these numbers.
    pub(super) not_counted: &'static [&'static str],
    /// Whether documents are cut, so that each of these is a unit.
    #[serde(skip)]
    pub(super) of_units: bool,
}

impl PlanReport {
    /// The report for `documents`, all different, on so many workers. `retention` is that of the plan.
    ///
    /// # Panics
    /// If the plan blocks by distance a sketch that has no places; no validated plan does.
    pub fn new(plan: &Plan, documents: u64, workers: usize, retention: Option<RetentionReport>) -> Self {
        let blocking = Blocks::new(plan, &plan.blocking, documents);
        let also = plan.also.as_ref().map(|also| Blocks::new(plan, also, documents));
        let parts = memory::per_document(plan);
        let bytes_per_document = parts.iter().map(|part| part.bytes).sum();
        let above = ABOVE.into_iter().filter(|s| *s > plan.threshold);
        let below = BELOW.into_iter().filter(|s| *s < plan.threshold);
        let points = below.chain([plan.threshold]).chain(above);
        let blocks: Vec<&Blocks> = std::iter::once(&blocking).chain(&also).collect();
        let at = |similarity| CurvePoint::new(plan, &blocks, similarity);
        Self {
            pipeline: plan.name.clone(),
            fingerprint: format!("{:016x}", plan.scheme.fingerprint()),
            threshold: plan.threshold,
            scheme: plan.scheme.clone(),
            sketch_bytes: plan.scheme.words() * 8,
            standard_error: plan.scheme.sketch.estimator().standard_error(plan.threshold),
            standard_errors: LengthError::for_plan(plan),
            points: points.map(at).collect(),
            curve: similarities().map(at).collect(),
            quotes: plan.scheme.sketch.scaled().map(|_| quotes::recall(plan)),
            blocking,
            also,
            rule: RuleReport::new(plan),
            filter: FilterReport::new(plan),
            expand_limit: plan.expand_limit,
            on_error: plan.on_error,
            retention,
            memory: MemoryReport {
                documents,
                workers,
                parts,
                bytes_per_document,
                total_bytes: bytes_per_document * documents as f64,
                bytes_per_deleted_id: memory::per_deleted_id(plan),
                not_counted: &memory::NOT_COUNTED,
                of_units: plan.scheme.units.is_some(),
            },
            spill: None,
            #[cfg(feature = "lab")]
            sample: None,
        }
    }

    /// The report with what was measured on a sample.
    #[cfg(feature = "lab")]
    #[must_use]
    pub fn with_sample(self, sample: SampleReport) -> Self {
        Self { sample: Some(sample), ..self }
    }

    /// The report with what a memory budget in bytes does, on a disk of so many reads a second.
    #[must_use]
    pub fn under(self, plan: &Plan, memory_bytes: u64, iops: u64) -> Self {
        let MemoryReport { documents, bytes_per_document, .. } = self.memory;
        let in_memory = memory::beside_files(plan, bytes_per_document);
        Self { spill: Some(SpillReport::new(plan, documents, in_memory, memory_bytes, iops)), ..self }
    }
}

impl PlanReport {
    /// The fate of pairs of a similarity in 0..=1, under the plan that the report is of.
    pub fn at(&self, plan: &Plan, similarity: f64) -> CurvePoint {
        let blocks: Vec<&Blocks> = std::iter::once(&self.blocking).chain(&self.also).collect();
        CurvePoint::new(plan, &blocks, similarity)
    }

    /// The fates of pairs at evenly spaced similarities.
    pub fn curve(&self) -> &[CurvePoint] {
        &self.curve
    }

    /// Of containment, the recall of quotes; empty for other measures.
    pub fn quotes(&self) -> &[QuoteRecall] {
        self.quotes.as_deref().unwrap_or_default()
    }

    /// Bytes of one sketch.
    pub fn sketch_bytes(&self) -> usize {
        self.sketch_bytes
    }

    /// Standard error of an estimate at the threshold, if the filter decides by sketches; else 0.
    pub fn standard_error(&self) -> f64 {
        if self.filter.exact { 0.0 } else { self.standard_error }
    }

    /// Memory in bytes for each document, without its id.
    pub fn bytes_per_document(&self) -> f64 {
        self.memory.bytes_per_document
    }

    /// Memory in bytes for all documents.
    pub fn total_bytes(&self) -> f64 {
        self.memory.total_bytes
    }
}

impl LengthError {
    /// Numbers of shingles: a short text, and a long page.
    const SHINGLES: [u32; 2] = [50, 1000];

    fn for_plan(plan: &Plan) -> Vec<Self> {
        let (sketch, threshold) = (&plan.scheme.sketch, plan.threshold);
        let any = sketch.estimator().standard_error(threshold);
        let by_length = Self::SHINGLES.map(|shingles| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of shingles"
            )]
            let union = (2.0 * f64::from(shingles) / (1.0 + threshold)).round() as usize;
            Self { shingles, standard_error: sketch.standard_error(threshold, union) }
        });
        by_length.into_iter().filter(|of| of.standard_error < 0.999 * any).collect()
    }
}

impl RuleReport {
    fn new(plan: &Plan) -> Option<Self> {
        let rule = &plan.scheme.pairs;
        let counted_for_each: Vec<String> = rule.equal_fields().map(str::to_owned).collect();
        let not_counted: Vec<String> = rule.different_fields().map(str::to_owned).collect();
        let is_ruled = !counted_for_each.is_empty() || !not_counted.is_empty();
        let may_be_hot = plan.blocking().hot_rule().is_some();
        (is_ruled && may_be_hot).then_some(Self { counted_for_each, not_counted })
    }
}

impl Blocks {
    fn new(plan: &Plan, blocking: &BlockingPlan, documents: u64) -> Self {
        match blocking {
            BlockingPlan::Banding { design, rule } => {
                Self::Banding(BandingReport::new(plan, design, *rule, documents))
            }
            BlockingPlan::Hamming { design, rule } => {
                let shape = plan.scheme.sketch.shape().expect("a distance is of places");
                Self::Hamming(Hamming::new(design, *rule, shape, documents))
            }
            BlockingPlan::Shingles { rule } => {
                let kept = plan.scheme.sketch.scaled().map(|_| memory::in_blocks(plan));
                Self::Shingles { rule: *rule, kept }
            }
            BlockingPlan::Reference => Self::Reference,
            BlockingPlan::Scan => Self::Scan,
        }
    }

    /// Least probability that a pair of this similarity shares a block.
    pub(super) fn probability(&self, similarity: f64) -> f64 {
        match self {
            Self::Banding(banding) => banding.curve.found(similarity, banding.meets),
            Self::Hamming(hamming) => hamming.probability(similarity),
            // Of the shared shingles of the smaller text, one at least has a block.
            Self::Shingles { kept: Some(kept), .. } => {
                let all = memory::ASSUMED_FEATURES as f64;
                1.0 - (1.0 - *kept as f64 / all).powf(similarity * all)
            }
            // Texts without a common shingle have similarity 0.
            Self::Shingles { kept: None, .. } | Self::Reference | Self::Scan => 1.0,
        }
    }
}

impl CurvePoint {
    pub(super) fn new(plan: &Plan, blocks: &[&Blocks], similarity: f64) -> Self {
        let (passes, components) = match &plan.filter {
            FilterPlan::Whole(filter) => {
                let deviation = plan.scheme.sketch.estimator().standard_error(similarity);
                (normal((similarity - plan.threshold) / deviation), f64::from(filter.components()))
            }
            FilterPlan::Containment(Verify::Exact, _) => {
                (f64::from(u8::from(similarity >= plan.threshold)), memory::ASSUMED_FEATURES as f64)
            }
            FilterPlan::Containment(Verify::Sketch, _) => {
                let values = memory::in_blocks(plan) as f64;
                let deviation = (similarity * (1.0 - similarity) / values).sqrt();
                let passes = normal((similarity - plan.threshold) / deviation.max(f64::MIN_POSITIVE));
                (if values < f64::from(ScaledEstimator::LEAST) { 0.0 } else { passes }, values)
            }
            FilterPlan::Sketch(_, filter) => {
                let operation = filter.schedule().operation(similarity);
                let is_whole = plan.scheme.measure() == Measure::Hamming;
                let is_above = f64::from(u8::from(similarity >= plan.threshold));
                (if is_whole { is_above } else { operation.accepted }, operation.components)
            }
            FilterPlan::Exact(_, filter) => {
                let operation = filter.schedule().operation(similarity);
                (if similarity < plan.threshold { 0.0 } else { operation.accepted }, operation.components)
            }
        };
        // Tables by distance and the filter count the same differing components, so the strictest one
        // decides. Other blockings are assumed independent of these and of each other.
        let (mut near, mut apart) = (0.0_f64, 1.0);
        for one in blocks {
            match one {
                Blocks::Hamming(_) => near = near.max(one.probability(similarity)),
                _ => apart *= 1.0 - one.probability(similarity),
            }
        }
        let union = |some: f64, all: f64| some + (1.0 - apart) * (all - some);
        let (compared, reported) = (union(near, 1.0), union(near.min(passes), passes));
        Self { similarity, compared, reported, components }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_by_hand() {
        let report = PlanReport::new(&Plan::load("minhash", &[]).unwrap(), 1000, 2, None);
        let row = |s: f64| report.points.iter().find(|point| point.similarity.total_cmp(&s).is_eq()).unwrap();
        // p = 0.8 + 0.2 / 16, P = 1 - (1 - p^7)^18.
        let recall = 1.0 - (1.0 - 0.8125_f64.powi(7)).powi(18);
        assert!((row(0.8).compared - recall).abs() < 1e-12);
        // At the threshold half of the estimates lie below it; well above it none do.
        assert!(row(0.8).reported > 0.4 && row(0.8).reported < 0.6);
        assert!(row(0.9).reported > 0.9999 && row(0.5).reported < 1e-9);
        // Six pairs of seven are rejected by the first word, nearly all others by the next look.
        assert!(row(0.2).components < 64.0 + 1.1 * 64.0 / 7.0, "{}", row(0.2).components);
        assert!(report.filter.reject_error <= 1e-5 && report.filter.accept_error <= 1e-5);
        let last = report.filter.looks.last().unwrap();
        assert_eq!((last.reject_at_most, last.accept_at_least), (Some(363), Some(364)));
        assert!(report.memory.bytes_per_document < 1024.0);
        assert!(report.to_string().contains("clusters, rows and joins of views, watches)\n"), "{report}");
    }

    #[test]
    fn sketches_without_looks_have_a_plan_too() {
        let settings = ["sketch.kind=bottom-k", "blocking.kind=scan"].map(str::to_owned);
        let report = PlanReport::new(&Plan::load("minhash", &settings).unwrap(), 1000, 2, None);
        let row = |s: f64| report.points.iter().find(|point| point.similarity.total_cmp(&s).is_eq()).unwrap();
        assert!((row(0.8).reported - 0.5).abs() < 1e-9 && (row(0.8).components - 448.0).abs() < 1e-9);
        assert!(row(0.9).reported > 0.9999 && row(0.5).reported < 1e-9);
        assert!((normal(1.0) - 0.8413).abs() < 2e-4 && (normal(-2.0) - 0.0228).abs() < 2e-4);
        assert!(report.to_string().contains("bottom-k: the 448 least values, 3584 bytes"), "{report}");
    }

    /// P[at most 3 of 64 places differ], at the cosine of the angle 3/64 pi.
    #[test]
    fn pairs_within_the_distance_are_reported() {
        let report = PlanReport::new(&Plan::load("simhash", &[]).unwrap(), 1000, 2, None);
        let point = report.points.iter().find(|point| point.similarity.total_cmp(&report.threshold).is_eq());
        let (q, p) = (3.0_f64 / 64.0, 61.0_f64 / 64.0);
        let choose = [1.0, 64.0, 2016.0, 41664.0];
        let within: f64 = (0..).zip(choose).map(|(k, ways)| ways * q.powi(k) * p.powi(64 - k)).sum();
        let point = point.unwrap();
        assert!(
            (point.compared - within).abs() < 1e-9 && (point.reported - within).abs() < 1e-9,
            "{point:?}"
        );
        assert!(report.to_string().contains("\npairs     of similarity 0.9892 or more\n"), "{report}");
    }

    #[test]
    fn nothing_below_the_threshold_is_reported_by_exact_similarity() {
        let report = PlanReport::new(&Plan::load("exact", &[]).unwrap(), 1000, 2, None);
        for point in &report.points {
            assert_eq!(point.reported > 0.0, point.similarity >= 0.8, "{point:?}");
        }
        assert!(report.points.iter().any(|point| point.similarity < 0.8));
    }
}
