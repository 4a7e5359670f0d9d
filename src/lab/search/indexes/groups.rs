//! alg.H: counts for each id the groups that agree with the query; with at least c of k + c it is a
//! candidate.
//!
//! Reference: Yuan et al. (2012), section 4.

use super::postings::GroupPostings;
use super::{Fingerprints, HammingSearch, SearchWork};
use dupflow_core::block::hamming::{Design, distance};

/// Counts the lists of all groups.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    corpus: &'a Fingerprints,
    radius: usize,
    /// c, at most 255.
    surplus: usize,
    postings: GroupPostings,
    counter: IdCounter,
}

impl<'a> Groups<'a> {
    pub(super) fn new(corpus: &'a Fingerprints, design: &Design) -> Self {
        Self {
            corpus,
            radius: design.radius(),
            surplus: design.surplus(),
            postings: GroupPostings::new(corpus, design),
            counter: IdCounter::new(corpus.len()),
        }
    }
}

impl HammingSearch for Groups<'_> {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> SearchWork {
        found.clear();
        let Self { corpus, radius, surplus, postings, counter } = self;
        let lists = (0..postings.groups()).map(|group| postings.list(group, query));
        let work = counter.at_least(*surplus, lists, |id| {
            if distance(corpus.get(id), query) <= *radius {
                found.push(id);
            }
        });
        found.sort_unstable();
        work
    }
}

/// Counts in how many lists each id is. Counters are bytes, one per id, and saturate at 255. A list records
/// which ones to reset.
#[derive(Debug)]
pub(super) struct IdCounter {
    /// All 0 between queries.
    counts: Vec<u8>,
    /// Ids whose count is not 0.
    touched: Vec<u32>,
}

impl IdCounter {
    /// For ids below `documents`.
    pub(super) fn new(documents: usize) -> Self {
        Self { counts: vec![0; documents], touched: Vec::new() }
    }

    /// Visits each id that is in at least `least` of the lists; `least` is 1 to 255.
    pub(super) fn at_least<'l>(
        &mut self,
        least: usize,
        lists: impl Iterator<Item = &'l [u32]>,
        mut visit: impl FnMut(u32),
    ) -> SearchWork {
        let mut work = SearchWork::default();
        for list in lists {
            work.probes += 1;
            work.entries += list.len() as u64;
            for id in list {
                let count = &mut self.counts[*id as usize];
                if *count == 0 {
                    self.touched.push(*id);
                }
                *count = count.saturating_add(1);
            }
        }
        for id in self.touched.drain(..) {
            if usize::from(std::mem::take(&mut self.counts[id as usize])) >= least {
                work.verified += 1;
                visit(id);
            }
        }
        work
    }
}
