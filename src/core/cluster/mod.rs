//! Clusters: changes of pairs in, exact changes of memberships out, epoch by epoch.
//!
//! The documents are the vertices and the accepted pairs the edges of a graph; a document without a pair is
//! in no cluster. By [`ClusterKind`] a cluster is
//! - a connected component (single link: a chain of pairs is one cluster), named by its smallest member by
//!   bytes; or
//! - a star, cut from a component (`star`) and named by its centre. A centre whose neighbours are all in
//!   other stars would be alone, and is in no cluster.
//!
//! A component of more than `limit` documents (inclusive maximum of what is not) is a *giant*: it is reported
//! by its smallest member and its size, and not member by member nor as stars, so that a change of its
//! smallest member does not rewrite all of it. A component that crosses the limit, either way, retracts one
//! form and takes on the other.
//!
//! What is reported of a component is a function of its pairs alone, and what has changed is found by
//! reporting all components that an epoch touches, before it (-1) and after (+1): equal reports cancel. So
//! the sum of all reports is a function of the pairs present, whatever their history.
//!
//! Costs: each change, O(log² n) amortised for n documents in its component (`graph`). Each component that an
//! epoch touches, twice: O(m log m) for m members, which are at most `limit`, and for stars the pairs of
//! their centres; O(log n) for a giant. Memory: every pair and every document in a pair, in one place.
//!
//! What becomes of clusters over time is told by [`history`], which of their documents stay by [`Keep`].

mod graph;
pub mod history;
mod keep;
mod star;
mod tours;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::doc::DocId;
use crate::pair::{Delta, Pair};
use graph::Graph;
pub use keep::Keep;
use tours::Vertex;

/// What a cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterKind {
    /// A connected component.
    #[default]
    Components,
    /// A centre and neighbours of it.
    Star,
}

/// A statement about a cluster, in terms of document ids (or, inside, of vertices).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Report<I = DocId> {
    /// A document is in a cluster.
    Member {
        /// The cluster's smallest member, or the star's centre.
        cluster: I,
        /// The member.
        document: I,
    },
    /// A component has more members than are listed.
    Giant {
        /// Its smallest member.
        cluster: I,
        /// How many documents it has.
        size: usize,
    },
}

/// The clusters of the pairs that are present.
#[derive(Debug)]
pub struct Clusters {
    kind: ClusterKind,
    limit: usize,
    graph: Graph,
}

impl Clusters {
    /// Most members of a cluster that is no giant, inclusive, unless configured otherwise.
    pub const LIMIT: usize = 10_000;

    /// No clusters yet. A component of more than `limit` documents is a giant.
    pub fn new(kind: ClusterKind, limit: usize) -> Self {
        Self { kind, limit, graph: Graph::new() }
    }

    /// Takes the changes of one epoch, consolidated and sorted by pair; returns the changes of reports: each
    /// 1 or -1, members by (document, diff), then giants by (cluster, diff).
    ///
    /// # Panics
    /// If a pair is removed that is not present.
    pub fn advance(&mut self, changes: &[Delta]) -> Vec<(Report, isize)> {
        let (net, touched) = self.net(changes);
        let mut reports = Vec::new();
        self.report(&touched, -1, &mut reports);
        self.apply(net);
        self.report(&touched, 1, &mut reports);

        let changed = self.consolidate(reports);
        touched.into_iter().for_each(|vertex| self.graph.prune(vertex));
        changed
    }

    /// Takes the changes of one epoch as [`Self::advance`] does, and reports nothing: at no cost for the size
    /// of what they touch.
    ///
    /// # Panics
    /// If a pair is removed that is not present.
    pub fn follow(&mut self, changes: &[Delta]) {
        let (net, touched) = self.net(changes);
        self.apply(net);
        touched.into_iter().for_each(|vertex| self.graph.prune(vertex));
    }

    /// Every document in a cluster, giants too: with the name of its cluster, by that and then by itself.
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

    /// The net changes, by pairs of vertices, and all that are in one.
    fn net(&mut self, changes: &[Delta]) -> (Vec<(Pair<Vertex>, isize)>, BTreeSet<Vertex>) {
        let mut net = Vec::new();
        for same in changes.chunk_by(|a, b| a.pair.pair == b.pair.pair) {
            let diff: isize = same.iter().map(|delta| delta.diff).sum();
            // Zero where only the similarity changes.
            if diff != 0 {
                let pair = &same[0].pair.pair;
                let ends = Pair::new(self.graph.vertex(pair.lo()), self.graph.vertex(pair.hi()));
                net.push((ends.expect("different documents are different vertices"), diff));
            }
        }
        let touched = net.iter().flat_map(|(pair, _)| [*pair.lo(), *pair.hi()]).collect();
        (net, touched)
    }

    fn apply(&mut self, mut net: Vec<(Pair<Vertex>, isize)>) {
        // New pairs first: they may replace removed ones in a spanning tree.
        net.sort_unstable_by_key(|(_, diff)| -diff);
        for (pair, diff) in net {
            if diff > 0 { self.graph.insert(pair) } else { self.graph.remove(pair) }
        }
    }

    /// The members of the clusters of a component, each with the vertex that names its cluster; `least` names
    /// the component.
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
        reports: &mut Vec<(Report<Vertex>, isize)>,
    ) {
        let mut done = BTreeSet::new();
        for &vertex in touched {
            let (least, size) = (self.graph.least(vertex), self.graph.size(vertex));
            if size == 1 || !done.insert(least) {
                continue;
            }
            if size > self.limit {
                reports.push((Report::Giant { cluster: least, size }, diff));
                continue;
            }
            let members = self.members(least).into_iter();
            let members = members.map(|(document, cluster)| Report::Member { cluster, document });
            reports.extend(members.map(|report| (report, diff)));
        }
    }

    /// What is left of reports once opposite ones have cancelled, in order.
    fn consolidate(&self, mut reports: Vec<(Report<Vertex>, isize)>) -> Vec<(Report, isize)> {
        reports.sort_unstable();
        let id = |vertex| self.graph.id(vertex).clone();
        let mut changed: Vec<_> = reports
            .chunk_by(|(a, _), (b, _)| a == b)
            .filter(|same| same.iter().map(|(_, diff)| diff).sum::<isize>() != 0)
            .map(|same| match same[0] {
                (Report::Member { cluster, document }, diff) => {
                    (Report::Member { cluster: id(cluster), document: id(document) }, diff)
                }
                (Report::Giant { cluster, size }, diff) => {
                    (Report::Giant { cluster: id(cluster), size }, diff)
                }
            })
            .collect();
        changed.sort_unstable_by(|(a, x), (b, y)| a.subject().cmp(&b.subject()).then(x.cmp(y)));
        changed
    }
}

impl Report {
    /// What the report is about: the giant or the document, of which there is at most one report at a time.
    /// Members come first.
    pub fn subject(&self) -> (bool, &DocId) {
        match self {
            Self::Member { document, .. } => (false, document),
            Self::Giant { cluster, .. } => (true, cluster),
        }
    }
}
