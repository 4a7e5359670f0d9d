//! The effect of a banding for a number of documents: size of blocks, loss by hot blocks, and remedies.

use std::fmt::{self, Formatter};

use serde::Serialize;

use super::memory::POSTING_BYTES;
use super::plot::Probability;
use crate::config::Plan;
use crate::plural::count;
use dupflow_core::block::banding::ExpectedBlocks;
use dupflow_core::block::banding::{Bands, Curve, design};
use dupflow_core::block::{BlockingParams, HotPolicy, HotRule};
use dupflow_core::sketch::agreement::Shape;

/// A smaller loss of recall is not reported.
const LOSS: f64 = 0.01;

/// The largest sketch size and cap that are proposed.
const MOST: (usize, usize) = (32_768, 1_000_000);

#[derive(Clone, Debug, Serialize)]
pub(super) struct BandingReport {
    pub(super) bands: usize,
    pub(super) rows: usize,
    #[serde(flatten)]
    pub(super) rule: HotRule,
    /// Probability that a pair at the threshold is compared, with the loss by hot blocks.
    pub(super) recall_at_threshold: f64,
    /// The same without hot blocks.
    pub(super) recall_without_hot_blocks: f64,
    pub(super) half_point: f64,
    pub(super) reason: String,
    /// The number of documents that the following fields are for.
    pub(super) documents: u64,
    /// Mean number of sketches in a block of a document, itself included.
    pub(super) sketches_in_a_block: f64,
    /// The share of a document's blocks that are hot, and their share of all blocks.
    pub(super) hot_share: f64,
    pub(super) hot_blocks: f64,
    /// Per document: chance candidates in all bands; bytes of postings; the cost that bands are chosen by, in
    /// which a posting costs 20.
    pub(super) meetings_by_chance: f64,
    pub(super) posting_bytes: f64,
    pub(super) cost: f64,
    /// A warning, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    #[serde(skip)]
    pub(super) curve: Curve,
    /// Probability that two sketches that agree in a band are candidates there.
    #[serde(skip)]
    pub(super) meets: f64,
}

impl BandingReport {
    pub(super) fn new(plan: &Plan, design: &Bands, rule: HotRule, documents: u64) -> Self {
        let curve = design.curve;
        let crowd = ExpectedBlocks::new(&curve, documents, rule);
        Self {
            bands: curve.bands,
            rows: curve.rows,
            rule,
            recall_at_threshold: curve.found(plan.threshold, crowd.meets),
            recall_without_hot_blocks: design.recall,
            half_point: curve.half_point(crowd.meets),
            reason: design.reason.clone(),
            documents,
            sketches_in_a_block: crowd.sketches,
            hot_share: crowd.hot_share,
            hot_blocks: crowd.hot_blocks,
            meetings_by_chance: crowd.by_chance,
            posting_bytes: curve.bands as f64 * POSTING_BYTES,
            cost: crowd.cost,
            advice: advice(plan, design, rule, documents),
            curve,
            meets: crowd.meets,
        }
    }

    /// Writes the lines below the line of the bands.
    pub(super) fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let recall = Probability(self.recall_at_threshold);
        write!(f, "          compares {recall} of the pairs at the threshold")?;
        if self.half_point <= 1.0 {
            write!(f, ", half of those at {:.2}", self.half_point)?;
        }
        if self.recall_without_hot_blocks - self.recall_at_threshold >= 5e-5 {
            write!(f, " ({} if no block were hot)", Probability(self.recall_without_hot_blocks))?;
        }
        writeln!(f, "\n          a block {}", self.rule)?;
        let (documents, met) = (count(self.documents, "document"), self.meetings_by_chance);
        write!(f, "          of {documents}: {:.1} sketches in a block of one, ", self.sketches_in_a_block)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of blocks")]
        let hot = match self.hot_blocks.round() as u64 {
            0 => "no hot block expected".to_owned(),
            hot => {
                format!("{} hot expected, {:.1} % of its own", count(hot, "block"), self.hot_share * 100.0)
            }
        };
        writeln!(f, "{hot};")?;
        writeln!(
            f,
            "          each meets {met:.1} others by chance, has {:.0} bytes of postings, and costs {:.0} \
            where a posting costs 20",
            self.posting_bytes, self.cost
        )?;
        self.advice.iter().try_for_each(|advice| writeln!(f, "          ! {advice}"))
    }
}

