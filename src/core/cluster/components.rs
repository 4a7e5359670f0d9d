//! The components of the present pairs by labels: each document that is in a pair has the smallest id of its
//! component.
//!
//! Costs of an epoch: O(log² n) amortised for each change of a pair, and the documents whose labels change:
//! one where a document joins a large component, all where it has the smallest id there. Pairs are added
//! before others are removed, so a component that is there only between the two is labelled twice.
//! Memory: that of the graph.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Graph;
use super::tours::Vertex;
use crate::doc::DocId;
use crate::pair::Pair;

/// The labels of documents that are in pairs, advanced once an epoch.
#[derive(Debug)]
pub struct Components {
    graph: Graph,
}

/// The changes of labels: of a document, and its label.
#[derive(Default)]
struct LabelChanges(BTreeMap<(Vertex, Vertex), isize>);

impl Default for Components {
    fn default() -> Self {
        Self { graph: Graph::new() }
    }
}

impl Components {
    /// Applies the changes of one epoch: pairs are added (1) and removed (-1), each at most once. Returns the
    /// changes of labels as (document, label), each with diff 1 or -1, in any order.
    ///
    /// # Panics
    /// If a pair is removed that is not present.
    pub fn advance(
        &mut self,
        changes: impl IntoIterator<Item = (Pair<DocId>, isize)>,
    ) -> Vec<((DocId, DocId), isize)> {
        let changes = changes.into_iter().map(|(pair, diff)| (self.graph.ends(&pair), diff));
        let (added, removed): (Vec<_>, Vec<_>) = changes.partition(|(_, diff)| *diff > 0);
        let mut labels = LabelChanges::default();
        self.join(&added, &mut labels);
        self.part(&removed, &mut labels);
        let id = |vertex| self.graph.id(vertex).clone();
        let changed = labels.0.into_iter().filter(|(_, diff)| *diff != 0);
        let changed = changed.map(|((document, label), diff)| ((id(document), id(label)), diff)).collect();
        let ends = removed.iter().flat_map(|(pair, _)| [*pair.lo(), *pair.hi()]);
        ends.collect::<BTreeSet<_>>().into_iter().for_each(|end| self.graph.prune(end));
        changed
    }

    /// Adds pairs. Components that they join take the smallest of their labels.
    fn join(&mut self, added: &[(Pair<Vertex>, isize)], labels: &mut LabelChanges) {
        // Of each label its successor, a smaller one; itself if it stays.
        let mut successors = BTreeMap::new();
        for (pair, _) in added {
            let [a, b] = [*pair.lo(), *pair.hi()].map(|end| {
                let label = self.graph.least(end);
                successors.entry(label).or_insert(label);
                last(&mut successors, label)
            });
            let (smaller, greater) = if self.graph.id(a) < self.graph.id(b) { (a, b) } else { (b, a) };
            successors.insert(greater, smaller);
        }
        for old in successors.keys().copied().collect::<Vec<_>>() {
            let label = last(&mut successors, old);
            if self.graph.size(old) == 1 {
                labels.add(old, label, 1);
            } else if label != old {
                labels.replace(self.graph.component(old), old, label);
            }
        }
        added.iter().for_each(|(pair, _)| self.graph.insert(*pair));
    }

    /// Removes pairs. A part of a component that has lost its label takes its own.
    fn part(&mut self, removed: &[(Pair<Vertex>, isize)], labels: &mut LabelChanges) {
        let ends: BTreeSet<Vertex> = removed.iter().flat_map(|(pair, _)| [*pair.lo(), *pair.hi()]).collect();
        let before: Vec<_> = ends.into_iter().map(|end| (end, self.graph.least(end))).collect();
        removed.iter().for_each(|(pair, _)| self.graph.remove(*pair));
        let mut done = BTreeSet::new();
        for (end, old) in before {
            let label = self.graph.least(end);
            if !done.insert(label) {
                continue;
            }
            if self.graph.size(end) == 1 {
                labels.add(end, old, -1);
            } else if label != old {
                labels.replace(self.graph.component(end), old, label);
            }
        }
    }
}

