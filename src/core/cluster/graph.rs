//! The graph of pairs and its connected components, under insertions and deletions of pairs.
//!
//! Most components are small: of up to [`SMALL`] documents. Their vertices form a ring, a cyclic list, so
//! that the component is found from any of them; joining two components swaps two links of their rings, and
//! a removed pair splits a ring if a search from one end does not reach the other. A larger component is in a
//! [`Forest`], whose operations are logarithmic. A component enters the forest with the pair that makes it
//! larger than `SMALL`, and leaves it at half of that, so that one near the limit is not moved repeatedly.
//!
//! Memory of a vertex in a small component: its id and its neighbours, 24 bytes each, 4 for the ring, 4 for
//! its place in the forest, about 8 for its entry in the index: 68 measured. In a large one 400 in a chain,
//! 1,400 in a clique of 64.

use super::forest::Forest;
use super::neighbours::Neighbours;
use super::tours::Vertex;
use crate::doc::DocId;
use crate::memory::{Interned, Rows};
use crate::pair::Pair;

/// Most vertices of a component outside the forest, inclusive: few enough to be searched at every change.
const SMALL: usize = 32;

/// Not in the forest.
const NONE: Vertex = Vertex::MAX;

/// The documents that are in a pair, or whose last pair was removed in this epoch.
#[derive(Debug)]
pub(super) struct Graph {
    /// The vertex of each document is its number.
    ids: Interned<DocId>,
    /// The neighbours of a vertex of a small component; empty in the forest.
    neighbours: Rows<Neighbours>,
    /// The next vertex of its ring.
    next: Rows<Vertex>,
    /// Its vertex in the forest, or [`NONE`].
    inner: Rows<Vertex>,
    /// Names are ids and the vertices here.
    forest: Forest<(DocId, Vertex)>,
}

/// The value of a vertex.
fn at<T>(rows: &Rows<T>, vertex: Vertex) -> &T {
    &rows.row(vertex as usize)[0]
}

fn at_mut<T>(rows: &mut Rows<T>, vertex: Vertex) -> &mut T {
    &mut rows.row_mut(vertex as usize)[0]
}

impl Graph {
    pub(super) fn new() -> Self {
        Self {
            ids: Interned::default(),
            neighbours: Rows::new(1),
            next: Rows::new(1),
            inner: Rows::new(1),
            forest: Forest::new(),
        }
    }

    /// The vertex of a document; a new vertex without pairs if the document has none.
    pub(super) fn vertex(&mut self, id: &DocId) -> Vertex {
        let vertex = self.ids.number(id);
        // One whose number is given again had no pair: its ring is itself.
        if vertex as usize == self.next.len() {
            self.neighbours.push(std::iter::once(Neighbours::default()));
            self.next.push(std::iter::once(vertex));
            self.inner.push(std::iter::once(NONE));
        }
        vertex
    }

    /// The vertices of a pair.
    pub(super) fn ends(&mut self, pair: &Pair<DocId>) -> Pair<Vertex> {
        let ends = Pair::new(self.vertex(pair.lo()), self.vertex(pair.hi()));
        ends.expect("different documents are different vertices")
    }

    /// The vertex of a document, if it has one.
    pub(super) fn find(&self, id: &DocId) -> Option<Vertex> {
        self.ids.find(id)
    }

    /// Removes a vertex if it is in no pair.
    pub(super) fn prune(&mut self, vertex: Vertex) {
        if self.degree(vertex) == 0 {
            self.ids.remove(vertex);
        }
    }

    pub(super) fn id(&self, vertex: Vertex) -> &DocId {
        self.ids.key(vertex)
    }

    /// All vertices, in any order.
    pub(super) fn vertices(&self) -> Vec<Vertex> {
        self.ids.numbers().collect()
    }

    /// Number of vertices of the vertex's component.
    pub(super) fn size(&mut self, vertex: Vertex) -> usize {
        match self.inner(vertex) {
            Some(inner) => self.forest.size(inner),
            None => self.ring(vertex).count(),
        }
    }

    /// The vertex with the smallest id of the vertex's component.
    pub(super) fn least(&mut self, vertex: Vertex) -> Vertex {
        if let Some(inner) = self.inner(vertex) {
            let least = self.forest.least(inner);
            return self.forest.name(least).1;
        }
        self.ring(vertex).min_by_key(|other| self.id(*other)).expect("a ring has its first vertex")
    }

