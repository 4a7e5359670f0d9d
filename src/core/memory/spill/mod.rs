//! Values on disk: rows in pages of a file, a cache of pages, and a slab whose keys are in memory.
//!
//! ```text
//! hash ─ HashIndex ─ place ─┬─ values in memory: those of the last fetch, and those that must stay
//!                           └─ page of the cache ─ page of the file
//! ```

mod file;
mod pages;
mod row_value;
mod spilled_slab;

pub use file::{PageFile, PlaceInMemory, SpillError, SpillPlace};
pub use pages::{PAGE_BYTES, SpillCounts};
pub use row_value::RowValue;
pub use spilled_slab::{SpilledRowsReader, SpilledSlab};
