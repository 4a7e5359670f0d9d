//! Files that one run owns: opened and locked by it alone, known by device and number, and checked by their
//! length before anything is written.
//!
//! ```text
//! OwnedFile     lines are appended: an output, dead letters, notices, posted watches
//! OwnedRecord   it is replaced as a whole: a mark, a cursor
//! ```
//!
//! A file that is removed, renamed, replaced, cut or written by others while a run has it open would take
//! what the run writes to a place where no reader looks. So before each write the file at the path is
//! compared with the open one, which costs two calls of the system. A pipe or a device has no length and is
//! not compared, nor is what has a name below `/dev`.
//!
//! Between two runs an [`OwnedFile`] is known by the digest of its bytes, which its mark holds. So a copy
//! that was put back is the same file, and one with a hole is not.

mod file;
mod place;
mod record;

pub use file::{OwnedFile, WholeLines};
pub(crate) use place::with_suffix;
pub use place::{FileNumber, replace};
pub use record::OwnedRecord;

#[cfg(test)]
mod tests;