    /// All vertices of the vertex's component, at a cost linear in its size.
    pub(super) fn component(&mut self, vertex: Vertex) -> Vec<Vertex> {
        match self.inner(vertex) {
            Some(inner) => {
                let all = self.forest.component(inner);
                all.into_iter().map(|other| self.forest.name(other).1).collect()
            }
            None => self.ring(vertex).collect(),
        }
    }

    /// Number of neighbours.
    pub(super) fn degree(&self, vertex: Vertex) -> usize {
        match self.inner(vertex) {
            Some(inner) => self.forest.degree(inner),
            None => at(&self.neighbours, vertex).get().len(),
        }
    }

    pub(super) fn neighbours(&self, vertex: Vertex) -> impl Iterator<Item = Vertex> {
        let large = self.inner(vertex).into_iter().flat_map(|inner| self.forest.neighbours(inner));
        let large = large.map(|inner| self.forest.name(inner).1);
        at(&self.neighbours, vertex).get().iter().copied().chain(large)
    }

    /// Adds a pair that is not present.
    pub(super) fn insert(&mut self, pair: Pair<Vertex>) {
        let (u, v) = (*pair.lo(), *pair.hi());
        let are_small = self.inner(u).is_none() && self.inner(v).is_none();
        if are_small && self.ring(u).any(|other| other == v) {
            self.join(u, v);
        } else if are_small && self.ring(u).count() + self.ring(v).count() <= SMALL {
            self.join(u, v);
            let (after_u, after_v) = (*at(&self.next, u), *at(&self.next, v));
            *at_mut(&mut self.next, u) = after_v;
            *at_mut(&mut self.next, v) = after_u;
        } else {
            let [u, v] = [u, v].map(|end| self.enter(end));
            self.forest.insert(Pair::new(u, v).expect("different vertices"));
        }
    }

    /// Removes a pair that is present.
    pub(super) fn remove(&mut self, pair: Pair<Vertex>) {
        let (u, v) = (*pair.lo(), *pair.hi());
        if let (Some(inner_u), Some(inner_v)) = (self.inner(u), self.inner(v)) {
            self.forest.remove(Pair::new(inner_u, inner_v).expect("different vertices"));
            [u, v].into_iter().for_each(|end| self.leave(end));
            return;
        }
        at_mut(&mut self.neighbours, u).remove(v);
        at_mut(&mut self.neighbours, v).remove(u);
        let mut reached = vec![u];
        let mut done = 0;
        while let Some(vertex) = reached.get(done).copied() {
            for other in at(&self.neighbours, vertex).get() {
                if *other == v {
                    return;
                }
                if !reached.contains(other) {
                    reached.push(*other);
                }
            }
            done += 1;
        }
        let rest: Vec<Vertex> = self.ring(u).filter(|other| !reached.contains(other)).collect();
        self.close(&reached);
        self.close(&rest);
    }

    fn inner(&self, vertex: Vertex) -> Option<Vertex> {
        Some(*at(&self.inner, vertex)).filter(|inner| *inner != NONE)
    }

    /// The vertices of a small component, from one of them on.
    fn ring(&self, first: Vertex) -> impl Iterator<Item = Vertex> {
        let after = move |vertex: &Vertex| Some(*at(&self.next, *vertex)).filter(|next| *next != first);
        std::iter::successors(Some(first), after)
    }

    /// Makes these vertices a ring.
    fn close(&mut self, vertices: &[Vertex]) {
        for (vertex, next) in vertices.iter().zip(vertices.iter().cycle().skip(1)) {
            *at_mut(&mut self.next, *vertex) = *next;
        }
    }

    fn join(&mut self, u: Vertex, v: Vertex) {
        at_mut(&mut self.neighbours, u).insert(v);
        at_mut(&mut self.neighbours, v).insert(u);
    }

    /// Moves the component of a vertex into the forest, unless it is there. Returns the vertex there.
    fn enter(&mut self, vertex: Vertex) -> Vertex {
        if let Some(inner) = self.inner(vertex) {
            return inner;
        }
        let component: Vec<Vertex> = self.ring(vertex).collect();
        for member in &component {
            *at_mut(&mut self.inner, *member) = self.forest.add((self.id(*member).clone(), *member));
        }
        for u in component {
            let of_u = std::mem::take(at_mut(&mut self.neighbours, u));
            for v in of_u.get().iter().filter(|v| u < **v) {
                let ends = [u, *v].map(|end| *at(&self.inner, end));
                self.forest.insert(Pair::new(ends[0], ends[1]).expect("different vertices"));
            }
        }
        *at(&self.inner, vertex)
    }

