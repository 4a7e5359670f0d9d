//! The law with a rule on fields (`pairs.where`), and the fields that changes of documents carry.
//!
//! After every epoch the accumulated deltas are the pairs of the live documents that the rule allows, and the
//! changes of documents add up to their fields. One reference is the oracle on sketches with fields; the
//! other one knows no rule: where all sketches meet, it is the pairs without a rule of which the values are
//! compared as texts.
//!
//! Bug classes: an update of a field alone that keeps the old pairs, or ends a pair without a field's part in
//! it; values that a restart, an expiry, a move between workers or a new table of document frequencies loses;
//! a pair of copies that the rule forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::core::block::{BlockKey, Blocking, HotRule, NearRule};
use dupflow::core::doc::fields::{FieldRow, FieldRule, FieldRules};
use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::doc::{DocId, Position};
use dupflow::core::oracle;
use dupflow::core::pair::{DocPair, Pair};
use dupflow::core::run::metrics::Counter;
use dupflow::core::sketch::{Scheme, SketchMaker, SketchRef};
use dupflow::core::time::LiveFrom;
use dupflow::engine::dataflow::{ClosedEpoch, Stages};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::history::{check, runs, sizes};
use crate::law::{Accumulated, assert_same};
use crate::live::{self, LIVE};
use crate::pipelines::{CROWDED, plan};
use crate::retention::{all_alive, cut, rules, stamped};
use crate::script::{self, Epoched, Past, Run, Stamped, closed};

const HOSTS: [&str; 4] = ["", "a.org", "b.org", "c.org"];
const LANGS: [&str; 3] = ["", "de", "日本語"];

const WHERE: [&str; 4] = [
    "a.host != b.host",
    "a.lang == b.lang",
    "a.host != b.host and a.lang == b.lang",
    "a.lang == b.lang and b.host == a.host",
];

/// Events with times, each with a host, a language and a value that no rule names.
fn with_fields() -> impl Strategy<Value = Vec<Stamped>> {
    (stamped(), vec((0..HOSTS.len(), 0..LANGS.len(), 0u8..2), 120)).prop_map(|(events, values)| {
        let with = |(event, (host, lang, other)): (Stamped, (usize, usize, u8))| {
            let other = other.to_string();
            let fields = event.text.as_ref().map(|_| FieldRow::new([&other, HOSTS[host], LANGS[lang]]));
            Stamped { fields: fields.unwrap_or_default(), ..event }
        };
        events.into_iter().zip(values).map(with).collect()
    })
}

fn ruled(settings: &str, rule: &str) -> Plan {
    plan(&format!("{settings}\npairs = {{ where = \"{rule}\" }}"))
}

fn stages(plan: &Plan, retention: Retention) -> Stages {
    let rules = ["other", "host", "lang"].map(|name| FieldRule::parse(name).unwrap());
    let mut stages = dupflow::pipeline::stages(plan, false);
    stages.fields = FieldRules::new(rules.into()).unwrap();
    stages.retention = retention;
    stages.emits_documents = true;
    stages
}

/// The live documents: text and fields.
type Alive = BTreeMap<DocId, (String, FieldRow)>;

/// Those of a history after each of its epochs.
fn alive_after(epochs: &[Epoched], retention: &Retention) -> Vec<Alive> {
    let mut so_far: Vec<(Position, Stamped)> = Vec::new();
    let mut clock: Option<f64> = None;
    let mut after = Vec::new();
    for epoch in epochs {
        for event in &epoch.events {
            let offset = so_far.len() as u64;
            so_far.push((Position { partition: 0, offset }, event.clone()));
            clock = clock.into_iter().chain(event.ts).reduce(f64::max);
        }
        let alive = all_alive(&so_far, clock, retention).into_iter();
        let with_row = |(id, (text, facts)): (DocId, (String, dupflow::core::doc::Facts))| {
            let row = so_far[usize::try_from(facts.position.offset).unwrap()].1.fields.clone();
            (id, (text, row))
        };
        after.push(alive.map(with_row).collect());
    }
    after
}

/// D(C) with the rule.
fn pairs(stages: &Stages, scheme: &Scheme, alive: &Alive) -> BTreeSet<DocPair> {
    let mut maker = SketchMaker::new(scheme);
    let sketched = |(id, (text, row)): (&DocId, &(String, FieldRow))| {
        let hashes = scheme.pairs.hashes(|field| row.get(stages.fields.place(field).unwrap()));
        Some((id.clone(), maker.sketch_with(text, &hashes)?))
    };
    let sketches: BTreeMap<_, _> = alive.iter().filter_map(sketched).collect();
    oracle::exact(&sketches, &*stages.blocking, &*stages.filter, stages.expand_limit)
}

