//! What the workers of a process share: the sketches that they read of each other, and what they keep.

pub(super) mod kept_epochs;
pub(super) mod process;
pub(super) mod reader;
pub(super) mod words;
