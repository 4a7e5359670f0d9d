//! All sorted tables of a design at once. A query reads in each table the rows of its own leading bits
//! (permuted tables), or of all values near them (multi-index hashing).
//!
//! A block of more than 64 bits is indexed by its first 64, which differ in no more bits than the block.
//!
//! References: Manku, Jain and Das Sarma (2007), section 3.1; Norouzi, Punjani and Fleet (2012), section 3;
//! its section 3.1, corollary, for the blocks that are looked up at one bit less distance.

use super::lead::Lead;
use super::sorted::SortedTable;
use super::{Fingerprints, HammingSearch, SearchWork};
use dupflow_core::block::hamming::{Design, DesignError};

/// All tables of a design.
#[derive(Debug)]
pub(super) struct SortedTables {
    radius: usize,
    tables: Vec<SortedTable>,
}

impl SortedTables {
    pub(super) fn new(corpus: &Fingerprints, design: &Design) -> Result<Self, DesignError> {
        let leads = Lead::for_design(design)?;
        Ok(Self {
            radius: design.radius(),
            tables: leads.iter().map(|lead| SortedTable::new(lead, corpus)).collect(),
        })
    }
}

impl HammingSearch for SortedTables {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> SearchWork {
        found.clear();
        let mut work = SearchWork::default();
        for table in &self.tables {
            work += table.near(query, self.radius, |id, _| found.push(id));
        }
        found.sort_unstable();
        found.dedup();
        work
    }
}
