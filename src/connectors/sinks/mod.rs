//! Sinks: the deltas of closed epochs in; files, lists or (in tests) memory out. Topics are in
//! [`crate::kafka`], tables in [`crate::tables`].

pub mod answers;
pub(crate) mod book;
mod contained;
mod contract;
mod deferred;
mod destination;
pub(crate) mod items;
mod keep_list;
mod letters;
mod marked;
mod memory;
pub(crate) mod rows;
pub mod side;
mod units;

pub use answers::{DecisionLines, DeltaLines};
pub use book::{BookMetrics, Decision, DecisionMode, Repetition};
pub use contained::removed as contained_in_kept;
pub use contract::{EndList, OutputGuard, Sink};
pub use deferred::{DeferredWriter, Publication};
pub use destination::Destination;
pub use items::{AboveLimit, BenchmarkCounts, ItemCounts, ItemCountsSlot, ItemOutput, ItemRules, ItemSink};
pub(crate) use keep_list::LiveDocuments;
pub use keep_list::{DocumentList, KeepList, ListCounts, ListCountsSlot, RemovalRule};
pub use letters::LetterFile;
pub use marked::MarkedFile;
pub use memory::MemorySink;
pub use rows::{
    ColumnType, Columns, CsvRows, EachCells, FoundItem, JsonLines, OutputCell, OutputProvenance, OutputRow,
    PairStyle, ROW_FORMATS, RemovedUnit, RowFormat, RowWriter, StandardError, UnitName, WithProvenance,
};
pub(crate) use units::RepeatedUnits;
pub use units::UnitList;
