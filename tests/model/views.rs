//! Views: after every epoch the accumulated rows are those that a recomputation from the live documents and
//! the present pairs gives.
//!
//! The recomputation groups and counts with maps, finds clusters by a search from each document, and sorts
//! whole groups for their first rows. Bug classes: a row that stays when its group is empty; a document that
//! changes its group and not its pairs; a top that loses the next row when one leaves it; a component that is
//! cut in two, or loses its smallest member; rows in another epoch than the deltas they follow from; a view
//! that differs by the number of workers or after a restart.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::core::doc::DocId;
use dupflow::core::doc::fields::{FieldRule, FieldRules};
use dupflow::core::hash::mix;
use dupflow::core::pair::Pair;
use dupflow::core::views::{Group, GroupPart, ViewKind, ViewMeasure, ViewPlan, ViewRow, size_class};
use dupflow::engine::dataflow::{ClosedEpoch, Stages};

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::pipelines::{CROWDED, plan};
use crate::script::{self, Epoched, Past, Run, Stamped};

/// Fields of documents in these tests: one that an id always has, and one that an event sets or leaves empty.
const FIELDS: [&str; 2] = ["host=prefix(id,\"/\",1)", "lang=day(ts)"];

#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn view(name: &str, kind: ViewKind, group: &[&str], measure: ViewMeasure) -> ViewPlan {
    let part = |name: &&str| match FIELDS.iter().position(|field| field.split('=').next() == Some(name)) {
        Some(at) => GroupPart::Field { name: (*name).into(), at },
        None => GroupPart::Size,
    };
    ViewPlan { name: name.into(), kind, group: group.iter().map(part).collect(), measure }
}

/// Every kind with every measure, with and without groups.
fn all_views() -> Vec<ViewPlan> {
    use ViewKind::{Clusters, Documents, Pairs};
    use ViewMeasure::{Count, Top};
    vec![
        view("pairs", Pairs, &[], Count),
        view("hosts", Pairs, &["host"], Count),
        view("both", Pairs, &["lang", "host"], Count),
        view("documents", Documents, &[], Count),
        view("languages", Documents, &["lang"], Count),
        view("copied", Documents, &[], Top(3)),
        view("first", Documents, &["host", "lang"], Top(1)),
        view("clusters", Clusters, &[], Count),
        view("sizes", Clusters, &["cluster.size"], Count),
        view("spread", Clusters, &["host"], Count),
        view("spread-sizes", Clusters, &["host", "cluster.size"], Count),
        view("largest", Clusters, &[], Top(2)),
        view("largest-of", Clusters, &["cluster.size", "lang"], Top(2)),
    ]
}

/// The id behind its host, which follows from its first byte.
fn with_host((id, text): &Event) -> Event {
    let id = format!("h{}/{}", id.as_bytes()[0] % 3, id.as_str());
    (DocId::new(&id).unwrap(), text.clone())
}

/// The time of an event, and what its document's field is after it: one of two days, or empty.
fn lang(event: usize) -> (Option<f64>, &'static str) {
    match mix(event as u64) % 4 {
        0 => (None, ""),
        1 | 2 => (Some(0.0), "1970-01-01"),
        _ => (Some(86_400.0), "1970-01-02"),
    }
}

/// The live documents with the values of their fields.
type Live = BTreeMap<DocId, Vec<String>>;

/// The smallest member of each document's component, by a search from each document.
fn clusters(pairs: &BTreeSet<Pair<DocId>>) -> BTreeMap<DocId, BTreeSet<DocId>> {
    let mut neighbours: BTreeMap<&DocId, Vec<&DocId>> = BTreeMap::new();
    for pair in pairs {
        neighbours.entry(pair.lo()).or_default().push(pair.hi());
        neighbours.entry(pair.hi()).or_default().push(pair.lo());
    }
    let mut clusters = BTreeMap::new();
    for start in neighbours.keys() {
        let mut members = BTreeSet::from([*start]);
        let mut rest = vec![*start];
        while let Some(next) = rest.pop() {
            rest.extend(neighbours[next].iter().filter(|other| members.insert(other)));
        }
        let smallest = (*members.first().unwrap()).clone();
        clusters.insert(smallest, members.into_iter().cloned().collect());
    }
    clusters
}

