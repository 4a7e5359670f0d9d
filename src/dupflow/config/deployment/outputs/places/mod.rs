//! Places of results, each in a file of its own: what is read of it, what it takes, and how it is opened.

mod files;
mod nowhere;
mod place;
mod register;
mod tables;
mod topic;

pub use files::FilePlace;
pub use place::{OpenError, OpenedOutput, OutputPlace, OutputSettings, Place};
pub use tables::TablesPlace;
pub use topic::TopicPlace;
