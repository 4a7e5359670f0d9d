//! Keep lists: after any history, the lists equal those of a fresh run on the surviving documents, and follow
//! the definitions applied to the present pairs.
//!
//! Bug classes: a list that depends on the order of arrival or on positions; a document in both lists or in
//! none; a cluster that keeps two documents, or none; a listed document that has ended; a large cluster that
//! is reported only by its size and so missing from the lists.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::config::Plan;
use dupflow::connectors::sinks::{DocumentList, KeepList, Sink};
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters, KeepRule};
use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::doc::{DocId, Facts};
use dupflow::core::oracle;
use dupflow::core::pair::Pair;
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use serde_json::Value;

use crate::history::{check, runs, sizes};
use crate::pipelines::{CROWDED, plan};
use crate::retention::{advance, cut, pairs, rules, stamped};
use crate::script::{Epoched, Past, Run, Stamped, closed};

const KINDS: [ClusterKind; 2] = [ClusterKind::Components, ClusterKind::Star];

/// A written list. The limit is so low that most clusters are reported by their size elsewhere.
fn listed(told: &[ClosedEpoch], kind: ClusterKind, keep: &KeepRule, listed: DocumentList) -> String {
    let mut out = Vec::new();
    let mut sink = KeepList::new(&mut out, Clusters::new(kind, 2), keep.clone(), listed);
    assert!(sink.wants_documents());
    for closed in told {
        sink.documents(&closed.documents, false).unwrap();
        sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
    drop(sink);
    String::from_utf8(out).unwrap()
}

fn stages(plan: &Plan, retention: Retention) -> Stages {
    Stages { retention, emits_documents: true, ..dupflow::pipeline::stages(plan, false) }
}

/// By the definition: for each cluster of the pairs, the document that the rule selects; with the cluster.
fn removed(
    documents: &BTreeMap<DocId, Facts>,
    pairs: &BTreeSet<Pair<DocId>>,
    kind: ClusterKind,
    keep: &KeepRule,
) -> BTreeMap<DocId, (DocId, DocId)> {
    let mut clusters: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
    for report in oracle::clusters(pairs, kind, usize::MAX) {
        let ClusterReport::Member { cluster, document } = report else { panic!("no cluster is that large") };
        clusters.entry(cluster).or_default().insert(document);
    }
    let mut removed = BTreeMap::new();
    for (cluster, members) in clusters {
        // In the order of ids: of equal ones the smallest is the first.
        let of = |id: &DocId| documents[id];
        let ts = |id: &DocId| of(id).ts.map_or((1, 0.0), |ts| (0, ts));
        let kept = match keep {
            KeepRule::Smallest => members.first().unwrap(),
            KeepRule::Named => &cluster,
            KeepRule::Oldest => members.iter().reduce(|a, b| if ts(b) < ts(a) { b } else { a }).unwrap(),
            KeepRule::Longest => {
                members.iter().reduce(|a, b| if of(b).bytes > of(a).bytes { b } else { a }).unwrap()
            }
            other => panic!("{other} reads a field or a position"),
        };
        let others = members.iter().filter(|id| *id != kept);
        removed.extend(others.map(|id| (id.clone(), (kept.clone(), cluster.clone()))));
    }
    removed
}

fn assert_lists(plan: &Plan, epochs: &[Epoched], retention: Retention, run: Run) {
    let whole = stages(plan, retention);
    let told = closed(&whole, epochs, &Past::default(), run);
    let mut documents = BTreeMap::new();
    told.iter().for_each(|closed| advance(&mut documents, &closed.documents));

    let of_all = epochs.iter().flat_map(|epoch| &epoch.events);
    let last: BTreeMap<&DocId, &Stamped> = of_all.map(|event| (&event.id, event)).collect();
    let survivors: Vec<Stamped> = documents.keys().map(|id| last[id].clone()).collect();
    let texts = survivors.iter().map(|event| (event.id.clone(), event.text.clone().unwrap())).collect();
    let pairs: BTreeSet<_> = pairs(&whole, &texts).into_iter().map(|found| found.pair).collect();
    // In another order, so that positions differ too.
    let fresh = [Epoched { events: survivors.into_iter().rev().collect(), at: None }];
    let again = closed(&stages(plan, Retention::default()), &fresh, &Past::default(), run);

    for (kind, keep) in KINDS.into_iter().flat_map(|kind| KeepRule::ALL.map(|keep| (kind, keep))) {
        let expected = removed(&documents, &pairs, kind, &keep);
        let [stays, goes] = [DocumentList::Kept, DocumentList::Removed].map(|list| {
            let text = listed(&told, kind, &keep, list);
            assert_eq!(text, listed(&again, kind, &keep, list), "{kind:?} {keep:?}: a fresh run");
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        });
        let id = |line: &Value, key: &str| DocId::new(line[key].as_str().unwrap()).unwrap();
        let went: Vec<_> =
            goes.iter().map(|line| (id(line, "id"), (id(line, "kept"), id(line, "cluster")))).collect();
        assert!(
            went.is_sorted() && went == expected.clone().into_iter().collect::<Vec<_>>(),
            "{kind:?} {keep:?}"
        );
        let kept: Vec<_> = stays.iter().map(|line| id(line, "id")).collect();
        let others = documents.keys().filter(|document| !expected.contains_key(*document));
        assert!(kept.iter().eq(others), "{kind:?} {keep:?}: who is not removed is kept");

        let kept: BTreeSet<_> = kept.into_iter().collect();
        let are_apart = kind == ClusterKind::Components || keep == KeepRule::Named;
        let both = pairs.iter().find(|pair| kept.contains(pair.lo()) && kept.contains(pair.hi()));
        assert!(!are_apart || both.is_none(), "{kind:?} {keep:?}: {both:?} are both kept");
        if kind == ClusterKind::Star && keep == KeepRule::Named {
            for (gone, (instead, _)) in &expected {
                let pair = Pair::new(gone.clone(), instead.clone()).unwrap();
                assert!(pairs.contains(&pair), "{gone} goes for {instead}, which it is in no pair with");
            }
        }
    }
}

#[test]
fn lists_are_those_of_a_fresh_run() {
    let plan = plan(CROWDED);
    check(60, (stamped(), sizes(), runs()), |(events, sizes, run)| {
        assert_lists(&plan, &cut(&events, &sizes, false), Retention::default(), run);
    });
}

#[test]
fn lists_know_of_documents_that_expire() {
    let plan = plan(CROWDED);
    check(60, (stamped(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
        let wall = retention.clock == RetentionClock::Wall;
        assert_lists(&plan, &cut(&events, &sizes, wall), retention, run);
    });
}
