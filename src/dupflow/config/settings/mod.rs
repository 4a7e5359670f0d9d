//! The settings of a TOML file: keys, values and problems, common to pipelines and deployments.
//!
//! [`FileSettings`] holds the settings of one file with its overrides. A [`TypedKey`] or a
//! [`DeploymentKey`] describes the accepted values of a key; every value that is not accepted is a
//! [`Problem`].

mod file_settings;
mod key;
mod problem;
mod size;
mod typed_key;
mod value;

use std::path::Path;

pub use problem::{ConfigError, Origin, Problem, ProblemKind};

pub(in crate::config) use file_settings::{FileSettings, TableRole, without_effect};
pub(in crate::config) use key::{ConfigKey, DeploymentKey};
pub(in crate::config) use size::plain_number;
pub use size::size;
pub(in crate::config) use typed_key::{TypedKey, between, bound, end};
pub(in crate::config) use value::ConfigValue;

/// Reads a text file.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
pub(in crate::config) fn read_file(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })
}
