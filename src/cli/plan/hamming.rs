//! Blocking by Hamming distance in a plan: what was chosen, and every other design with what it costs on this machine.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::block::HotRule;
use crate::block::hamming::optimiser::{Costs, Ranked, Workload, advice};
use crate::block::hamming::{Design, Form};
use crate::filter::binomial::Binomial;
use crate::sketch::agreement::Shape;

/// Designs that are listed, the cheapest first.
const LISTED: usize = 16;

/// The chosen design among the others.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hamming {
    pub(super) design: String,
    /// Bits that may differ, inclusive.
    pub(super) distance: usize,
    #[serde(flatten)]
    pub(super) rule: HotRule,
    /// Keys of a document.
    pub(super) keys: u64,
    /// What speaks against it.
    pub(super) advice: Vec<String>,
    pub(super) probe_nanoseconds: f64,
    pub(super) entry_nanoseconds: f64,
    pub(super) designs: Vec<Row>,
    #[serde(skip)]
    shape: Shape,
}

/// One design in a stream of so many documents.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    design: String,
    chosen: bool,
    tables: u64,
    /// Bits that lead a table, at least.
    prefix_bits: usize,
    /// Blocks that a document looks up.
    probes: f64,
    /// Documents that it meets there, if fingerprints were random.
    meetings: f64,
    /// By the measured costs.
    microseconds: f64,
    bytes_per_document: f64,
    /// What speaks against it.
    advice: Vec<String>,
}

impl Hamming {
    /// `costs` are those of this machine.
    pub(super) fn new(design: &Design, rule: HotRule, shape: Shape, documents: u64, costs: Costs) -> Self {
        let form = Form::Stream { cap: rule.cap };
        let workload = Workload {
            bits: design.bits(),
            radius: design.radius(),
            documents,
            budget_bytes: u64::MAX,
            form,
            costs,
        };
        let mut ranked = workload.designs();
        let is_chosen = |one: &Ranked| one.design == *design;
        let at = ranked.iter().position(is_chosen).unwrap_or_else(|| {
            ranked.push(workload.rank(*design));
            ranked.len() - 1
        });
        // The chosen one is listed in any case.
        if at >= LISTED {
            ranked.swap(LISTED - 1, at);
        }
        ranked.truncate(LISTED);
        let row = |one: &Ranked| Row {
            design: one.design.to_string(),
            chosen: is_chosen(one),
            tables: one.design.tables(),
            prefix_bits: one.design.prefixes().keys().next().copied().unwrap_or(0),
            probes: one.estimate.probes,
            meetings: one.estimate.entries,
            microseconds: one.cost / 1e3,
            bytes_per_document: one.estimate.bytes / documents.max(1) as f64,
            advice: advice(&one.design, documents, form).iter().map(ToString::to_string).collect(),
        };
        Self {
            design: design.to_string(),
            distance: design.radius(),
            rule,
            keys: design.keys(),
            advice: advice(design, documents, form).iter().map(ToString::to_string).collect(),
            probe_nanoseconds: costs.probe,
            entry_nanoseconds: costs.entry,
            designs: ranked.iter().map(row).collect(),
            shape,
        }
    }

    /// The least probability with which a pair of this similarity shares a block: that of lying within the distance.
    pub(super) fn probability(&self, similarity: f64) -> f64 {
        let agree = self.shape.agreement.probability(similarity);
        Binomial::new(self.shape.size, agree).at_least(self.shape.size - self.distance)
    }

    /// The table of designs.
    pub(super) fn table(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (bits, distance) = (self.shape.size, self.distance);
        let (probe, entry) = (self.probe_nanoseconds, self.entry_nanoseconds);
        writeln!(
            f,
            "\nDesigns for {bits} bits and a distance of {distance}, the cheapest first ({probe:.0} ns a block looked up, {entry:.0} ns \
             a document met):\n"
        )?;
        for [design, least, blocks, met, time, bytes] in [
            ["", "least bits", "", "documents", "", "bytes"],
            ["design", "of a block", "blocks", "met", "µs", "a document"],
        ] {
            writeln!(f, "  {design:<44}{least:>12}{blocks:>8}{met:>14}{time:>12}{bytes:>12}")?;
        }
        for row in &self.designs {
            let mark = if row.chosen { ">" } else { " " };
            let note = if row.advice.is_empty() { "" } else { " !" };
            writeln!(
                f,
                "{mark} {:<44}{:>12}{:>8.0}{:>14.3}{:>12.2}{:>12.0}{note}",
                row.design,
                row.prefix_bits,
                row.probes,
                row.meetings,
                row.microseconds,
                row.bytes_per_document
            )?;
        }
        if self.designs.iter().any(|row| !row.advice.is_empty()) {
            writeln!(f, "\n  ! is not advised: its blocks are too large (`--format json` says more)")?;
        }
        Ok(())
    }
}

impl Display for Hamming {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "blocking  {}: all pairs at a distance of {} or less are compared",
            self.design, self.distance
        )?;
        for advice in &self.advice {
            writeln!(f, "          ! {advice}")?;
        }
        writeln!(f, "          a block {}", self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BlockingPlan, Plan};

    /// A million documents, at costs as they are measured.
    fn designs(pipeline: &str, settings: &[&str]) -> Hamming {
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let plan = Plan::load(pipeline, &settings).unwrap();
        let BlockingPlan::Hamming { design, rule } = &plan.blocking else { panic!("{pipeline}") };
        let costs = Costs { probe: 600.0, entry: 100.0 };
        Hamming::new(design, *rule, plan.scheme.sketch.shape().unwrap(), 1_000_000, costs)
    }

    fn table(hamming: &Hamming) -> String {
        struct Table<'a>(&'a Hamming);
        impl Display for Table<'_> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                self.0.table(f)
            }
        }
        Table(hamming).to_string()
    }

    #[test]
    fn permuted_tables_for_simhash_and_the_chosen_one_among_them() {
        for chosen in ["4", "10", "16", "20"] {
            let said = table(&designs("simhash", &[&format!("blocking.tables={chosen}")]));
            for tables in ["4", "10", "16", "20"] {
                let mark = if tables == chosen { ">" } else { " " };
                let row = format!("\n{mark} {tables} tables (");
                assert_eq!(said.matches(&row).count(), 1, "{row:?} is not in\n{said}");
            }
            assert_eq!(said.matches("\n> ").count(), 1, "{said}");
            assert!(!said.contains('!'), "{said}");
        }
    }

    #[test]
    fn the_columns_stand_below_their_heads() {
        let said = table(&designs("onebit", &[]));
        let rows: Vec<_> = said.lines().skip(4).collect();
        assert!(rows.len() > 4 && rows[0].starts_with("  design "), "{said}");
        let ends = rows[0].chars().count();
        for row in &rows {
            assert_eq!(row.chars().count(), ends, "{row:?}\n{said}");
        }
    }

    #[test]
    fn short_groups_are_not_advised() {
        let fine = designs("onebit", &[]);
        assert!(fine.advice.is_empty(), "{fine:?}");
        let warned = designs("onebit", &["threshold=0.7"]);
        assert!(warned.advice.len() == 2, "{warned:?}");
        assert_eq!(warned.to_string().matches("\n          ! ").count(), 2, "{warned}");
        let said = table(&warned);
        let chosen = said.lines().find(|row| row.starts_with('>')).unwrap();
        assert!(chosen.contains("groups (alg.H), 3 of 156 agree") && chosen.ends_with(" !"), "{said}");
        assert!(said.ends_with("(`--format json` says more)\n"), "{said}");
    }
}
