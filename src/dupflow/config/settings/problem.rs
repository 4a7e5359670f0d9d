//! The problems that a configuration can have, each with its place.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// Where a setting is defined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Rank in the order of reading: 0 is the file, the overrides follow. A later layer replaces an earlier
    /// one.
    pub(in crate::config) layer: usize,
    /// The line number, from 1; `None` for an override, or for a problem of the whole file.
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

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {}{what}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct Problem {
    /// Where it is.
    pub at: Origin,
    /// The dotted key; empty if the problem has none.
    pub key: String,
    /// What is wrong.
    pub what: ProblemKind,
}

impl Problem {
    /// The same with other names of keys.
    pub(super) fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        let what = match self.what {
            ProblemKind::Contradiction(what) => ProblemKind::Contradiction(name(&what)),
            what => what,
        };
        Self { key: name(&self.key), what, ..self }
    }
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemKind {
    /// The source is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// There is no such key.
    #[error("unknown key{}", nearest.as_ref().map_or_else(String::new, |key| format!("; did you \
        mean \"{key}\"?")))]
    UnknownKey {
        /// The most similar known key, if one is similar enough.
        nearest: Option<String>,
    },
    /// A value of the wrong type or outside its range.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The value as typed, never the content of an environment variable.
        found: String,
        /// The accepted values.
        expected: String,
    },
    /// A key or value that only other versions of the program have.
    #[error("{thing} is not available in this \
        version{}", if available.is_empty() { String::new() } else { format!("; available: \
            {}", available.join(", ")) })]
    NotAvailable {
        /// The value as typed, or "this key".
        thing: String,
        /// The accepted values, if any.
        available: Vec<&'static str>,
    },
    /// A value that contradicts another one.
    #[error("{0}")]
    Contradiction(String),
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Neither the name of a built-in pipeline nor a path.
    #[error(
        "no pipeline \"{name}\"{}; built in: {}; a file is named with a \"/\" or ends in \".toml\"",
        nearest.map_or_else(String::new, |like| format!(", did you mean \"{like}\"?")),
        available.join(", ")
    )]
    UnknownPipeline {
        /// The name as typed.
        name: String,
        /// The most similar built-in pipeline, if one is similar enough.
        nearest: Option<&'static str>,
        /// The built-in pipelines.
        available: Vec<&'static str>,
    },
    /// A file that cannot be read.
    #[error("cannot read \"{}\"", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// All problems, in the order of their places.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Problems(Vec<Problem>),
}
