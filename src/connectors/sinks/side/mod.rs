//! Side outputs: rows that a run keeps current beside its pairs, such as those of views.
//!
//! ```text
//! {"epoch":7,"diff":1,"view":"hosts","group":["a.org","b.org"],"value":3}
//! ```
//!
//! Changes of rows in; out to [lines](SideLines), to the destination of the main sink
//! ([`Sink::side`](super::Sink::side)), or to a [table of the final rows](FinalRows).
//!
//! **Right after any end.** The rows of an epoch are a function of the corpus, so a run that restores its
//! corpus derives all rows again. A side output reads what it holds when it is taken over. The rows of
//! epochs before the run is live are added up, not written. When the run is live, the difference between the
//! two is written, in the last restored epoch. It is empty after an orderly end. It has rows where the run
//! ended between two commits, where the main output was corrected, or where a view has changed since.
//! So the changes accumulate to the rows of the corpus whichever of the outputs was ahead.

mod final_rows;
mod lines;
mod rows;

pub use final_rows::FinalRows;
pub use lines::SideLines;
pub use rows::{SideDelta, SideRow};
