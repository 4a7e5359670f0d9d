//! The command line, inside the process of its caller.

use dupflow::cli;
use pyo3::prelude::*;

use crate::messages;

/// The command line; `argv` begins with the program's name. Returns the exit code.
#[pyfunction]
#[pyo3(signature = (argv, /))]
pub(crate) fn main(py: Python<'_>, argv: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| messages::during_command(|log| cli::main(argv, log)))
}
