//! Sketches of weighted features, for the weighted Jaccard similarity and for the cosine.

mod consistent;
mod cws;
mod dart;
mod draws;
mod icws;
mod rejection;
pub mod simhash;

pub use cws::Cws;
pub use dart::Dart;
pub use icws::Icws;
pub use rejection::Rejection;
pub use simhash::{SimHash, Ties};
