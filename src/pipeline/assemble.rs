//! A plan to the stages that the dataflow runs.

use std::sync::Arc;

use crate::config::Plan;
use crate::dataflow::Stages;
use crate::metrics::Metrics;

impl Stages {
    /// The stages of a plan, counted from zero; with or without evidence for each pair.
    pub fn of(plan: &Plan, evidence: bool) -> Self {
        let filter = plan.filter();
        Self {
            scheme: plan.scheme.clone(),
            blocking: plan.blocking(),
            metrics: Arc::new(Metrics::new(filter.looks())),
            filter,
            expand_limit: plan.expand_limit,
            evidence,
            hot_blocks: Arc::default(),
        }
    }
}
