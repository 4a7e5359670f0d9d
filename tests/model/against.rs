//! The law for a corpus that is compared with a reference (`--against`): after every epoch the accumulated
//! deltas are the pairs by definition of which at least one document is no document of the reference, and the
//! lists at the end are those of the definition.
//!
//! Bug classes: two documents of the reference that are compared, or copies that are paired; an id that is on
//! both sides and counts as one document; a document of the reference that is removed; a removed document
//! whose cluster has a match that is not named; a side that depends on workers or epochs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::connectors::sinks::{DocumentList, KeepList, RemovalRule, Sink};
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters, KeepRule};
use dupflow::core::doc::DocId;
use dupflow::core::hash::SketchId;
use dupflow::core::oracle;
use dupflow::core::pair::{DocPair, Pair};
use dupflow::core::run::origins::Origins;
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use proptest::prelude::*;
use serde_json::Value;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::{Accumulated, assert_same};
use crate::pipelines::{CROWDED, plan};
use crate::script::{self, Epoched, Past, Run, Stamped, closed};

/// Stages that take the first `end` events for those of the reference.
pub(crate) fn stages(plan: &Plan, end: u64) -> Stages {
    let mut plan = plan.clone();
    plan.scheme.pairs = plan.scheme.pairs.with_reference();
    let origins = Origins::default().with_reference();
    origins.end_reference(end);
    let mut stages = dupflow::pipeline::stages(&plan, false);
    stages.observers.origins = Some(Arc::new(origins));
    stages.emits_documents = true;
    stages
}

/// The live documents of both sides.
struct Sides {
    maker: SketchMaker,
    sketches: BTreeMap<DocId, (SketchId, Sketch)>,
    /// Bytes of their texts, also of those without a token.
    bytes: BTreeMap<DocId, usize>,
}

impl Sides {
    fn apply(&mut self, stages: &Stages, is_old: bool, (id, text): &Event) {
        let id = if is_old { id.clone().in_reference() } else { id.clone().beside_reference() };
        self.sketches.remove(&id);
        self.bytes.remove(&id);
        let Some(text) = text else { return };
        self.bytes.insert(id.clone(), text.len());
        let hashes = stages.scheme.pairs.hashes_of(|_| "", is_old);
        if let Some(sketched) = self.maker.sketch_with(text, &hashes) {
            self.sketches.insert(id, sketched);
        }
    }

    /// The pairs that a run has.
    fn pairs(&self, stages: &Stages) -> BTreeSet<DocPair> {
        let pairs = oracle::exact(&self.sketches, &*stages.blocking, &*stages.filter, stages.expand_limit)
            .into_iter();
        let are_old = |pair: &Pair<DocId>| pair.lo().is_of_reference() && pair.hi().is_of_reference();
        pairs.filter(|found| !are_old(&found.pair)).collect()
    }

    /// The documents to remove: for each the kept one, its cluster and whether the kept one is old.
    fn removed(&self, stages: &Stages, keep: &KeepRule) -> BTreeMap<String, (String, String, bool)> {
        let pairs: BTreeSet<_> = self.pairs(stages).into_iter().map(|found| found.pair).collect();
        let mut clusters: BTreeMap<DocId, Vec<DocId>> = BTreeMap::new();
        for report in oracle::clusters(&pairs, ClusterKind::Components, usize::MAX) {
            let ClusterReport::Member { cluster, document } = report else { panic!("no limit") };
            clusters.entry(cluster).or_default().push(document);
        }
        let mut removed = BTreeMap::new();
        for (cluster, members) in clusters {
            let (old, new): (Vec<_>, Vec<_>) = members.iter().partition(|id| id.is_of_reference());
            let mut stay = if old.is_empty() { new.clone() } else { old };
            stay.sort_by_key(|id| match keep {
                KeepRule::Longest => (usize::MAX - self.bytes[*id], (*id).clone()),
                _ => (0, (*id).clone()),
            });
            let kept = stay[0];
            let is_old = kept.is_of_reference();
            for id in new.into_iter().filter(|id| *id != kept) {
                let [id, kept, cluster] = [id, kept, &cluster].map(|id| id.without_side().to_owned());
                removed.insert(id, (kept, cluster, is_old));
            }
        }
        removed
    }
}

