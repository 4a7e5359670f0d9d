//! Selects the one document of a cluster that is kept when duplicates are removed.
//!
//! In: a cluster and the facts of its members. Out: one member. A rule reads only the documents, and ties are
//! resolved by id, so the choice is a function of the corpus, independent of history. Positions are not read,
//! since a fresh run may assign other positions to the same documents; only [`KeepRule::SourceOrder`] reads
//! them, and is a function of the corpus and the order of the input.
//!
//! ```text
//! rule     = "smallest" | "oldest" | "longest" | "named" | "source-order"
//!          | "max:" field | "min:" field | "priority:" [ field ":" ] value { ">" value }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::clusters::Clusters;
use crate::doc::{DocId, Facts};

/// The rule that selects the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The greatest number in this field; documents without a finite number there sort last. On ties, the
    /// smallest id.
    Max(String),
    /// The least number in this field; documents without a finite number there sort last. On ties, the
    /// smallest id.
    Min(String),
    /// The first of these values in this field; documents with another value sort last. On ties, the smallest
    /// id.
    Priority {
        /// The field.
        field: String,
        /// Distinct values, at least one.
        values: Vec<String>,
    },
    /// The least position of the last event, as it is in the input of a replay.
    SourceOrder,
}

/// What a rule reads of a document besides its id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepFacts {
    /// Its facts.
    pub facts: Facts,
    /// The rank of its field, from [`KeepRule::rank`].
    pub rank: u64,
}

/// A document whose field is not read.
impl From<Facts> for KeepFacts {
    fn from(facts: Facts) -> Self {
        Self { facts, rank: 0 }
    }
}

/// The field of a `priority` that names none.
const PRIORITY_FIELD: &str = "source";

impl KeepRule {
    /// The rules that read neither a field nor a position.
    pub const ALL: [Self; 4] = [Self::Smallest, Self::Oldest, Self::Longest, Self::Named];

    /// What a written rule looks like.
    pub const EXPECTED: &str = "\"smallest\", \"oldest\", \"longest\", \"named\", \"source-order\", \
        \"max:FIELD\", \"min:FIELD\" or \"priority:FIELD:A>B>C\"";

