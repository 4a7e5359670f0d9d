//! The law of watch lists: after every epoch, the accumulated notices are the similar watches and documents
//! of the present list and the present corpus. And the pairs are those of a run without a list.
//!
//! The reference compares every watch with every document, by the same sketches, blocks and filter. Bug
//! classes: a watch and a document that begin or end in the same epoch; a sketch that loses its last watch
//! and gets another one; copies; a watch that is a copy; blocks that are hot; a new table of document
//! frequencies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::core::block::Blocking;
use dupflow::core::doc::DocId;
use dupflow::core::hash::{SketchId, mix};
use dupflow::core::pair::Similarity;
use dupflow::core::run::watch::{Notice, WatchChange, WatchMatch};
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::core::time::Epoch;
use dupflow::engine::dataflow::{BatchEnd, BatchRecord, ClosedEpoch, Intake, Pull, Stages};

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes, tested};
use crate::law::Corpus;
use crate::pipelines::{CROWDED, each_admitted, plan, shipped, small};
use crate::script::{self, Epoched, Past, Run, Stamped};
use crate::{live, script::deltas_of};

/// Changes of the list by epoch.
type ListHistory = Vec<Vec<WatchChange>>;

/// Events of watches as changes of the list: their ids are those of documents too.
fn list_history(events: &[Event], sizes: &[usize]) -> ListHistory {
    let mut number = 0;
    let mut change = |(id, text): &Event| {
        number += 1;
        WatchChange { number, id: id.clone(), text: text.as_deref().map(Arc::from) }
    };
    cut(events, sizes).iter().map(|epoch| epoch.iter().map(&mut change).collect()).collect()
}

/// An intake with the changes of the list among its batches.
struct WithWatches {
    inner: Box<dyn Intake>,
    changes: VecDeque<(Epoch, WatchChange)>,
    /// Whether the batch that was pulled is one change of the list.
    pulled: bool,
}

impl Intake for WithWatches {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let inner = self.inner.pull(limit);
        let Some((epoch, _)) = self.changes.front() else { return inner };
        match inner {
            Pull::Batch(other) if other < *epoch => inner,
            Pull::Idle(other) if other < *epoch => inner,
            _ if *epoch > limit => Pull::Idle(*epoch),
            _ => {
                self.pulled = true;
                Pull::Batch(*epoch)
            }
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        if !std::mem::take(&mut self.pulled) {
            return self.inner.read(each);
        }
        let (_, change) = self.changes.pop_front().unwrap();
        each(BatchRecord::Watched(&change));
        BatchEnd::default()
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.inner.wake_with(wake);
    }
}

/// The closed epochs of a history of the corpus and of the list, from what another run has kept.
fn closed(
    stages: &Stages,
    epochs: &[Vec<Event>],
    list: &ListHistory,
    past: &Past,
    run: Run,
) -> Vec<ClosedEpoch> {
    let stages = Stages { watches: true, ..stages.clone() };
    let stamped = |(id, text): &Event| Stamped {
        id: id.clone(),
        text: text.clone(),
        ts: None,
        written: None,
        fields: Default::default(),
    };
    let epochs: Vec<_> = (epochs.iter())
        .map(|epoch| Epoched { events: epoch.iter().map(stamped).collect(), at: None })
        .collect();
    let first = past.epochs + 1;
    let mut dealt = vec![VecDeque::new(); run.workers];
    for (epoch, changes) in (first..).zip(list) {
        // Any worker may read any change, in any order.
        for change in changes.iter().rev() {
            let worker = mix(run.seed ^ change.number) % run.workers as u64;
            dealt[usize::try_from(worker).unwrap()].push_back((epoch, change.clone()));
        }
    }
    let through = move |worker: usize, inner: Box<dyn Intake>| -> Box<dyn Intake> {
        Box::new(WithWatches { inner, changes: dealt[worker].clone(), pulled: false })
    };
    script::closed_through(&stages, &epochs, past, run, through)
}

/// The list, and what is similar in a corpus.
#[derive(Default)]
struct List(BTreeMap<DocId, Arc<str>>);

impl List {
    fn apply(&mut self, changes: &[WatchChange]) {
        for WatchChange { id, text, .. } in changes {
            match text {
                Some(text) => drop(self.0.insert(id.clone(), Arc::clone(text))),
                None => drop(self.0.remove(id)),
            }
        }
    }