/// Adds the changes of an epoch to the fields of documents.
fn advance(documents: &mut BTreeMap<DocId, FieldRow>, closed: &ClosedEpoch) {
    for change in &closed.documents {
        match change.now {
            Some(_) => documents.insert(change.id.clone(), change.fields.clone()),
            None => {
                assert!(change.fields.is_empty());
                documents.remove(&change.id)
            }
        };
    }
}

fn accumulated(told: &[ClosedEpoch]) -> Accumulated {
    Accumulated::new(told.iter().cloned().flat_map(script::deltas_of).collect())
}

fn rows(alive: &Alive) -> BTreeMap<DocId, FieldRow> {
    alive.iter().map(|(id, (_, row))| (id.clone(), row.clone())).collect()
}

fn assert_law(stages: &Stages, epochs: &[Epoched], run: Run) {
    let told = closed(stages, epochs, &Past::default(), run);
    let mut found = accumulated(&told);
    let mut documents = BTreeMap::new();
    let mut live = stages.scheme.live().map(|_| live::Corpus::new(stages));
    for (epoch, alive) in (1..).zip(alive_after(epochs, &stages.retention)) {
        for closed in told.iter().filter(|closed| closed.progress.epoch == epoch) {
            advance(&mut documents, closed);
        }
        assert_eq!(documents, rows(&alive), "after epoch {epoch}, {run:?}");
        let scheme = live.as_mut().map_or_else(
            || stages.scheme.clone(),
            |corpus| {
                corpus.become_of(alive.iter().map(|(id, (text, _))| (id.clone(), text.clone())).collect());
                corpus.scheme()
            },
        );
        found.advance(epoch);
        assert_same(&found.pairs, &pairs(stages, &scheme, &alive), epoch, run);
    }
    found.end();
}

fn by_events(retention: Retention) -> Retention {
    Retention { clock: RetentionClock::Event, ..retention }
}

#[test]
fn rules_hold_in_crowded_blocks() {
    for rule in WHERE {
        let plan = ruled(CROWDED, rule);
        check(60, (with_fields(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
            assert_law(&stages(&plan, by_events(retention)), &cut(&events, &sizes, false), run);
        });
    }
}

/// A blocking that knows no rule.
#[derive(Debug)]
struct WithoutRealms(Arc<dyn Blocking>);

impl Blocking for WithoutRealms {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.0.keys(sketch, out);
    }

    fn tables(&self) -> usize {
        self.0.tables()
    }

    fn rule(&self, table: u16) -> HotRule {
        self.0.rule(table)
    }

    fn near(&self, table: u16) -> Option<NearRule> {
        self.0.near(table)
    }

    fn least(&self) -> usize {
        self.0.least()
    }
}

/// D(C) without a realm: of each list of values that are to be equal, the pairs of its documents alone, in
/// blocks that know no rule.
fn pairs_value_by_value(plan: &Plan, stages: &Stages, alive: &Alive) -> BTreeSet<DocPair> {
    let mut maker = SketchMaker::new(&plan.scheme);
    let blocking = WithoutRealms(plan.blocking());
    let mut by_values: BTreeMap<Vec<&str>, BTreeMap<DocId, _>> = BTreeMap::new();
    for (id, (text, row)) in alive {
        let value = |field: &str| row.get(stages.fields.place(field).unwrap());
        let hashes = plan.scheme.pairs.hashes(value);
        let values = plan.scheme.pairs.equal_fields().map(value).collect();
        if let Some(sketched) = maker.sketch_with(text, &hashes) {
            by_values.entry(values).or_default().insert(id.clone(), sketched);
        }
    }
    by_values
        .values()
        .flat_map(|corpus| oracle::exact(corpus, &blocking, &*stages.filter, stages.expand_limit))
        .collect()
}

