//! A run in progress: its job, its threads, its processes and its end.

mod failure;
mod go;
mod job;
mod memory_watch;
mod process_group;
mod restore;
mod running;
mod start;
mod state_writers;
mod threads;
mod worker;

pub use job::{RunJob, nowhere};
pub use process_group::{FailureSender, ProcessGroup};
pub use running::{Running, Stopper};
pub use start::{run, start};
