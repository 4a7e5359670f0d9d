//! Clusters: after every epoch the accumulated reports equal what brute force computes from the present
//! pairs.

use std::collections::BTreeSet;

use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters};
use dupflow::core::doc::DocId;
use dupflow::core::oracle;
use dupflow::core::pair::{Delta, DocPair, Evidence, Pair, Similarity};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::history::{check, cut, events, runs, sizes};
use crate::law::Corpus;
use crate::pipelines::{CROWDED, plan};
use crate::script::deltas;

const KINDS: [ClusterKind; 2] = [ClusterKind::Components, ClusterKind::Star];

/// Clusters, and what their changes have accumulated to.
struct Accumulated {
    kind: ClusterKind,
    limit: usize,
    clusters: Clusters,
    reports: BTreeSet<ClusterReport>,
}

impl Accumulated {
    /// Both kinds, with one limit that is often crossed and one that never is.
    fn all() -> Vec<Self> {
        let new = |kind, limit| Self {
            kind,
            limit,
            clusters: Clusters::new(kind, limit),
            reports: BTreeSet::new(),
        };
        KINDS.into_iter().flat_map(|kind| [new(kind, 4), new(kind, Clusters::LIMIT)]).collect()
    }

    /// Takes one epoch, whose changes must be sorted and keep every report at 0 or 1, and compares.
    fn advance(&mut self, changes: &[Delta], present: &BTreeSet<Pair<DocId>>) {
        let said = self.clusters.advance(changes);
        let place = |(report, diff): &(ClusterReport, isize)| match report {
            ClusterReport::Member { document, .. } => (false, document.clone(), *diff),
            ClusterReport::Giant { cluster, .. } => (true, cluster.clone(), *diff),
        };
        assert!(said.is_sorted_by(|a, b| place(a) < place(b)), "{said:?}");
        for (report, diff) in said {
            let changed = match diff {
                1 => self.reports.insert(report.clone()),
                -1 => self.reports.remove(&report),
                _ => false,
            };
            assert!(changed, "{report:?} changes by {diff}");
        }
        let expected = oracle::clusters(present, self.kind, self.limit);
        let wrong: Vec<_> = self.reports.symmetric_difference(&expected).take(5).collect();
        assert!(wrong.is_empty(), "{:?} within {}: {wrong:?} …", self.kind, self.limit);
    }
}

/// Epochs that add pairs of `documents` documents or, where they are present, remove them.
fn toggles(documents: u8, epochs: usize) -> impl Strategy<Value = Vec<Vec<(u8, u8)>>> {
    vec(vec((0..documents, 0..documents), 0..12), 0..epochs)
}

fn holds(history: &[Vec<(u8, u8)>]) {
    // Ids sort differently than numbers.
    let id = |n: u8| DocId::new(&(n ^ 5).to_string()).unwrap();
    let mut all = Accumulated::all();
    let mut present = BTreeSet::new();
    for epoch in history {
        let before = present.clone();
        for pair in epoch.iter().filter_map(|(a, b)| Pair::new(id(*a), id(*b))) {
            if !present.remove(&pair) {
                present.insert(pair);
            }
        }
        let change = |pair: &Pair<DocId>| {
            let (similarity, evidence) = (Similarity::ONE, Evidence::default());
            let diff = if present.contains(pair) { 1 } else { -1 };
            Delta::by_block(DocPair { pair: pair.clone(), similarity, evidence }, diff)
        };
        let changes: Vec<_> = before.symmetric_difference(&present).map(change).collect();
        all.iter_mut().for_each(|accumulated| accumulated.advance(&changes, &present));
    }
}

#[test]
fn few_documents_in_all_arrangements() {
    check(300, toggles(7, 40), |history| holds(&history));
}

/// About one pair for each document: components form and split all the time, over several levels.
#[test]
fn many_documents_on_the_brink() {
    check(40, toggles(60, 150), |history| holds(&history));
}

#[test]
fn dense_clusters_thin_out() {
    let all = |n: u8| (0..n).flat_map(move |a| (0..a).map(move |b| (a, b)));
    // A clique loses its pairs in a scattered order, a few in each epoch, and gets them back in another
    // order.
    let scattered = |factor: usize| {
        let pairs: Vec<_> = all(24).collect();
        (0..pairs.len()).map(move |i| pairs[i * factor % pairs.len()]).collect::<Vec<_>>()
    };
    let mut history = vec![all(24).collect::<Vec<_>>()];
    // Both factors have no divisor in common with 276.
    history.extend(scattered(101).chunks(5).map(<[_]>::to_vec));
    history.extend(scattered(175).chunks(3).map(<[_]>::to_vec));
    history.push(all(24).collect());
    holds(&history);
}

/// Through the dataflow.
#[test]
fn clusters_of_any_history() {
    let plan = plan(CROWDED);
    check(60, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        let stages = dupflow::pipeline::stages(&plan, false);
        let epochs = cut(&events, &sizes);
        let written = deltas(&stages, &epochs, run);
        let mut corpus = Corpus::new(&stages);
        let mut all = Accumulated::all();
        for (epoch, whole) in (1..).zip(&epochs) {
            corpus.apply(whole);
            let present = corpus.pairs(&stages).into_iter().map(|found| found.pair).collect();
            let changes: Vec<_> = written
                .iter()
                .filter(|(at, ..)| *at == epoch)
                .map(|(_, pair, diff)| Delta::by_block(pair.clone(), *diff))
                .collect();
            all.iter_mut().for_each(|accumulated| accumulated.advance(&changes, &present));
        }
    });
}
