//! The outcome of a run: what it measured, its summary, and the demands that it must meet.

mod demands;
mod measures;
mod rejected;
mod summary;

pub use demands::{Demands, fields_of_reference};
pub use measures::{HotBlockReport, Latencies, Measures, Quantiles, UnitExample};
pub(in crate::pipeline) use rejected::EndCounts;
pub use rejected::{EndOutput, RejectedOutput, RejectedSummary};
pub use summary::{
    DecisionCounts, FieldCounts, HookCounts, ReferenceCounts, ResumedAt, SpillSummary, Summary, WatchCounts,
};
