//! Units of documents: after any history, the pairs of units are those of the units of the present texts, and
//! the list of units to remove is that of a fresh run, and follows its definition.
//!
//! Bug classes: a unit of an old text that stays, or a unit of both texts that ends; copies of a paragraph in
//! one document that are taken for one; a place that is not that of the last text; a list that depends on the
//! order of arrival, on the cut into epochs or on the workers.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dupflow::config::Plan;
use dupflow::connectors::sinks::{JsonLines, Sink, UnitList};
use dupflow::core::cluster::{ClusterKind, ClusterReport, Clusters, KeepRule};
use dupflow::core::doc::DocId;
use dupflow::core::doc::fields::FieldRules;
use dupflow::core::doc::units::{UnitSpan, units};
use dupflow::core::hash::SketchId;
use dupflow::core::oracle;
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::history::{check, ids, runs, sizes, tested};
use crate::law::{Accumulated, assert_same};
use crate::pipelines::CROWDED;
use crate::retention::{advance, cut};
use crate::script::{Epoched, Past, Run, Stamped, closed, deltas_of};

/// A few paragraphs of few kinds, which may be edited, too short or blank; or no text.
fn text() -> impl Strategy<Value = Option<String>> {
    let paragraph = (0_u32..5, 0_u32..4, 0_u32..8).prop_map(|(kind, edit, form)| {
        let words = (0..12).map(|n| format!("w{}", 100 * kind + if n < edit / 2 { 50 + n } else { n }));
        let words = words.collect::<Vec<_>>().join([" ", " ", "\n", ", "][form as usize % 4]);
        match form {
            6 => "short".to_owned(),
            7 => String::new(),
            _ => words,
        }
    });
    let joined = (vec(paragraph, 0..6), any::<bool>());
    let joined = joined.prop_map(|(all, is_dos)| all.join(if is_dos { "\r\n\r\n" } else { "\n\n" }));
    prop_oneof![6 => joined.prop_map(Some), 1 => Just(None)]
}

fn stamped() -> impl Strategy<Value = Vec<Stamped>> {
    vec((ids(), text(), 0_u32..20), 0..50).prop_map(|events| {
        let stamp = |(id, text, ts)| Stamped::new(id, text, Some(f64::from(ts)));
        events.into_iter().map(stamp).collect()
    })
}

fn stages(split: &str) -> Stages {
    let text = format!("threshold = 0.5\n{CROWDED}\ntext = {{ split = \"{split}\", split_least = 3 }}");
    let plan = Plan::parse("test", &text, Path::new(""), &[]).unwrap();
    Stages { emits_documents: true, ..dupflow::pipeline::stages(&plan, false) }
}

/// The live units by definition, with their documents and places.
#[derive(Default)]
struct Units {
    sketches: BTreeMap<DocId, (SketchId, Sketch)>,
    of: BTreeMap<DocId, (DocId, UnitSpan)>,
}

fn defined<'e>(texts: impl Iterator<Item = (&'e DocId, &'e str)>, stages: &Stages) -> Units {
    let (mut found, mut maker) = (Units::default(), SketchMaker::new(&stages.scheme));
    let rules = stages.scheme.units.unwrap();
    for (document, text) in texts {
        for unit in units(text, rules.split) {
            if maker.words(unit.text) < rules.least_words {
                continue;
            }
            let id = document.of_unit(unit.content, unit.occurrence);
            assert!(
                found.of.insert(id.clone(), (document.clone(), unit.span)).is_none(),
                "an id of two units"
            );
            found.sketches.extend(maker.sketch(unit.text).map(|sketched| (id, sketched)));
        }
    }
    found
}

