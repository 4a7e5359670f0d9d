//! alg.H over groups of bits that come and go: fingerprints that grow longer, or shorter, while they are
//! searched.
//!
//! A group is a column of values with its lists. Adding one makes these and touches nothing else; dropping
//! one frees them. (In alg.G each choice of groups would change.) Fingerprints of m groups within distance k
//! agree in m - k groups at least, whatever the widths.
//!
//! Reference: Yuan et al. (2012), section 4, where groups are said to be added and dropped k / m bits at a
//! time.

use super::Work;
use super::groups::Counter;
use super::postings::Group;

/// Most groups of an index, inclusive: they are counted in bytes.
pub const MOST_GROUPS: usize = 255;

/// Some fingerprints, group by group.
#[derive(Debug)]
pub struct LiveGroups {
    documents: usize,
    groups: Vec<Column>,
    counter: Counter,
}

#[derive(Debug)]
struct Column {
    width: usize,
    /// By id.
    values: Vec<u64>,
    lists: Group,
}

impl LiveGroups {
    /// Of so many fingerprints, which have no bit yet.
    pub fn new(documents: usize) -> Self {
        Self { documents, groups: Vec::new(), counter: Counter::new(documents) }
    }

    /// Groups now.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Bits of a fingerprint now.
    pub fn bits(&self) -> usize {
        self.groups.iter().map(|group| group.width).sum()
    }

    /// Adds a group of `width` bits, 1 to 64, behind the others: its value in each fingerprint.
    ///
    /// # Panics
    /// If there is a value too many or too few or none of this width, or [`MOST_GROUPS`] are there already.
    pub fn add(&mut self, width: usize, values: Vec<u64>) {
        assert_eq!(values.len(), self.documents, "a value for each fingerprint");
        assert!((1..=64).contains(&width) && self.groups.len() < MOST_GROUPS, "a group of {width} bits");
        assert!(values.iter().all(|value| value.checked_shr(place(width)).unwrap_or(0) == 0), "{width} bits");
        let lists = Group::new(width, values.iter().copied());
        self.groups.push(Column { width, values, lists });
    }

    /// Drops a group, from 0; those behind it move up.
    ///
    /// # Panics
    /// If there is none of this number.
    pub fn drop_group(&mut self, group: usize) {
        self.groups.remove(group);
    }

    /// How many fingerprints have this value in a group; some more are counted where lists are by the value's
    /// first bits.
    ///
    /// # Panics
    /// If there is no group of this number.
    pub fn entries(&self, group: usize, value: u64) -> usize {
        self.groups[group].lists.list(value).len()
    }

    /// The ids within `radius` of a query, inclusive, ascending; `query` has a value for each group. All are
    /// compared where no group has to agree.
    ///
    /// # Panics
    /// If the query has a value too many or too few.
    pub fn within(&mut self, query: &[u64], radius: usize, found: &mut Vec<u32>) -> Work {
        assert_eq!(query.len(), self.groups.len(), "a value for each group");
        found.clear();
        let Self { documents, groups, counter } = self;
        let distance = |id: u32| {
            let apart = groups.iter().zip(query).map(|(group, value)| group.values[id as usize] ^ value);
            apart.map(|bits| bits.count_ones() as usize).sum::<usize>()
        };
        if radius >= groups.len() {
            found.extend((0..).take(*documents).filter(|id| distance(*id) <= radius));
            return Work { probes: 0, entries: *documents as u64, verified: *documents as u64 };
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
