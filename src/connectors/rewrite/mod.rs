//! The documents themselves: the records of kept or removed documents, as they were read.
//!
//! The changes of documents and pairs -> at the end of the input a [`Selection`], by the numbers of records,
//! -> a second pass over the inputs, which copies the selected records into the files of a [`CopyTarget`]. No
//! record is held. What is not a live document is not copied: bad records, deletes,
//! replaced versions, records of an archive without a document.
//!
//! A copy that ended early can be gone on with ([`CopyResume`]).
//!
//! An input that has changed since its first record was read ends the pass with an error, and no file
//! appears: see `FileStamp` in [`inputs`](crate::inputs), and the number of its records.

mod files;
mod pass;
mod plan;
mod progress;
mod selection;
mod target;
#[cfg(test)]
mod tests;
mod units;

pub use pass::{CopiedDocuments, DocumentsCopy};
pub use plan::problems;
pub use progress::CopyResume;
pub use selection::{Selection, SelectionSink, SelectionSlot};
pub use target::{CopySettings, CopyTarget};
pub use units::UnitCutSink;