/// The rows that a view of this place has.
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn expected(at: u16, view: &ViewPlan, alive: &Live, pairs: &BTreeSet<Pair<DocId>>) -> BTreeSet<ViewRow> {
    let group = |id: &DocId, size: Option<u64>| {
        let part = |part: &GroupPart| match part {
            GroupPart::Field { at, .. } => alive[id][*at].clone(),
            GroupPart::Size => size_class(size.unwrap()),
        };
        view.group.iter().map(part).collect::<Vec<String>>()
    };
    // Of each group its members, with what they are ranked by.
    let mut groups: BTreeMap<Vec<String>, BTreeMap<String, u64>> = BTreeMap::new();
    match view.kind {
        ViewKind::Pairs => {
            for pair in pairs {
                let mut ends = [pair.lo(), pair.hi()].map(|id| group(id, None));
                ends.sort();
                groups.entry(ends.concat()).or_default().insert(format!("{pair:?}"), 0);
            }
        }
        ViewKind::Documents => {
            for id in alive.keys() {
                let degree = pairs.iter().filter(|pair| [pair.lo(), pair.hi()].contains(&id)).count() as u64;
                if view.measure == ViewMeasure::Count || degree > 0 {
                    groups.entry(group(id, None)).or_default().insert(id.as_str().to_owned(), degree);
                }
            }
        }
        ViewKind::Clusters => {
            for (cluster, members) in clusters(pairs) {
                let size = members.len() as u64;
                for member in &members {
                    let group = group(member, Some(size));
                    groups.entry(group).or_default().insert(cluster.as_str().to_owned(), size);
                }
            }
        }
    }
    let mut rows = BTreeSet::new();
    for (group, members) in groups {
        let row =
            |id, value| ViewRow { view: at, group: Group::new(group.iter().map(String::as_str)), id, value };
        match view.measure {
            ViewMeasure::Count => drop(rows.insert(row(None, members.len() as u64))),
            ViewMeasure::Top(most) => {
                let mut ranked: Vec<_> = members.into_iter().collect();
                ranked.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
                rows.extend(ranked.into_iter().take(most).map(|(id, n)| row(DocId::new(&id), n)));
            }
        }
    }
    rows
}

/// What the epochs of a run accumulate to.
#[derive(Default)]
struct Accumulated {
    pairs: BTreeSet<Pair<DocId>>,
    rows: BTreeSet<ViewRow>,
}

impl Accumulated {
    fn advance(&mut self, closed: &ClosedEpoch) {
        for delta in &closed.deltas {
            let pair = delta.pair.pair.clone();
            // A pair whose similarity changes is removed and added.
            if delta.diff > 0 {
                self.pairs.insert(pair)
            } else {
                self.pairs.remove(&pair)
            };
        }
        assert!(closed.views.is_sorted(), "{:?}", closed.views);
        for delta in closed.views.iter().filter(|delta| delta.diff < 0) {
            assert!(delta.diff == -1 && self.rows.remove(&delta.row), "{delta:?}");
        }
        for delta in closed.views.iter().filter(|delta| delta.diff > 0) {
            assert!(delta.diff == 1 && self.rows.insert(delta.row.clone()), "{delta:?}");
        }
    }

    fn assert_right(&self, views: &[ViewPlan], alive: &Live, what: &str) {
        for (at, view) in (0..).zip(views) {
            let found: BTreeSet<_> = self.rows.iter().filter(|row| row.view == at).cloned().collect();
            let expected = expected(at, view, alive, &self.pairs);
            let wrong: Vec<_> = found.symmetric_difference(&expected).take(5).collect();
            assert!(wrong.is_empty(), "{what}, view {}: {wrong:?} …", view.name);
        }
    }
}

/// The epochs with the times of their events, the first of which has this number.
fn epoched(epochs: &[Vec<Event>], mut event: usize) -> Vec<Epoched> {
    let mut stamped = |(id, text): &Event| {
        event += 1;
        Stamped {
            id: id.clone(),
            text: text.clone(),
            ts: lang(event - 1).0,
            written: None,
            fields: Default::default(),
        }
    };
    epochs
        .iter()
        .map(|epoch| Epoched { events: epoch.iter().map(&mut stamped).collect(), at: None })
        .collect()
}

/// Applies an epoch to the live documents.
fn apply(alive: &mut Live, epoch: &[Event], event: &mut usize) {
    for (id, text) in epoch {
        if text.is_some() {
            let host = id.as_str().split('/').next().unwrap().to_owned();
            alive.insert(id.clone(), vec![host, lang(*event).1.to_owned()]);
        } else {
            alive.remove(id);
        }
        *event += 1;
    }
}