    fn similar(
        &self,
        corpus: &BTreeMap<DocId, (SketchId, Sketch)>,
        maker: &mut SketchMaker,
        stages: &Stages,
    ) -> BTreeSet<WatchMatch> {
        let mut found = BTreeSet::new();
        for (watch, text) in &self.0 {
            let Some(sketched) = maker.sketch(text) else { continue };
            for (id, other) in corpus {
                if let Some(similarity) = similarity(&sketched, other, stages) {
                    found.insert(WatchMatch { watch: watch.clone(), id: id.clone(), similarity });
                }
            }
        }
        found
    }
}

/// The similarity of a and b, whose sketches are accepted, by definition.
fn similarity(
    (a_id, a): &(SketchId, Sketch),
    (b_id, b): &(SketchId, Sketch),
    stages: &Stages,
) -> Option<Similarity> {
    if a_id == b_id {
        return Some(Similarity::ONE);
    }
    let (lo, hi) = if a_id < b_id { (a, b) } else { (b, a) };
    let shared = shared_blocks(lo, hi, &*stages.blocking);
    if shared < stages.blocking.least() {
        return None;
    }
    let found = stages.filter.decide(lo.view(), hi.view()).accepted;
    found.map(|found| if a_id < b_id { found } else { found.flipped() })
}

/// The blocks in which two sketches meet if no block is hot.
fn shared_blocks(a: &Sketch, b: &Sketch, blocking: &dyn Blocking) -> usize {
    let keys = |sketch: &Sketch| {
        let mut keys = Vec::new();
        blocking.keys(sketch.view(), &mut keys);
        keys.into_iter().collect::<BTreeSet<_>>()
    };
    let near = |table| {
        blocking
            .near(table)
            .is_none_or(|near: dupflow::core::block::NearRule| near.meet(a.words[0], b.words[0]))
    };
    keys(a).intersection(&keys(b)).filter(|key| near(key.table)).count()
}

/// Adds the notices of an epoch, which keep every match at 0 or 1.
fn advance(accumulated: &mut BTreeSet<WatchMatch>, notices: &[Notice]) {
    assert!(notices.is_sorted_by_key(|notice| (&notice.of.watch, &notice.of.id, notice.diff)));
    for Notice { of, diff } in notices {
        let is_change = if *diff > 0 { accumulated.insert(of.clone()) } else { accumulated.remove(of) };
        assert!(is_change && diff.abs() == 1, "{of:?} {diff}");
    }
}

/// The law for one history; returns the number of notices.
fn assert_law(stages: &Stages, epochs: &[Vec<Event>], list: &ListHistory, run: Run) -> usize {
    let told = closed(stages, epochs, list, &Past::default(), run);
    let (mut corpus, mut watches, mut accumulated) = (Corpus::new(stages), List::default(), BTreeSet::new());
    let mut maker = SketchMaker::new(&stages.scheme);
    let mut notices = 0;
    for (at, of_epoch) in told.iter().enumerate() {
        corpus.apply(epochs.get(at).map_or(&[], |events| events));
        watches.apply(list.get(at).map_or(&[], |changes| changes));
        advance(&mut accumulated, &of_epoch.notices);
        notices += of_epoch.notices.len();
        let expected = watches.similar(&corpus.alive, &mut maker, stages);
        assert_eq!(accumulated, expected, "after epoch {}, {run:?}", at + 1);
    }
    let pairs: Vec<_> = told.into_iter().flat_map(deltas_of).collect();
    assert_eq!(pairs, script::deltas(stages, epochs, run), "a list changes no pair");
    notices
}

fn law(histories: u32, plan: &Plan) -> usize {
    let notices = std::cell::Cell::new(0);
    let lists = (events(0..40), sizes());
    check(histories, (events(0..120), sizes(), lists, runs()), |(events, sizes, (list, list_sizes), run)| {
        let stages = dupflow::pipeline::stages(plan, false);
        let list = list_history(&list, &list_sizes);
        notices.set(notices.get() + assert_law(&stages, &cut(&events, &sizes), &list, run));
    });
    notices.get()
}

