//! Star clustering of one component.

use std::collections::BTreeSet;

use super::graph::Graph;
use super::tours::Vertex;

/// Cuts a component into stars: returns (member, centre) for each vertex of a star with at least two members.
///
/// Vertices are visited by (degree descending, id ascending). A vertex that is in no star yet becomes a
/// centre, and its neighbours that are in no star become its members. So every member forms a pair with its
/// centre; in a component that need not hold.
///
/// Cost: O(m log m + the sum of degrees of centres) for m vertices.
pub(super) fn stars(graph: &Graph, component: Vec<Vertex>) -> Vec<(Vertex, Vertex)> {
    let mut order = component;
    order.sort_unstable_by_key(|&v| (std::cmp::Reverse(graph.degree(v)), graph.id(v)));
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
