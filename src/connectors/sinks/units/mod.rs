//! Units of documents that are repeated: which are removed, and the list of them.

mod list;
mod repeated;

pub use list::UnitList;
pub(crate) use repeated::RepeatedUnits;
