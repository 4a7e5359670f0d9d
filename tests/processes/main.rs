//! Several processes, as threads of one with real sockets between them, and as children of the binary: how
//! they come together, how they know of each other, and that what they compute together is what one computes.
//!
//! Five families. [`start`]: in any order, late, with what differs named. [`strangers`]: whatever else
//! connects. [`control`]: messages, an end in good order, and each way in which a process is lost. [`flow`]:
//! the dataflow over several processes, whole and cut off. [`children`]: all of it, as users run it.
//!
//! Bug classes: a start that a stranger ends, delays or takes part in; processes of different runs that go on
//! together; a process that is gone, or hangs, while others wait for it or take what they have for all; a
//! failure whose reason is lost on the way; a process that ends well where another one fails.

#![cfg(test)]

mod children;
mod control;
mod flow;
mod group;
mod log;
#[cfg(unix)]
mod place;
mod start;
mod strangers;