    /// The field that the rule reads, if it reads one.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Max(field) | Self::Min(field) | Self::Priority { field, .. } => Some(field),
            _ => None,
        }
    }

    /// The rank of a document by the value of its field: of two documents the one with the smaller rank is
    /// kept. 0 if the rule reads no field.
    ///
    /// ```
    /// use dupflow_core::cluster::KeepRule;
    ///
    /// let rule: KeepRule = "max:quality".parse().unwrap();
    /// assert!(rule.rank("10") < rule.rank("9.5") && rule.rank("-1e300") < rule.rank("none"));
    /// ```
    pub fn rank(&self, value: &str) -> u64 {
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        match self {
            Self::Max(_) => number.map_or(u64::MAX, |number| !ascending(number)),
            Self::Min(_) => number.map_or(u64::MAX, ascending),
            Self::Priority { values, .. } => {
                values.iter().position(|other| other == value).map_or(u64::MAX, |place| place as u64)
            }
            _ => 0,
        }
    }

    /// Of two documents the one with the smaller precedence is kept; of equals the one with the smaller id.
    /// With [`Self::Named`] all are equal.
    pub fn precedence(&self, KeepFacts { facts, rank }: KeepFacts) -> (u64, u64) {
        match self {
            Self::Named | Self::Smallest => (0, 0),
            Self::Oldest => Age::new(facts).to_words(),
            Self::Longest => (u64::from(!facts.bytes), 0),
            Self::SourceOrder => (facts.position.partition.into(), facts.position.offset),
            Self::Max(_) | Self::Min(_) | Self::Priority { .. } => (rank, 0),
        }
    }

    /// Checks that the rule can select: some document has the value that it reads.
    ///
    /// # Errors
    /// A message, if there are documents and none of them has one; all would be kept by their ids.
    pub fn check(&self, mut documents: impl Iterator<Item = KeepFacts>) -> Result<(), String> {
        let (is_informed, value): (fn(&KeepFacts) -> bool, String) = match self {
            Self::Oldest => (|of| of.facts.ts.is_some(), "a time (--ts-field)".to_owned()),
            Self::Max(field) | Self::Min(field) => {
                (|of| of.rank != u64::MAX, format!("a number in field {field:?}"))
            }
            Self::Priority { field, .. } => {
                (|of| of.rank != u64::MAX, format!("one of its values in field {field:?}"))
            }
            Self::Smallest | Self::Longest | Self::Named | Self::SourceOrder => return Ok(()),
        };
        let Some(first) = documents.next() else { return Ok(()) };
        if is_informed(&first) || documents.any(|of| is_informed(&of)) {
            return Ok(());
        }
        Err(format!("output.keep: \"{self}\" selects nothing, since no document has {value}"))
    }

    /// The selected document; for a cluster without members, the document that names it.
    pub fn choose<'d>(
        &self,
        cluster: &'d DocId,
        members: impl Iterator<Item = (&'d DocId, KeepFacts)>,
    ) -> &'d DocId {
        let members = members.filter(|_| *self != Self::Named);
        let first = members.min_by_key(|(id, of)| (self.precedence(*of), *id));
        first.map_or(cluster, |(id, _)| id)
    }

    /// The documents to remove, sorted: every member of a cluster except one, each with the member kept in
    /// its place and the name of the cluster. Members are those that have `facts`; giants are clusters like
    /// any other.
    ///
    /// Of a cluster with members that are `fixed`, all of these are kept, and the rule chooses among them.
    pub fn removed(
        &self,
        clusters: &mut Clusters,
        facts: impl Fn(&DocId) -> Option<KeepFacts>,
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

impl fmt::Display for KeepRule {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smallest => f.write_str("smallest"),
            Self::Oldest => f.write_str("oldest"),
            Self::Longest => f.write_str("longest"),
            Self::Named => f.write_str("named"),
            Self::SourceOrder => f.write_str("source-order"),
            Self::Max(field) => write!(f, "max:{field}"),
            Self::Min(field) => write!(f, "min:{field}"),
            Self::Priority { field, values } => write!(f, "priority:{field}:{}", values.join(">")),
        }
    }
}

impl FromStr for KeepRule {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let field = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let priority = |rest: &str| {
            let (name, values) = rest.split_once(':').unwrap_or((PRIORITY_FIELD, rest));
            let values: Vec<String> = values.split('>').map(|value| value.trim().to_owned()).collect();
            let is_once =
                |(place, value): (usize, &String)| !value.is_empty() && !values[..place].contains(value);
            let are_sound = values.iter().enumerate().all(is_once);
            Some(Self::Priority { field: field(name)?, values: values.clone() }).filter(|_| are_sound)
        };
        let rule = match typed.split_once(':') {
            Some(("max", name)) => field(name).map(Self::Max),
            Some(("min", name)) => field(name).map(Self::Min),
            Some(("priority", rest)) => priority(rest),
            Some(_) => None,
            None => Self::ALL.into_iter().chain([Self::SourceOrder]).find(|rule| rule.to_string() == typed),
        };
        rule.ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

/// A finite number as an integer of the same order; -0 is 0.
fn ascending(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    // Of negative numbers all bits are inverted, of others the sign.
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The time stamp of a document, as an order: the oldest first, documents without one last. Of two documents
/// of equal age the one with the smaller id counts as the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    is_unknown: bool,
    /// The time stamp, as an integer of the same order.
    order: u64,
}

impl Age {
    /// The age of a document with these facts.
    pub fn new(facts: Facts) -> Self {
        Self { is_unknown: facts.ts.is_none(), order: facts.ts.map_or(0, ascending) }
    }

