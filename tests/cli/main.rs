//! The binary as a user runs it: its messages, its outputs and its exit codes.
//!
//! Bug classes: an option without effect; a problem that hides another one; a bad record that stops the run
//! or disappears; output that depends on the number of workers or on how the input is compressed and divided;
//! an output that cannot be read back; quadratic work in a hot block.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::shadow_unrelated,
    reason = "a test panics on failure, says what it skips, and is a sequence of small cases"
)]

mod advice;
mod against;
mod archives;
mod arrivals;
#[cfg(feature = "arrow")]
mod arrow;
mod audit;
mod bad_input;
mod calibrate;
mod cells;
mod claims;
mod clock;
mod clusters;
mod contained;
mod copies;
mod database_output;
mod decisions;
mod decontaminate;
mod delta;
mod documents;
mod doors;
mod dupflow;
mod evaluate;
mod evidence;
mod features;
mod feeds;
mod fields;
mod foreign;
mod generate;
mod help;
mod hot_blocks;
mod idf;
mod ids;
mod input_formats;
mod inputs;
mod json_forms;
mod lakes;
mod layouts;
mod letters;
mod memory;
mod outputs;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(target_os = "linux")]
mod places;
mod query;
mod questions;
mod quotes;
mod reference;
#[cfg(feature = "sqlite")]
mod regression;
mod rejected;
mod replay;
mod report;
mod resume;
mod rules;
mod run;
#[cfg(feature = "postgres")]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "used by another test; the server starts in real time"
)]
#[path = "../exactly_once/server.rs"]
mod server;
mod several_outputs;
mod state;
#[cfg(feature = "object-store")]
mod stores;
mod terminal;
mod ties;
mod units;
mod upgrade;
mod views;
mod watch;
mod where_rule;
mod wrong_usage;
