//! The outcome of a run: what it measured, its summary, and the demands that it must meet.

mod demands;
mod measures;
mod summary;

pub use demands::Demands;
pub use measures::{HotBlockReport, Latencies, Measures, Quantiles};
pub use summary::{DecisionCounts, FieldCounts, HookCounts, Summary, WatchCounts};
