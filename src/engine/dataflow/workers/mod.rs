//! The worker threads of a process, and the links between processes.

pub(super) mod link;
pub(super) mod run;
