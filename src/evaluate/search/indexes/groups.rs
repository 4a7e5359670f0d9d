//! alg.H: count in how many groups each id agrees with the query; c of k + c at least are candidates.
//!
//! Counters are bytes, one for each document, and stop at 255; which ones to set back is kept in a list.
//!
//! Reference: Yuan et al. (2012), section 4.

use super::postings::Postings;
use super::{Fingerprints, HammingSearch, Work};
use crate::block::hamming::{Design, distance};

/// Lists of all groups, counted.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    corpus: &'a Fingerprints,
    radius: usize,
    /// c, at most 255.
    surplus: u8,
    postings: Postings,
    /// In how many groups an id agrees; 0 between queries.
    counts: Vec<u8>,
    /// Ids whose count is not 0.
    touched: Vec<u32>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(corpus: &'a Fingerprints, design: &Design) -> Self {
        Self {
            corpus,
            radius: design.radius(),
            surplus: u8::try_from(design.surplus()).expect("a design has a surplus of at most 255"),
            postings: Postings::new(corpus, design),
            counts: vec![0; corpus.len()],
            touched: Vec::new(),
        }
    }
}

impl HammingSearch for Groups<'_> {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work {
        found.clear();
        let mut work = Work { probes: self.postings.groups() as u64, ..Work::default() };
        for group in 0..self.postings.groups() {
            let list = self.postings.list(group, query);
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
            let count = std::mem::take(&mut self.counts[id as usize]);
            if count >= self.surplus {
                work.verified += 1;
                if distance(self.corpus.get(id), query) <= self.radius {
                    found.push(id);
                }
            }
        }
        found.sort_unstable();
        work
    }
}
