//! The command line, inside the process of its caller.

use std::io::{self, Write};

use dupflow::cli;
use pyo3::prelude::*;

use crate::messages;

/// The command line; `argv` begins with the program's name. Returns the exit code.
#[pyfunction]
#[pyo3(signature = (argv, /))]
pub(crate) fn main(py: Python<'_>, argv: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| {
        let code = messages::during_command(|log| cli::main(argv, log));
        // The process goes on. After a failure a thread may hold the output, which it waits for.
        if code == 0 {
            io::stdout().flush().unwrap_or(());
        }
        code
    })
}
