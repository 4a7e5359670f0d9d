//! Many queries at once: a table is built, asked by all queries in the order of its keys, and dropped before
//! the next one.
//!
//! In: one or two sets of [`Fingerprints`]. Out: every pair within the radius, once, with its distance. Only
//! one table exists at a time, so that a design of many tables costs the time for its sorting but not its
//! memory.
//!
//! A pair agrees in several tables as a rule. It is reported from the first one: a pair found within the
//! radius is looked for in the earlier tables, and nothing has to be remembered.
//!
//! Reference: Manku, Jain and Das Sarma (2007), section 4, who stream the sorted tables through a file of
//! queries.

use super::lead::Lead;
use super::sorted::SortedTable;
use super::{Fingerprints, Work};
use dupflow_core::block::hamming::{Design, DesignError, distance};

/// A pair within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// Id of the query, or the smaller id.
    pub a: u32,
    /// Id in the corpus, or the greater id.
    pub b: u32,
    /// Bits that differ, at most the radius.
    pub distance: usize,
}

/// The tables of a design over a corpus, none of them built.
#[derive(Debug)]
pub struct Batch<'c> {
    corpus: &'c Fingerprints,
    radius: usize,
    leads: Vec<Lead>,
}

/// One of them, built.
#[derive(Debug)]
pub struct Table<'b> {
    batch: &'b Batch<'b>,
    number: usize,
    sorted: SortedTable,
}

impl<'c> Batch<'c> {
    /// The tables of a design.
    ///
    /// # Errors
    /// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
    pub fn new(design: &Design, corpus: &'c Fingerprints) -> Result<Self, DesignError> {
        Ok(Self { corpus, radius: design.radius(), leads: Lead::of(design)? })
    }

    /// How many.
    pub fn tables(&self) -> usize {
        self.leads.len()
    }

    /// Builds one, from 0.
    ///
    /// # Panics
    /// If there is none of this number.
    pub fn table(&self, number: usize) -> Table<'_> {
        Table { batch: self, number, sorted: SortedTable::new(&self.leads[number], self.corpus) }
    }
}

impl Table<'_> {
    /// The pairs of each query and what is near it, that meet in no earlier table.
    pub fn matches(&self, queries: &Fingerprints, mut emit: impl FnMut(Near)) -> Work {
        let Batch { corpus, radius, leads } = self.batch;
        let (earlier, lead) = (&leads[..self.number], &leads[self.number]);
        // Neighbours in the table are read one after the other.
        let mut order: Vec<(u64, u32)> = queries.iter().map(|(id, words)| (lead.key(words), id)).collect();
        order.sort_unstable();
        let mut work = Work::default();
        for (_, a) in order {
            let query = queries.get(a);
            work += self.sorted.near(query, *radius, |b, distance| {
                if !earlier.iter().any(|other| other.meets(query, corpus.get(b))) {
                    emit(Near { a, b, distance });
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
    mut emit: impl FnMut(Near),
) -> Result<Work, DesignError> {
    let batch = Batch::new(design, corpus)?;
    let mut work = Work::default();
    for number in 0..batch.tables() {
        work += batch.table(number).matches(queries, &mut emit);
    }
    Ok(work)
}

/// All pairs of a corpus within the radius of a design, `a < b`.
///
/// # Errors
/// If the design has more keys than [`MOST_KEYS`](dupflow_core::block::hamming::MOST_KEYS).
pub fn pairs(
    design: &Design,
    corpus: &Fingerprints,
    mut emit: impl FnMut(Near),
) -> Result<Work, DesignError> {
    let leads: Vec<Lead> = design.selections()?.into_iter().map(Lead::equal).collect();
    let mut work = Work::default();
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
                        emit(Near { a: table.id(i), b: table.id(j), distance });
                    }
                }
            }
        }
    }
    Ok(work)
}
