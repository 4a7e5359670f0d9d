//! What a table was when it was last looked at: a later look shows whether its order has regressed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a table was when it was last looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLook {
    /// What stays the same while it is this table of this server: names of properties, and their values.
    #[serde(default)]
    pub identity: BTreeMap<String, String>,
    /// Numbers that never decrease while its database is not replaced by an older copy.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Where its rows are stored, and the oldest transaction that was open: rows written later are of
    /// this one or of later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<(u64, u64)>,
    /// An order below which every row has been read, and no row may be added.
    pub below: u64,
    /// The number of rows below it, at most.
    pub rows: u64,
    /// The greatest order of a row that was a document, or 0.
    pub greatest: u64,
}

impl TableLook {
    /// How a table differs that is looked at now, if it is another one.
    pub fn another(&self, now: &Self) -> Option<String> {
        self.identity.iter().find_map(|(name, was)| {
            let is = now.identity.get(name)?;
            (is != was).then(|| format!("its {name} is {is}, and was {was} when it was read"))
        })
    }

    /// What has decreased since, if it is an older copy that is looked at now.
    pub fn decrease(&self, now: &Self) -> Option<String> {
        self.counters.iter().find_map(|(name, was)| {
            let is = now.counters.get(name)?;
            (is < was).then(|| format!("its {name} has decreased from {was} to {is}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_both_is_compared() {
        let look = |identity: &[(&str, &str)], changes| TableLook {
            identity: identity
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            counters: [("change counter".to_owned(), changes)].into(),
            ..TableLook::default()
        };
        let was = look(&[("server", "7"), ("timeline", "1")], 5);
        assert_eq!(was.another(&look(&[("server", "7")], 5)), None, "the timeline is not known");
        let later = look(&[("server", "7"), ("timeline", "1"), ("more", "x")], 6);
        assert_eq!((was.another(&later), was.decrease(&later)), (None, None));
        let promoted = was.another(&look(&[("server", "7"), ("timeline", "2")], 6));
        assert_eq!(promoted.unwrap(), "its timeline is 2, and was 1 when it was read");
        assert_eq!(was.decrease(&look(&[], 4)).unwrap(), "its change counter has decreased from 5 to 4");
    }
}
