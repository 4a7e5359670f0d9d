//! Rows of a side output, their changes, and the difference between two sums of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;

use dupflow_core::time::Epoch;

/// A row of a side output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SideRow {
    /// The key of its records in a topic: rows with the same key are in order there.
    pub key: String,
    /// The members of a JSON object, without its braces. Equal rows have equal members, in the same order.
    pub json: String,
}

/// A change of a side output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SideDelta {
    /// The row.
    pub row: SideRow,
    /// 1 if the row is added, -1 if it is removed.
    pub diff: isize,
}

impl SideDelta {
    /// The record of the change, without a line end.
    pub fn record(&self, epoch: Epoch) -> String {
        format!("{{\"epoch\":{epoch},\"diff\":{},{}}}", self.diff, self.row.json)
    }

    /// The change that a record is of; its row has this key.
    ///
    /// # Errors
    /// If the record was not written by [`Self::record`].
    pub fn read(key: &str, record: &str) -> io::Result<Self> {
        let read = || {
            let rest = record.strip_prefix("{\"epoch\":")?;
            let (epoch, rest) = rest.split_once(",\"diff\":")?;
            let (diff, json) = rest.split_once(',')?;
            epoch.parse::<Epoch>().ok()?;
            let diff = diff.parse().ok()?;
            let json = json.strip_suffix('}').filter(|json| !json.is_empty())?;
            Some(Self { row: SideRow { key: key.to_owned(), json: json.to_owned() }, diff })
        };
        read().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("expected the change of a row, found: {record}"),
            )
        })
    }
}

/// What a side output holds, and what the restored corpus gives, until the run is live.
#[derive(Clone, Debug, Default)]
pub struct RestoredRows {
    /// The rows of the corpus less those of the output.
    difference: BTreeMap<SideRow, isize>,
}

impl RestoredRows {
    /// Adds a change that the output holds.
    pub fn held(&mut self, SideDelta { row, diff }: SideDelta) {
        add(&mut self.difference, row, -diff);
    }

    /// Adds a change that the restored corpus gives.
    pub fn restored(&mut self, SideDelta { row, diff }: SideDelta) {
        add(&mut self.difference, row, diff);
    }

    /// The changes that make the output right: rows that it loses first.
    pub fn differences(self) -> Vec<SideDelta> {
        let mut deltas = Vec::new();
        for (row, sum) in self.difference {
            let change = SideDelta { row, diff: sum.signum() };
            deltas.extend(std::iter::repeat_n(change, sum.unsigned_abs()));
        }
        // A stable sort: rows stay in order.
        deltas.sort_by_key(|delta| delta.diff);
        deltas
    }
}

/// Adds to the sum of a row. A row whose sum is 0 is not held: a count that has changed a million times is a
/// million rows, and one is left.
pub(super) fn add<R: Ord>(sums: &mut BTreeMap<R, isize>, row: R, diff: isize) {
    match sums.entry(row) {
        Entry::Vacant(vacant) => drop(vacant.insert(diff)),
        Entry::Occupied(sum) if *sum.get() == -diff => drop(sum.remove()),
        Entry::Occupied(mut sum) => *sum.get_mut() += diff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(json: &str, diff: isize) -> SideDelta {
        SideDelta { row: SideRow { key: "k".to_owned(), json: json.to_owned() }, diff }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for one in [delta("\"v\":\",\\\"diff\\\":1,}\"", -1), delta("\"a\":1,\"b\":[]", 1)] {
            assert_eq!(SideDelta::read("k", &one.record(12)).unwrap(), one);
        }
        assert_eq!(delta("\"a\":1", -1).record(3), "{\"epoch\":3,\"diff\":-1,\"a\":1}");
        for other in [
            "",
            "{}",
            "{\"epoch\":1,\"diff\":1}",
            "{\"epoch\":x,\"diff\":1,\"a\":1}",
            "{\"epoch\":1,\"diff\":1,}",
        ] {
            assert!(SideDelta::read("k", other).is_err(), "{other}");
        }
    }

    #[test]
    fn the_difference_is_what_the_output_lacks_or_has_too_much() {
        let mut rows = RestoredRows::default();
        [("\"a\":1", 1), ("\"b\":1", 1), ("\"b\":1", -1), ("\"c\":1", 1)]
            .into_iter()
            .for_each(|(json, diff)| rows.held(delta(json, diff)));
        [("\"a\":1", 1), ("\"b\":2", 1), ("\"d\":1", 1), ("\"d\":1", -1)]
            .into_iter()
            .for_each(|(json, diff)| rows.restored(delta(json, diff)));
        assert_eq!(rows.difference.len(), 2, "what adds up to nothing is not held");
        assert_eq!(rows.differences(), [delta("\"c\":1", -1), delta("\"b\":2", 1)]);
        assert_eq!(RestoredRows::default().differences(), []);
    }
}
