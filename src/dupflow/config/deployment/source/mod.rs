//! The tables `[source]`, `[csv]`, `[warc]` and `[commit]` of a deployment file: where events are read from,
//! each kind in a file of its own.

mod database;
mod files;
pub(super) mod http;
mod layout;
mod limits;
mod place;
pub(super) mod reference;
mod register;
mod topic;

pub use database::{DatabaseSource, SOURCE_DATABASE};
pub use files::FilesSource;
pub(super) use layout::QUOTE_EXPECTED;
pub(super) use limits::{commit, fields, max_bad, max_unread};
pub use place::{SourceConfig, SourcePlace, SourceSettings, fields_of};
pub use topic::{SOURCE_START, TopicSource};
