// The parts of the module. `lib.rs` and `example.rs` include this file: cargo takes one file for one target.

mod batches;
mod cells;
mod columns;
mod command;
mod corpus;
mod errors;
mod feed;
mod follow;
mod forks;
mod frames;
mod ids;
mod inbox;
mod messages;
mod numbers;
mod planned;
mod results;
mod session;
mod stored;
mod tables;
mod wait;

use pyo3::prelude::*;

/// Arrow tables in, Arrow tables out.
#[pymodule]
mod _dupflow {
    #[pymodule_export]
    use crate::batches::{Deduplicated, clusters, dedup, pairs};
    #[pymodule_export]
    use crate::columns::{field_columns, keep_columns};
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::corpus::Corpus;
    #[pymodule_export]
    use crate::errors::{ConfigError, StateError};
    #[pymodule_export]
    use crate::follow::{Follow, every};
    #[pymodule_export]
    use crate::messages::{set_log, set_log_level};
    #[pymodule_export]
    use crate::planned::{Comparison, Plan, compare, plan};
    #[pymodule_export]
    use crate::tables::Table;

    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", dupflow::program::VERSION)?;
        let mut features: Vec<_> = dupflow::program::features().collect();
        features.sort_unstable();
        module.add("FEATURES", PyTuple::new(module.py(), features)?)
    }
}
