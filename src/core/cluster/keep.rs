//! Which document of a cluster is kept, where the others are to go.
//!
//! A cluster and what is told of its members -> one of them. A rule looks at the documents alone, and equals
//! are told apart by their ids: so what is kept is a function of the corpus, whatever its history. Positions
//! have no part in it, since a fresh run may number the same documents otherwise.

use std::cmp::{Ordering, Reverse};

use crate::doc::{DocId, Facts};

/// The rule by which one document of a cluster is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The smallest id, by bytes.
    #[default]
    Smallest,
    /// The least time stamp; documents without one come last. Of equals the smallest id.
    Oldest,
    /// The most bytes of text, as it was read. Of equals the smallest id.
    Longest,
    /// The document that names the cluster: the centre of a star, the smallest id of a component.
    Named,
}

impl Keep {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Smallest, Self::Oldest, Self::Longest, Self::Named];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Oldest => "oldest",
            Self::Longest => "longest",
            Self::Named => "named",
        }
    }

    /// The document kept of a cluster; of one without members, the one that names it.
    pub fn choose<'d>(
        self,
        cluster: &'d DocId,
        members: impl Iterator<Item = (&'d DocId, Facts)>,
    ) -> &'d DocId {
        let first = match self {
            Self::Named => None,
            Self::Smallest => members.min_by_key(|(id, _)| *id),
            Self::Oldest => members.min_by(|(a, of_a), (b, of_b)| older(*of_a, *of_b).then_with(|| a.cmp(b))),
            Self::Longest => members.min_by_key(|(id, facts)| (Reverse(facts.bytes), *id)),
        };
        first.map_or(cluster, |(id, _)| id)
    }
}

/// By time stamp, none last.
fn older(a: Facts, b: Facts) -> Ordering {
    let key = |facts: Facts| facts.ts.unwrap_or(f64::INFINITY);
    a.ts.is_none().cmp(&b.ts.is_none()).then_with(|| key(a).total_cmp(&key(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::Position;

    /// By id: time stamp and bytes.
    fn kept(keep: Keep, members: &[(&str, Option<f64>, u32)]) -> String {
        let name = DocId::new("名前").unwrap();
        let members: Vec<_> = (members.iter().rev())
            .map(|(id, ts, bytes)| {
                let position = Position { partition: 9, offset: 9 };
                (DocId::new(id).unwrap(), Facts { ts: *ts, bytes: *bytes, position })
            })
            .collect();
        keep.choose(&name, members.iter().map(|(id, facts)| (id, *facts))).to_string()
    }

    #[test]
    fn each_rule_has_one_answer() {
        let members = [
            ("b", None, 7),
            ("ไทย", Some(2.0), 9),
            ("c", Some(1.5), 9),
            ("d", Some(1.5), 3),
            ("😀", Some(-0.0), 1),
        ];
        let all = Keep::ALL.map(|keep| kept(keep, &members));
        assert_eq!(all, ["b", "😀", "c", "名前"]);
        assert_eq!(kept(Keep::Oldest, &members[..4]), "c", "of equal times the smallest id");
        assert_eq!(kept(Keep::Oldest, &[("z", None, 1), ("y", None, 1)]), "y");
        assert_eq!(kept(Keep::Oldest, &[("a", None, 1), ("z", Some(f64::MAX), 1)]), "z", "none comes last");
        assert_eq!(kept(Keep::Longest, &[]), "名前");
    }
}
