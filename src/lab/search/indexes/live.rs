//! alg.H with groups of bits that are added and dropped: fingerprints that grow and shrink while they are
//! searched.
//!
//! A group is a column of values with its lists. Adding a group creates these and changes nothing else;
//! dropping it frees them. (In alg.G each choice of groups would change.) Fingerprints of m groups within
//! distance k agree in at least m - k groups, whatever the widths.
//!
//! Reference: Yuan et al. (2012), section 4, which adds and drops groups of k / m bits.

use super::SearchWork;
use super::groups::IdCounter;
use super::postings::GroupLists;

/// Maximum number of groups, inclusive: they are counted in bytes.
pub const MOST_GROUPS: usize = 255;

/// Fingerprints stored by group.
#[derive(Debug)]
pub struct LiveGroups {
    documents: usize,
    groups: Vec<LiveGroup>,
    counter: IdCounter,
}

#[derive(Debug)]
struct LiveGroup {
    width: usize,
    /// By id.
    values: Vec<u64>,
    lists: GroupLists,
}

impl LiveGroups {
    /// An index of `documents` fingerprints without any bit.
    pub fn new(documents: usize) -> Self {
        Self { documents, groups: Vec::new(), counter: IdCounter::new(documents) }
    }

    /// Present number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Present number of bits of a fingerprint.
    pub fn bits(&self) -> usize {
        self.groups.iter().map(|group| group.width).sum()
    }

    /// Appends a group of `width` bits, 1 to 64, with its value in each fingerprint.
    ///
    /// # Panics
    /// If the number of values is wrong, if a value has more bits, or if there are already [`MOST_GROUPS`].
    pub fn add(&mut self, width: usize, values: Vec<u64>) {
        assert_eq!(values.len(), self.documents, "a value for each fingerprint");
        assert!((1..=64).contains(&width) && self.groups.len() < MOST_GROUPS, "a group of {width} bits");
        assert!(values.iter().all(|value| value.checked_shr(place(width)).unwrap_or(0) == 0), "{width} bits");
        let lists = GroupLists::new(width, values.iter().copied());
        self.groups.push(LiveGroup { width, values, lists });
    }

    /// Drops a group, from 0; later groups move up.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn drop_group(&mut self, group: usize) {
        self.groups.remove(group);
    }

    /// An upper bound of the number of fingerprints with this value in a group. It is exact unless the lists
    /// are by the value's first bits.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn entries(&self, group: usize, value: u64) -> usize {
        self.groups[group].lists.list(value).len()
    }

    /// Finds the ids within `radius` of a query, inclusive, ascending; `query` has a value for each group. If
    /// no group has to agree, all are compared.
    ///
    /// # Panics
    /// If the number of values is wrong.
    pub fn within(&mut self, query: &[u64], radius: usize, found: &mut Vec<u32>) -> SearchWork {
        assert_eq!(query.len(), self.groups.len(), "a value for each group");
        found.clear();
        let Self { documents, groups, counter } = self;
        let distance = |id: u32| {
            let apart = groups.iter().zip(query).map(|(group, value)| group.values[id as usize] ^ value);
            apart.map(|bits| bits.count_ones() as usize).sum::<usize>()
        };
        if radius >= groups.len() {
            found.extend((0..).take(*documents).filter(|id| distance(*id) <= radius));
            return SearchWork { probes: 0, entries: *documents as u64, verified: *documents as u64 };
        }
        let lists = groups.iter().zip(query).map(|(group, value)| group.lists.list(*value));
        let work = counter.at_least(groups.len() - radius, lists, |id| {
            if distance(id) <= radius {
                found.push(id);
            }
        });
        found.sort_unstable();
        work
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 64")]
fn place(width: usize) -> u32 {
    width as u32
}