impl LabelChanges {
    fn add(&mut self, document: Vertex, label: Vertex, diff: isize) {
        *self.0.entry((document, label)).or_default() += diff;
    }

    fn replace(&mut self, documents: Vec<Vertex>, old: Vertex, label: Vertex) {
        for document in documents {
            self.add(document, old, -1);
            self.add(document, label, 1);
        }
    }
}

/// The label that stays in the end. Shortens the way there.
fn last(successors: &mut BTreeMap<Vertex, Vertex>, label: Vertex) -> Vertex {
    let mut at = label;
    while successors[&at] != at {
        let next = successors[&successors[&at]];
        successors.insert(at, next);
        at = next;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterKind, ClusterReport, Clusters};
    use crate::hash::mix;
    use crate::pair::{Delta, DocPair, Evidence, Similarity};

    fn pair((a, b): (u64, u64)) -> Pair<DocId> {
        // The order of ids is not that of the numbers.
        let id = |n: u64| DocId::new(&format!("{:03}/{n}", mix(n) % 1000)).unwrap();
        Pair::new(id(a), id(b)).unwrap()
    }

    /// Epochs of pairs that are added and removed at random, in components below and above the size at which
    /// the graph changes its form.
    #[test]
    fn labels_are_the_clusters_without_a_limit() {
        for (documents, changes, most) in [(8, 3, 6), (60, 20, 60), (200, 60, 260), (90, 500, 2000)] {
            let mut components = Components::default();
            let mut clusters = Clusters::new(ClusterKind::Components, usize::MAX);
            let mut present = BTreeSet::new();
            for epoch in 0..120 {
                let (mut net, grows) = (BTreeMap::new(), present.len() < most && epoch % 40 < 25);
                for n in 0..changes {
                    let random = mix(mix(epoch) ^ n);
                    let (a, b) = (random % documents, (random >> 32) % documents);
                    let known = present.range((a, b)..).next().copied();
                    let (found, diff) = match known.filter(|_| !grows || n % 4 == 0) {
                        Some(known) => (known, -1),
                        None if a == b => continue,
                        None => ((a.min(b), a.max(b)), 1),
                    };
                    if !net.contains_key(&pair(found)) && present.contains(&found) == (diff < 0) {
                        net.insert(pair(found), diff);
                        if diff > 0 {
                            present.insert(found)
                        } else {
                            present.remove(&found)
                        };
                    }
                }
                let delta = |(pair, diff): (&Pair<DocId>, &isize)| {
                    let similarity = Similarity::ONE;
                    let pair = DocPair { pair: pair.clone(), similarity, evidence: Evidence::default() };
                    Delta::by_block(pair, *diff)
                };
                let deltas: Vec<Delta> = net.iter().map(delta).collect();
                let reports = clusters.advance(&deltas).into_iter().map(|(report, diff)| match report {
                    ClusterReport::Member { cluster, document } => ((document, cluster), diff),
                    ClusterReport::Giant { .. } => panic!("without a limit there is no giant"),
                });
                let mut expected: Vec<_> = reports.collect();
                expected.sort_unstable();
                let mut found = components.advance(net);
                found.sort_unstable();
                assert_eq!(found, expected, "{documents} documents, epoch {epoch}");
            }
            assert!(!present.is_empty() || documents == 8);
        }
    }

    /// Members that join one by one, each with a smaller id than all before, in one epoch.
    #[test]
    fn a_chain_of_an_epoch_is_labelled_once() {
        let id = |n: u32| DocId::new(&format!("{n:06}")).unwrap();
        let chain = (0..100_000).rev().map(|n| (Pair::new(id(n), id(n + 1)).unwrap(), 1));
        let labels = Components::default().advance(chain);
        assert_eq!(labels.len(), 100_001);
        assert!(labels.iter().all(|((_, label), diff)| *label == id(0) && *diff == 1));
    }
}
