//! Keep lists: after any history, the lists equal those of a fresh run on the surviving documents, and follow
//! the definitions applied to the present pairs.
//!
//! Bug classes: a list that depends on the order of arrival or on positions; a document in both lists or in
//! none; a cluster that keeps two documents, or none; a listed document that has ended; a large cluster that
//! is reported only by its size and so missing from the lists.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::config::Plan;
use dupflow::connectors::sinks::{DocumentList, KeepList, RemovalRule, Sink};
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters, KeepRule};
use dupflow::core::doc::fields::{FieldRow, FieldRule, FieldRules};
use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::doc::{DocId, Facts};
use dupflow::core::oracle;
use dupflow::core::pair::Pair;
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use proptest::collection::vec;
use serde_json::Value;

use crate::history::{check, runs, sizes};
use crate::pipelines::{CROWDED, plan};
use crate::retention::{advance, cut, pairs, rules, stamped};
use crate::script::{Epoched, Past, Run, Stamped, closed};

const KINDS: [ClusterKind; 2] = [ClusterKind::Components, ClusterKind::Star];

/// A written list. The limit is so low that most clusters are reported by their size elsewhere.
fn listed(told: &[ClosedEpoch], kind: ClusterKind, keep: &KeepRule, listed: DocumentList) -> String {
    let mut out = Vec::new();
    let sink = KeepList::new(
        &mut out,
        RemovalRule::Clusters(Box::new(Clusters::new(kind, 2)), keep.clone()),
        listed,
    );
    let mut sink = sink.with_fields(&held());
    assert!(sink.wants_documents());
    for closed in told {
        sink.documents(&closed.documents, false).unwrap();
        sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
    drop(sink);
    String::from_utf8(out).unwrap()
}

/// The fields of documents, of which a rule reads the second.
fn held() -> FieldRules {
    FieldRules::new(["other", "score"].map(|name| FieldRule::parse(name).unwrap()).into()).unwrap()
}

fn stages(plan: &Plan, retention: Retention) -> Stages {
    Stages { retention, emits_documents: true, fields: held(), ..dupflow::pipeline::stages(plan, false) }
}

/// By the definition: for each cluster of the pairs, the document that the rule selects; with the cluster.
fn removed(
    documents: &BTreeMap<DocId, Facts>,
    fields: impl Fn(&DocId) -> FieldRow,
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
        let value = |id: &DocId| fields(id).get(1).to_owned();
        let score = |id: &DocId| value(id).parse().ok().filter(|score: &f64| score.is_finite());
        let ts = |id: &DocId| of(id).ts.map_or((1, 0.0), |ts| (0, ts));
        let kept = match keep {
            KeepRule::Smallest => members.first().unwrap(),
            KeepRule::Named => &cluster,
            KeepRule::Oldest => members.iter().reduce(|a, b| if ts(b) < ts(a) { b } else { a }).unwrap(),
            KeepRule::Longest => {
                members.iter().reduce(|a, b| if of(b).bytes > of(a).bytes { b } else { a }).unwrap()
            }
            KeepRule::Max(_) => {
                members.iter().reduce(|a, b| if score(b) > score(a) { b } else { a }).unwrap()
            }
            KeepRule::Min(_) => {
                let is_less = |a: Option<f64>, b: Option<f64>| a.is_some() && (b.is_none() || a < b);
                members.iter().reduce(|a, b| if is_less(score(b), score(a)) { b } else { a }).unwrap()
            }
            KeepRule::Priority { values, .. } => {
                let named = values.iter().find_map(|one| members.iter().find(|id| value(id) == *one));
                named.unwrap_or(members.first().unwrap())
            }
            KeepRule::SourceOrder => panic!("a fresh run has other positions"),
        };
        let others = members.iter().filter(|id| *id != kept);
        removed.extend(others.map(|id| (id.clone(), (kept.clone(), cluster.clone()))));
    }
    removed
}

fn assert_lists(plan: &Plan, rules: &[KeepRule], epochs: &[Epoched], retention: Retention, run: Run) {
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

    for (kind, keep) in KINDS.into_iter().flat_map(|kind| rules.iter().map(move |keep| (kind, keep))) {
        let expected = removed(&documents, |id| last[id].fields.clone(), &pairs, kind, keep);
        let [stays, goes] = [DocumentList::Kept, DocumentList::Removed].map(|list| {
            let text = listed(&told, kind, keep, list);
            assert_eq!(text, listed(&again, kind, keep, list), "{kind:?} {keep:?}: a fresh run");
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
        let are_apart = kind == ClusterKind::Components || *keep == KeepRule::Named;
        let both = pairs.iter().find(|pair| kept.contains(pair.lo()) && kept.contains(pair.hi()));
        assert!(!are_apart || both.is_none(), "{kind:?} {keep:?}: {both:?} are both kept");
        if kind == ClusterKind::Star && *keep == KeepRule::Named {
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
        assert_lists(&plan, &KeepRule::ALL, &cut(&events, &sizes, false), Retention::default(), run);
    });
}

/// Many documents have equal numbers, written in several ways, or none.
#[test]
fn lists_by_a_field_are_those_of_a_fresh_run() {
    const SCORES: [&str; 8] = ["", "7", "7.0", "-3", "1e3", "x", "NaN", "0.5"];
    let plan = plan(CROWDED);
    let rules = ["max:score", "min:score", "priority:score:7>x>0.5"].map(|rule| rule.parse().unwrap());
    let scores = vec((0..SCORES.len(), 0u8..2), 120);
    check(60, (stamped(), scores, sizes(), runs()), |(mut events, scores, sizes, run)| {
        for (event, (score, other)) in events.iter_mut().zip(scores) {
            if event.text.is_some() {
                event.fields = FieldRow::new([&*other.to_string(), SCORES[score]]);
            }
        }
        assert_lists(&plan, &rules, &cut(&events, &sizes, false), Retention::default(), run);
    });
}

#[test]
fn lists_know_of_documents_that_expire() {
    let plan = plan(CROWDED);
    check(60, (stamped(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
        let wall = retention.clock == RetentionClock::Wall;
        assert_lists(&plan, &KeepRule::ALL, &cut(&events, &sizes, wall), retention, run);
    });
}
