//! The looks of the filter, and the errors that they spend.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::plot::Probability;
use crate::config::{FilterPlan, Plan};
use dupflow_core::filter::{FilterKind, Verify};

#[derive(Clone, Debug, Serialize)]
pub(super) struct FilterReport {
    pub(super) kind: FilterKind,
    pub(super) exact: bool,
    /// Whether the values of scaled sketches are compared.
    #[serde(skip)]
    pub(super) values: bool,
    /// Worst-case probability of an early reject at or above the threshold, and of an early accept below it.
    pub(super) reject_error: f64,
    pub(super) accept_error: f64,
    pub(super) looks: Vec<LookRow>,
}

/// One look. `None` = this look never decides that way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LookRow {
    pub(super) components: u32,
    /// Whether the look reads only the lowest bit of each component.
    pub(super) one_bit: bool,
    /// The look rejects with at most this number of equal components.
    pub(super) reject_at_most: Option<u32>,
    /// The look accepts with at least this number of equal components.
    pub(super) accept_at_least: Option<u32>,
}

impl FilterReport {
    pub(super) fn new(plan: &Plan) -> Self {
        let (kind, exact) = match plan.filter {
            FilterPlan::Sketch(kind, _) => (kind, false),
            FilterPlan::Exact(kind, _) => (kind, true),
            FilterPlan::Whole(_) | FilterPlan::Containment(Verify::Sketch, _) => (FilterKind::Full, false),
            FilterPlan::Containment(Verify::Exact, _) => (FilterKind::Full, true),
        };
        let values = plan.scheme.sketch.scaled().is_some();
        let Some(schedule) = plan.schedule() else {
            return Self { kind, exact, values, reject_error: 0.0, accept_error: 0.0, looks: Vec::new() };
        };
        let first = schedule.first_word().map(|below| LookRow {
            components: 64,
            one_bit: plan.scheme.sketch.bits > 1,
            reject_at_most: below.checked_sub(1),
            accept_at_least: None,
        });
        let looks = schedule.looks().iter().map(|look| LookRow {
            components: look.components,
            one_bit: false,
            reject_at_most: look.reject_below.checked_sub(1),
            accept_at_least: Some(look.accept_from).filter(|from| *from <= look.components),
        });
        Self {
            kind,
            exact,
            values,
            reject_error: schedule.spent().reject,
            accept_error: schedule.spent().accept,
            looks: first.into_iter().chain(looks).collect(),
        }
    }
}

impl Display for FilterReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FilterKind::Staged => "staged",
            FilterKind::Paper => "paper",
            FilterKind::Full => "full",
            FilterKind::Hamming => "hamming",
        };
        let verify =
            if self.exact { "the exact similarity of what no look rejects" } else { "the sketches alone" };
        writeln!(f, "filter    {kind}, decides by {verify}")?;
        let (reject, accept) = (Probability(self.reject_error), Probability(self.accept_error));
        if self.values {
            let which =
                if self.exact { "all values of the smaller text" } else { "the values that both keep" };
            return writeln!(f, "          searches {which} in those of the larger one");
        }
        match (self.kind, self.exact) {
            (FilterKind::Hamming, false) => {
                writeln!(f, "          reads the first word, and the rest of what that leaves")
            }
            (FilterKind::Full, false) => writeln!(f, "          reads all components of every pair"),
            (FilterKind::Full | FilterKind::Hamming, true) => {
                writeln!(f, "          without a look at the sketches")
            }
            (FilterKind::Staged, true) => {
                writeln!(f, "          turns down what is similar enough with probability {reject} at most")
            }
            (FilterKind::Staged, false) => {
                writeln!(
                    f,
                    "          stops early against the full comparison with probability {reject} (turning \
                    down) and"
                )?;
                writeln!(f, "          {accept} (accepting) at most")
            }
            (FilterKind::Paper, _) => {
                writeln!(
                    f,
                    "          stops early at the threshold with probability {reject} (turning down) and \
                    {accept}"
                )?;
                writeln!(f, "          (accepting)")
            }
        }
    }
}

impl FilterReport {
    pub(super) fn bounds(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  look  components  reject if equal <=  accept if equal >=")?;
        let bound = |bound: Option<u32>| bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string());
        for (i, look) in self.looks.iter().enumerate() {
            let (reject, accept) = (bound(look.reject_at_most), bound(look.accept_at_least));
            let note = if look.one_bit { "  (of their lowest bits)" } else { "" };
            writeln!(f, "  {:>4}  {:>10}  {reject:>18}  {accept:>18}{note}", i + 1, look.components)?;
        }
        Ok(())
    }
}
