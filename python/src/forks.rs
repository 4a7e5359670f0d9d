//! The runs of a process, counted, so that a process that was forked beside them refuses to start its own.
//!
//! A thread of a run holds locks for moments, among them those of the table in which all condition variables
//! of the process wait. A fork copies a lock as it is, and not the thread that would release it. So a process
//! that was forked while its parent had a run could wait forever, and is refused.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The process that has runs, in the upper half, and their number.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// A run, counted until it is dropped.
pub(crate) struct CountedRun(());

impl CountedRun {
    /// Counts a run that is about to begin.
    ///
    /// # Errors
    /// As [`check`].
    pub(crate) fn begin() -> PyResult<Self> {
        let own = own();
        let counted = RUNS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |runs| match runs & LOW {
            0 => Some(own | 1),
            _ => (runs & !LOW == own).then_some(runs + 1),
        });
        counted.map(|_| Self(())).map_err(|_| forked())
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        RUNS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The half of [`RUNS`] that counts.
const LOW: u64 = u32::MAX as u64;

/// The process, in the upper half.
fn own() -> u64 {
    u64::from(std::process::id()) << 32
}

/// Whether the process may use threads.
///
/// # Errors
/// If it was forked while its parent had a run.
pub(crate) fn check() -> PyResult<()> {
    let runs = RUNS.load(Ordering::Acquire);
    if runs & LOW == 0 || runs & !LOW == own() { Ok(()) } else { Err(forked()) }
}

fn forked() -> PyErr {
    PyRuntimeError::new_err(
        "this process was forked while its parent had a run of dupflow, so it cannot have one: start \
         processes by \"spawn\" or \"forkserver\", or close every corpus before a fork",
    )
}
