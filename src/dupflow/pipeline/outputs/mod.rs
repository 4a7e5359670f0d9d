//! What is written besides the first output: other outputs of the same deltas, and rows of views and notices.

mod corrections;
mod in_force;
mod open_output;
mod other_output;
mod side_outputs;

#[cfg(test)]
pub(in crate::pipeline) use corrections::CORRECTIONS;
pub(in crate::pipeline) use corrections::{correction, corrections, pieces};
pub(in crate::pipeline) use in_force::InForce;
pub(in crate::pipeline) use open_output::OutputRules;
pub use other_output::OtherOutput;
pub(in crate::pipeline) use other_output::{OpenSink, Waits};
pub use side_outputs::SideOutputs;
