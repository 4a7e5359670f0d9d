//! Clusters and their changes in cases computed by hand, and the golden vectors.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{ClusterKind, ClusterReport, Clusters};
use crate::doc::DocId;
use crate::pair::{Delta, DocPair, Evidence, Pair, Similarity};

fn id(name: &str) -> DocId {
    DocId::new(name).unwrap()
}

fn changes<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, diff: isize) -> Vec<Delta> {
    let similar = |(a, b)| DocPair {
        pair: Pair::new(id(a), id(b)).unwrap(),
        similarity: Similarity::ONE,
        evidence: Evidence::default(),
    };
    let mut changes: Vec<_> = pairs.into_iter().map(|pair| Delta::by_block(similar(pair), diff)).collect();
    changes.sort_unstable();
    changes
}

/// `ab` is the pair of a and b.
fn letters(pairs: &str) -> impl Iterator<Item = (&str, &str)> {
    pairs.split_whitespace().map(|pair| pair.split_at(1))
}

/// One epoch with added and removed pairs. Returns the changes, as `+a:b` for "a is in the cluster of b" and
/// `+a*5` for a giant of size 5.
fn epoch(clusters: &mut Clusters, come: &str, go: &str) -> String {
    let mut all = changes(letters(come), 1);
    all.extend(changes(letters(go), -1));
    all.sort_unstable();
    let said = clusters.advance(&all).into_iter().map(|(report, diff)| {
        let sign = if diff > 0 { '+' } else { '-' };
        match report {
            ClusterReport::Member { cluster, document } => format!("{sign}{document}:{cluster}"),
            ClusterReport::Giant { cluster, size } => format!("{sign}{cluster}*{size}"),
        }
    });
    said.collect::<Vec<_>>().join(" ")
}

fn components() -> Clusters {
    Clusters::new(ClusterKind::Components, Clusters::LIMIT)
}

fn stars() -> Clusters {
    Clusters::new(ClusterKind::Star, Clusters::LIMIT)
}

#[test]
fn a_bridge_joins_and_splits() {
    let mut clusters = components();
    assert_eq!(epoch(&mut clusters, "ab bc xy yz", ""), "+a:a +b:a +c:a +x:x +y:x +z:x");
    assert_eq!(epoch(&mut clusters, "cx", ""), "-x:x +x:a -y:x +y:a -z:x +z:a");
    assert_eq!(epoch(&mut clusters, "az", ""), "", "a pair inside a cluster changes nothing");
    assert_eq!(epoch(&mut clusters, "", "cx"), "", "there is a way round");
    assert_eq!(epoch(&mut clusters, "", "az"), "-x:a +x:x -y:a +y:x -z:a +z:x");
    assert_eq!(
        epoch(&mut clusters, "", "xy"),
        "-x:x -y:x +y:y -z:x +z:y",
        "x is in no pair, so in no cluster"
    );
    assert_eq!(epoch(&mut clusters, "", "ab bc yz"), "-a:a -b:a -c:a -y:y -z:y");
}

#[test]
fn the_smallest_member_names_the_cluster() {
    let mut clusters = components();
    assert_eq!(epoch(&mut clusters, "bc cd", ""), "+b:b +c:b +d:b");
    assert_eq!(epoch(&mut clusters, "ad", ""), "+a:a -b:b +b:a -c:b +c:a -d:b +d:a");
    assert_eq!(epoch(&mut clusters, "", "ad"), "-a:a -b:a +b:b -c:a +c:b -d:a +d:b");
    // A pair added and removed within an epoch, or with a change of its similarity only, changes no cluster.
    let mut again = changes([("b", "c")], 1);
    again.extend(changes([("b", "c")], -1));
    assert_eq!(clusters.advance(&again), []);
    assert_eq!(clusters.advance(&[]), []);
}