    /// Two numbers in the same order.
    fn to_words(self) -> (u64, u64) {
        (self.is_unknown.into(), self.order)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cluster::ClusterKind;
    use crate::doc::Position;
    use crate::pair::{Delta, DocPair, Evidence, Pair, Similarity};

    /// The id selected from members given as (id, time stamp, bytes).
    fn kept(keep: &KeepRule, members: &[(&str, Option<f64>, u32)]) -> String {
        let name = DocId::new("名前").unwrap();
        let members: Vec<_> = (members.iter().rev())
            .map(|(id, ts, bytes)| {
                let position = Position { partition: 9, offset: 9 };
                (DocId::new(id).unwrap(), Facts { ts: *ts, bytes: *bytes, position }.into())
            })
            .collect();
        keep.choose(&name, members.iter().map(|(id, facts)| (id, *facts))).to_string()
    }

    #[test]
    fn ages_are_ordered_as_their_time_stamps() {
        let age = |ts| Age::new(Facts { ts, bytes: 0, position: Position::default() });
        assert_eq!(age(Some(-0.0)), age(Some(0.0)));
        let ascending = [f64::MIN, -2.5, -0.0, 1e-300, 1.5, 1_793_491_200.25, f64::MAX];
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
        let all = KeepRule::ALL.map(|keep| kept(&keep, &members));
        assert_eq!(all, ["b", "😀", "c", "名前"]);
        assert_eq!(kept(&KeepRule::Oldest, &members[..4]), "c", "of equal times the smallest id");
        assert_eq!(kept(&KeepRule::Oldest, &[("z", None, 1), ("y", None, 1)]), "y");
        assert_eq!(kept(&KeepRule::Oldest, &[("y", Some(0.0), 1), ("z", Some(-0.0), 1)]), "y");
        assert_eq!(
            kept(&KeepRule::Oldest, &[("a", None, 1), ("z", Some(f64::MAX), 1)]),
            "z",
            "none comes last"
        );
        assert_eq!(kept(&KeepRule::Longest, &[]), "名前");
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        for (typed, written, field) in [
            ("smallest", "smallest", None),
            ("source-order", "source-order", None),
            ("max:meta.quality", "max:meta.quality", Some("meta.quality")),
            ("min:a:b", "min:a:b", Some("a:b")),
            ("priority:wiki > web", "priority:source:wiki>web", Some("source")),
            ("priority:site:http://a>日本", "priority:site:http://a>日本", Some("site")),
        ] {
            let rule: KeepRule = typed.parse().unwrap();
            assert_eq!((rule.to_string().as_str(), rule.field()), (written, field));
            assert_eq!(written.parse(), Ok(rule));
        }
        for wrong in ["", "largest", "max", "max:", "priority:", "priority:a>a", "priority::a", "priority:a>"]
        {
            assert!(wrong.parse::<KeepRule>().is_err(), "{wrong:?}");
        }
    }

    /// In the order in which documents are kept; values of one entry are equal.
    #[test]
    fn ranks_order_values() {
        for (rule, order) in [
            ("max:x", "1e308|10 1e1 10.0|9.5|0 -0|-7|? nan inf 1e400 x"),
            ("min:x", "-7|0 -0.0|9.5|10|? -inf 日"),
            ("priority:x:wiki>web", "wiki|web|? Wiki books"),
            ("longest", "? 1 2"),
        ] {
            let rule: KeepRule = rule.parse().unwrap();
            let ranks = order.split('|').map(|equal| {
                // A question mark stands for no value.
                let ranks = equal.split(' ').map(|value| rule.rank(value.trim_matches('?')));
                let ranks: BTreeSet<u64> = ranks.collect();
                assert_eq!(ranks.len(), 1, "{rule}: {equal}");
                ranks.into_iter().next().unwrap()
            });
            assert!(ranks.collect::<Vec<_>>().windows(2).all(|two| two[0] < two[1]), "{rule}");
        }
        let member = |id, offset, rank| {
            let position = Position { partition: 0, offset };
            (DocId::new(id).unwrap(), KeepFacts { facts: Facts { ts: None, bytes: 1, position }, rank })
        };
        let members = [member("a", 9, 2), member("b", 3, 1), member("c", 5, 1)];
        let chosen = |rule: &str| {
            let rule: KeepRule = rule.parse().unwrap();
            rule.choose(&members[0].0, members.iter().rev().map(|(id, of)| (id, *of))).as_str()
        };
        assert_eq!(["source-order", "max:x", "priority:x:a"].map(chosen), ["b", "b", "b"]);
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
            let bytes = u32::from(id.as_bytes()[0]);
            Some(Facts { ts: None, bytes, position: Position::default() }.into())
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
