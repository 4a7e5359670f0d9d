//! From closed epochs to durable ones: the queue before the committer, the committer, and what it writes
//! through.

mod clock_warning;
mod committer;
mod followed;
mod growth;
mod keeper;
mod queue;

pub use followed::Follower;

pub(in crate::pipeline) use clock_warning::ClockWarning;
pub(in crate::pipeline) use committer::{Committer, MayCorrect};
pub(in crate::pipeline) use followed::FollowedSink;
pub(in crate::pipeline) use growth::GrowthWarning;
pub(in crate::pipeline) use keeper::Keeper;
pub(in crate::pipeline) use queue::Commits;
