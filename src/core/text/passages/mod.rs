//! What two texts have in common, by their shingles.

mod common;
mod units;

pub use common::{Passages, TextPiece, common_passages};
#[cfg(test)]
pub(super) use units::Units;
