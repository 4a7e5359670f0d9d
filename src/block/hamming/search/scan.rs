//! The linear scan: every fingerprint, in the order of the corpus.
//!
//! The first words of all fingerprints stand in one column, the others apart. The column is as wide as two random
//! fingerprints need to be beyond the radius on average (they differ in 32 bits a word), so most are done with after
//! a few bytes: one word for k = 3, two for k = 60.

use super::super::distance;
use super::{Fingerprints, HammingSearch, Work};

/// Columns of a corpus.
#[derive(Debug)]
pub(super) struct Scan {
    radius: usize,
    /// Words of a fingerprint in `first`.
    lead: usize,
    first: Vec<u64>,
    rest: Vec<u64>,
}

impl Scan {
    pub(super) fn new(corpus: &Fingerprints, radius: usize) -> Self {
        let lead = (radius / 32 + 1).min(corpus.stride());
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for (_, words) in corpus.iter() {
            first.extend_from_slice(&words[..lead]);
            rest.extend_from_slice(&words[lead..]);
        }
        Self { radius, lead, first, rest }
    }
}

impl HammingSearch for Scan {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> Work {
        found.clear();
        let (lead, others) = query.split_at(self.lead);
        for (id, first) in (0..).zip(self.first.chunks_exact(self.lead)) {
            let so_far = distance(first, lead);
            if so_far > self.radius {
                continue;
            }
            let start = id as usize * others.len();
            if so_far + distance(&self.rest[start..start + others.len()], others) <= self.radius {
                found.push(id);
            }
        }
        let documents = (self.first.len() / self.lead) as u64;
        Work { probes: 0, entries: documents, verified: documents }
    }
}
