//! Sketches that the workers of a process read of each other.

pub(super) mod process;
pub(super) mod reader;
pub(super) mod words;
