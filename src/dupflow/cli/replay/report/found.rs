//! What a report keeps of the pairs of a result: numbers, clusters, and those at the threshold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A document: whether it is of the reference, and its id.
pub(super) type Member = Arc<(bool, String)>;

/// Ranges of the histogram: each is 1 / `RANGES` wide.
pub(super) const RANGES: usize = 20;

/// Most pairs at the threshold that are kept.
const SAMPLES: usize = 6;

/// A pair of members by their numbers, behind its similarity in bits, by which positive numbers are ordered.
type NumberedPair = (u64, u32, u32);

/// The pairs of a result.
#[derive(Debug, Default)]
pub(super) struct FoundPairs {
    pub(super) pairs: u64,
    /// Pairs by similarity: of the range n from n / RANGES, inclusive, to the next, exclusive; 1 is in the
    /// last one.
    pub(super) ranges: [u64; RANGES],
    /// Pairs of similarity 1.
    pub(super) equal: u64,
    /// Whether all pairs have been added.
    pub(super) is_whole: bool,
    numbers: BTreeMap<Member, u32>,
    members: Vec<Member>,
    /// For each member another one of its cluster, in the end the one that names it: itself.
    parents: Vec<u32>,
    /// For the one that names a cluster, its least similar pair.
    weakest: Vec<NumberedPair>,
    least: BTreeSet<NumberedPair>,
}

/// Documents that are connected by pairs.
#[derive(Debug)]
pub(super) struct FoundCluster {
    /// Those of the reference last, by id.
    pub(super) members: Vec<Member>,
    /// Its least similar pair.
    pub(super) weakest: SimilarMembers,
}

/// A pair with its similarity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SimilarMembers {
    pub(super) similarity: f64,
    pub(super) members: [Member; 2],
}

impl FoundPairs {
    /// Adds a pair of documents, each with whether it is of the reference.
    pub(super) fn add(&mut self, documents: [(bool, &str); 2], similarity: f64) {
        self.pairs += 1;
        self.equal += u64::from(similarity >= 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of RANGES")]
        let range = (similarity * RANGES as f64 + 1e-9) as usize;
        self.ranges[range.min(RANGES - 1)] += 1;
        let [a, b] = documents.map(|document| self.number(document));
        let pair = (similarity.to_bits(), a, b);
        self.least.insert(pair);
        if self.least.len() > SAMPLES {
            self.least.pop_last();
        }
        let [a, b] = [a, b].map(|number| self.root(number));
        let (low, high) = (a.min(b), a.max(b));
        let weakest = pair.min(self.weakest[low as usize]).min(self.weakest[high as usize]);
        self.parents[high as usize] = low;
        self.weakest[low as usize] = weakest;
    }

    /// Documents in pairs that are not of the reference.
    pub(super) fn documents(&self) -> usize {
        self.members.iter().filter(|member| !member.0).count()
    }

    /// The pairs with the least similarity, ascending.
    pub(super) fn at_threshold(&self) -> Vec<SimilarMembers> {
        self.least.iter().map(|pair| self.named(*pair)).collect()
    }

    /// The clusters, the largest first, then by their first member.
    pub(super) fn clusters(&self) -> Vec<FoundCluster> {
        let mut of_root = BTreeMap::<u32, Vec<Member>>::new();
        for (number, member) in (0..).zip(&self.members) {
            let mut root = number;
            while self.parents[root as usize] != root {
                root = self.parents[root as usize];
            }
            of_root.entry(root).or_default().push(Arc::clone(member));
        }
        let cluster = |(root, mut members): (u32, Vec<Member>)| {
            members.sort_unstable();
            FoundCluster { members, weakest: self.named(self.weakest[root as usize]) }
        };
        let mut clusters: Vec<_> = of_root.into_iter().map(cluster).collect();
        clusters
            .sort_by(|a, b| b.members.len().cmp(&a.members.len()).then_with(|| a.members.cmp(&b.members)));
        clusters
    }

    fn named(&self, (similarity, a, b): NumberedPair) -> SimilarMembers {
        let members = [a, b].map(|number| Arc::clone(&self.members[number as usize]));
        SimilarMembers { similarity: f64::from_bits(similarity), members }
    }

    fn number(&mut self, (is_old, id): (bool, &str)) -> u32 {
        let member = Arc::new((is_old, id.to_owned()));
        let next = u32::try_from(self.members.len()).expect("a run has at most 2^32 documents");
        let number = *self.numbers.entry(Arc::clone(&member)).or_insert(next);
        if number == next {
            self.members.push(member);
            self.parents.push(next);
            self.weakest.push((u64::MAX, next, next));
        }
        number
    }

    /// The one that names the cluster of a member. Paths to it are halved.
    fn root(&mut self, mut number: u32) -> u32 {
        while self.parents[number as usize] != number {
            let parent = self.parents[number as usize];
            self.parents[number as usize] = self.parents[parent as usize];
            number = self.parents[number as usize];
        }
        number
    }
}

impl FoundCluster {
    /// Documents that could be left out so that one of the cluster stays, or none but those of the reference.
    pub(super) fn surplus(&self) -> usize {
        let old = self.members.iter().filter(|member| member.0).count();
        self.members.len() - old.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, &str, f64)]) -> FoundPairs {
        let mut found = FoundPairs::default();
        for (a, b, similarity) in pairs {
            found.add([(a.starts_with('!'), a), (b.starts_with('!'), b)], *similarity);
        }
        found
    }

    #[test]
    fn clusters_are_what_pairs_connect() {
        let found =
            found(&[("a", "b", 0.9), ("c", "d", 1.0), ("d", "e", 0.85), ("b", "a2", 0.8), ("x", "!y", 0.95)]);
        let clusters = found.clusters();
        let ids = |cluster: &FoundCluster| {
            cluster.members.iter().map(|member| member.1.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(clusters.iter().map(ids).collect::<Vec<_>>(), ["a a2 b", "c d e", "x !y"]);
        assert_eq!(clusters.iter().map(FoundCluster::surplus).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(
            clusters.iter().map(|cluster| cluster.weakest.similarity).collect::<Vec<_>>(),
            [0.8, 0.85, 0.95]
        );
        assert_eq!((found.documents(), found.pairs, found.equal), (7, 5, 1));
        assert_eq!([16, 17, 18, 19].map(|range| found.ranges[range]), [1, 1, 1, 2]);
        assert_eq!(found.at_threshold()[0].members[1].1, "a2");
    }
}