/// Every kind of blocks, few sketches in a block: at the end, which sketches meet depends on no document with
/// other values. Half of all runs are under a memory budget, by their seeds.
#[test]
fn a_block_counts_those_that_may_meet() {
    let small = "sketch = { size = 64, bits = 1 }\nblocking = ";
    let kinds = [
        "{ bands = 8, rows = 2, cap = 2 }",
        "{ bands = 8, rows = 1, cap = 5, leaders = 1 }",
        "{ bands = 8, rows = 2, cap = 3, hot = \"skip\" }",
        "{ bands = 8, rows = 2, hot = \"never\" }",
        "{ kind = \"groups\", distance = 20, common = 4 }",
        "{ kind = \"groups\", distance = 12, common = 2, cap = 3, hot = \"leaders\" }",
        "{ kind = \"conjunctions\", distance = 4, common = 2, cap = 2, hot = \"leaders\" }",
        "{ kind = \"permuted\", distance = 3, tables = 4 }",
        "{ kind = \"multi-index\", distance = 3, tables = 2, cap = 2, hot = \"leaders\" }",
        "{ bands = 8, rows = 2, cap = 3, also = { kind = \"permuted\", distance = 2, tables = 3 } }",
    ];
    let contained = "text = { shingle = \"words:2\" }\nmeasure = \"containment\"\n\
        filter = { kind = \"full\", verify = \"exact\" }\n\
        sketch = { kind = \"scaled\", scale = 2, least = 60 }\n\
        blocking = { kind = \"shingles\", cap = 3, leaders = 1, leaders_by = \"size\" }";
    for settings in kinds.map(|kind| format!("{small}{kind}")).into_iter().chain([contained.to_owned()]) {
        for rule in &WHERE[1..] {
            let plan = ruled(&settings, rule);
            check(20, (with_fields(), sizes(), runs()), |(events, sizes, run)| {
                let (epochs, all) = (cut(&events, &sizes, false), Retention::default());
                let stages = stages(&plan, all);
                let mut found = accumulated(&closed(&stages, &epochs, &Past::default(), run));
                (1..).zip(&epochs).for_each(|(epoch, _)| found.advance(epoch));
                let alive = alive_after(&epochs, &all).pop().unwrap_or_default();
                let expected = pairs_value_by_value(&plan, &stages, &alive);
                assert_same(&found.end(), &expected, epochs.len() as u64, run);
                assert_eq!(expected, pairs(&stages, &stages.scheme, &alive), "both oracles");
            });
        }
    }
}

#[test]
fn rules_hold_with_other_sketches() {
    for settings in [
        "sketch = { size = 64, bits = 1 }\nfilter = { verify = \"exact\" }\n\
        blocking = { kind = \"shingles\" }",
        "sketch = { kind = \"oph\", size = 64, bits = 8 }\nfilter = { verify = \"exact\" }",
        "sketch = { kind = \"simhash\", size = 64 }\nblocking = { kind = \"scan\" }",
        "sketch = { kind = \"odd\", size = 64 }\nblocking = { kind = \"scan\" }",
    ] {
        let plan = ruled(settings, WHERE[2]);
        check(30, (with_fields(), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&stages(&plan, Retention::default()), &cut(&events, &sizes, false), run);
        });
    }
}

#[test]
fn rules_hold_under_live_weights() {
    for rule in [WHERE[0], WHERE[1]] {
        let plan = ruled(LIVE, rule);
        check(60, (with_fields(), rules(), sizes(), runs()), |(events, retention, sizes, run)| {
            assert_law(&stages(&plan, by_events(retention)), &cut(&events, &sizes, false), run);
        });
    }
}

/// The pairs without a rule, of which the values are compared as texts.
#[test]
fn the_rule_takes_pairs_away_and_adds_none() {
    const ALL_MEET: &str = "sketch = { size = 64, bits = 8 }\nblocking = { kind = \"scan\" }";
    let unlimited = |mut plan: Plan| {
        plan.expand_limit = 1000;
        plan
    };
    for rule in WHERE {
        let (with, without) = (unlimited(ruled(ALL_MEET, rule)), unlimited(plan(ALL_MEET)));
        let allows = |a: &FieldRow, b: &FieldRow| {
            let [host, lang] = [1, 2].map(|place| a.get(place) == b.get(place));
            match rule {
                "a.host != b.host" => !host,
                "a.lang == b.lang" => lang,
                "a.host != b.host and a.lang == b.lang" => !host && lang,
                _ => host && lang,
            }
        };
        check(60, (with_fields(), sizes(), runs()), |(events, sizes, run)| {
            let epochs = cut(&events, &sizes, false);
            let mut found =
                accumulated(&closed(&stages(&with, Retention::default()), &epochs, &Past::default(), run));
            let mut all =
                accumulated(&closed(&stages(&without, Retention::default()), &epochs, &Past::default(), run));
            for (epoch, alive) in (1..).zip(alive_after(&epochs, &Retention::default())) {
                found.advance(epoch);
                all.advance(epoch);
                let row = |id: &DocId| &alive[id].1;
                let is_allowed = |of: &Pair<DocId>| allows(row(of.lo()), row(of.hi()));
                let expected = all.pairs.iter().filter(|doc| is_allowed(&doc.pair)).cloned().collect();
                assert_same(&found.pairs, &expected, epoch, run);
            }
        });
    }
}