    /// Moves the component of a vertex out of the forest, if it is there and has become small enough.
    fn leave(&mut self, vertex: Vertex) {
        let Some(inner) = self.inner(vertex) else { return };
        if self.forest.size(inner) > SMALL / 2 {
            return;
        }
        let component = self.forest.component(inner);
        let outer = |of_forest| self.forest.name(of_forest).1;
        let members: Vec<Vertex> = component.iter().copied().map(outer).collect();
        for (member, of_forest) in members.iter().zip(&component) {
            *at_mut(&mut self.neighbours, *member) = self.forest.neighbours(*of_forest).map(outer).collect();
            *at_mut(&mut self.inner, *member) = NONE;
        }
        self.close(&members);
        self.forest.take_out(&component);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;

    /// The documents of a component, found by searching all pairs.
    fn found_by_search(present: &BTreeSet<(u64, u64)>, document: u64) -> BTreeSet<u64> {
        let mut found = BTreeSet::from([document]);
        loop {
            let leave = present.iter().filter(|(a, b)| found.contains(a) != found.contains(b));
            let more: Vec<u64> = leave.flat_map(|(a, b)| [*a, *b]).collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    /// Compared with components found by searching all pairs, while pairs are inserted and removed so that
    /// components grow over the limit of the forest and shrink below it.
    #[test]
    fn components_are_those_of_the_pairs_at_any_size() {
        for (documents, pairs) in [(12, 14), (60, 70), (200, 190), (40, 250)] {
            let mut graph = Graph::new();
            let mut present = BTreeSet::new();
            let (mut entered, mut left) = (false, false);
            let mut grows = true;
            for step in 0..10 * pairs {
                let random = mix(step ^ documents << 32);
                let (a, b) = (random % documents, (random >> 32) % documents);
                // A present pair is removed, another one is added.
                let removed = present.range((a, b)..).next().filter(|_| !grows && step % 4 > 0);
                let pair = match removed {
                    Some(pair) => *pair,
                    None if a == b => continue,
                    None => (a.min(b), a.max(b)),
                };
                let id = |n: u64| DocId::new(&format!("{:03}", mix(n) % 1000 + 1000 * n)).unwrap();
                let vertices = [graph.vertex(&id(pair.0)), graph.vertex(&id(pair.1))];
                let ends = Pair::new(vertices[0], vertices[1]).unwrap();
                let was_large = graph.inner(vertices[0]).is_some();
                if present.remove(&pair) {
                    graph.remove(ends);
                } else {
                    present.insert(pair);
                    graph.insert(ends);
                }
                let turns_at = if grows { pairs } else { documents / 4 };
                grows = (present.len() as u64) < turns_at;
                entered |= vertices.iter().any(|v| graph.inner(*v).is_some());
                left |= was_large && graph.inner(vertices[0]).is_none() && graph.degree(vertices[0]) > 0;
                for (vertex, document) in vertices.into_iter().zip([pair.0, pair.1]) {
                    let documents_of_it = found_by_search(&present, document);
                    let expected: BTreeSet<DocId> = documents_of_it.into_iter().map(id).collect();
                    let found = graph.component(vertex);
                    assert_eq!((graph.size(vertex), found.len()), (expected.len(), expected.len()));
                    let least = graph.least(vertex);
                    assert_eq!(Some(graph.id(least)), expected.first());
                    assert_eq!(
                        found.into_iter().map(|v| graph.id(v).clone()).collect::<BTreeSet<_>>(),
                        expected
                    );
                    let degree = present.iter().filter(|(lo, hi)| *lo == document || *hi == document).count();
                    assert_eq!((graph.degree(vertex), graph.neighbours(vertex).count()), (degree, degree));
                }
                vertices.into_iter().for_each(|vertex| graph.prune(vertex));
            }
            assert_eq!((entered, left), (documents > 12, documents > 12), "{documents}");
            let alive: BTreeSet<_> = present.iter().flat_map(|(lo, hi)| [*lo, *hi]).collect();
            assert_eq!(graph.vertices().len(), alive.len());
        }
    }
}
