//! Banding: block keys of bands, and the choice of bands and rows.
//!
//! [`Banding`] cuts a sketch into bands (keys). [`design`](design()) chooses the number of bands and rows, on
//! the S-curve of banding ([`Curve`]) and with the blocks expected in a corpus of a given size
//! ([`ExpectedBlocks`]).

mod curve;
mod design;
mod expected;
mod keys;

pub use curve::Curve;
pub use design::{Bands, BandsError, DEFAULT_RECALL, MAX_ROWS, ROOM, areas, design};
pub use expected::ExpectedBlocks;
pub use keys::Banding;
