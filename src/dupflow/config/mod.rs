//! Configuration: checks the pipeline and deployment files as a whole, and turns them into plans without open
//! choices.
//!
//! There are two kinds of TOML files. A **pipeline** says what is computed and becomes a [`Plan`]. It is
//! built in and chosen by its bare name, or read from a path; `key=value` overrides replace its settings. A
//! **deployment** says where: inputs, outputs, workers, logging. Only deployment files use environment
//! variables.
//!
//! Invariants: all problems of a configuration are reported together, each with its place and the expected
//! values. An unknown key is a problem, and so is a key without effect. Every [`Plan`] can be run.
//!
//! Keys and ranges of a pipeline are defined once, in `keys`. `pipelines/minhash.toml` documents them for
//! users, `config/kafka.toml` those of a deployment. A test checks that both files name every key, and the
//! first every range and choice.
//!
//! Parsing a pipeline reads only its file and a list of stop words. A table of document frequencies that a
//! pipeline names is read by a separate step ([`Draft::read`]), and once for any number of plans
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
pub use monitor::{MonitorConfig, WITHOUT_MONITOR};
pub use pipeline::{Draft, Plan};
pub use places::{DeadLetterConfig, ProcessConfig, SinkConfig, SourceConfig, StateConfig};
pub use problem::{ConfigError, Origin, Problem, ProblemKind};
pub use tables::TablesConfig;

/// The built-in pipelines by name; the first one is the default.
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

/// Reads a text file.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })
}
