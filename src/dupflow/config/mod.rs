//! Configuration: what the user typed, checked as a whole, and turned into a plan with nothing left open.
//!
//! Two kinds of files, both TOML. A **pipeline** says what is computed and becomes a [`Plan`]; it is built in
//! and chosen by its bare name, or read from a path, and `key=value` overrides go on top. A **deployment**
//! says where: inputs, outputs, workers, logging; only there the environment is looked at.
//!
//! Invariants: all problems of a configuration are reported together, each with its place and with what was
//! expected; an unknown key is a problem, and so is a key without effect; a [`Plan`] that exists can be run.
//!
//! Keys and ranges of a pipeline stand in `keys`, once. They are explained to users in
//! `pipelines/minhash.toml`, those of a deployment in `config/kafka.toml`; both name every key, and the first
//! every range and choice (tested).
//!
//! Nothing but the configuration itself is read by parsing. A table of document frequencies that a pipeline
//! names is read in a step of its own ([`Draft::read`]), and once however many plans are made
//! ([`FrozenTables`]).

mod blocking;
mod deployment;
mod described;
mod description;
mod fields;
mod filter;
mod frozen;
mod hamming;
mod keys;
mod monitor;
#[cfg(test)]
mod override_tests;
mod pipeline;
mod places;
mod problem;
mod raw;
mod settled;
mod sketch;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod weights;

use std::path::Path;

pub use blocking::BlockingPlan;
pub use deployment::{Deployment, EmitKind, LogFormat, LogLevel, MOST_WORKERS, OutputFormat};
pub use filter::FilterPlan;
pub use frozen::FrozenTables;
pub use monitor::{MonitorPlace, WITHOUT_MONITOR};
pub use pipeline::{Draft, Plan};
pub use places::{LetterPlace, ProcessSettings, SinkPlace, SourcePlace, StatePlace};
pub use problem::{Origin, PlanError, Problem, What};
pub use tables::TablePlace;

/// The pipelines that come with the program, by name; the first one is the default.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("minhash", include_str!("../../../pipelines/minhash.toml")),
    ("exact", include_str!("../../../pipelines/exact.toml")),
    ("simhash", include_str!("../../../pipelines/simhash.toml")),
    ("sectional", include_str!("../../../pipelines/sectional.toml")),
    ("weighted", include_str!("../../../pipelines/weighted.toml")),
    ("onebit", include_str!("../../../pipelines/onebit.toml")),
    ("assured", include_str!("../../../pipelines/assured.toml")),
    ("paper", include_str!("../../../pipelines/paper.toml")),
    ("tour", include_str!("../../../pipelines/tour.toml")),
];

/// The text of a file.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
fn read(path: &Path) -> Result<String, PlanError> {
    std::fs::read_to_string(path).map_err(|source| PlanError::Unreadable { path: path.to_owned(), source })
}
