//! Files that are one document: a text, or a web page.

mod text;
mod whole;

pub use text::text_of_file;
pub(crate) use text::{NoText, is_refusal, read_text};
pub(super) use whole::{HTML, TEXT};
