//! What can be wrong with a configuration, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// Where a setting was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Its place in the order of reading: the file is 0, the overrides follow. A later layer replaces an
    /// earlier one.
    pub(super) layer: usize,
    /// The line, from 1, where the source has lines and the problem has one.
    pub line: Option<usize>,
    /// The file as the user named it, or the override as it was typed.
    pub source: Arc<str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {}{what}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct Problem {
    /// Where.
    pub at: Origin,
    /// The dotted key, empty if there is none.
    pub key: String,
    /// What.
    pub what: What,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum What {
    /// The source is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// There is no such key.
    #[error("unknown key{}", nearest.as_ref().map_or_else(String::new, |key| format!("; did you mean \"{key}\"?")))]
    UnknownKey {
        /// The known key that looks most like it, if one does.
        nearest: Option<String>,
    },
    /// A value of the wrong type or outside its range.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// As it was typed: never what a variable of the environment holds.
        found: String,
        /// What may stand here.
        expected: String,
    },
    /// Something that the design knows and this version does not have.
    #[error("{thing} is not available in this version{}", if available.is_empty() { String::new() } else { format!("; available: {}", available.join(", ")) })]
    NotAvailable {
        /// The value as it was typed, or "this key".
        thing: String,
        /// What may stand here instead, if anything.
        available: Vec<&'static str>,
    },
    /// A value that contradicts another one.
    #[error("{0}")]
    Contradiction(String),
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Neither a built-in pipeline nor a path.
    #[error(
        "no pipeline \"{name}\"{}; built in: {}; a file is named with a \"/\" or ends in \".toml\"",
        nearest.map_or_else(String::new, |like| format!(", did you mean \"{like}\"?")),
        available.join(", ")
    )]
    UnknownPipeline {
        /// As it was typed.
        name: String,
        /// The built-in pipeline that looks most like it, if one does.
        nearest: Option<&'static str>,
        /// The built-in pipelines.
        available: Vec<&'static str>,
    },
    /// A file that cannot be read.
    #[error("cannot read \"{}\"", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Everything that is wrong, in the order of the sources.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Problems(Vec<Problem>),
}
