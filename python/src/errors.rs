//! Errors of the library as exceptions, with the same words.

use std::io;

use dupflow::config;
use dupflow::connectors::intake::SourceError;
use dupflow::connectors::state;
use dupflow::pipeline::{RunError, chain};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    dupflow,
    ConfigError,
    PyValueError,
    "A pipeline or a setting that cannot be used. `problems` lists every problem."
);
create_exception!(
    dupflow,
    StateError,
    PyRuntimeError,
    "The state of an earlier run cannot be continued: it is damaged, of another pipeline, or in use."
);

/// A [`ConfigError`] with all its problems, at least one.
pub(crate) fn config(py: Python<'_>, problems: Vec<String>) -> PyErr {
    let error = ConfigError::new_err(problems.join("\n"));
    match error.value(py).setattr("problems", problems) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// As [`config`], from the error of the library.
pub(crate) fn of_config(py: Python<'_>, error: config::ConfigError) -> PyErr {
    match error {
        config::ConfigError::Problems(problems) => {
            config(py, problems.iter().map(ToString::to_string).collect())
        }
        error => config(py, vec![chain(&error)]),
    }
}

/// The plan of a pipeline with settings, except of those whose results are no tables of documents.
pub(crate) fn load(py: Python<'_>, pipeline: &str, settings: &[String]) -> PyResult<config::Plan> {
    let plan = config::Plan::load(pipeline, settings).map_err(|error| of_config(py, error))?;
    if plan.scheme.units.is_some() {
        let why = "text.split: results are of whole documents; run `dupflow replay --emit remove`, which \
                   writes files";
        return Err(config(py, vec![why.to_owned()]));
    }
    if plan.finds_items() {
        let why = "blocking.kind: \"reference\" finds the items of a reference, which are files; run \
                   `dupflow replay --against`";
        return Err(config(py, vec![why.to_owned()]));
    }
    Ok(plan)
}

/// The number of workers, if it is possible.
pub(crate) fn workers(py: Python<'_>, workers: i64) -> PyResult<usize> {
    let possible = usize::try_from(workers).ok().filter(|n| (1..=config::MOST_WORKERS).contains(n));
    possible.ok_or_else(|| {
        let expected = format!("workers: found {workers}, expected 1 to {}", config::MOST_WORKERS);
        config(py, vec![expected])
    })
}

/// The exception for a failed run.
pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Past(_) => StateError::new_err(chain(error)),
        RunError::Output { error, .. } => of_run(py, error),
        RunError::State(error) => of_state(error),
        RunError::Source(SourceError::Inputs(problems)) => config(py, problems.clone()),
        RunError::Source(SourceError::BadRecord(_)) => PyValueError::new_err(chain(error)),
        RunError::Sink(cause)
        | RunError::Letters(cause)
        | RunError::Notices(cause)
        | RunError::Watches(cause)
        | RunError::Hook(cause) => of_io(cause, chain(error)),
        RunError::Source(SourceError::DeadLetter { source, .. }) => of_io(source, chain(error)),
        RunError::Source(_) | RunError::Spill(_) => PyOSError::new_err(chain(error)),
        RunError::Abandoned | RunError::Process(_) | RunError::Worker(_) => {
            PyRuntimeError::new_err(chain(error))
        }
    }
}

/// The exception for a state that cannot be opened or written.
pub(crate) fn of_state(error: &state::StateError) -> PyErr {
    match error {
        state::StateError::Io { source, .. } => of_io(source, chain(error)),
        error => StateError::new_err(chain(error)),
    }
}

/// An `OSError`, of the subclass that belongs to the code of the system.
fn of_io(cause: &io::Error, message: String) -> PyErr {
    match cause.raw_os_error() {
        Some(code) => PyOSError::new_err((code, message)),
        None => io::Error::new(cause.kind(), message).into(),
    }
}
