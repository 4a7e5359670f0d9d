//! Commands of the laboratory: generated feeds, and studies of what the program promises.

mod documents;
pub mod evaluate;
pub mod generate;
