//! Static indexes of a whole corpus: the ids within the radius of a query, by every design, and in batches.
//!
//! Input: [`Fingerprints`] and a [`Design`]. Output: ids, which are positions in the corpus, with the
//! [`SearchWork`]. All indexes find the same ids; tests compare them with the scan.
//!
//! An index is built once, except that groups of bits can be added to [alg.H](live) and dropped. For
//! fingerprints that arrive over time there is a streaming form
//! ([`HammingTables`](dupflow_core::block::hamming::HammingTables)).

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

/// The work of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchWork {
    /// Lookups in a table or in the lists of a group.
    pub probes: u64,
    /// Entries read, of tables or of lists.
    pub entries: u64,
    /// Fingerprints compared in full.
    pub verified: u64,
}

impl AddAssign for SearchWork {
    fn add_assign(&mut self, more: Self) {
        self.probes += more.probes;
        self.entries += more.entries;
        self.verified += more.verified;
    }
}

/// Finds the fingerprints within the radius of a query.
///
/// Contract: `query` has the words of a fingerprint of the corpus. The call replaces the contents of `found`
/// by all ids within the radius, inclusive, ascending, each once. Only buffers change.
pub trait HammingSearch: fmt::Debug {
    /// The ids within the radius of `query`.
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> SearchWork;
}

/// The index of a corpus by a design.
///
/// # Errors
/// If a design of permuted tables has more of them than
/// [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
///
/// # Panics
/// If the fingerprints have another length than the design.
pub fn index<'a>(
    design: &Design,
    corpus: &'a Fingerprints,
) -> Result<Box<dyn HammingSearch + 'a>, DesignError> {
    assert_eq!(design.bits(), corpus.bits(), "a design for other fingerprints");
    Ok(match design.kind() {
        DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } | DesignKind::MultiIndex { .. } => {
            Box::new(tables::SortedTables::new(corpus, design)?)
        }
        DesignKind::Groups { .. } => Box::new(groups::Groups::new(corpus, design)),
        DesignKind::Conjunctions { .. } => Box::new(conjunctions::Conjunctions::new(corpus, design)),
        DesignKind::Scan => Box::new(scan::ScanIndex::new(corpus, design.radius())),
    })
}

#[cfg(test)]
mod tests;
