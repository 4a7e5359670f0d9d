//! alg.G: for each choice of c of the k + c groups, the ids that agree in all of them.
//!
//! Choices with a common prefix share its intersection, and an empty intersection ends all choices with that
//! prefix. An id is compared in full once, even if several choices find it.
//!
//! Reference: Yuan et al. (2012), section 3.1.

use super::postings::GroupPostings;
use super::{Fingerprints, HammingSearch, SearchWork};
use dupflow_core::block::hamming::{Design, distance};

/// Intersects the lists of all groups.
#[derive(Debug)]
pub(super) struct Conjunctions<'a> {
    corpus: &'a Fingerprints,
    radius: usize,
    /// c.
    surplus: usize,
    postings: GroupPostings,
    /// For each id, the last query that compared it.
    seen: Vec<u32>,
    query: u32,
    /// Intersections of 2, 3, ... c groups.
    levels: Vec<Vec<u32>>,
}

impl<'a> Conjunctions<'a> {
    pub(super) fn new(corpus: &'a Fingerprints, design: &Design) -> Self {
        Self {
            corpus,
            radius: design.radius(),
            surplus: design.surplus(),
            postings: GroupPostings::new(corpus, design),
            seen: vec![0; corpus.len()],
            query: 0,
            levels: vec![Vec::new(); design.surplus()],
        }
    }

    /// Continues all choices that begin with `chosen` groups, the last one before `from`, whose common ids
    /// are `common`.
    fn choose(
        &mut self,
        query: &[u64],
        common: &[u32],
        chosen: usize,
        from: usize,
        found: &mut Vec<u32>,
        work: &mut SearchWork,
    ) {
        if chosen == self.surplus {
            self.verify(query, common, found, work);
            return;
        }
        // The last group that leaves enough groups for the rest of the choice.
        for group in from..=self.postings.groups() - (self.surplus - chosen) {
            let mut both = std::mem::take(&mut self.levels[chosen]);
            both.clear();
            let list = self.postings.list(group, query);
            work.probes += 1;
            if chosen == 0 {
                both.extend_from_slice(list);
            } else {
                work.entries += intersect(common, list, &mut both);
            }
            if !both.is_empty() {
                self.choose(query, &both, chosen + 1, group + 1, found, work);
            }
            self.levels[chosen] = both;
        }
    }

    fn verify(&mut self, query: &[u64], ids: &[u32], found: &mut Vec<u32>, work: &mut SearchWork) {
        work.entries += ids.len() as u64;
        for id in ids {
            if std::mem::replace(&mut self.seen[*id as usize], self.query) != self.query {
                work.verified += 1;
                if distance(self.corpus.get(*id), query) <= self.radius {
                    found.push(*id);
                }
            }
        }
    }
}

impl HammingSearch for Conjunctions<'_> {
    fn within(&mut self, query: &[u64], found: &mut Vec<u32>) -> SearchWork {
        found.clear();
        self.query = self.query.wrapping_add(1);
        if self.query == 0 {
            self.seen.fill(0);
            self.query = 1;
        }
        let mut work = SearchWork::default();
        self.choose(query, &[], 0, 0, found, &mut work);
        found.sort_unstable();
        work
    }
}

/// Appends the intersection of two ascending lists; returns the number of entries read.
///
/// Each entry of the shorter list is searched in the longer one by strides that double, from the last
/// position on.
fn intersect(a: &[u32], b: &[u32], common: &mut Vec<u32>) -> u64 {
    let (short, mut long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut looks = 0;
    for id in short {
        let mut stride = 1;
        looks += 2;
        while long.get(stride - 1).is_some_and(|other| other < id) {
            stride *= 2;
            looks += 1;
        }
        // The entry is between half the stride and the stride.
        let (from, to) = (stride / 2, stride.min(long.len()));
        looks += u64::from((to - from).max(1).ilog2());
        long = &long[from + long[from..to].partition_point(|other| other < id)..];
        match long.first() {
            Some(other) if other == id => common.push(*id),
            Some(_) => {}
            None => break,
        }
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::hash::mix;

    #[test]
    fn an_intersection_is_what_is_in_both() {
        for (n, m) in [(0, 5), (5, 0), (100, 100), (10, 3000), (2000, 40), (1, 1)] {
            for salt in 0..20 {
                let list = |length: u64, seed: u64| -> Vec<u32> {
                    let id = |i| u32::try_from(mix(i ^ seed << 32) % 4000).unwrap();
                    let mut ids: Vec<u32> = (0..length).map(id).collect();
                    ids.sort_unstable();
                    ids.dedup();
                    ids
                };
                let (a, b) = (list(n, 2 * salt), list(m, 2 * salt + 1));
                let mut common = Vec::new();
                let looks = intersect(&a, &b, &mut common);
                let expected: Vec<u32> = a.iter().filter(|id| b.contains(id)).copied().collect();
                assert_eq!(common, expected);
                assert!(looks >= common.len() as u64);
            }
        }
    }
}
