//! Arrow IPC as a format of inputs: files (Feather) and streams.

#[cfg(feature = "arrow")]
mod cells;
#[cfg(feature = "arrow")]
mod file;
mod format;
mod magic;
#[cfg(feature = "arrow")]
mod message;
#[cfg(feature = "arrow")]
mod rows;
#[cfg(feature = "arrow")]
mod stream;

#[cfg(test)]
mod tests;

pub(super) use format::ARROW;
