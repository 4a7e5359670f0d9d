//! The plan as the monitor shows it: as text, with the curve of its blocking.

use super::report::{Blocks, CurvePoint, PlanReport};
use super::text::{Rules, SketchDescription};
use crate::config::Plan;
use dupflow_core::filter::FilterKind;

/// The parts of a plan as text.
pub(crate) struct PlanText {
    pub(crate) measure: &'static str,
    pub(crate) text: String,
    pub(crate) sketch: String,
    pub(crate) blocking: String,
    pub(crate) filter: String,
    /// Similarities with their probability of being a candidate, at `steps` + 1 points from 0 to 1.
    pub(crate) curve: Vec<(f64, f64)>,
}

impl PlanText {
    pub(crate) fn new(plan: &Plan, steps: u32) -> Self {
        let report = PlanReport::new(plan, plan.documents, 1, None);
        let words = |blocks: &Blocks| match blocks {
            Blocks::Banding(banding) => format!("{} bands of {} rows", banding.bands, banding.rows),
            Blocks::Hamming(_) => "tables of permuted bits: all within the distance".to_owned(),
            Blocks::Shingles { kept: Some(_), .. } => {
                "kept values: every pair is compared that shares one".to_owned()
            }
            Blocks::Shingles { kept: None, .. } => {
                "shingles: every pair is compared that shares one".to_owned()
            }
            Blocks::Reference => "reference: all that share a shingle are compared".to_owned(),
            Blocks::Scan => "scan: every pair is compared".to_owned(),
        };
        let blocks: Vec<&Blocks> = std::iter::once(&report.blocking).chain(&report.also).collect();
        let kind = match report.filter.kind {
            FilterKind::Staged => "staged",
            FilterKind::Paper => "paper",
            FilterKind::Full => "full",
            FilterKind::Hamming => "hamming",
        };
        let verify = if report.filter.exact { "exact similarity" } else { "sketches" };
        let similarities = (0..=steps).map(|step| f64::from(step) / f64::from(steps));
        Self {
            measure: plan.scheme.measure().name(),
            text: Rules(&plan.scheme.text).to_string(),
            sketch: format!("{}, {} bytes", SketchDescription(&plan.scheme.sketch), report.sketch_bytes),
            filter: format!("{kind}, decides by {verify}"),
            curve: similarities.map(|s| (s, CurvePoint::new(plan, &blocks, s).compared)).collect(),
            blocking: blocks.iter().map(|one| words(one)).collect::<Vec<_>>().join("; or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BUILT_IN;

    #[test]
    fn every_pipeline_has_words_and_a_curve_that_rises() {
        for (name, _) in BUILT_IN {
            let shown = PlanText::new(&Plan::load(name, &[]).unwrap(), 100);
            for words in [shown.measure, &shown.text, &shown.sketch, &shown.blocking, &shown.filter] {
                assert!(!words.is_empty() && !words.contains('\n'), "{name}: {words:?}");
            }
            assert_eq!(shown.curve.len(), 101);
            assert!(
                shown.curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1 + 1e-9),
                "{name}: {:?}",
                shown.curve
            );
            assert!(shown.curve.iter().all(|(_, p)| (0.0..=1.0 + 1e-9).contains(p)), "{name}");
        }
    }
}
