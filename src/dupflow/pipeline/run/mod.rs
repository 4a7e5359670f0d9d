//! A run in progress: its job, its threads, its processes and its end.

mod failure;
mod job;
mod memory_watch;
mod process_group;
mod running;
mod start;
mod threads;
mod worker;

pub use job::{RunJob, nowhere};
pub use process_group::{FailureSender, ProcessGroup};
pub use running::{Running, Stopper};
pub use start::{run, start};
