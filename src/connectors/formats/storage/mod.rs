//! The stored bytes of inputs: read in order or at random, decompressed, and counted.

mod compression;
mod metered;
mod newline;
mod random_access;
mod read_failure;

pub(crate) use compression::{Compression, FeedReader, RestOfLine, WINDOW_LOG_MAX, window_above_bound};
pub use compression::{decompressed, open};
pub use metered::InputProgress;
pub(crate) use metered::{Metered, READ_BYTES, read_buffered};
pub(crate) use newline::line_length;
pub(crate) use random_access::{FileRange, InMemory, OnDisk, RandomAccess};
pub(crate) use read_failure::{FailedRead, ReadFailure};
