//! Euler tours of a forest: the tree of a vertex, its size and its least key, under insertions and deletions
//! of edges.
//!
//! The tour of a tree visits each vertex once and each edge twice, as two *arcs*: out, and back after the
//! subtree behind it. It is cyclic, so it may begin at any place. Joining two trees or cutting one moves a
//! few whole pieces of tours; tours are stored in splay trees. Every operation takes O(log n) amortised for a
//! tree of n vertices, except [`Tours::vertices`], which is linear.
//!
//! References: M. Henzinger and V. King, *Randomized fully dynamic graph algorithms with polylogarithmic time
//! per operation* (JACM 1999), section 2.1; D. Sleator and R. Tarjan, *Self-adjusting binary search trees*
//! (JACM 1985).

/// A vertex of a tree. One vertex may have several places, in different tours.
pub(super) type Vertex = u32;

/// The place of a vertex or an arc in a tour.
pub(super) type TourPlace = u32;

/// No place, and no vertex.
const NONE: u32 = u32::MAX;

/// A place as a node of its splay tree.
#[derive(Clone, Copy, Debug)]
struct SplayNode {
    parent: TourPlace,
    children: [TourPlace; 2],
    /// [`NONE`] for an arc.
    vertex: Vertex,
    /// Bits set by [`Tours::mark`].
    marks: u8,
    // For this node and its descendants: the vertex with the least key, the number of vertices, the union of
    // marks.
    least: Vertex,
    size: u32,
    marks_below: u8,
}

/// Tours of vertices with keys of type `K`.
#[derive(Debug)]
pub(super) struct Tours<K> {
    /// By vertex.
    keys: Vec<K>,
    nodes: Vec<SplayNode>,
    free: Vec<TourPlace>,
}

impl<K: Ord> Tours<K> {
    pub(super) fn new() -> Self {
        Self { keys: Vec::new(), nodes: Vec::new(), free: Vec::new() }
    }

    /// Sets the key of a vertex that is in no tour: the next new vertex, or one used before.
    pub(super) fn set_key(&mut self, vertex: Vertex, key: K) {
        match self.keys.get_mut(vertex as usize) {
            Some(place) => *place = key,
            None => self.keys.push(key),
        }
    }

    pub(super) fn key(&self, vertex: Vertex) -> &K {
        &self.keys[vertex as usize]
    }

    /// A new tour of one vertex.
    pub(super) fn tour(&mut self, vertex: Vertex) -> TourPlace {
        let node = SplayNode {
            parent: NONE,
            children: [NONE; 2],
            vertex,
            marks: 0,
            least: vertex,
            size: u32::from(vertex != NONE),
            marks_below: 0,
        };
        if let Some(place) = self.free.pop() {
            self.nodes[place as usize] = node;
            return place;
        }
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("memory ends before 2^32 places")
    }

    /// Frees a place that is a tour on its own.
    pub(super) fn release(&mut self, place: TourPlace) {
        let node = &self.nodes[place as usize];
        debug_assert!(node.parent == NONE && node.children == [NONE; 2], "a place in use");
        self.free.push(place);
    }

    /// Frees a place of a tour of which all other places are freed too.
    pub(super) fn discard(&mut self, place: TourPlace) {
        self.free.push(place);
    }

    /// Joins the tours of two vertices by an edge; returns its two arcs.
    pub(super) fn link(&mut self, u: TourPlace, v: TourPlace) -> [TourPlace; 2] {
        let arcs = [self.tour(NONE), self.tour(NONE)];
        self.begin_at(u);
        self.begin_at(v);
        let out = self.join(u, arcs[0]);
        let there = self.join(out, v);
        self.join(there, arcs[1]);
        arcs
    }

    /// Removes an edge, which splits its tour into two.
    pub(super) fn cut(&mut self, [out, back]: [TourPlace; 2]) {
        self.begin_at(out);
        self.split_after(out);
        self.split_before(back);
        self.split_after(back);
        self.release(out);
        self.release(back);
    }

    /// Whether two vertices are in one tour.
    pub(super) fn connected(&mut self, u: TourPlace, v: TourPlace) -> bool {
        self.splay(u);
        self.splay(v);
        // u was made a root; after the splay of v it has a parent if both are in one splay tree.
        u == v || self.nodes[u as usize].parent != NONE
    }

    /// Number of vertices in the tour.
    pub(super) fn size(&mut self, place: TourPlace) -> usize {
        self.splay(place);
        self.nodes[place as usize].size as usize
    }

    /// The vertex with the least key in the tour.
    pub(super) fn least(&mut self, place: TourPlace) -> Vertex {
        self.splay(place);
        self.nodes[place as usize].least
    }

    /// Sets or unsets the mark of one place.
    pub(super) fn mark(&mut self, place: TourPlace, mark: u8, on: bool) {
        self.splay(place);
        let marks = &mut self.nodes[place as usize].marks;
        *marks = if on { *marks | mark } else { *marks & !mark };
        self.pull(place);
    }