fn listed(told: &[ClosedEpoch], keep: &KeepRule) -> String {
    let mut out = Vec::new();
    let clusters = Clusters::new(ClusterKind::Components, 2);
    let mut sink = UnitList::with_rows(JsonLines(&mut out), clusters, keep.clone(), &FieldRules::default());
    for closed in told {
        sink.documents(&closed.documents, false).unwrap();
        sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
    drop(sink);
    String::from_utf8(out).unwrap()
}

/// The rows without similarities, if of equals the one of the smallest document and place is kept.
fn expected(units: &Units, stages: &Stages) -> BTreeSet<String> {
    let pairs = oracle::exact(&units.sketches, &*stages.blocking, &*stages.filter, 1);
    let pairs: BTreeSet<_> = pairs.into_iter().map(|found| found.pair).collect();
    let mut clusters: BTreeMap<DocId, Vec<&(DocId, UnitSpan)>> = BTreeMap::new();
    for report in oracle::clusters(&pairs, ClusterKind::Components, usize::MAX) {
        let ClusterReport::Member { cluster, document } = report else { panic!("no cluster is that large") };
        clusters.entry(cluster).or_default().push(&units.of[&document]);
    }
    let rows = clusters.into_values().flat_map(|mut members| {
        members.sort_by_key(|(document, span)| (document, span.place));
        let (of, first) = members[0];
        let row = move |(document, span): &(DocId, UnitSpan)| {
            json!({ "document": document, "unit": span.place, "from": span.from, "to": span.to,
                    "of": { "document": of, "unit": first.place } })
        };
        members.into_iter().skip(1).map(move |member| row(member).to_string()).collect::<Vec<_>>()
    });
    rows.collect()
}

fn assert_units(split: &str, events: &[Stamped], sizes: &[usize], run: Run) -> usize {
    let stages = stages(split);
    let epochs = cut(events, sizes, false);
    let told = closed(&stages, &epochs, &Past::default(), run);
    let deltas = told.iter().cloned().flat_map(deltas_of).collect();
    let (mut accumulated, mut documents, mut last) =
        (Accumulated::new(deltas), BTreeMap::new(), BTreeMap::new());
    let mut found = Units::default();
    for (epoch, closed) in (1..).zip(&told) {
        let of_epoch = epochs.get(usize::try_from(epoch).unwrap() - 1).map_or(&[][..], |of| &of.events);
        last.extend(of_epoch.iter().map(|event| (&event.id, event)));
        let texts = last.iter().filter_map(|(id, event)| Some((*id, event.text.as_deref()?)));
        found = defined(texts, &stages);
        accumulated.advance(epoch);
        let pairs = oracle::exact(&found.sketches, &*stages.blocking, &*stages.filter, 1);
        assert_same(&accumulated.pairs, &pairs, epoch, run);
        let units: Vec<_> = closed.documents.iter().filter(|of| of.unit.is_some()).cloned().collect();
        advance(&mut documents, &units);
        assert!(documents.keys().eq(found.of.keys()), "the units after epoch {epoch}, {run:?}");
    }
    accumulated.end();

    // In the order of ids: by their order no rule selects.
    let survivors = last.values().filter(|event| event.text.is_some()).map(|event| (*event).clone());
    let fresh = [Epoched { events: survivors.rev().collect(), at: None }];
    let again = closed(&stages, &fresh, &Past::default(), run);
    for keep in KeepRule::ALL {
        assert_eq!(listed(&told, &keep), listed(&again, &keep), "{keep:?}: a fresh run");
    }
    let rows = listed(&told, &KeepRule::Smallest);
    let rows = rows.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row.as_object_mut().unwrap().remove("similarity").unwrap();
        row.to_string()
    });
    let rows: BTreeSet<String> = rows.collect();
    assert_eq!(rows, expected(&found, &stages));
    rows.len()
}

#[test]
fn units_are_those_of_the_last_texts() {
    let removed = Cell::new(0);
    for split in ["paragraph", "line"] {
        check(80, (stamped(), sizes(), runs()), |(events, sizes, run)| {
            removed.set(removed.get() + assert_units(split, &events, &sizes, run));
        });
    }
    assert!(removed.get() > 20 * tested(80) as usize, "{removed:?}");
}