/// The warning for a number of documents: hot blocks lose more than [`LOSS`] of the requested recall.
pub(super) fn advice(plan: &Plan, bands: &Bands, rule: HotRule, documents: u64) -> Option<String> {
    let other = Alternative { plan, bands, rule, documents };
    let crowd = ExpectedBlocks::new(&bands.curve, documents, rule);
    let found = bands.curve.found(plan.threshold, crowd.meets);
    if found > bands.wanted - LOSS {
        return None;
    }
    let helps = other.helps();
    Some(format!(
        "{:.0} sketches in a block, and more than {} are hot: of the pairs at the threshold {} are compared, \
        not {}; {}",
        crowd.sketches,
        rule.cap,
        Probability(found),
        Probability(bands.wanted),
        if helps.is_empty() {
            "take longer shingles, or a higher threshold".to_owned()
        } else {
            helps.join(", or ")
        }
    ))
}

/// The banding to vary in search of a remedy.
#[derive(Clone, Copy)]
struct Alternative<'p> {
    plan: &'p Plan,
    bands: &'p Bands,
    rule: HotRule,
    documents: u64,
}

impl Alternative<'_> {
    /// The settings that would each restore the recall on their own.
    fn helps(self) -> Vec<String> {
        let shape = self.shape();
        let key = if self.plan.scheme.blocks.is_some() { "blocking.size" } else { "sketch.size" };
        let doubled = |from: usize, most: usize| {
            std::iter::successors(Some(from * 2), |last| Some(last * 2)).take_while(move |n| *n <= most)
        };
        let derived = self.derived(shape, self.rule, self.documents);
        let by_rule =
            derived.filter(|curve| *curve != self.bands.curve && self.documents != self.plan.documents);
        let by_rule = by_rule.filter(|_| !self.is_fixed());
        let by_rule = by_rule.map(|_| format!("set blocking.documents = {}", self.documents));
        let unfixed = derived.filter(|_| self.is_fixed()).map(|curve| {
            format!(
                "leave out what fixes {} bands of {} rows, as {} of {} would do",
                self.bands.curve.bands, self.bands.curve.rows, curve.bands, curve.rows
            )
        });
        let size = doubled(shape.size, MOST.0)
            .find(|size| self.derived(Shape { size: *size, ..shape }, self.rule, self.documents).is_some())
            .filter(|_| derived.is_none());
        let cap = doubled(self.rule.cap, MOST.1)
            .find(|cap| self.reaches(HotRule { cap: *cap, ..self.rule }, self.documents));
        let fewer = std::iter::successors(Some(self.documents / 2), |last| Some(last / 2))
            .take_while(|n| *n > 0)
            .find(|n| self.reaches(self.rule, *n));
        // Derived bands are derived for the planned number of documents.
        let planned = if self.is_fixed() || self.documents == self.plan.documents {
            String::new()
        } else {
            format!(" and blocking.documents = {}", self.documents)
        };
        [
            by_rule.or(unfixed),
            size.map(|size| format!("set {key} = {size}{planned}")),
            cap.map(|cap| format!("set blocking.cap = {cap}{planned}")),
            fewer.map(|most| {
                if self.is_fixed() {
                    format!("have no more than {}", count(most, "document"))
                } else {
                    format!("set blocking.documents = {most} if there are no more")
                }
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn shape(self) -> Shape {
        self.plan.scheme.block_sketch().planes().expect("bands are cut from planes")
    }

    /// Whether bands or rows were set by the user and differ from the derived ones.
    fn is_fixed(self) -> bool {
        design(self.shape(), self.plan.threshold, &self.params(self.rule, self.plan.documents))
            .map_or(true, |bands| bands.curve != self.bands.curve)
    }

    fn params(self, rule: HotRule, documents: u64) -> BlockingParams {
        let hot = match rule {
            HotRule::NEVER => HotPolicy::Never,
            HotRule { leaders: 0, .. } => HotPolicy::Skip,
            _ => HotPolicy::Leaders,
        };
        let (cap, leaders) = (rule.cap, rule.leaders);
        BlockingParams {
            recall: Some(self.bands.wanted),
            cap,
            leaders,
            hot,
            documents,
            ..BlockingParams::default()
        }
    }

    /// The bands that the design derives for this shape, if they reach the recall.
    fn derived(self, shape: Shape, rule: HotRule, documents: u64) -> Option<Curve> {
        let bands = design(shape, self.plan.threshold, &self.params(rule, documents)).ok()?;
        let found = bands.curve.found(self.plan.threshold, bands.expected.meets);
        (found > self.bands.wanted - LOSS).then_some(bands.curve)
    }

    /// Whether the recall is reached with another rule or another number of documents; bands that the user
    /// set are kept.
    fn reaches(self, rule: HotRule, documents: u64) -> bool {
        if !self.is_fixed() {
            return self.derived(self.shape(), rule, documents).is_some();
        }
        let crowd = ExpectedBlocks::new(&self.bands.curve, documents, rule);
        self.bands.curve.found(self.plan.threshold, crowd.meets) > self.bands.wanted - LOSS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BlockingPlan;

    fn banding(pipeline: &str, settings: &[&str], documents: u64) -> BandingReport {
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let plan = Plan::load(pipeline, &settings).unwrap();
        let BlockingPlan::Banding { design, rule } = &plan.blocking else { panic!("{pipeline}") };
        BandingReport::new(&plan, design, *rule, documents)
    }

    #[test]
    fn low_thresholds_keep_their_recall_for_the_documents_planned_for() {
        for pipeline in ["minhash", "exact"] {
            for threshold in ["0.5", "0.6", "0.7", "0.8", "0.9"] {
                let set = format!("threshold={threshold}");
                let planned = banding(pipeline, &[&set], 1_000_000);
                assert!(planned.recall_at_threshold >= 0.99 && planned.advice.is_none(), "{planned:?}");
                assert!(planned.half_point < threshold.parse().unwrap());
            }
        }
    }

    #[test]
    fn fixed_bands_are_not_advised_at_low_thresholds() {
        let pinned = banding("exact", &["threshold=0.5", "blocking.bands=24"], 40_000);
        assert_eq!((pinned.bands, pinned.rows), (24, 2));
        assert!(pinned.recall_at_threshold < 0.6 && pinned.recall_without_hot_blocks > 0.999, "{pinned:?}");
        let advice = pinned.advice.unwrap();
        assert!(advice.contains("leave out what fixes 24 bands of 2 rows, as "), "{advice}");
        assert!(advice.contains(", or set blocking.cap = "), "{advice}");
    }

    #[test]
    fn too_few_keys_give_a_warning_with_a_remedy() {
        let short = banding("minhash", &["threshold=0.3", "blocking.documents=10000000"], 10_000_000);
        assert!(short.reason.starts_with("none reach recall 0.99 among 10000000 documents"), "{short:?}");
        let advice = short.advice.unwrap();
        for help in ["set sketch.size = ", "set blocking.cap = ", "set blocking.documents = "] {
            assert!(advice.contains(help), "{help}: {advice}");
        }
        // Each proposed setting restores the recall.
        let named = |key: &str| {
            let at = advice.find(key).unwrap() + key.len();
            advice[at..].chars().take_while(char::is_ascii_digit).collect::<String>()
        };
        for key in ["sketch.size", "blocking.cap", "blocking.documents"] {
            let value = named(&format!("set {key} = "));
            let set = format!("{key}={value}");
            let documents = if key == "blocking.documents" { value.parse().unwrap() } else { 10_000_000 };
            let settings = ["threshold=0.3", "blocking.documents=10000000", &set];
            let better = banding("minhash", &settings, documents);
            assert!(better.advice.is_none() && better.recall_at_threshold > 0.98, "{set}: {better:?}");
        }
    }

    #[test]
    fn a_plan_for_more_documents_is_asked_for_by_its_key() {
        for settings in [&["threshold=0.6"][..], &["threshold=0.7", "blocking.documents=10000"]] {
            let advice = banding("minhash", settings, 100_000_000).advice.unwrap();
            assert!(advice.contains("; set blocking.documents = 100000000, or "), "{advice}");
            let set = [settings, &["blocking.documents=100000000"]].concat();
            let better = banding("minhash", &set, 100_000_000);
            assert!(better.advice.is_none() && better.recall_at_threshold > 0.98, "{better:?}");
        }
    }
}
