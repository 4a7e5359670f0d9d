//! Incremental clusters compared with clusters computed again from all pairs: giants of three shapes that
//! lose a pair or a document, and get it back (two epochs an iteration). Also the additional cost of the
//! history, for many small clusters.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dupflow::core::cluster::{ClusterKind, Clusters};
use dupflow::core::doc::DocId;
use dupflow::core::oracle;
use dupflow::core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use dupflow::core::time::EpochSeconds;
use dupflow::monitor::cluster_history::History;

fn change((a, b): (u32, u32), diff: isize) -> Delta {
    let id = |n: u32| DocId::new(&format!("document/{n:06}")).expect("a short id");
    let pair = Pair::new(id(a), id(b)).expect("different documents");
    let similar = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
    Delta::by_block(similar, diff)
}

fn epoch(pairs: impl IntoIterator<Item = (u32, u32)>, diff: isize) -> Vec<Delta> {
    let mut epoch: Vec<_> = pairs.into_iter().map(|pair| change(pair, diff)).collect();
    epoch.sort_unstable();
    epoch
}

/// A graph, and sets of its pairs that are removed and added again in turn, one epoch each.
fn shape(c: &mut Criterion, name: &str, pairs: &[(u32, u32)], parts: &[Vec<(u32, u32)>]) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    let all = epoch(pairs.iter().copied(), 1);
    let parts: Vec<_> =
        parts.iter().map(|part| [-1, 1].map(|diff| epoch(part.iter().copied(), diff))).collect();
    for (how, limit) in [("kept", Clusters::LIMIT), ("kept, told by size", 2)] {
        let mut clusters = Clusters::new(ClusterKind::Components, limit);
        clusters.advance(&all);
        let mut next = parts.iter().cycle();
        group.bench_function(how, |b| {
            b.iter(|| {
                for changes in next.next().expect("a cycle has no end") {
                    black_box(clusters.advance(changes));
                }
            });
        });
    }
    group.bench_function("gathered anew", |b| {
        b.iter(|| {
            for _ in 0..2 {
                let present = all.iter().map(|delta| &delta.pair.pair);
                black_box(oracle::clusters(present, ClusterKind::Components, Clusters::LIMIT));
            }
        });
    });
    group.finish();
}

/// A thousand parts of one pair each, scattered.
fn scattered(pairs: &[(u32, u32)]) -> Vec<Vec<(u32, u32)>> {
    (0..1000).map(|i| vec![pairs[i * 7919 % pairs.len()]]).collect()
}

fn clusters(c: &mut Criterion) {
    let clique: Vec<_> = (0..1000).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    shape(c, "clique of 1,000, one pair", &clique, &scattered(&clique));
    let of = |document| clique.iter().copied().filter(|(a, b)| *a == document || *b == document).collect();
    let documents: Vec<_> = (0..100).map(|i| of(i * 37 % 1000)).collect();
    shape(c, "clique of 1,000, all pairs of a document", &clique, &documents);

    let halves: Vec<_> = clique.iter().flat_map(|&(a, b)| [(a, b), (a + 1000, b + 1000)]).collect();
    let bridged: Vec<_> = halves.iter().copied().chain([(500, 1500)]).collect();
    shape(c, "two cliques of 1,000, their bridge", &bridged, &[vec![(500, 1500)]]);

    let path: Vec<_> = (1..100_000).map(|n| (n - 1, n)).collect();
    let ring: Vec<_> = path.iter().copied().chain([(0, 99_999)]).collect();
    shape(c, "ring of 100,000, one pair", &ring, &scattered(&ring));
    shape(c, "path of 100,000, one pair", &path, &scattered(&path));

    let star: Vec<_> = (1..=100_000).map(|n| (0, n)).collect();
    shape(c, "star of 100,000 leaves, one leaf", &star, &scattered(&star));
    shape(c, "star of 100,000 leaves, its centre", &star, std::slice::from_ref(&star));
}

/// Chains of five documents; an epoch breaks many of them, and the next one restores them.
fn history(c: &mut Criterion) {
    for pairs in [100_000, 1_000_000] {
        let chains: Vec<_> = (1..).filter(|n| n % 5 != 0).map(|n| (n - 1, n)).take(pairs).collect();
        let all = epoch(chains.iter().copied(), 1);
        for changes in [10, 1000] {
            let part: Vec<_> = (0..changes).map(|i| chains[i * 7919 % pairs]).collect();
            let both = [-1, 1].map(|diff| epoch(part.iter().copied(), diff));
            let mut group = c.benchmark_group(format!("{pairs} pairs in chains of 4, {changes} of them"));
            group.sample_size(10);
            for (how, with_history) in [("clusters", false), ("clusters and their history", true)] {
                let mut clusters = Clusters::new(ClusterKind::Components, Clusters::LIMIT);
                let mut history = History::default();
                let mut at = 1;
                let loaded = clusters.advance(&all);
                history.advance(at, EpochSeconds::NONE, &loaded);
                group.bench_function(how, |b| {
                    b.iter(|| {
                        for deltas in &both {
                            let reports = clusters.advance(deltas);
                            if with_history {
                                at += 1;
                                history.advance(at, EpochSeconds::NONE, &reports);
                            }
                        }
                    });
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, clusters, history);
criterion_main!(benches);
