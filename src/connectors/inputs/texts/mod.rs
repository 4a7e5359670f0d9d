//! Reads the texts of documents back from recorded inputs.

mod index;
mod reader;

pub use index::Places;
pub(super) use reader::FileTexts;
