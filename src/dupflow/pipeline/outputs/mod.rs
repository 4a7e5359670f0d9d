//! What is written besides the first output: other outputs of the same deltas, and rows of views and notices.

mod corrections;
mod other_output;
mod side_outputs;

#[cfg(test)]
pub(in crate::pipeline) use corrections::CORRECTIONS;
pub(in crate::pipeline) use corrections::{correction, corrections, pieces};
pub use other_output::OtherOutput;
pub(in crate::pipeline) use other_output::OutputRules;
pub use side_outputs::SideOutputs;
