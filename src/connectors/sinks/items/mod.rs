//! The items of a reference that lie in documents: benchmark questions in the pages of a training set.
//!
//! ```text
//! {"id":"…","benchmark":"…","shingles":14,"pages":3,"share":0.93,"page":"…",
//!  "too_short":false,"above_limit":false}                     a line for each item
//! ```
//!
//! In: changes of documents, and of pairs of an item and a page. Out: at the end of the input the pairs, the
//! pages with one item each, or a row for each item; and [counts](ItemCounts) for each benchmark.
//!
//! An item that lies in more pages than [`ItemRules::limit`] is counted and named, and is in no pair: a
//! common phrase says nothing of a page. All of it is a function of the live items, pages and pairs.

mod found;
mod sink;

pub use found::{AboveLimit, BenchmarkCounts, ItemCounts, ItemRules};
pub use sink::{ItemCountsSlot, ItemOutput, ItemSink};
