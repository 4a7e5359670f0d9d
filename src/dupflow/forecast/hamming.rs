//! Blocking by Hamming distance in a plan: the design in force among the alternatives, ranked by cost.

use std::fmt::{self, Formatter};

use serde::Serialize;

use dupflow_core::block::HotRule;
use dupflow_core::block::hamming::Design;
use dupflow_core::block::hamming::optimiser::{Advice, Costs, Ranked, Workload, advice};
use dupflow_core::probability::Binomial;
use dupflow_core::sketch::agreement::{Agreement, Shape};

/// Most designs that are listed, the cheapest first.
const LISTED: usize = 16;

/// The chosen design among the alternatives.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hamming {
    pub(super) design: String,
    /// Bits that may differ, inclusive.
    pub(super) distance: usize,
    #[serde(flatten)]
    pub(super) rule: HotRule,
    /// The share of the pairs within the distance that is compared; `None` if it depends on how many of them
    /// share only hot blocks.
    pub(super) recall_within_distance: Option<f64>,
    /// Keys per document.
    pub(super) keys: u64,
    /// Warnings.
    pub(super) advice: Vec<String>,
    pub(super) designs: Vec<DesignRow>,
    #[serde(skip)]
    shape: Shape,
}

/// One design in a stream of a number of documents.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DesignRow {
    design: String,
    chosen: bool,
    tables: u64,
    /// Fewest leading bits of a table.
    prefix_bits: usize,
    /// Blocks that one document looks up.
    probes: f64,
    /// Candidates among random fingerprints, counted once per shared block.
    candidates: f64,
    /// Cost of the lookups and the candidates, in units of one candidate.
    cost: f64,
    bytes_per_document: f64,
    /// A warning, if there is one.
    advice: Vec<String>,
}

/// The warning about a hot-block rule.
pub(super) fn promise(rule: HotRule) -> Option<Advice> {
    rule.is_ever().then_some(Advice::HotBlocks { cap: rule.cap })
}

impl Hamming {
    pub(super) fn new(design: &Design, rule: HotRule, shape: Shape, documents: u64) -> Self {
        let workload = Workload::stream(design.bits(), design.radius(), documents, rule.cap);
        let advice = |one: &Design| -> Vec<String> {
            advice(one, documents, workload.form).iter().map(ToString::to_string).collect()
        };
        let mut ranked = workload.designs();
        let is_chosen = |one: &Ranked| one.design == *design;
        let at = ranked.iter().position(is_chosen).unwrap_or_else(|| {
            ranked.push(workload.rank(*design));
            ranked.len() - 1
        });
        // The chosen design is always listed.
        if at >= LISTED {
            ranked.swap(LISTED - 1, at);
        }
        ranked.truncate(LISTED);
        let row = |one: &Ranked| DesignRow {
            design: one.design.to_string(),
            chosen: is_chosen(one),
            tables: one.design.tables(),
            prefix_bits: one.design.prefixes().keys().next().copied().unwrap_or(0),
            probes: one.estimate.probes,
            candidates: one.estimate.entries,
            cost: one.cost,
            bytes_per_document: one.estimate.bytes / documents.max(1) as f64,
            advice: advice(&one.design),
        };
        Self {
            design: design.to_string(),
            distance: design.radius(),
            rule,
            recall_within_distance: (!rule.is_ever()).then_some(1.0),
            keys: design.keys(),
            advice: promise(rule).iter().map(ToString::to_string).chain(advice(design)).collect(),
            designs: ranked.iter().map(row).collect(),
            shape,
        }
    }

    /// Least probability that a pair of this similarity shares a block: that of being within the distance. In
    /// a hot block it may still not be compared.
    pub(super) fn probability(&self, similarity: f64) -> f64 {
        if self.shape.agreement == Agreement::Bit {
            // The distance is not left to chance.
            let differ = ((1.0 - similarity) * self.shape.size as f64).round();
            return f64::from(u8::from(differ <= self.distance as f64));
        }
        let agree = self.shape.agreement.probability(similarity);
        Binomial::new(self.shape.size, agree).at_least(self.shape.size - self.distance)
    }

    /// Writes the design under a heading of eight characters.
    pub(super) fn describe(&self, heading: &str, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { design, distance, .. } = self;
        match self.recall_within_distance {
            Some(_) => writeln!(
                f,
                "{heading:<8}  {design}: all pairs at a distance of {distance} or less are compared, none is \
                missed"
            )?,
            None => writeln!(
                f,
                "{heading:<8}  {design}: of the pairs at a distance of {distance} or less those are compared \
                that share a block \
                 that is not hot"
            )?,
        }
        self.advice.iter().try_for_each(|advice| writeln!(f, "          ! {advice}"))?;
        writeln!(f, "          a block {}", self.rule)
    }

