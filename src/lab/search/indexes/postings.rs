//! For each group of bits, the ids by the group's value: alg.G intersects these lists, alg.H counts them.
//!
//! The lists of a group are one array, ordered by value, then by id. Those of all groups together are the
//! paper's index over `y = (i - 1) C + value`, with C by the width of each group. A group of more bits than
//! the corpus needs is indexed by its first ⌈log2 n⌉ bits. Equal values have equal first bits, and the lists
//! then have one or two entries.
//!
//! Reference: Yuan et al. (2012), section 4.

use super::Fingerprints;
use dupflow_core::block::hamming::{Design, Selection};

/// Lists of ids by group and value.
#[derive(Debug)]
pub(super) struct GroupPostings {
    groups: Vec<(Selection, GroupLists)>,
}

/// The lists of one group.
#[derive(Debug)]
pub(super) struct GroupLists {
    /// Selects the bits of a value that are indexed.
    mask: u64,
    /// The start of the list of each value; one more at the end.
    starts: Vec<u32>,
    ids: Vec<u32>,
}

impl GroupPostings {
    pub(super) fn new(corpus: &Fingerprints, design: &Design) -> Self {
        let groups = design.blocks().into_iter().map(|range| {
            let (width, selection) = (range.len(), Selection::from(range));
            let group = GroupLists::new(width, corpus.iter().map(|(_, words)| selection.key(words)));
            (selection, group)
        });
        Self { groups: groups.collect() }
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The ids that agree with the query in a group, and possibly some more.
    #[inline]
    pub(super) fn list(&self, group: usize, query: &[u64]) -> &[u32] {
        let (selection, group) = &self.groups[group];
        group.list(selection.key(query))
    }
}

impl GroupLists {
    /// Builds the lists by counting. `values` are the first 64 bits of a group of `width` bits, for each id
    /// from 0 on.
    pub(super) fn new(width: usize, values: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let most = values.len().next_power_of_two().ilog2() as usize;
        let width = width.min(most);
        let mut group =
            Self { mask: (1 << width) - 1, starts: vec![0; (1 << width) + 2], ids: vec![0; values.len()] };
        // Counts are stored two places ahead; summed they are starts one place ahead, and filling moves them
        // by one.
        for value in values.clone() {
            let place = group.place(value);
            group.starts[place + 2] += 1;
        }
        let mut before = 0;
        for start in &mut group.starts {
            before += *start;
            *start = before;
        }
        for (id, value) in (0..).zip(values) {
            let place = group.place(value);
            let next = &mut group.starts[place + 1];
            group.ids[*next as usize] = id;
            *next += 1;
        }
        group.starts.pop();
        group
    }

    /// The ids of a value, and possibly some more.
    #[inline]
    pub(super) fn list(&self, value: u64) -> &[u32] {
        let place = self.place(value);
        &self.ids[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    fn place(&self, value: u64) -> usize {
        (value & self.mask) as usize
    }
}
