//! What the dataflow's results are held against.

pub mod truth;
