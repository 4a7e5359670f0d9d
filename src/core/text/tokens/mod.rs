//! The tokenizer: options, character classes, the lowercasing pass, stop words and stems.

mod lower;
pub(super) mod normalize;
mod options;
pub(super) mod stem;
pub(super) mod stop;
pub(super) mod tokenize;
pub(super) mod unicode;

pub use options::{Marks, Normalize, Spaceless};
pub use stem::{Language, Stem};
