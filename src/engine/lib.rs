//! The dataflow that keeps the near-duplicate pairs of a changing corpus, and the processes that share it.

pub mod dataflow;
pub mod processes;
