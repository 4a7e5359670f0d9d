//! Several processes, as threads of one with real sockets between them, and as children of the binary: how
//! they connect, how they notice failures, and that their result equals that of one process.
//!
//! Several families. [`start`]: in any order, late, with differences named. [`strangers`]: other connections.
//! [`control`]: messages, an orderly end, and each way in which a process is lost. [`flow`]: the dataflow
//! over several processes, complete and cut off. [`children`], [`budget`], [`state`]: all of it, as users
//! run it.
//!
//! Bug classes: a start that a stranger ends, delays or takes part in; processes of different runs that
//! continue together; a process that has ended or hangs, while others wait for it or take their part of the
//! result for all of it; a failure whose reason is lost on the way; a process that succeeds where another one
//! fails.

#![cfg(test)]

mod budget;
mod children;
mod control;
mod flow;
mod group;
mod log;
#[cfg(unix)]
mod place;
mod start;
mod state;
mod strangers;
