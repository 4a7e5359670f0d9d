//! Reads the texts of documents back from recorded inputs.

mod index;
mod reader;

pub(crate) use index::ReadInput;
pub use index::RecordIndex;
pub(super) use reader::FileTexts;
