//! Output: worker 0 emits every closed epoch in order, with its deltas, consolidated and sorted, and how far
//! the epoch has read the input.

mod causes;
mod closing;
mod report;

pub(super) use closing::output;
pub(super) use report::EpochReport;
pub use report::{ClosedEpoch, Emit};
