//! The command line: its parser, and the arguments and checks that several commands share.

pub(in crate::cli) mod documents;
pub mod inputs;
pub(in crate::cli) mod memory;
mod parse;
pub(in crate::cli) mod problems;
pub mod processes;
pub(in crate::cli) mod reference;
pub(in crate::cli) mod resume;
pub(in crate::cli) mod verbosity;
pub(in crate::cli) mod views;
pub(in crate::cli) mod written;

#[cfg(feature = "lab")]
pub(super) use parse::at_least_one;
pub(super) use parse::{AnswerParser, overrides, read, share, threshold, workers};