/// The rows of a list.
fn listed(told: &[ClosedEpoch], keep: &KeepRule, list: DocumentList) -> Vec<Value> {
    let mut out = Vec::new();
    let rule = RemovalRule::Clusters(Box::new(Clusters::new(ClusterKind::Components, 2)), keep.clone());
    let mut sink = KeepList::new(&mut out, rule, list).with_reference(true);
    for closed in told {
        sink.documents(&closed.documents, false).unwrap();
        sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
    drop(sink);
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Epochs of events without times.
pub(crate) fn undated(epochs: &[Vec<Event>]) -> Vec<Epoched> {
    let stamped = |(id, text): &Event| Stamped::new(id.clone(), text.clone(), None);
    epochs.iter().map(|epoch| Epoched { events: epoch.iter().map(stamped).collect(), at: None }).collect()
}

fn assert_law(plan: &Plan, epochs: &[Vec<Event>], end: u64, run: Run) {
    let stages = stages(plan, end);
    let told = closed(&stages, &undated(epochs), &Past::default(), run);
    let mut found = Accumulated::new(told.iter().cloned().flat_map(script::deltas_of).collect());
    let mut sides =
        Sides { maker: SketchMaker::new(&stages.scheme), sketches: BTreeMap::new(), bytes: BTreeMap::new() };
    let mut position = 0;
    for (epoch, events) in (1..).zip(epochs) {
        for event in events {
            sides.apply(&stages, position < end, event);
            position += 1;
        }
        found.advance(epoch);
        assert_same(&found.pairs, &sides.pairs(&stages), epoch, run);
    }
    found.end();
    for keep in [KeepRule::Smallest, KeepRule::Longest] {
        let expected = sides.removed(&stages, &keep);
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let removed = listed(&told, &keep, DocumentList::Removed);
        let of = |row: &Value| {
            (text(row, "id"), (text(row, "kept"), text(row, "cluster"), row["old"].as_bool().unwrap()))
        };
        assert_eq!(removed.len(), expected.len(), "{keep}: {removed:?}");
        assert_eq!(removed.iter().map(of).collect::<BTreeMap<_, _>>(), expected, "{keep}, {run:?}");
        let kept: BTreeSet<_> =
            listed(&told, &keep, DocumentList::Kept).iter().map(|row| text(row, "id")).collect();
        let new =
            sides.bytes.keys().filter(|id| !id.is_of_reference()).map(|id| id.without_side().to_owned());
        let stays: BTreeSet<_> = new.filter(|id| !expected.contains_key(id)).collect();
        assert_eq!(kept, stays, "{keep}, {run:?}");
    }
}

#[test]
fn documents_of_a_reference_pair_with_others_alone() {
    for settings in [
        CROWDED,
        "sketch = { size = 64, bits = 8 }\nblocking = { kind = \"scan\" }",
        "sketch = { kind = \"oph\", size = 64, bits = 8 }\nfilter = { verify = \"exact\" }",
        "sketch = { kind = \"simhash\", size = 64 }\nblocking = { kind = \"scan\" }",
        "measure = \"containment\"\nsketch = { kind = \"scaled\", scale = 3, least = 2 }\n\
         blocking = { kind = \"shingles\", cap = 3, leaders = 1, leaders_by = \"size\" }\n\
         filter = { kind = \"full\", verify = \"exact\" }",
    ] {
        let plan = plan(settings);
        let inputs = (events(0..120), sizes(), runs(), any::<prop::sample::Index>());
        check(60, inputs, |(events, sizes, run, at)| {
            let end = at.index(events.len() + 1) as u64;
            assert_law(&plan, &cut(&events, &sizes), end, run);
        });
    }
}
