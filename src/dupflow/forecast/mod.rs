//! What a plan will do, computed without running it: its recall, its errors, its cost and its memory.
//!
//! ```
//! use dupflow::config::Plan;
//! use dupflow::forecast::PlanReport;
//!
//! let plan = Plan::load("minhash", &["threshold=0.8".to_owned()])?;
//! let report = PlanReport::new(&plan, 10_000_000, 1, None);
//! assert!(report.at(&plan, 0.9).reported > 0.98 && report.bytes_per_document() < 1024.0);
//! # Ok::<(), dupflow::config::ConfigError>(())
//! ```

mod banding;
mod filter;
mod hamming;
mod memory;
#[cfg(feature = "monitor")]
mod plan_text;
mod plot;
mod quotes;
mod report;
mod retention;
#[cfg(feature = "lab")]
pub mod sample;
mod spill;
mod text;

#[cfg(feature = "monitor")]
pub(crate) use plan_text::PlanText;
pub use quotes::QuoteRecall;
pub use report::{CurvePoint, PlanReport};
pub use retention::RetentionReport;
pub use spill::DEFAULT_IOPS;

use crate::config::{BlockingPlan, Plan};
use dupflow_core::block::hamming::DesignUse;
use dupflow_core::block::hamming::optimiser;

/// Warnings about a pipeline's blocking for a number of documents.
pub(crate) fn advice(plan: &Plan, documents: u64) -> Vec<String> {
    let of = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Hamming { design, rule } => {
            let more = optimiser::advice(design, documents, DesignUse::Stream { cap: rule.cap });
            let all = hamming::promise(*rule).into_iter().chain(more);
            all.map(|advice| advice.to_string()).collect()
        }
        BlockingPlan::Banding { design, rule } => {
            banding::advice(plan, design, *rule, documents).into_iter().collect()
        }
        BlockingPlan::Shingles { .. } | BlockingPlan::Reference | BlockingPlan::Scan => Vec::new(),
    };
    plan.blockings().flat_map(of).collect()
}

/// The recall that hot blocks lose for the planned number of documents, as text.
pub(crate) fn loss(plan: &Plan) -> Option<String> {
    let of = |(blocking, _): (&BlockingPlan, usize)| match blocking {
        BlockingPlan::Banding { design, rule } => banding::advice(plan, design, *rule, plan.documents),
        _ => None,
    };
    plan.blockings().find_map(of)
}
