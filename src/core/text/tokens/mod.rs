//! The tokenizer: options, letters as they are compared, character classes, the lowercasing pass, stop words
//! and stems.

mod fold;
pub(super) mod letters;
mod lower;
mod options;
pub(super) mod stem;
pub(super) mod stop;
pub(super) mod tables;
pub(super) mod tokenize;
pub(super) mod unicode;

pub use fold::{Fold, Folds};
pub use options::{Invisible, Marks, Normalize, Spaceless};
pub use stem::{Language, Stem};
