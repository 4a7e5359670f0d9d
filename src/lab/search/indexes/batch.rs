//! Many queries at once: a table is built, all queries are run on it in the order of its keys, and it is
//! dropped.
//!
//! Input: one or two sets of [`Fingerprints`]. Output: every pair within the radius, once, with its distance.
//! Only one table exists at a time. So a design of many tables costs the time to sort them, but not their
//! memory.
//!
//! A pair usually agrees in several tables and is reported from the first one. For a pair within the radius
//! the search checks the keys of the earlier tables, so nothing has to be stored.
//!
//! Reference: Manku, Jain and Das Sarma (2007), section 4, which streams the sorted tables through a file of
//! queries.

use super::lead::Lead;
use super::sorted::SortedTable;
use super::{Fingerprints, SearchWork};
use dupflow_core::block::hamming::{Design, DesignError, distance};

/// A pair within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeighbourPair {
    /// Id of the query, or the smaller id.
    pub a: u32,
    /// Id in the corpus, or the greater id.
    pub b: u32,
    /// Number of different bits, at most the radius.
    pub distance: usize,
}

/// The tables of a design over a corpus, not built yet.
#[derive(Debug)]
pub struct TableBatch<'c> {
    corpus: &'c Fingerprints,
    radius: usize,
    leads: Vec<Lead>,
}

/// A built table.
#[derive(Debug)]
pub struct BatchTable<'b> {
    batch: &'b TableBatch<'b>,
    number: usize,
    sorted: SortedTable,
}

impl<'c> TableBatch<'c> {
    /// The tables of a design.
    ///
    /// # Errors
    /// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
    pub fn new(design: &Design, corpus: &'c Fingerprints) -> Result<Self, DesignError> {
        Ok(Self { corpus, radius: design.radius(), leads: Lead::for_design(design)? })
    }

    /// Number of tables.
    pub fn tables(&self) -> usize {
        self.leads.len()
    }

    /// Builds a table, from 0.
    ///
    /// # Panics
    /// If there is no table of this number.
    pub fn table(&self, number: usize) -> BatchTable<'_> {
        BatchTable { batch: self, number, sorted: SortedTable::new(&self.leads[number], self.corpus) }
    }
}

impl BatchTable<'_> {
    /// Emits the pairs of each query and its neighbours that meet in no earlier table.
    pub fn matches(&self, queries: &Fingerprints, mut emit: impl FnMut(NeighbourPair)) -> SearchWork {
        let TableBatch { corpus, radius, leads } = self.batch;
        let (earlier, lead) = (&leads[..self.number], &leads[self.number]);
        // Queries in key order read the table sequentially.
        let mut order: Vec<(u64, u32)> = queries.iter().map(|(id, words)| (lead.key(words), id)).collect();
        order.sort_unstable();
        let mut work = SearchWork::default();
        for (_, a) in order {
            let query = queries.get(a);
            work += self.sorted.near(query, *radius, |b, distance| {
                if !earlier.iter().any(|other| other.meets(query, corpus.get(b))) {
                    emit(NeighbourPair { a, b, distance });
                }
            });
        }
        work
    }
}

/// All fingerprints of a corpus within the radius of each query.
///
/// # Errors
/// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
pub fn matches(
    design: &Design,
    queries: &Fingerprints,
    corpus: &Fingerprints,
    mut emit: impl FnMut(NeighbourPair),
) -> Result<SearchWork, DesignError> {
    let batch = TableBatch::new(design, corpus)?;
    let mut work = SearchWork::default();
    for number in 0..batch.tables() {
        work += batch.table(number).matches(queries, &mut emit);
    }
    Ok(work)
}

/// All pairs `a < b` of a corpus within the radius of a design.
///
/// # Errors
/// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
pub fn pairs(
    design: &Design,
    corpus: &Fingerprints,
    mut emit: impl FnMut(NeighbourPair),
) -> Result<SearchWork, DesignError> {
    let leads: Vec<Lead> = design.selections()?.into_iter().map(Lead::equal).collect();
    let mut work = SearchWork::default();
    for (number, lead) in leads.iter().enumerate() {
        let table = SortedTable::new(lead, corpus);
        for run in table.runs() {
            work.probes += 1;
            work.entries += run.len() as u64;
            for i in run.clone() {
                for j in i + 1..run.end {
                    work.verified += 1;
                    let (a, b) = (table.row(i), table.row(j));
                    let distance = distance(a, b);
                    if distance <= design.radius() && !leads[..number].iter().any(|other| other.meets(a, b)) {
                        emit(NeighbourPair { a: table.id(i), b: table.id(j), distance });
                    }
                }
            }
        }
    }
    Ok(work)
}
