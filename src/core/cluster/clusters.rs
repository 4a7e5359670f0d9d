//! The clusters of the present pairs, and the changes of their reports.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::graph::Graph;
use super::report::ClusterReport;
use super::star;
use super::tours::Vertex;
use crate::doc::DocId;
use crate::memory::OrderedRows;
use crate::pair::{Delta, Pair, Similarity};

/// What a cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterKind {
    /// A connected component.
    #[default]
    Components,
    /// A centre and some of its neighbours.
    Star,
}

/// The clusters of the present pairs.
#[derive(Debug)]
pub struct Clusters {
    kind: ClusterKind,
    limit: usize,
    graph: Graph,
    /// The similarity of each pair, both ways, if that is asked for.
    similarities: Option<OrderedRows<(Vertex, Vertex), Similarity>>,
}

impl Clusters {
    /// Default of the most members of a cluster that is not a giant, inclusive.
    pub const LIMIT: usize = 10_000;

    /// No clusters. A component of more than `limit` documents will be a giant.
    pub fn new(kind: ClusterKind, limit: usize) -> Self {
        Self { kind, limit, graph: Graph::new(), similarities: None }
    }

    /// Also holds the similarity of each pair, both ways: 16 bytes each. There must be no pair yet.
    #[must_use]
    pub fn with_similarities(self) -> Self {
        Self { similarities: Some(OrderedRows::default()), ..self }
    }

    /// Applies the changes of one epoch, consolidated and sorted by pair. Returns the changes of reports,
    /// each with diff 1 or -1: members sorted by (document, diff), then giants by (cluster, diff).
    ///
    /// # Panics
    /// If a pair is removed that is not present.
    pub fn advance(&mut self, changes: &[Delta]) -> Vec<(ClusterReport, isize)> {
        let (net, touched) = self.net(changes);
        let mut reports = Vec::new();
        self.report(&touched, -1, &mut reports);
        self.apply(net);
        self.report(&touched, 1, &mut reports);

        let changed = self.consolidate(reports);
        touched.into_iter().for_each(|vertex| self.graph.prune(vertex));
        changed
    }

    /// Applies the changes of one epoch like [`Self::advance`], without reports, so the cost does not depend
    /// on the size of the touched components.
    ///
    /// # Panics
    /// If a pair is removed that is not present.
    pub fn follow(&mut self, changes: &[Delta]) {
        let (net, touched) = self.net(changes);
        self.apply(net);
        touched.into_iter().for_each(|vertex| self.graph.prune(vertex));
    }

    /// The documents that are in a pair, in any order.
    pub fn documents(&self) -> Vec<DocId> {
        self.graph.vertices().into_iter().map(|vertex| self.graph.id(vertex).clone()).collect()
    }

    /// The documents that a document is in a pair with, each with their similarity as the document has it, in
    /// any order.
    ///
    /// # Panics
    /// If similarities are not held.
    pub fn neighbours(&self, document: &DocId) -> impl Iterator<Item = (&DocId, Similarity)> {
        let similarities = self.similarities.as_ref().expect("they are asked for");
        let of = self.graph.find(document).into_iter();
        let near = of.flat_map(|vertex| {
            similarities
                .range(Bound::Included(&(vertex, 0)))
                .take_while(move |((first, _), _)| *first == vertex)
        });
        near.map(|((_, other), similarity)| (self.graph.id(*other), *similarity))
    }

    /// Whether a document is in a component above the limit.
    pub fn is_in_giant(&mut self, document: &DocId) -> bool {
        self.graph.find(document).is_some_and(|vertex| self.graph.size(vertex) > self.limit)
    }

    /// All (cluster, document) pairs, giants included, sorted.
    pub fn all(&mut self) -> Vec<(DocId, DocId)> {
        let mut done = BTreeSet::new();
        let mut all = Vec::new();
        for vertex in self.graph.vertices() {
            let least = self.graph.least(vertex);
            if done.insert(least) {
                all.extend(self.members(least));
            }
        }
        let id = |vertex| self.graph.id(vertex).clone();
        let mut named: Vec<_> =
            all.into_iter().map(|(document, cluster)| (id(cluster), id(document))).collect();
        named.sort_unstable();
        named
    }

