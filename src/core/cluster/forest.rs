//! Large connected components of the graph of pairs, under insertions and deletions of pairs.
//!
//! Each component has a spanning tree. Insertion or removal of a pair outside the tree changes no component.
//! When a pair of the tree is removed, another pair that joins the two halves replaces it; if there is none,
//! the component is split. Every pair has a *level*, initially 0; trees of pairs of level i and above have at
//! most n / 2^i vertices. The search for a replacement visits the pairs of the smaller half and raises the
//! level of each that does not join the halves, at most log2 n times for each pair. So a change costs O(log²
//! n) amortised for a component of any shape; the other factor log n is that of the Euler tours.
//!
//! Reference: J. Holm, K. de Lichtenberg and M. Thorup, *Poly-logarithmic deterministic fully-dynamic
//! algorithms for connectivity* (JACM 2001), section 3.
//!
//! Invariants: 1. For every i, the tree pairs of level i and above span the components of all pairs of level
//! i and above. 2. The marks of a vertex's place of level i are exactly the kinds (tree or not) of its pairs
//! of level i.

use std::collections::{BTreeMap, BTreeSet};

use super::tours::{TourPlace, Tours, Vertex};
use crate::pair::Pair;

/// One end of a pair, as it is stored at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HalfEdge {
    level: u8,
    kind: PairKind,
    to: Vertex,
}

/// Whether a pair is in the spanning tree. The discriminant is the mark of vertices that have such a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum PairKind {
    Tree = 1,
    Other = 2,
}

#[derive(Debug)]
struct ForestVertex {
    /// Its place in the forest of level 0.
    place: TourPlace,
    links: BTreeSet<HalfEdge>,
}

/// The vertices of large components. `K` names a vertex to its user; the least of a component is the least by
/// name.
#[derive(Debug)]
pub(super) struct Forest<K> {
    tours: Tours<K>,
    vertices: Vec<ForestVertex>,
    free: Vec<Vertex>,
    /// Places in the forests of levels 1 and above.
    higher: BTreeMap<(Vertex, u8), TourPlace>,
    /// The pairs in spanning trees, with their arcs in the forest of each level up to their own.
    trees: BTreeMap<(Pair<Vertex>, u8), [TourPlace; 2]>,
}

impl<K: Ord> Forest<K> {
    pub(super) fn new() -> Self {
        Self {
            tours: Tours::new(),
            vertices: Vec::new(),
            free: Vec::new(),
            higher: BTreeMap::new(),
            trees: BTreeMap::new(),
        }
    }

    /// Adds a vertex without pairs.
    pub(super) fn add(&mut self, name: K) -> Vertex {
        let vertex = self.free.pop().unwrap_or_else(|| {
            self.vertices.push(ForestVertex { place: 0, links: BTreeSet::new() });
            u32::try_from(self.vertices.len() - 1).expect("memory ends before 2^32 vertices")
        });
        self.tours.set_key(vertex, name);
        let place = self.tours.tour(vertex);
        self.vertices[vertex as usize].place = place;
        vertex
    }

    /// Removes all vertices of a component with their pairs.
    pub(super) fn take_out(&mut self, component: &[Vertex]) {
        for vertex in component.iter().copied() {
            let Self { tours, vertices, free, higher, trees } = self;
            let of_vertex = &mut vertices[vertex as usize];
            for link in std::mem::take(&mut of_vertex.links) {
                let pair = Pair::new(vertex, link.to).expect("different vertices");
                let arcs = (0..=link.level).filter_map(|level| trees.remove(&(pair, level)));
                arcs.flatten().for_each(|arc| tours.discard(arc));
            }
            tours.discard(of_vertex.place);
            let levels = (vertex, 0)..=(vertex, u8::MAX);
            higher.extract_if(levels, |_, _| true).for_each(|(_, place)| tours.discard(place));
            free.push(vertex);
        }
    }

    /// The name of a vertex.
    pub(super) fn name(&self, vertex: Vertex) -> &K {
        self.tours.key(vertex)
    }

    /// Number of vertices of the vertex's component.
    pub(super) fn size(&mut self, vertex: Vertex) -> usize {
        let place = self.place(vertex, 0);
        self.tours.size(place)
    }

    /// The vertex with the least name of the vertex's component.
    pub(super) fn least(&mut self, vertex: Vertex) -> Vertex {
        let place = self.place(vertex, 0);
        self.tours.least(place)
    }

    /// All vertices of the vertex's component: the only operation with a cost linear in its size.
    pub(super) fn component(&mut self, vertex: Vertex) -> Vec<Vertex> {
        let place = self.place(vertex, 0);
        self.tours.vertices(place)
    }

    /// Number of pairs of a vertex.
    pub(super) fn degree(&self, vertex: Vertex) -> usize {
        self.vertices[vertex as usize].links.len()
    }

    pub(super) fn neighbours(&self, vertex: Vertex) -> impl Iterator<Item = Vertex> {
        self.vertices[vertex as usize].links.iter().map(|link| link.to)
    }

