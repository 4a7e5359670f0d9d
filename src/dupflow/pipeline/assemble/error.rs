//! Why a job cannot be assembled.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::config::OpenError;
use dupflow_connectors::intake::SourceError;
use dupflow_connectors::state::StateError;

/// Why a job cannot be assembled.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The dead-letter file of a replay cannot be created.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The dead-letter file of a run cannot be opened.
    #[error("the dead-letter file {path:?}")]
    Letters {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output file cannot be opened or created.
    #[error("the output file {path:?}")]
    Output {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The journal of what clients post cannot be opened.
    #[error("the journal {path:?}")]
    Journal {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The watch list cannot be read, or a file of it cannot be opened.
    #[error("{key}: {what}")]
    Watch {
        /// The key that names it.
        key: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The memory budget cannot be used, or nothing can be spilled.
    #[error("{key}: {what}")]
    Spill {
        /// The key of a deployment.
        key: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The reference cannot be read, or is none.
    #[error("reference.inputs: {0}")]
    Reference(String),
    /// The state cannot be opened.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<OpenError> for AssembleError {
    fn from((path, source): OpenError) -> Self {
        Self::Output { path, source }
    }
}
