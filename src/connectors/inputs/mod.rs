//! The inputs of a run: what and where they are, and the source that reads files, folders and streams.

#[cfg(feature = "parquet")]
mod delta;
mod each_event;
mod files;
mod folder;
mod followed_tables;
mod globs;
mod input;
mod known;
mod named_table;
mod open;
#[cfg(feature = "object-store")]
mod remote;
mod reread;
mod resolve;
mod stamp;
mod staying;
mod table_folder;
mod texts;

pub use each_event::{for_each_event, for_each_event_until};
pub use files::Files;
pub use folder::{FolderKind, folder_kinds};
pub use followed_tables::FollowedTables;
pub use globs::listed;
pub use input::{Input, unreadable};
pub use known::GoneInputs;
pub use open::{described, refused_beginning};
pub(crate) use reread::{Reopened, reopen};
pub use reread::{files_of, folders_of};
pub(crate) use stamp::FileStamp;
pub use stamp::{file_number, file_numbers, stamp};
pub use staying::Staying;
pub(crate) use texts::ReadInput;
pub use texts::RecordIndex;
