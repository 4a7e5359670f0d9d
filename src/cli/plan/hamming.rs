//! Blocking by Hamming distance in a plan: what was chosen, and every other design with what it costs on this machine.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::block::hamming::optimiser::{Costs, Ranked, Workload, advice};
use crate::block::hamming::{Design, Form};
use crate::filter::binomial::Binomial;
use crate::sketch::agreement::Shape;
use crate::time::Clock;

/// Designs that are listed, the cheapest first.
const LISTED: usize = 12;

/// The chosen design among the others.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hamming {
    pub(super) design: String,
    /// Bits that may differ, inclusive.
    pub(super) distance: usize,
    pub(super) cap: usize,
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
    pub(super) fn new(design: &Design, cap: usize, shape: Shape, documents: u64, clock: &dyn Clock) -> Self {
        let costs = Costs::measure(clock);
        let form = Form::Stream { cap };
        let workload = Workload {
            bits: design.bits(),
            radius: design.radius(),
            documents,
            budget_bytes: u64::MAX,
            form,
            costs,
        };
        let mut ranked = workload.designs();
        let is_chosen = |ranked: &Ranked| ranked.design == *design;
        let at = ranked.iter().position(is_chosen).unwrap_or_else(|| {
            ranked.push(workload.rank(*design));
            ranked.len() - 1
        });
        // The chosen one is listed in any case.
        if at >= LISTED {
            ranked.swap(LISTED - 1, at);
        }
        ranked.truncate(LISTED);
        let row = |ranked: &Ranked| Row {
            design: ranked.design.to_string(),
            chosen: is_chosen(ranked),
            tables: ranked.design.tables(),
            prefix_bits: ranked.design.prefixes().keys().next().copied().unwrap_or(0),
            probes: ranked.estimate.probes,
            meetings: ranked.estimate.entries,
            microseconds: ranked.cost / 1e3,
            bytes_per_document: ranked.estimate.bytes / documents.max(1) as f64,
            advice: advice(&ranked.design, documents, form).iter().map(ToString::to_string).collect(),
        };
        Self {
            design: design.to_string(),
            distance: design.radius(),
            cap,
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
        writeln!(
            f,
            "\nDesigns for {} bits and a distance of {}, by what a document costs here ({:.0} ns a block, {:.1} ns a meeting):\n",
            self.shape.size, self.distance, self.probe_nanoseconds, self.entry_nanoseconds
        )?;
        writeln!(f, "  {:<44}prefix  blocks    meetings        µs  bytes", "design")?;
        for row in &self.designs {
            let mark = if row.chosen { ">" } else { " " };
            let note = if row.advice.is_empty() { "" } else { " !" };
            writeln!(
                f,
                "{mark} {:<44}{:>6}  {:>6}  {:>10.3}  {:>8.2}  {:>5.0}{note}",
                row.design,
                row.prefix_bits,
                row.probes,
                row.meetings,
                row.microseconds,
                row.bytes_per_document
            )?;
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
        writeln!(f, "          a block of more than {} distinct sketches is dead while it has more", self.cap)
    }
}