#[test]
fn the_limit_is_inclusive_and_crossed_both_ways() {
    for (kind, three) in [(ClusterKind::Components, "+a:a +b:a +c:a"), (ClusterKind::Star, "+a:b +b:b +c:b")]
    {
        let mut clusters = Clusters::new(kind, 3);
        assert_eq!(epoch(&mut clusters, "ab bc", ""), three);
        let retracted = three.replace('+', "-");
        assert_eq!(epoch(&mut clusters, "cd", ""), format!("{retracted} +a*4"));
        assert_eq!(epoch(&mut clusters, "de", ""), "-a*4 +a*5");
        assert_eq!(epoch(&mut clusters, "", "ab"), "-a*5 +b*4", "its smallest member has left");
        assert_eq!(epoch(&mut clusters, "ab", "de"), "+a*4 -b*4");
        assert_eq!(epoch(&mut clusters, "ac", "ab"), "", "a giant of the same name and size");
        assert_eq!(epoch(&mut clusters, "ab", "ac cd"), format!("{three} -a*4"));
    }
}

#[test]
fn stars_have_the_greatest_degree_and_then_the_smallest_id() {
    // b and c have two neighbours each; d is left alone with its only neighbour taken.
    assert_eq!(epoch(&mut stars(), "ab bc cd", ""), "+a:b +b:b +c:b");
    // b and e have degree 3: b is first and leaves e its other two neighbours.
    assert_eq!(epoch(&mut stars(), "ab bc be eg eh", ""), "+a:b +b:b +c:b +e:b");
    assert_eq!(epoch(&mut stars(), "ab bc cd de ef", ""), "+a:b +b:b +c:b +d:d +e:d");
    // In a ring all vertices have degree 2.
    assert_eq!(epoch(&mut stars(), "ab bc cd de ea", ""), "+a:a +b:a +c:c +d:c +e:a");
    let mut clusters = stars();
    assert_eq!(epoch(&mut clusters, "ab ac xy", ""), "+a:a +b:a +c:a +x:x +y:x");
    assert_eq!(epoch(&mut clusters, "bx by", ""), "-a:a +a:b -b:a +b:b -c:a -x:x +x:b -y:x +y:b");
    let back = "-a:b +a:a -b:b +b:a +c:a -x:b +x:x -y:b +y:x";
    assert_eq!(epoch(&mut clusters, "", "bx by"), back, "of one document the retraction comes first");
}

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<VectorCase>,
}

/// Members are numbered. (The vectors also have representatives in order of arrival, which are no function of
/// the corpus.)
#[derive(Deserialize)]
struct VectorCase {
    edges: Vec<(usize, usize)>,
    connected_components: Vec<Vec<usize>>,
    star: Vec<Star>,
}

#[derive(Deserialize)]
struct Star {
    center: usize,
    members: Vec<usize>,
}

#[test]
fn golden_vectors() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../../tests/vectors/clustering.json")).unwrap();
    assert!(vectors.cases.len() >= 4);
    let name = |n: usize| format!("{n:02}");
    for case in vectors.cases {
        let components = case.connected_components.into_iter().map(|members| (members[0], members)).collect();
        let stars = case.star.into_iter().map(|star| (star.center, star.members)).collect();
        let edges: Vec<_> = case.edges.iter().map(|(a, b)| (name(*a), name(*b))).collect();
        for (kind, expected) in
            [(ClusterKind::Components, components), (ClusterKind::Star, stars)] as [(_, Vec<_>); 2]
        {
            // Documents without pairs are in no cluster.
            let expected = expected.into_iter().filter(|(_, members)| members.len() > 1);
            let expected: BTreeSet<_> = expected
                .flat_map(|(cluster, members)| members.into_iter().map(move |document| (document, cluster)))
                .map(|(document, cluster)| (id(&name(document)), id(&name(cluster))))
                .collect();
            let edges = changes(edges.iter().map(|(a, b)| (&**a, &**b)), 1);
            let found =
                Clusters::new(kind, Clusters::LIMIT).advance(&edges).into_iter().map(|report| match report {
                    (ClusterReport::Member { cluster, document }, 1) => (document, cluster),
                    other => panic!("{other:?}"),
                });
            assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{kind:?}");
        }
    }
}