    /// Writes the table of designs.
    pub(super) fn table(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (bits, distance) = (self.shape.size, self.distance);
        let Costs { probe, entry } = Costs::default();
        writeln!(
            f,
            "\nDesigns for {bits} bits and a distance of {distance}, the cheapest first (a block looked up \
            costs as much as {} \
             candidates):\n",
            probe / entry
        )?;
        for [design, least, blocks, candidates, cost, bytes] in [
            ["", "least bits", "blocks", "", "cost, in", "bytes"],
            ["design", "of a block", "read", "candidates", "candidates", "a document"],
        ] {
            writeln!(f, "  {design:<44}{least:>12}{blocks:>8}{candidates:>14}{cost:>12}{bytes:>12}")?;
        }
        for row in &self.designs {
            let mark = if row.chosen { ">" } else { " " };
            let note = if row.advice.is_empty() { "" } else { " !" };
            writeln!(
                f,
                "{mark} {:<44}{:>12}{:>8.0}{:>14.3}{:>12.0}{:>12.0}{note}",
                row.design, row.prefix_bits, row.probes, row.candidates, row.cost, row.bytes_per_document
            )?;
        }
        if self.designs.iter().any(|row| !row.advice.is_empty()) {
            writeln!(f, "\n  ! is not advised: its blocks are too large (`--format json` says more)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BlockingPlan, Plan};

    /// The designs for a million documents.
    fn designs(pipeline: &str, settings: &[&str]) -> Hamming {
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let plan = Plan::load(pipeline, &settings).unwrap();
        let BlockingPlan::Hamming { design, rule } = &plan.blocking else { panic!("{pipeline}") };
        Hamming::new(design, *rule, plan.scheme.sketch.shape().unwrap(), 1_000_000)
    }

    fn table(hamming: &Hamming) -> String {
        fmt::from_fn(|f| hamming.table(f)).to_string()
    }

    #[test]
    fn permuted_tables_for_simhash_and_the_chosen_one_among_them() {
        for chosen in ["4", "10", "16", "20"] {
            let text = table(&designs("simhash", &[&format!("blocking.tables={chosen}")]));
            for tables in ["4", "10", "16", "20"] {
                let mark = if tables == chosen { ">" } else { " " };
                let row = format!("\n{mark} {tables} tables (");
                assert_eq!(text.matches(&row).count(), 1, "{row:?} is not in\n{text}");
            }
            assert_eq!(text.matches("\n> ").count(), 1, "{text}");
            assert!(!text.contains('!'), "{text}");
        }
    }

    /// If the user allows hot blocks, both the text and the JSON say that the promise does not hold.
    #[test]
    fn lost_pairs_are_reported() {
        for (pipeline, hot) in [("simhash", "leaders"), ("simhash", "skip"), ("onebit", "leaders")] {
            let kept = designs(pipeline, &[]);
            assert_eq!((kept.recall_within_distance, kept.rule), (Some(1.0), HotRule::NEVER));
            assert!(
                fmt::from_fn(|f| kept.describe("blocking", f))
                    .to_string()
                    .contains(" are compared, none is missed\n")
            );
            let lost = designs(pipeline, &[&format!("blocking.hot={hot}")]);
            assert_eq!(lost.recall_within_distance, None);
            let text = fmt::from_fn(|f| lost.describe("blocking", f)).to_string();
            assert!(
                text.contains(
                    "          ! a pair within the distance is missed where each block that it shares"
                ),
                "{text}"
            );
            assert!(!text.contains("none is missed"), "{text}");
        }
    }

    #[test]
    fn columns_are_aligned_with_their_headings() {
        let text = table(&designs("onebit", &[]));
        let rows: Vec<_> = text.lines().skip(4).collect();
        assert!(rows.len() > 4 && rows[0].starts_with("  design "), "{text}");
        let ends = rows[0].chars().count();
        for row in &rows {
            assert_eq!(row.chars().count(), ends, "{row:?}\n{text}");
        }
    }

    #[test]
    fn short_groups_are_not_advised() {
        let fine = designs("onebit", &[]);
        assert!(fine.advice.is_empty(), "{fine:?}");
        let warned = designs("onebit", &["threshold=0.7"]);
        assert!(warned.advice.len() == 1, "{warned:?}");
        let text = table(&warned);
        let chosen = text.lines().find(|row| row.starts_with('>')).unwrap();
        assert!(chosen.contains("groups (alg.H), 3 of 156 agree") && chosen.ends_with(" !"), "{text}");
        assert!(text.ends_with("(`--format json` says more)\n"), "{text}");
    }
}