/// Runs a history, ends after some of its epochs, goes on from what is kept, and compares after each epoch.
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn assert_views(stages: &Stages, epochs: &[Vec<Event>], restart: usize, run: Run) {
    let stages = Stages { keeps: true, ..stages.clone() };
    let (before, after) = epochs.split_at(restart.min(epochs.len()));
    let (mut alive, mut sum, mut event) = (Live::new(), Accumulated::default(), 0);
    let mut past = Past::default();
    let closed = script::closed(&stages, &epoched(before, 0), &Past::default(), run);
    let mut closed = closed.iter();
    for (epoch, events) in (1..).zip(before) {
        apply(&mut alive, events, &mut event);
        // A last epoch without effect may not be reported.
        if let Some(closed) = closed.next() {
            sum.advance(closed);
            for (id, value) in closed.kept.iter().flat_map(|changes| changes.iter()) {
                match value {
                    Some(value) => drop(past.kept.insert(id.to_vec(), value.to_vec())),
                    None => drop(past.kept.remove(id)),
                }
            }
        }
        sum.assert_right(&stages.views, &alive, &format!("after epoch {epoch}, {run:?}"));
    }
    past.epochs = before.len() as u64;
    past.events = before.iter().map(|epoch| epoch.len() as u64).sum();
    let restored = usize::from(!past.kept.is_empty());
    let before = sum;
    let mut sum = Accumulated::default();
    let closed = script::closed(&stages, &epoched(after, event), &past, run);
    if let Some(closed) = closed.first().filter(|_| restored > 0) {
        sum.advance(closed);
        assert_eq!((&sum.rows, &sum.pairs), (&before.rows, &before.pairs), "restored, {run:?}");
    }
    let mut closed = closed.iter().skip(restored);
    for (epoch, events) in (1..).zip(after) {
        apply(&mut alive, events, &mut event);
        if let Some(closed) = closed.next() {
            sum.advance(closed);
        }
        sum.assert_right(&stages.views, &alive, &format!("after epoch {epoch} of the restart, {run:?}"));
    }
}

fn stages(settings: &str) -> Stages {
    let fields = FieldRules::new(FIELDS.map(|field| FieldRule::parse(field).unwrap()).to_vec()).unwrap();
    Stages { views: all_views().into(), fields, ..dupflow::pipeline::stages(&plan(settings), false) }
}

#[test]
fn rows_are_those_of_the_corpus_after_every_epoch_and_restart() {
    // With `CROWDED` blocks become hot and groups of copies stars.
    for settings in [CROWDED, "sketch = { size = 64 }\nblocking = { bands = 32, rows = 2 }"] {
        let stages = stages(settings);
        check(30, (events(0..120), sizes(), runs(), 0usize..20), |(events, sizes, run, restart)| {
            let events: Vec<_> = events.iter().map(with_host).collect();
            assert_views(&stages, &cut(&events, &sizes), restart, run);
        });
    }
}

/// One view at a time: each builds only what it needs.
#[test]
fn each_view_alone_is_right() {
    let all = all_views();
    let stages = stages(CROWDED);
    let one = (0..all.len(), events(0..80), sizes(), runs());
    check(60, one, |(at, events, sizes, run)| {
        let stages = Stages { views: [all[at].clone()].into(), ..stages.clone() };
        let events: Vec<_> = events.iter().map(with_host).collect();
        assert_views(&stages, &cut(&events, &sizes), 3, run);
    });
}

/// Many documents in one group, so that the first rows are found over several buckets.
#[test]
fn the_first_rows_of_many_are_right() {
    let stages = stages(CROWDED);
    let views = [
        view("copied", ViewKind::Documents, &[], ViewMeasure::Top(5)),
        view("of-host", ViewKind::Documents, &["host"], ViewMeasure::Top(40)),
    ];
    let stages = Stages { views: views.into(), expand_limit: 100, ..stages };
    let event = |n: usize, text: Option<usize>| {
        let id = DocId::new(&format!("h{}/{n}", n % 2)).unwrap();
        (id, text.map(|text| format!("page {text} of a few words {text} {text}")))
    };
    let inserts: Vec<_> = (0..300).map(|n| event(n, Some(n * n / 500))).collect();
    let deletes: Vec<_> = (0..300).step_by(3).map(|n| event(n, None)).collect();
    for workers in [1, 3] {
        let run = Run { workers, serialized: true, seed: 5 };
        assert_views(&stages, &[inserts.clone(), deletes.clone(), inserts[..50].to_vec()], 2, run);
    }
}
