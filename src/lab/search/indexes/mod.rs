//! Static indexes of a whole corpus: the ids within the radius of a query, by every design, and in batches.
//!
//! In: [`Fingerprints`] and a [`Design`]. Out: ids, which are positions in the corpus, with the [`Work`] that
//! it took. All indexes find the same ids; the scan is what the others are held against.
//!
//! An index is built once; but groups of bits can be added to [alg.H's](live) and dropped. Fingerprints that
//! come later belong into a stream ([`HammingTables`](dupflow_core::block::hamming::HammingTables)).

pub mod batch;
mod conjunctions;
mod fingerprints;
mod groups;
mod lead;
pub mod live;
mod postings;
mod scan;
mod sorted;
mod tables;

use std::fmt;
use std::ops::AddAssign;

pub use fingerprints::Fingerprints;

use dupflow_core::block::hamming::{Design, DesignError, DesignKind};

/// What a search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Look-ups in a table or in the lists of a group.
    pub probes: u64,
    /// Entries read, of tables or of lists.
    pub entries: u64,
    /// Fingerprints compared in full.
    pub verified: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.probes += more.probes;
        self.entries += more.entries;
        self.verified += more.verified;
    }
}

/// Finds what lies within the radius of a query.
///
/// Contract: `query` has the words of a fingerprint of the corpus. After the call `found` holds, instead of
/// what was in it, the ids within the radius, inclusive: all of them, ascending, each once. Only buffers
/// change.
pub trait HammingSearch: fmt::Debug {
    /// The ids within the radius of `query`.
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work;
}

/// The index of a corpus by a design.
///
/// # Errors
/// If a design of permuted tables has more of them than
/// [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
///
/// # Panics
/// If the fingerprints are not those that the design is for.
pub fn index<'a>(
    design: &Design,
    corpus: &'a Fingerprints,
) -> Result<Box<dyn HammingSearch + 'a>, DesignError> {
    assert_eq!(design.bits(), corpus.bits(), "a design for other fingerprints");
    Ok(match design.kind() {
        DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } | DesignKind::MultiIndex { .. } => {
            Box::new(tables::Tables::new(corpus, design)?)
        }
        DesignKind::Groups { .. } => Box::new(groups::Groups::new(corpus, design)),
        DesignKind::Conjunctions { .. } => Box::new(conjunctions::Conjunctions::new(corpus, design)),
        DesignKind::Scan => Box::new(scan::Scan::new(corpus, design.radius())),
    })
}

#[cfg(test)]
mod tests;
