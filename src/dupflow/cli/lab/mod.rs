//! Commands of the laboratory: generated feeds, and studies of what the program promises.

pub mod calibrate;
mod documents;
pub mod evaluate;
pub mod generate;
pub(super) mod sample;
