//! Tables of Delta Lake, by their log.
//!
//! A folder, and a version -> the files of its rows, each an [`Input`](super::input::Input) with what the log
//! says of it: the names of its columns, the values of partition columns, and the rows that are deleted. What
//! the protocol has and this does not know is refused by its name.

mod actions;
mod deleted;
mod log;
mod paths;
mod schema;
mod table;

pub(super) use log::{NewestVersion, newest};
pub(super) use table::files;