#[test]
fn notices_equal_the_list_against_the_corpus() {
    let many = law(150, &plan(CROWDED));
    assert!(many > 50 * tested(150) as usize, "{many} notices");
    law(
        100,
        &plan(
            "sketch = { size = 64, bits = 4 }\nblocking = { recall = 0.9, cap = 3 }\n\
             filter = { verify = \"exact\" }",
        ),
    );
    law(
        100,
        &plan("sketch = { size = 64, bits = 1 }\nblocking = { bands = 4, rows = 1, cap = 8, leaders = 2 }"),
    );
}

#[test]
fn notices_of_every_sketch_with_every_blocking() {
    each_admitted(|plan| {
        law(5, plan);
    });
}

#[test]
fn notices_of_every_shipped_pipeline() {
    for name in shipped() {
        let plan = Plan::load(name, &small(name)).unwrap_or_else(|error| panic!("{error}"));
        if plan.scheme.live().is_none() {
            law(10, &plan);
        }
    }
}

/// Under live weights the sketches of watches follow the table in force too.
#[test]
fn notices_under_live_weights() {
    let lists = || (events(0..40), sizes());
    let shipped = Plan::load("weighted", &small("weighted")).unwrap();
    for (plan, histories) in [(plan(live::LIVE), 150), (shipped, 20)] {
        check(
            histories,
            (events(0..120), sizes(), lists(), runs()),
            |(events, sizes, (list, list_sizes), run)| {
                let stages = dupflow::pipeline::stages(&plan, false);
                let (epochs, list) = (cut(&events, &sizes), list_history(&list, &list_sizes));
                let told = closed(&stages, &epochs, &list, &Past::default(), run);
                let (mut corpus, mut watches) = (live::Corpus::new(&stages), List::default());
                let mut accumulated = BTreeSet::new();
                for (at, of_epoch) in told.iter().enumerate() {
                    corpus.apply(epochs.get(at).map_or(&[], |of_at| of_at));
                    watches.apply(list.get(at).map_or(&[], |changes| changes));
                    advance(&mut accumulated, &of_epoch.notices);
                    let mut maker = SketchMaker::new(&corpus.scheme());
                    let expected = watches.similar(&corpus.sketches(), &mut maker, &stages);
                    assert_eq!(accumulated, expected, "after epoch {}, {run:?}", at + 1);
                }
                let pairs: Vec<_> = told.into_iter().flat_map(deltas_of).collect();
                let without = dupflow::pipeline::stages(&plan, false);
                assert_eq!(pairs, script::deltas(&without, &epochs, run), "a list changes no table");
            },
        );
    }
}

/// A restart restores the documents and gives the list anew: its notices are those of the list against the
/// corpus at once, whatever the runs before have noticed.
#[test]
fn a_restart_gives_the_notices_of_the_restored_corpus() {
    let plan = plan(CROWDED);
    let lists = (events(1..40), sizes());
    check(60, (events(1..120), sizes(), lists, runs()), |(events, sizes, (list, list_sizes), run)| {
        let keeping = Stages { keeps: true, ..dupflow::pipeline::stages(&plan, false) };
        let (epochs, list) = (cut(&events, &sizes), list_history(&list, &list_sizes));
        let half = epochs.len() / 2;
        let mut past = Past::default();
        for told in closed(&keeping, &epochs[..half], &Vec::new(), &past, run) {
            past.epochs = told.progress.epoch;
            for (id, value) in told.kept.iter().flat_map(|changes| changes.iter()) {
                match value {
                    Some(value) => drop(past.kept.insert(id.to_vec(), value.to_vec())),
                    None => drop(past.kept.remove(id)),
                }
            }
        }
        past.events = epochs[..half].iter().map(|epoch| epoch.len() as u64).sum();
        let whole: Vec<WatchChange> = list.into_iter().flatten().collect();
        let stages = dupflow::pipeline::stages(&plan, false);
        let told = closed(&stages, &epochs[half..], &vec![whole.clone()], &past, run);
        let (mut corpus, mut watches, mut accumulated) =
            (Corpus::new(&stages), List::default(), BTreeSet::new());
        epochs.iter().for_each(|epoch| corpus.apply(epoch));
        watches.apply(&whole);
        told.iter().for_each(|epoch| advance(&mut accumulated, &epoch.notices));
        let expected = watches.similar(&corpus.alive, &mut SketchMaker::new(&stages.scheme), &stages);
        assert_eq!(accumulated, expected, "{run:?}");
    });
}
