//! The binary as a user runs it: what it says, what it writes, and what it exits with.
//!
//! Bug classes: an option that is read and has no effect; a problem that hides another one; a bad record that
//! stops the run or vanishes; output that depends on the number of workers or on how the input is packed; an
//! output that cannot be read back; work that is quadratic in a hot block.

mod bad_input;
mod clusters;
mod doors;
mod dupflow;
mod evaluate;
mod feeds;
mod fields;
mod foreign;
mod generate;
mod help;
mod hot_blocks;
mod idf;
mod ids;
mod inputs;
mod layouts;
mod outputs;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod query;
mod questions;
mod replay;
mod run;
mod state;
mod terminal;
mod wrong_usage;
