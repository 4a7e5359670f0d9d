//! Pipeline files: what is computed.
//!
//! A [`Draft`] is a checked file; [`Draft::read`] reads the table of document frequencies that it names, if
//! any, and returns the [`Plan`]. Each module reads one table of the file.

mod blocking;
mod built_in;
mod description;
mod draft;
mod filter;
mod hamming;
pub(in crate::config) mod keys;
mod plan;
mod sketch;
#[cfg(test)]
mod tests;
mod text;

pub use blocking::BlockingPlan;
pub use built_in::BUILT_IN;
pub use draft::Draft;
pub use filter::FilterPlan;
pub use plan::Plan;
pub use text::frozen::FrozenTables;
