//! Arrow IPC as a format of inputs: files (Feather) and streams.

#[cfg(feature = "arrow")]
mod batches;
#[cfg(feature = "arrow")]
mod cells;
mod format;
mod magic;
#[cfg(feature = "arrow")]
mod rows;

#[cfg(all(test, feature = "arrow"))]
mod tests;

pub(super) use format::ARROW;
