//! Rows of a side output, and their changes.

use std::cmp::Ordering;
use std::io;

use dupflow_core::reconcile::Reconcile;
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

    /// The changes that make a side output right: rows that it loses first.
    pub fn differences(rows: Reconcile<SideRow>) -> Vec<Self> {
        let changes = rows.changes(|_, _| Ordering::Equal).into_iter();
        changes.map(|(row, diff)| Self { row, diff }).collect()
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
}
