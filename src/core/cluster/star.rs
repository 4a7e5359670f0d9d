//! Star clustering of one component.

use std::collections::BTreeSet;

use super::graph::Graph;
use super::tours::Vertex;

/// Cuts a component into stars: (member, centre) for each vertex of a star of at least two.
///
/// Vertices are visited by (degree descending, id ascending); one that is in no star yet becomes a centre and
/// takes its neighbours that are in none. So every member is in a pair with its centre, where a component may
/// be a chain.
///
/// Looks at the vertices in order and at the pairs of centres: O(m log m + the sum of degrees of centres) for
/// m vertices.
pub(super) fn stars(graph: &Graph, component: Vec<Vertex>) -> Vec<(Vertex, Vertex)> {
    let mut order = component;
    order.sort_unstable_by_key(|&v| (std::cmp::Reverse(graph.neighbours(v).len()), graph.id(v)));
    let mut unassigned: BTreeSet<Vertex> = order.iter().copied().collect();
    let mut members = Vec::new();
    for centre in order {
        if unassigned.remove(&centre) {
            let before = members.len();
            let taken = graph.neighbours(centre).filter(|neighbour| unassigned.remove(neighbour));
            members.extend(taken.map(|neighbour| (neighbour, centre)));
            if members.len() > before {
                members.push((centre, centre));
            }
        }
    }
    members
}
