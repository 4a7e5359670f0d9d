//! Selects the one document of a cluster that is kept when duplicates are removed.
//!
//! In: a cluster and the facts of its members. Out: one member. A rule reads only the documents, and ties are
//! resolved by id, so the choice is a function of the corpus, independent of history. Positions are not read,
//! since a fresh run may assign other positions to the same documents.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::clusters::Clusters;
use crate::doc::{DocId, Facts};

/// The rule that selects the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// The smallest id, by bytes.
    #[default]
    Smallest,
    /// The least time stamp; documents without one sort last. On ties, the smallest id.
    Oldest,
    /// The most bytes of text, as it was read. On ties, the smallest id.
    Longest,
    /// The document that names the cluster: the centre of a star, the smallest id of a component.
    Named,
}

impl KeepRule {
    /// All rules.
    pub const ALL: [Self; 4] = [Self::Smallest, Self::Oldest, Self::Longest, Self::Named];

    /// The name in configuration and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Oldest => "oldest",
            Self::Longest => "longest",
            Self::Named => "named",
        }
    }

    /// The selected document; for a cluster without members, the document that names it.
    pub fn choose<'d>(
        self,
        cluster: &'d DocId,
        members: impl Iterator<Item = (&'d DocId, Facts)>,
    ) -> &'d DocId {
        let first = match self {
            Self::Named => None,
            Self::Smallest => members.min_by_key(|(id, _)| *id),
            Self::Oldest => members.min_by_key(|(id, facts)| (Age::new(*facts), *id)),
            Self::Longest => members.min_by_key(|(id, facts)| (Reverse(facts.bytes), *id)),
        };
        first.map_or(cluster, |(id, _)| id)
    }

    /// The documents to remove, sorted: every member of a cluster except one, each with the member kept in
    /// its place and the name of the cluster. Members are those that have `facts`; giants are clusters like
    /// any other.
    ///
    /// Of a cluster with members that are `fixed`, all of these are kept, and the rule chooses among them.
    pub fn removed(
        self,
        clusters: &mut Clusters,
        facts: impl Fn(&DocId) -> Option<Facts>,
        fixed: impl Fn(&DocId) -> bool,
    ) -> BTreeMap<DocId, (DocId, DocId)> {
        let mut removed = BTreeMap::new();
        for cluster in clusters.all().chunk_by(|(a, _), (b, _)| a == b) {
            let Some((name, _)) = cluster.first() else { continue };
            let any_fixed = cluster.iter().any(|(_, id)| fixed(id));
            let eligible = || cluster.iter().map(|(_, id)| id).filter(|id| !any_fixed || fixed(id));
            // If the name is not eligible, the first member that is takes its place.
            let named = eligible().find(|id| *id == name).or_else(|| eligible().next()).unwrap_or(name);
            let kept = self.choose(named, eligible().filter_map(|id| Some((id, facts(id)?))));
            let others = cluster.iter().map(|(_, id)| id).filter(|id| *id != kept && !fixed(id));
            removed.extend(others.map(|id| (id.clone(), (kept.clone(), name.clone()))));
        }
        removed
    }
}

/// The time stamp of a document, as an order: the oldest first, documents without one last. Of two documents
/// of equal age the one with the smaller id counts as the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    is_unknown: bool,
    /// The time stamp; its order as an integer is that of [`f64::total_cmp`].
    order: i64,
}

impl Age {
    /// The age of a document with these facts.
    pub fn new(facts: Facts) -> Self {
        let bits = facts.ts.unwrap_or_default().to_bits().cast_signed();
        // Of negative numbers all bits but the sign are inverted: the greater magnitude is the older.
        let order = bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed();
        Self { is_unknown: facts.ts.is_none(), order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterKind;
    use crate::doc::Position;
    use crate::pair::{Delta, DocPair, Evidence, Pair, Similarity};

    /// The id selected from members given as (id, time stamp, bytes).
    fn kept(keep: KeepRule, members: &[(&str, Option<f64>, u32)]) -> String {
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
    fn ages_are_ordered_as_their_time_stamps() {
        let age = |ts| Age::new(Facts { ts, bytes: 0, position: Position::default() });
        let ascending = [f64::MIN, -2.5, -0.0, 0.0, 1e-300, 1.5, 1_793_491_200.25, f64::MAX];
        for pair in ascending.windows(2) {
            assert!(age(Some(pair[0])) < age(Some(pair[1])), "{pair:?}");
        }
        assert!(age(Some(f64::MAX)) < age(None));
        assert_eq!(age(None), age(None));
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
        let all = KeepRule::ALL.map(|keep| kept(keep, &members));
        assert_eq!(all, ["b", "😀", "c", "名前"]);
        assert_eq!(kept(KeepRule::Oldest, &members[..4]), "c", "of equal times the smallest id");
        assert_eq!(kept(KeepRule::Oldest, &[("z", None, 1), ("y", None, 1)]), "y");
        assert_eq!(
            kept(KeepRule::Oldest, &[("a", None, 1), ("z", Some(f64::MAX), 1)]),
            "z",
            "none comes last"
        );
        assert_eq!(kept(KeepRule::Longest, &[]), "名前");
    }

    /// Two clusters, a b c d and x y; a has the shortest text and d the longest.
    #[test]
    fn fixed_members_are_kept_and_preferred() {
        let named = |at: char| DocId::new(&at.to_string()).unwrap();
        let delta = |ends: &str| {
            let ends: Vec<_> = ends.chars().map(named).collect();
            let pair = Pair::new(ends[0].clone(), ends[1].clone()).unwrap();
            let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
            Delta::by_block(similar, 1)
        };
        let mut clusters = Clusters::new(ClusterKind::Components, 2);
        clusters.follow(&["ab", "bc", "cd", "xy"].map(delta));
        let facts = |id: &DocId| {
            Some(Facts { ts: None, bytes: u32::from(id.as_bytes()[0]), position: Position::default() })
        };
        let mut removed = |keep: KeepRule, fixed: &str| {
            let removed = keep.removed(&mut clusters, facts, |id| fixed.contains(id.as_str()));
            let shown = removed.iter().map(|(id, (kept, cluster))| format!("{id}{kept}{cluster}"));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(removed(KeepRule::Smallest, ""), "baa caa daa yxx");
        assert_eq!(removed(KeepRule::Longest, ""), "ada bda cda xyx");
        assert_eq!(removed(KeepRule::Smallest, "bc"), "aba dba yxx");
        assert_eq!(removed(KeepRule::Longest, "bcx"), "aca dca yxx");
        assert_eq!(removed(KeepRule::Named, "c"), "aca bca dca yxx");
        assert_eq!(removed(KeepRule::Named, "ab"), "caa daa yxx");
    }
}
