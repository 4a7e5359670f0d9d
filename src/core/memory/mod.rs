//! Storage that grows in small steps: [`Rows`], [`SharedRows`] and a [`Slab`] at fixed addresses in memory, a
//! [`SpilledSlab`] whose values are in a file, [`PackedTables`], [`OrderedRows`], a [`HashIndex`] and
//! [`Interned`] keys. All but the file and those keys shrink too.

mod hash_index;
mod interned;
mod ordered_rows;
mod packed_table;
mod rows;
mod shared_rows;
mod slab;
mod spill;

pub use hash_index::HashIndex;
pub use interned::Interned;
pub use ordered_rows::OrderedRows;
pub use packed_table::PackedTables;
pub use rows::Rows;
pub use shared_rows::{SharedRows, SharedRowsReader};
pub use slab::Slab;
pub use spill::{
    PAGE_BYTES, PageFile, PlaceInMemory, RowValue, SpillCounts, SpillError, SpillPlace, SpilledRowsReader,
    SpilledSlab,
};