    /// Adds a pair that is not present.
    pub(super) fn insert(&mut self, pair: Pair<Vertex>) {
        if self.connected(*pair.lo(), *pair.hi(), 0) {
            self.attach(pair, 0, PairKind::Other);
        } else {
            self.span(pair, 0);
        }
    }

    /// Removes a pair that is present.
    pub(super) fn remove(&mut self, pair: Pair<Vertex>) {
        if !self.trees.contains_key(&(pair, 0)) {
            let (to, kind) = (*pair.hi(), PairKind::Other);
            let links = &self.vertices[*pair.lo() as usize].links;
            let is_at = |level: &u8| links.contains(&HalfEdge { level: *level, kind, to });
            let level = (0..=u8::MAX).find(is_at).expect("only a present pair is removed");
            self.detach(pair, level, kind);
            return;
        }
        let mut highest = 0;
        for level in 0..=u8::MAX {
            let Some(arcs) = self.trees.remove(&(pair, level)) else { break };
            self.tours.cut(arcs);
            highest = level;
        }
        self.detach(pair, highest, PairKind::Tree);
        for level in (0..=highest).rev() {
            if let Some(other) = self.replacement(pair, level) {
                self.detach(other, level, PairKind::Other);
                self.span(other, level);
                return;
            }
        }
    }

    /// A pair of a level that joins the two trees of this level into which a removal has split a tree.
    fn replacement(&mut self, gone: Pair<Vertex>, level: u8) -> Option<Pair<Vertex>> {
        let [a, b] = [*gone.lo(), *gone.hi()].map(|end| self.place(end, level));
        let half = if self.tours.size(a) <= self.tours.size(b) { a } else { b };
        // The smaller half has at most n / 2^(level + 1) vertices, so the level of its tree pairs may be
        // raised, and then that of the other pairs inside it.
        while let Some(pair) = self.marked(half, level, PairKind::Tree) {
            self.detach(pair, level, PairKind::Tree);
            self.attach(pair, level + 1, PairKind::Tree);
            self.link(pair, level + 1);
        }
        while let Some(pair) = self.marked(half, level, PairKind::Other) {
            if !self.connected(*pair.lo(), *pair.hi(), level) {
                return Some(pair);
            }
            self.detach(pair, level, PairKind::Other);
            self.attach(pair, level + 1, PairKind::Other);
        }
        None
    }

    /// Any pair of this level and kind with an end in the tree of `place`.
    fn marked(&mut self, place: TourPlace, level: u8, kind: PairKind) -> Option<Pair<Vertex>> {
        let vertex = self.tours.marked(place, kind as u8)?;
        let link = self.links(vertex, level, kind).next().expect("a marked vertex has such a pair");
        Pair::new(vertex, link.to)
    }

    /// Adds a pair to the spanning tree.
    fn span(&mut self, pair: Pair<Vertex>, level: u8) {
        self.attach(pair, level, PairKind::Tree);
        (0..=level).for_each(|level| self.link(pair, level));
    }

    /// Joins two trees of a level by a pair.
    fn link(&mut self, pair: Pair<Vertex>, level: u8) {
        let [u, v] = [*pair.lo(), *pair.hi()].map(|end| self.place(end, level));
        let arcs = self.tours.link(u, v);
        self.trees.insert((pair, level), arcs);
    }

    fn attach(&mut self, pair: Pair<Vertex>, level: u8, kind: PairKind) {
        for (from, to) in [(*pair.lo(), *pair.hi()), (*pair.hi(), *pair.lo())] {
            let first = self.links(from, level, kind).next().is_none();
            self.vertices[from as usize].links.insert(HalfEdge { level, kind, to });
            if first {
                let place = self.place(from, level);
                self.tours.mark(place, kind as u8, true);
            }
        }
    }

    fn detach(&mut self, pair: Pair<Vertex>, level: u8, kind: PairKind) {
        for (from, to) in [(*pair.lo(), *pair.hi()), (*pair.hi(), *pair.lo())] {
            self.vertices[from as usize].links.remove(&HalfEdge { level, kind, to });
            if self.links(from, level, kind).next().is_none() {
                let place = self.place(from, level);
                self.tours.mark(place, kind as u8, false);
            }
        }
    }

    fn links(&self, vertex: Vertex, level: u8, kind: PairKind) -> impl Iterator<Item = &HalfEdge> {
        let link = |to| HalfEdge { level, kind, to };
        self.vertices[vertex as usize].links.range(link(0)..=link(Vertex::MAX))
    }

    fn connected(&mut self, u: Vertex, v: Vertex, level: u8) -> bool {
        let [u, v] = [u, v].map(|end| self.place(end, level));
        self.tours.connected(u, v)
    }

    /// The place of a vertex in the forest of a level; a new one if it has none there.
    fn place(&mut self, vertex: Vertex, level: u8) -> TourPlace {
        if level == 0 {
            return self.vertices[vertex as usize].place;
        }
        *self.higher.entry((vertex, level)).or_insert_with(|| self.tours.tour(vertex))
    }
}
