//! For each group of bits, the ids by the group's value: what alg.G intersects and alg.H counts.
//!
//! The lists of all groups stand in one array, group after group and value after value, ids ascending: the index over
//! `y = (i - 1) C + value` of the paper, with C by the width of each group. A group of more bits than the corpus
//! needs is indexed by its first ⌈log2 n⌉: equal values have equal first bits, and lists are no longer than an entry or two.
//!
//! Reference: Yuan et al. (2012), section 4.

use super::Fingerprints;
use crate::block::hamming::{Design, Selection};

/// Lists of ids by group and value.
#[derive(Debug)]
pub(super) struct Postings {
    groups: Vec<Group>,
    /// The ids of a group are `documents` in a row.
    ids: Vec<u32>,
    documents: usize,
}

#[derive(Debug)]
struct Group {
    selection: Selection,
    /// Selects what of the key is a value.
    mask: u64,
    /// Where the list of a value begins, among the ids of the group; one more at the end.
    starts: Vec<u32>,
}

impl Postings {
    pub(super) fn new(corpus: &Fingerprints, design: &Design) -> Self {
        let documents = corpus.len();
        let most = documents.next_power_of_two().ilog2() as usize;
        let mut ids = Vec::new();
        let groups = design.blocks().into_iter().map(|range| {
            let width = range.len().min(most);
            let mut group =
                Group { selection: Selection::from(range), mask: (1 << width) - 1, starts: Vec::new() };
            group.fill(corpus, width, &mut ids);
            group
        });
        Self { groups: groups.collect(), ids, documents }
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The ids that agree with the query in a group, and maybe some more.
    #[inline]
    pub(super) fn list(&self, group: usize, query: &[u64]) -> &[u32] {
        let Group { starts, .. } = &self.groups[group];
        let value = self.groups[group].value(query);
        let first = group * self.documents;
        &self.ids[first + starts[value] as usize..first + starts[value + 1] as usize]
    }
}

impl Group {
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    fn value(&self, words: &[u64]) -> usize {
        (self.selection.key(words) & self.mask) as usize
    }

    /// Appends the group's lists by counting.
    fn fill(&mut self, corpus: &Fingerprints, width: usize, ids: &mut Vec<u32>) {
        let first = ids.len();
        ids.resize(first + corpus.len(), 0);
        // Counts, moved on by two: then starts, moved on by one, which the filling moves to their places.
        self.starts = vec![0; (1 << width) + 2];
        for (_, words) in corpus.iter() {
            let value = self.value(words);
            self.starts[value + 2] += 1;
        }
        let mut before = 0;
        for start in &mut self.starts {
            before += *start;
            *start = before;
        }
        for (id, words) in corpus.iter() {
            let value = self.value(words);
            let next = &mut self.starts[value + 1];
            ids[first + *next as usize] = id;
            *next += 1;
        }
        self.starts.pop();
    }
}
