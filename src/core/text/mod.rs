//! Text to features: tokens, shingles, and their 64-bit hashes.
//!
//! A UTF-8 text and [`TextRules`] -> one feature for each shingle, in text order, repeats included.
//!
//! The steps:
//!
//! 1. Of a text that is a web page, its content is [read](Html).
//! 2. Characters that do not show are [removed](Invisible), the text is [composed](Normalize), and letters
//!    are [folded](Fold), as the rules say.
//! 3. **Tokens** are maximal runs of [`char::is_alphanumeric`] with the [marks](Marks) of their letters. A
//!    character of a script written without spaces is a token of its own unless the rules let it
//!    [run](Spaceless::Run) on.
//! 4. Each token is lowercased separately; stop words are removed; the others are replaced by their
//!    [stems](Stem), if the rules ask for it.
//! 5. **Shingles** are windows of a number of words, or of characters of the tokens joined by one space.
//! 6. A **feature** is a shingle's hash.
//!
//! A token is one word, except characters of scripts without spaces. Under [`Spaceless::Part`], the default,
//! a Han character is half a word, a kana a quarter, and a Thai, Lao, Khmer or Myanmar character a sixth;
//! under [`Spaceless::Bag`] a half, a sixth and an eighth. At each token begins one shingle: the shortest
//! window that holds W words. Where the text ends before, there is none. A text that has no shingle by this
//! rule has one shingle of all its tokens.
//!
//! Invariants: features are the same on every machine and in every release (golden values in the tests),
//! except for characters that a later Unicode version adds. They do not depend on earlier texts.
//! [`Featurizer`] is the fast path; [`tokens`] and [`shingles`] compute the same as strings.
//!
//! ```
//! use dupflow_core::text::{Featurizer, TextRules, shingles};
//!
//! let rules = TextRules::default();
//! let text = "Near-duplicates, in a stream!";
//! assert_eq!(shingles(text, &rules), ["near duplicates in", "duplicates in a", "in a stream"]);
//! assert_eq!(Featurizer::new(rules).features(text).len(), 3);
//! ```
//!
//! Features of a set may repeat; its sketches ignore repeats. Weighted features are distinct:
//! [`Featurizer::terms`] counts them, and a [`Weigher`] computes their weights by the rules of [`Weights`].
//! Further [fields](Field) of a document are shingled separately. Where a record [brings](Given) its own
//! features, these are the tokens, and steps 1 to 4 are left out.

mod featurizer;
mod fields;
mod given;
mod idf_file;
pub mod measures;
mod pages;
mod passages;
mod plain;
mod rules;
mod shingle;
#[cfg(test)]
mod tests;
mod tokens;
mod weights;

pub use featurizer::{Featurizer, MeasuredFeatures};
pub use fields::Field;
pub use given::Given;
pub use idf_file::IdfError;
pub use pages::readable;
pub use passages::{Passages, TextPiece, common_passages};
pub use plain::{shingles, tokens};
pub use rules::{Html, Shingle, TextColumns, TextRules};
pub use tokens::{Fold, Folds, Invisible, Language, Marks, Normalize, Spaceless, Stem};
pub use weights::{Counts, Features, Growth, Idf, IdfForm, IdfTable, Terms, TermsRef, Weigher, Weights};