/// What is kept of the first epochs restores the same documents with their fields.
#[test]
fn a_restart_from_what_was_kept_does_not_show() {
    let inputs = (with_fields(), rules(), sizes(), runs(), any::<prop::sample::Index>(), 0..WHERE.len());
    check(150, inputs, |(events, retention, sizes, run, at, rule)| {
        let (plan, retention) = (ruled(CROWDED, WHERE[rule]), by_events(retention));
        let epochs = cut(&events, &sizes, false);
        if epochs.is_empty() {
            return;
        }
        let (first, second) = epochs.split_at(at.index(epochs.len()));
        let mut before = stages(&plan, retention);
        before.keeps = true;
        let told = closed(&before, first, &Past::default(), run);
        let mut past = Past {
            epochs: first.len() as u64,
            events: first.iter().map(|epoch| epoch.events.len() as u64).sum(),
            ..Past::default()
        };
        for changes in told.iter().flat_map(|closed| &closed.kept) {
            for (id, value) in changes.iter() {
                match value {
                    Some(value) => drop(past.kept.insert(id.to_vec(), value.to_vec())),
                    None => drop(past.kept.remove(id)),
                }
            }
        }
        let mut after = stages(&plan, retention);
        after.start.past.clock = told.last().and_then(|closed| closed.progress.clock);
        after.start.past.epoch = past.epochs;
        let restores = u64::from(!past.kept.is_empty());
        after.start.live = Arc::new(LiveFrom::default());
        after.start.live.set(past.epochs + restores + 1);
        let again = closed(&after, second, &past, run);
        let mut documents = BTreeMap::new();
        let mut found = accumulated(&again);
        for epoch in past.epochs + 1..=epochs.len() as u64 + restores {
            found.advance(epoch);
        }
        again.iter().for_each(|closed| advance(&mut documents, closed));
        let alive = alive_after(&epochs, &retention).pop().unwrap();
        let is_read = !second.is_empty();
        let alive = if is_read { alive } else { alive_after(first, &retention).pop().unwrap_or_default() };
        assert_eq!(documents, rows(&alive));
        assert_eq!(found.end(), pairs(&after, &after.scheme, &alive), "{run:?}");
    });
}

/// An upsert that changes a field alone: it changes the document, and the pairs if the rule names the field.
#[test]
fn a_field_alone_is_a_change() {
    let text = "one two three four five six seven eight nine ten";
    let event = |id: &str, host: &str, other: &str| Stamped {
        id: DocId::new(id).unwrap(),
        text: Some(text.to_owned()),
        ts: None,
        written: None,
        fields: FieldRow::new([other, host, "de"]),
    };
    let epochs = [
        vec![event("x", "a.org", "1"), event("y", "b.org", "1")],
        vec![event("y", "a.org", "1")],
        vec![event("y", "b.org", "1")],
        vec![event("y", "b.org", "2")],
        vec![event("y", "b.org", "2")],
    ];
    let epochs = epochs.map(|events| Epoched { events, at: None });
    for settings in ["", LIVE] {
        let age = Retention { max_age: Some(Duration::from_secs(9)), ..Retention::default() };
        let stages = stages(&ruled(settings, "a.host != b.host"), age);
        let run = Run { workers: 2, serialized: true, seed: 3 };
        let told = closed(&stages, &epochs, &Past::default(), run);
        let diffs = |closed: &ClosedEpoch| closed.deltas.iter().map(|delta| delta.diff).collect::<Vec<_>>();
        let expected = [vec![1], vec![-1], vec![1], vec![], vec![]];
        assert_eq!(told.iter().map(diffs).collect::<Vec<_>>(), expected, "{settings}");
        let others = told.iter().map(|closed| closed.documents.last().unwrap().fields.get(0).to_owned());
        assert_eq!(others.collect::<Vec<_>>(), ["1", "1", "1", "2", "2"]);
        assert_eq!(stages.observers.metrics.get(Counter::Unchanged), 1, "only the last one repeats");
        assert_eq!(stages.observers.metrics.get(Counter::RejectedByWhere), 0, "copies are not compared");
    }
}