    /// A vertex in the tour whose place has the mark.
    pub(super) fn marked(&mut self, place: TourPlace, mark: u8) -> Option<Vertex> {
        self.splay(place);
        let has = |at: &TourPlace| *at != NONE && self.nodes[*at as usize].marks_below & mark != 0;
        let mut at = Some(place).filter(has)?;
        while self.nodes[at as usize].marks & mark == 0 {
            let below = self.nodes[at as usize].children.into_iter().find(has);
            at = below.expect("marks below are the sum of marks");
        }
        // The search must end with a splay, so that its depth is covered by the amortised bound.
        self.splay(at);
        Some(self.nodes[at as usize].vertex)
    }

    /// All vertices of the tour, in no particular order.
    pub(super) fn vertices(&mut self, place: TourPlace) -> Vec<Vertex> {
        self.splay(place);
        let mut found = Vec::with_capacity(self.nodes[place as usize].size as usize);
        let mut rest = vec![place];
        while let Some(at) = rest.pop() {
            if at != NONE {
                let node = &self.nodes[at as usize];
                found.extend(Some(node.vertex).filter(|vertex| *vertex != NONE));
                rest.extend(node.children);
            }
        }
        found
    }

    /// Rotates the tour so that it begins at a place.
    fn begin_at(&mut self, place: TourPlace) {
        let before = self.split_before(place);
        self.join(place, before);
    }

    /// Splits the part before a place from its tour; returns that part's root, or [`NONE`] if it is empty.
    fn split_before(&mut self, place: TourPlace) -> TourPlace {
        self.split(place, 0)
    }

    fn split_after(&mut self, place: TourPlace) -> TourPlace {
        self.split(place, 1)
    }

    fn split(&mut self, place: TourPlace, side: usize) -> TourPlace {
        self.splay(place);
        let rest = std::mem::replace(&mut self.nodes[place as usize].children[side], NONE);
        if rest != NONE {
            self.nodes[rest as usize].parent = NONE;
            self.pull(place);
        }
        rest
    }

    /// Appends the sequence of `b` to that of `a`; returns the root. `b` may be [`NONE`].
    fn join(&mut self, a: TourPlace, b: TourPlace) -> TourPlace {
        self.splay(a);
        let mut last = a;
        while self.nodes[last as usize].children[1] != NONE {
            last = self.nodes[last as usize].children[1];
        }
        self.splay(last);
        if b != NONE {
            self.splay(b);
            self.nodes[last as usize].children[1] = b;
            self.nodes[b as usize].parent = last;
            self.pull(last);
        }
        last
    }

    /// Makes a place the root of its splay tree.
    fn splay(&mut self, x: TourPlace) {
        loop {
            let p = self.nodes[x as usize].parent;
            if p == NONE {
                return;
            }
            let g = self.nodes[p as usize].parent;
            if g != NONE {
                let straight = self.side(x) == self.side(p);
                self.rotate(if straight { p } else { x });
            }
            self.rotate(x);
        }
    }

    /// Whether a place is its parent's left (0) or right (1) child.
    fn side(&self, x: TourPlace) -> usize {
        let parent = self.nodes[x as usize].parent;
        usize::from(self.nodes[parent as usize].children[1] == x)
    }

    /// Lifts a place above its parent.
    fn rotate(&mut self, x: TourPlace) {
        let side = self.side(x);
        let p = self.nodes[x as usize].parent;
        let g = self.nodes[p as usize].parent;
        if g != NONE {
            let above = self.side(p);
            self.nodes[g as usize].children[above] = x;
        }
        let inner = std::mem::replace(&mut self.nodes[x as usize].children[1 - side], p);
        self.nodes[p as usize].children[side] = inner;
        if inner != NONE {
            self.nodes[inner as usize].parent = p;
        }
        self.nodes[p as usize].parent = x;
        self.nodes[x as usize].parent = g;
        // The subtree below x now is the subtree that was below p before.
        let SplayNode { least, size, marks_below, .. } = self.nodes[p as usize];
        let top = &mut self.nodes[x as usize];
        (top.least, top.size, top.marks_below) = (least, size, marks_below);
        self.pull(p);
    }

    /// Recomputes the sums of a node from its children.
    fn pull(&mut self, x: TourPlace) {
        let mut node = self.nodes[x as usize];
        (node.least, node.size) = (node.vertex, u32::from(node.vertex != NONE));
        node.marks_below = node.marks;
        for child in node.children {
            if child != NONE {
                let child = &self.nodes[child as usize];
                node.least = self.lesser(node.least, child.least);
                node.size += child.size;
                node.marks_below |= child.marks_below;
            }
        }
        self.nodes[x as usize] = node;
    }

    fn lesser(&self, a: Vertex, b: Vertex) -> Vertex {
        if a == NONE || (b != NONE && self.key(b) < self.key(a)) { b } else { a }
    }
}
