//! Sorted copies of the corpus, all at once: a query reads, in each, the rows of its own leading bits
//! (permuted tables), or of all values near them (multi-index hashing).
//!
//! A block of more than 64 bits is indexed by its first 64, which differ in no more bits than the block.
//!
//! References: Manku, Jain and Das Sarma (2007), section 3.1; Norouzi, Punjani and Fleet (2012), section 3,
//! and section 3.1, corollary, for which blocks are looked up one bit less near.

use super::lead::Lead;
use super::sorted::SortedTable;
use super::{Fingerprints, HammingSearch, Work};
use dupflow_core::block::hamming::{Design, DesignError};

/// All tables of a design.
#[derive(Debug)]
pub(super) struct Tables {
    radius: usize,
    tables: Vec<SortedTable>,
}

impl Tables {
    pub(super) fn new(corpus: &Fingerprints, design: &Design) -> Result<Self, DesignError> {
        let leads = Lead::of(design)?;
        Ok(Self {
            radius: design.radius(),
            tables: leads.iter().map(|lead| SortedTable::new(lead, corpus)).collect(),
        })
    }
}

impl HammingSearch for Tables {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work {
        found.clear();
        let mut work = Work::default();
        for table in &self.tables {
            work += table.near(query, self.radius, |id, _| found.push(id));
        }
        found.sort_unstable();
        found.dedup();
        work
    }
}
