//! The module `dupflow._dupflow` again, for the tests in Python: `cargo test` builds examples, but no library
//! that only Python can load.

include!("module.rs");
