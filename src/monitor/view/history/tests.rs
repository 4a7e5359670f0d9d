//! Views that are restarted with a stored history, compared with a model that is not.
//!
//! Bug classes: a restart forgets or invents since when a pair is; a reader that resumes after a restart does
//! not hold what the output holds; epochs that the history lost are passed over in silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{EachRecord, HistoryChanges, HistoryStore, KeptHistory};
use crate::cluster_history::History;
use crate::view::pairs::PairQuery;
use crate::view::{View, ViewContents};
use dupflow_core::cluster::{ClusterKind, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::doc::changes::Changes;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::{Epoch, EpochSeconds, EpochTimes, unix_seconds};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Every publish, in memory.
#[derive(Clone, Default)]
struct Publishes(Arc<Mutex<Vec<(Epoch, Records)>>>);

impl HistoryStore for Publishes {
    fn read(&mut self, at_most: Epoch, each: &mut EachRecord<'_>) -> Result<Option<Epoch>, String> {
        let mut all = self.0.lock();
        all.retain(|(epoch, _)| *epoch <= at_most);
        let Some((epoch, records)) = all.last() else { return Ok(None) };
        records.iter().try_for_each(|(key, value)| each(key, value))?;
        Ok(Some(*epoch))
    }

    fn keep(&mut self, epoch: Epoch, changes: Changes) -> Result<(), String> {
        let mut all = self.0.lock();
        let mut records = all.last().map_or_else(Records::new, |(_, records)| records.clone());
        for (key, value) in changes.iter() {
            match value {
                Some(value) => records.insert(key.to_vec(), value.to_vec()),
                None => records.remove(key),
            };
        }
        all.push((epoch, records));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Pairs with their similarity in quarters and the epoch that added them.
type PairModel = BTreeMap<(usize, usize), (u8, Epoch)>;

const IDS: [&str; 6] = ["\0", "\0\0", "a", "a\0", "b", "文"];

pub(super) fn pair((x, y): (usize, usize)) -> Pair<DocId> {
    Pair::new(DocId::new(IDS[x]).unwrap(), DocId::new(IDS[y]).unwrap()).unwrap()
}

pub(super) fn delta(key: (usize, usize), quarters: u8, diff: isize) -> Delta {
    let similarity = Similarity::clamped(f64::from(quarters) / 4.0);
    let pair = DocPair { pair: pair(key), similarity, evidence: Evidence::default() };
    Delta { pair, diff, cause: if diff > 0 { Cause::Update } else { Cause::Delete } }
}

fn sorted(mut deltas: Vec<Delta>) -> Vec<Delta> {
    deltas.sort_by(|a, b| (&a.pair.pair, a.diff).cmp(&(&b.pair.pair, b.diff)));
    deltas
}

/// The output, and the run that shows it.
struct HistoryStory {
    publishes: Publishes,
    view: Arc<View>,
    feeder: Option<crate::Feeder>,
    runs: u32,
    epoch: Epoch,
    model: PairModel,
    /// The pairs after each epoch, by the id that its run gave it.
    by_id: BTreeMap<(u32, Epoch), PairModel>,
    /// Epochs that the history lost: after the first, up to the second.
    lost: Vec<(Epoch, Epoch)>,
    /// Clusters of an undisturbed run.
    clusters: Clusters,
    history: History,
}

impl HistoryStory {
    fn new() -> Self {
        let publishes = Publishes::default();
        let (view, feeder) = start(0, &publishes);
        feeder.live(0);
        Self {
            publishes,
            view,
            feeder: Some(feeder),
            runs: 0,
            epoch: 0,
            model: PairModel::new(),
            by_id: BTreeMap::new(),
            lost: Vec::new(),
            clusters: Clusters::new(ClusterKind::Components, 3),
            history: History::default(),
        }
    }

    fn epoch(&mut self, changes: &[(usize, usize, u8)]) {
        self.epoch += 1;
        let before = self.model.clone();
        for (x, y, quarters) in changes.iter().filter(|(x, y, _)| x != y) {
            let key = (*x.min(y), *x.max(y));
            match (quarters, self.model.get(&key)) {
                (0, _) => drop(self.model.remove(&key)),
                (quarters, Some((same, _))) if quarters == same => {}
                _ => drop(self.model.insert(key, (*quarters, self.epoch))),
            }
        }
        let went = before.iter().filter(|(key, held)| self.model.get(key) != Some(held));
        let came = self.model.iter().filter(|(key, held)| before.get(key) != Some(held));
        let deltas = went.map(|(key, (quarters, _))| delta(*key, *quarters, -1));
        let deltas =
            sorted(deltas.chain(came.map(|(key, (quarters, _))| delta(*key, *quarters, 1))).collect());
        let reports = self.clusters.advance(&deltas);
        self.history.advance(self.epoch, EpochSeconds::NONE, &reports);
        let times = EpochTimes { event: None, committed: unix_seconds() };
        self.feeder.as_ref().unwrap().committed(self.epoch, times, deltas);
        self.by_id.insert((self.runs, self.epoch), self.model.clone());
    }

    /// The run ends, and the last publishes are lost.
    fn restart(&mut self, lost: usize) {
        self.feeder = None;
        self.view.wait_until_applied(Duration::MAX);
        let mut publishes = self.publishes.0.lock();
        let left = publishes.len().saturating_sub(lost).max(1);
        publishes.truncate(left);
        let through = publishes.last().unwrap().0;
        drop(publishes);
        // A gap is recorded in the publish of its last epoch.
        self.lost.retain(|(_, recorded)| *recorded <= through);
        if through < self.epoch {
            self.lost.push((through, self.epoch));
        }
        self.runs += 1;
        let (view, feeder) = start(self.runs, &self.publishes);
        feeder.begin_at(self.epoch);
        let held = self.model.iter().map(|(key, (quarters, _))| delta(*key, *quarters, 1));
        feeder.restored(&sorted(held.collect()));
        feeder.live(self.epoch);
        view.wait_until_applied(Duration::MAX);
        (self.view, self.feeder) = (view, Some(feeder));
        // What a snapshot of this run has.
        self.by_id.insert((self.runs, self.epoch), self.model.clone());
        self.check();
    }

    fn lost_in(&self, epoch: Epoch) -> Option<(Epoch, Epoch)> {
        self.lost.iter().find(|(after, through)| (*after + 1..=*through).contains(&epoch)).copied()
    }

    fn check(&self) {
        self.view.wait_until_applied(Duration::MAX);
        let all = PairQuery::all(None, 1000);
        let (page, _) = self.view.pairs(|_, pairs| pairs.page(&all));
        assert_eq!(page.len(), self.model.len());
        for found in page {
            let place = |id: &DocId| IDS.iter().position(|one| *one == id.as_str()).unwrap();
            let (quarters, since) = self.model[&(place(&found.a), place(&found.b))];
            assert!((found.held.similarity.get() - f64::from(quarters) / 4.0).abs() < 1e-9);
            match (self.lost_in(since), found.held.is_exact) {
                (None, is_exact) => assert!(is_exact && found.held.since == since, "{found:?} since {since}"),
                // If it ended and was added again in the same gap, its record is older than the gap.
                (Some((after, through)), is_exact) => {
                    let is_by_gap = !is_exact && found.held.since == through;
                    assert!(is_by_gap || found.held.since <= after, "{found:?} since {since}");
                }
            }
            assert_eq!(found.held.times.committed().is_some(), found.held.is_exact);
        }
        self.check_readers();
        let gaps = self.view.history().meta.gaps;
        assert_eq!(gaps.iter().map(|gap| (gap.after, gap.through)).collect::<Vec<_>>(), self.lost);
    }

    /// A reader of any id either gets the deltas up to what the output holds, or `dropped`.
    fn check_readers(&self) {
        for ((run, epoch), state) in &self.by_id {
            let name = format!("run{run}");
            let Some(place) = self.view.after(&name, *epoch) else {
                let missed = self.view.missed(&name, *epoch);
                assert_eq!(missed.through, Some(self.epoch));
                let is_lost = self.lost_in(*epoch).is_some_and(|(_, through)| *epoch < through);
                // After a restart the epoch before the first piece is not known.
                // The loss may have taken the name of a run.
                let is_named = self.view.history().meta.runs.contains(&name);
                assert!(is_lost || *epoch == 0 || !is_named, "{name}-{epoch} is not known");
                continue;
            };
            let mut held: BTreeMap<_, _> =
                state.iter().map(|(key, (quarters, _))| (*key, *quarters)).collect();
            for delta in self.view.since(place, usize::MAX).unwrap().iter().flat_map(|piece| &piece.deltas) {
                let index = |id: &DocId| IDS.iter().position(|one| *one == id.as_str()).unwrap();
                let key = (index(delta.pair.pair.lo()), index(delta.pair.pair.hi()));
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 4")]
                let quarters = (delta.pair.similarity.get() * 4.0) as u8;
                let was = if delta.diff > 0 { held.insert(key, quarters) } else { held.remove(&key) };
                assert_eq!(was, (delta.diff < 0).then_some(quarters), "{name}-{epoch}: {delta:?}");
            }
            let expected: BTreeMap<_, _> =
                self.model.iter().map(|(key, (quarters, _))| (*key, *quarters)).collect();
            assert_eq!(held, expected, "{name}-{epoch}");
        }
    }

    /// Clusters are as in a run that was never restarted.
    fn check_clusters(&self) {
        self.view.clusters(|found| {
            assert_eq!(found.len(), self.history.len());
            for name in self.history.names() {
                let events = |history: &History| -> Vec<_> {
                    let each = history.events(name).iter();
                    each.map(|event| (event.epoch, event.kind, event.size, event.others.clone())).collect()
                };
                assert_eq!(events(found), events(&self.history), "{name:?}");
            }
            for name in IDS.map(|id| DocId::new(id).unwrap()) {
                let end = |history: &History| history.ended(&name).map(|end| (end.epoch, end.how.clone()));
                assert_eq!(end(found), end(&self.history), "{name:?}");
            }
        });
    }
}

fn start(run: u32, publishes: &Publishes) -> (Arc<View>, crate::Feeder) {
    let kept = KeptHistory { store: Box::new(publishes.clone()), age: Duration::from_secs(3600) };
    let clusters = Clusters::new(ClusterKind::Components, 3);
    let view = View::start(format!("run{run}"), ViewContents::Pairs, clusters, Some(kept)).unwrap();
    let feeder = view.feeder();
    (view, feeder)
}

#[derive(Clone, Debug)]
enum HistoryStep {
    Epoch(Vec<(usize, usize, u8)>),
    Restart(usize),
}

fn steps(most_lost: usize) -> impl Strategy<Value = Vec<HistoryStep>> {
    let change = (0_usize..6, 0_usize..6, 0_u8..=3);
    let step = prop_oneof![
        4 => vec(change, 0..6).prop_map(HistoryStep::Epoch),
        1 => (0..=most_lost).prop_map(HistoryStep::Restart),
    ];
    vec(step, 0..16)
}

fn story(steps: &[HistoryStep]) -> HistoryStory {
    let mut story = HistoryStory::new();
    for step in steps {
        match step {
            HistoryStep::Epoch(changes) => story.epoch(changes),
            HistoryStep::Restart(lost) => story.restart(*lost),
        }
    }
    story.restart(0);
    story
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_restart_goes_on_with_the_past(steps in steps(0)) {
        let story = story(&steps);
        prop_assert!(story.lost.is_empty());
        prop_assert_eq!(story.view.history().meta.runs.len(), story.runs as usize + 1);
        story.check_clusters();
    }

    #[test]
    fn what_the_history_lost_is_said(steps in steps(3)) {
        story(&steps);
    }
}

/// What ended in a gap leaves by age, and so does what ended after it.
#[test]
fn what_a_gap_ended_leaves_by_age() {
    let mut story = HistoryStory::new();
    story.epoch(&[(0, 1, 2), (2, 4, 2)]);
    story.restart(0);
    story.epoch(&[(0, 1, 0)]);
    story.restart(1);
    assert_eq!(story.lost, [(1, 2)]);
    story.epoch(&[(2, 4, 0)]);
    let view = &story.view;
    view.wait_until_applied(Duration::MAX);
    let ends = || {
        [(0, 1), (2, 4)].map(|key| {
            let cluster =
                view.clusters(|found| found.ended(&DocId::new(IDS[key.0]).unwrap()).map(|end| end.times));
            (view.pair(&pair(key)).2.map(|end| (end.ended.is_exact, end.ended.times)), cluster)
        })
    };
    for (is_exact, (ended, cluster)) in [false, true].into_iter().zip(ends()) {
        let (found_exact, times) = ended.unwrap();
        assert!(found_exact == is_exact && times.committed().is_some());
        assert!(cluster.unwrap().committed().is_some());
    }
    view.drop_history(unix_seconds() + 10.0, &mut HistoryChanges::new(false));
    assert_eq!(ends(), [(None, None); 2]);
}

/// The commit of a new view of pairs has the number of the output's last epoch, and no deltas.
#[test]
fn a_commit_without_deltas_voids_no_id() {
    let mut story = HistoryStory::new();
    story.epoch(&[(0, 1, 2)]);
    story.epoch(&[(2, 4, 2)]);
    story.restart(0);
    let held = |of: &HistoryStory| (of.view.held_deltas().len(), of.view.history().meta.runs);
    let before = held(&story);
    story.feeder.as_ref().unwrap().committed(2, EpochTimes::default(), Vec::new());
    story.view.wait_until_applied(Duration::MAX);
    assert_eq!(held(&story), before);
    for (run, epoch) in [("run0", 1), ("run0", 2), ("run1", 2)] {
        assert!(story.view.after(run, epoch).is_some(), "{run}-{epoch}");
    }
    story.restart(0);
}

/// A view of pairs with a history.
pub(super) fn view_with(kept: KeptHistory) -> Arc<View> {
    let clusters = Clusters::new(ClusterKind::Components, 3);
    View::start("r".to_owned(), ViewContents::Pairs, clusters, Some(kept)).unwrap()
}

/// What ended is forgotten in the store too, by its age; since when something lives is not.
#[test]
fn ends_and_deltas_are_dropped_by_age() {
    let publishes = Publishes::default();
    let kept = KeptHistory { store: Box::new(publishes.clone()), age: Duration::from_secs(1000) };
    let view = view_with(kept);
    let feeder = view.feeder();
    feeder.live(0);
    let old = EpochTimes { event: None, committed: unix_seconds() - 5000.0 };
    let recent = EpochTimes { event: None, committed: unix_seconds() };
    feeder.committed(1, old, vec![delta((0, 1), 2, 1), delta((2, 4), 2, 1)]);
    feeder.committed(2, old, vec![delta((0, 1), 2, -1)]);
    feeder.committed(3, recent, vec![delta((4, 5), 2, 1)]);
    feeder.committed(4, recent, vec![delta((4, 5), 2, -1)]);
    drop(feeder);
    view.wait_until_applied(Duration::MAX);
    let kinds = |records: &Records| -> String { records.keys().map(|key| char::from(key[0])).collect() };
    let all = publishes.0.lock();
    assert_eq!(kinds(&all.last().unwrap().1), "cddgmp", "one live cluster and pair; epochs 3 and 4; one end");
    assert_eq!(view.pair(&pair((0, 1))).2, None);
    assert_eq!(view.pair(&pair((4, 5))).2.map(|end| (end.ended.epoch, end.cause)), Some((4, Cause::Delete)));
}
