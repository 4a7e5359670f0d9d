//! Features and their weights: counts, document frequencies, and the formulas that combine them.

mod counts;
mod features;
mod idf;
pub(super) mod terms;
mod weighing;

pub use counts::Counts;
pub use features::Features;
pub use idf::{IdfForm, IdfTable};
pub use terms::{Terms, TermsRef};
pub use weighing::{Growth, Idf, Weigher, Weights};