    /// The net changes of pairs, as vertices, and the set of touched vertices.
    fn net(&mut self, changes: &[Delta]) -> (Vec<(Pair<Vertex>, isize)>, BTreeSet<Vertex>) {
        let mut net = Vec::new();
        for same in changes.chunk_by(|a, b| a.pair.pair == b.pair.pair) {
            let diff: isize = same.iter().map(|delta| delta.diff).sum();
            // The sum is zero if only the similarity changes.
            if diff != 0 {
                net.push((self.graph.ends(&same[0].pair.pair), diff));
            }
            self.assign(same, diff);
        }
        let touched = net.iter().flat_map(|(pair, _)| [*pair.lo(), *pair.hi()]).collect();
        (net, touched)
    }

    /// Holds the similarity that changes of one pair leave, if that is asked for.
    fn assign(&mut self, same: &[Delta], diff: isize) {
        let Some(similarities) = &mut self.similarities else { return };
        let pair = &same[0].pair.pair;
        let Some(ends) = self.graph.find(pair.lo()).zip(self.graph.find(pair.hi())) else { return };
        let added = same.iter().rfind(|delta| delta.diff > 0).map(|delta| delta.pair.similarity);
        for (from, similarity) in [(ends, added), ((ends.1, ends.0), added.map(Similarity::flipped))] {
            match similarity {
                // One that is added and removed within the epoch is not there.
                Some(similarity) if diff > 0 || similarities.entry(&from).is_some() => {
                    similarities.insert(from, similarity);
                }
                Some(_) => {}
                None => drop(similarities.remove(&from)),
            }
        }
    }

    fn apply(&mut self, mut net: Vec<(Pair<Vertex>, isize)>) {
        // New pairs first: they may replace removed ones in a spanning tree.
        net.sort_unstable_by_key(|(_, diff)| -diff);
        for (pair, diff) in net {
            if diff > 0 { self.graph.insert(pair) } else { self.graph.remove(pair) }
        }
    }

    /// The members of the clusters of a component, each with the vertex that names its cluster. `least` is
    /// the smallest member of the component.
    fn members(&mut self, least: Vertex) -> Vec<(Vertex, Vertex)> {
        let component = self.graph.component(least);
        match self.kind {
            ClusterKind::Components => component.into_iter().map(|document| (document, least)).collect(),
            ClusterKind::Star => star::stars(&self.graph, component),
        }
    }

    /// Adds the reports of the components of `touched`, with `diff`.
    fn report(
        &mut self,
        touched: &BTreeSet<Vertex>,
        diff: isize,
        reports: &mut Vec<(ClusterReport<Vertex>, isize)>,
    ) {
        let mut done = BTreeSet::new();
        for &vertex in touched {
            let (least, size) = (self.graph.least(vertex), self.graph.size(vertex));
            if size == 1 || !done.insert(least) {
                continue;
            }
            if size > self.limit {
                reports.push((ClusterReport::Giant { cluster: least, size }, diff));
                continue;
            }
            let members = self.members(least).into_iter();
            let members = members.map(|(document, cluster)| ClusterReport::Member { cluster, document });
            reports.extend(members.map(|report| (report, diff)));
        }
    }

    /// The reports without those that cancel, sorted.
    fn consolidate(&self, mut reports: Vec<(ClusterReport<Vertex>, isize)>) -> Vec<(ClusterReport, isize)> {
        reports.sort_unstable();
        let id = |vertex| self.graph.id(vertex).clone();
        let mut changed: Vec<_> = reports
            .chunk_by(|(a, _), (b, _)| a == b)
            .filter(|same| same.iter().map(|(_, diff)| diff).sum::<isize>() != 0)
            .map(|same| match same[0] {
                (ClusterReport::Member { cluster, document }, diff) => {
                    (ClusterReport::Member { cluster: id(cluster), document: id(document) }, diff)
                }
                (ClusterReport::Giant { cluster, size }, diff) => {
                    (ClusterReport::Giant { cluster: id(cluster), size }, diff)
                }
            })
            .collect();
        changed.sort_unstable_by(|(a, x), (b, y)| a.subject().cmp(&b.subject()).then(x.cmp(y)));
        changed
    }
}
