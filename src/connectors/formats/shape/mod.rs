//! How the values of records hold documents.

mod pick;
mod reader;
mod records;
mod settings;
mod values;

pub(crate) use pick::{Leaf, Picks};
pub(crate) use reader::ShapeReader;
pub use records::{KeyedRecord, KeyedRecords};
pub use settings::{RecordShape, ValueFormat};
