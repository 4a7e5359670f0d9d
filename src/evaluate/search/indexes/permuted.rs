//! Permuted tables: a sorted copy of the corpus for each choice of leading bits; a query reads, in each, the range of its own
//! bits.
//!
//! Reference: Manku, Jain and Das Sarma (2007), section 3.1.

use super::sorted::SortedTable;
use super::{Fingerprints, HammingSearch, Work};
use crate::block::hamming::{Selection, distance};

/// Sorted tables, looked up for equality.
#[derive(Debug)]
pub(super) struct Permuted {
    radius: usize,
    tables: Vec<SortedTable>,
}

impl Permuted {
    /// A table for each selection.
    pub(super) fn new(corpus: &Fingerprints, radius: usize, selections: Vec<Selection>) -> Self {
        let tables = selections.into_iter().map(|selection| SortedTable::new(selection, corpus)).collect();
        Self { radius, tables }
    }
}

impl HammingSearch for Permuted {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work {
        found.clear();
        let mut entries = 0;
        for table in &self.tables {
            let range = table.probe(table.key(query));
            entries += range.len() as u64;
            found.extend(
                range.filter(|at| distance(table.row(*at), query) <= self.radius).map(|at| table.id(at)),
            );
        }
        found.sort_unstable();
        found.dedup();
        Work { probes: self.tables.len() as u64, entries, verified: entries }
    }
}
