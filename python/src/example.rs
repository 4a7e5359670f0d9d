//! The module `dupflow._dupflow` again, for the tests in Python: `cargo test` builds examples, but no library
//! that only Python can load.

#![expect(clippy::shadow_unrelated, reason = "an argument of Python and what is made of it have one name")]

include!("module.rs");
