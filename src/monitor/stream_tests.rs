//! Readers of the stream compared with the contents of the output.
//!
//! Bug classes: a pair is lost or doubled where a snapshot meets concurrent deltas, where a reader falls
//! behind, reconnects, or reconnects to another run; after resuming from an id, a reader does not hold what
//! the output held at that id.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::yield_now;

use super::{Begin, DeltaReader};
use crate::view::history::HistoryChanges;
use crate::view::pairs::{PairQuery, Since};
use crate::view::{View, ViewContents, render};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::{Epoch, EpochTimes};

/// Ids in byte order; some need escapes in JSON.
const IDS: [&str; 7] = ["\0", "\n\ndata: {}", "\"</script>", "a", "ア", "文\u{202e}", "👋"];

/// Pairs with their similarities as bits.
type PairState = BTreeMap<(String, String), u64>;

/// A step of the test.
#[derive(Clone, Debug)]
enum TestStep {
    /// An epoch that sets the similarities of some pairs, in quarters; 0 removes the pair.
    Epoch(Vec<(usize, usize, u8)>),
    /// The reader receives this many frames.
    Read(usize),
    /// The reader reconnects.
    Return,
    /// The run is killed and restarted; the next run's output holds the same pairs.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<TestStep>> {
    let change = (0..IDS.len(), 0..IDS.len(), 0_u8..4);
    let epoch = vec(change, 0..12).prop_map(TestStep::Epoch);
    let read = (0_usize..6).prop_map(TestStep::Read);
    let step = prop_oneof![6 => epoch, 6 => read, 1 => Just(TestStep::Return), 1 => Just(TestStep::Restart)];
    vec(step, 1..60)
}

/// A reader that only applies the events.
#[derive(Default)]
struct Client {
    held: PairState,
    /// Deltas of an epoch that is not complete yet.
    pending: Vec<PairChange>,
    last_id: Option<String>,
    is_in_snapshot: bool,
}

#[derive(Deserialize)]
struct EpochEvent {
    epoch: Epoch,
    deltas: Vec<PairChange>,
    more: usize,
}

#[derive(Deserialize)]
struct PairChange {
    #[serde(default = "one")]
    diff: isize,
    a: String,
    b: String,
    similarity: f64,
}

fn one() -> isize {
    1
}

#[derive(Deserialize)]
struct SnapshotEvent {
    pairs: Vec<PairChange>,
    first: bool,
    last: bool,
}

impl Client {
    /// Applies an event; returns its id, if it has one.
    fn take(&mut self, frame: &[u8]) -> Option<String> {
        let frame = std::str::from_utf8(frame).unwrap();
        if frame.starts_with(':') {
            return None;
        }
        let event = frame.strip_suffix("\n\n").expect("one event a frame");
        let fields: BTreeMap<&str, &str> = event.lines().map(|line| line.split_once(": ").unwrap()).collect();
        let data = fields["data"];
        match fields["event"] {
            "epoch" => {
                let EpochEvent { deltas, more, .. } = serde_json::from_str(data).unwrap();
                self.pending.extend(deltas);
                if more == 0 {
                    std::mem::take(&mut self.pending).into_iter().for_each(|change| self.apply(change));
                }
            }
            "snapshot" => {
                let SnapshotEvent { pairs, first, last } = serde_json::from_str(data).unwrap();
                if first {
                    self.held.clear();
                    self.pending.clear();
                }
                assert!(first || self.is_in_snapshot);
                self.is_in_snapshot = !last;
                pairs.into_iter().for_each(|change| self.apply(change));
            }
            "dropped" => self.pending.clear(),
            other => panic!("{other}"),
        }
        let id = fields.get("id").map(|id| (*id).to_owned());
        self.last_id = id.clone().or(self.last_id.take());
        id
    }

    fn apply(&mut self, change: PairChange) {
        let key = (change.a, change.b);
        if change.diff > 0 {
            assert!(
                self.held.insert(key.clone(), change.similarity.to_bits()).is_none(),
                "{key:?} is doubled"
            );
        } else {
            assert_eq!(self.held.remove(&key), Some(change.similarity.to_bits()), "{key:?} was not there");
        }
    }
}

/// A run, everything it has written, and a reader.
struct Scene {
    state: PairState,
    epoch: Epoch,
    runs: u32,
    view: Arc<View>,
    /// The contents of the output after each epoch, by event id.
    by_id: BTreeMap<String, PairState>,
    client: Client,
    frames: mpsc::Receiver<Bytes>,
    ending: watch::Sender<bool>,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self {
            state: PairState::new(),
            epoch: 0,
            runs: 0,
            view: Self::view(0),
            by_id: BTreeMap::new(),
            client: Client::default(),
            frames: mpsc::channel(1).1,
            ending: watch::Sender::new(false),
        };
        scene.view.apply_live(0);
        scene.note();
        scene.connect();
        scene
    }

    /// A view that applies two deltas at a time and holds few.
    fn view(run: u32) -> Arc<View> {
        Arc::new(View::new(format!("run{run}"), ViewContents::Pairs, 2, 2000))
    }

    fn note(&mut self) {
        self.by_id.insert(format!("run{}-{}", self.runs, self.epoch), self.state.clone());
    }

    /// The reader connects or reconnects.
    fn connect(&mut self) {
        self.client.pending.clear();
        self.client.is_in_snapshot = false;
        let (out, frames) = mpsc::channel(1);
        self.frames = frames;
        let after = self.client.last_id.as_deref().map(|id| render::place(id).unwrap());
        let begin = Begin::new(&self.view, after, None).unwrap();
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let view = Arc::clone(&self.view);
        let reader = DeltaReader { view, is_resumable: true, out, ending: self.ending.subscribe(), permit };
        tokio::spawn(reader.serve(begin));
    }

    fn epoch(&mut self, changes: &[(usize, usize, u8)]) {
        let mut deltas = Vec::new();
        let mut next = self.state.clone();
        for (x, y, similarity) in changes {
            let (x, y) = (*x.min(y), *x.max(y));
            let key = (IDS[x].to_owned(), IDS[y].to_owned());
            if x != y {
                match similarity {
                    0 => next.remove(&key),
                    n => next.insert(key, (f64::from(*n) / 4.0).to_bits()),
                };
            }
        }
        let delta = |(a, b): &(String, String), bits: u64, diff| {
            let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
            let similarity = Similarity::clamped(f64::from_bits(bits));
            Delta {
                pair: DocPair { pair, similarity, evidence: Evidence::default() },
                diff,
                cause: Cause::Insert,
            }
        };
        deltas.extend(
            self.state.iter().filter(|(key, s)| next.get(key) != Some(s)).map(|(key, s)| delta(key, *s, -1)),
        );
        deltas.extend(
            next.iter().filter(|(key, s)| self.state.get(key) != Some(s)).map(|(key, s)| delta(key, *s, 1)),
        );
        deltas.sort_by(|a, b| (&a.pair.pair, a.diff).cmp(&(&b.pair.pair, b.diff)));
        (self.state, self.epoch) = (next, self.epoch + 1);
        self.note();
        let mut stored = HistoryChanges::default();
        self.view.apply_epoch(self.epoch, EpochTimes::default(), &deltas, &mut stored);
    }

    fn restart(&mut self) {
        self.runs += 1;
        self.view = Self::view(self.runs);
        self.note();
        self.view.apply_begin(self.epoch);
        // There is no stream before the view is filled.
        assert!(
            Begin::new(&self.view, None, None).is_err() && Begin::new(&self.view, None, Some(0)).is_err()
        );
        let all = std::mem::take(&mut self.state);
        let restored: Vec<Delta> = all
            .iter()
            .map(|((a, b), bits)| {
                let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
                let similarity = Similarity::clamped(f64::from_bits(*bits));
                Delta {
                    pair: DocPair { pair, similarity, evidence: Evidence::default() },
                    diff: 1,
                    cause: Cause::Insert,
                }
            })
            .collect();
        self.state = all;
        self.view.apply_restored(&restored, Since::by(self.epoch));
        assert!(Begin::new(&self.view, None, None).is_err());
        self.view.apply_live(self.epoch);
        self.connect();
    }

    /// Receives at most this many frames.
    async fn read(&mut self, most: usize) {
        for _ in 0..most {
            let mut frame = None;
            // The reader task sends its next frame within a few turns.
            for _ in 0..8 {
                frame = frame.or_else(|| self.frames.try_recv().ok());
                if frame.is_some() {
                    break;
                }
                yield_now().await;
            }
            let Some(frame) = frame else { return };
            if let Some(id) = self.client.take(&frame) {
                assert_eq!(self.client.held, self.by_id[&id], "at {id}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn reader_accumulates_the_output(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut scene = Scene::new();
            for step in &steps {
                match step {
                    TestStep::Epoch(changes) => scene.epoch(changes),
                    TestStep::Read(frames) => scene.read(*frames).await,
                    TestStep::Return => scene.connect(),
                    TestStep::Restart => scene.restart(),
                }
            }
            scene.read(usize::MAX).await;
            assert_eq!(scene.client.held, scene.state);
            let all = PairQuery::all(None, 1000);
            let (page, _) = scene.view.pairs(|_, pairs| pairs.page(&all));
            let mut seen = PairState::new();
            for pair in page {
                seen.insert((pair.a.to_string(), pair.b.to_string()), pair.held.similarity.get().to_bits());
            }
            assert_eq!(seen, scene.state);
        });
    }
}

/// A reader of the tail receives the number of deltas it missed, and no snapshot.
#[test]
fn slow_tail_reader_receives_dropped_counts() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::new();
        let (out, mut frames) = mpsc::channel(1);
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let begin = Begin::new(&scene.view, None, Some(0)).unwrap();
        let view = Arc::clone(&scene.view);
        let reader = DeltaReader { view, is_resumable: false, out, ending: scene.ending.subscribe(), permit };
        tokio::spawn(reader.serve(begin));
        for n in 0..40 {
            scene.epoch(&[(0, 1, n % 3 + 1)]);
        }
        scene.ending.send_replace(true);
        let (mut change, mut dropped) = (0, None);
        let mut last = String::new();
        while let Some(frame) = frames.recv().await {
            last = String::from_utf8(frame.to_vec()).unwrap();
            if let Some(data) = last.strip_prefix("event: dropped\ndata: ") {
                let data: BTreeMap<String, u64> = serde_json::from_str(data.trim_end()).unwrap();
                assert!(dropped.replace((data["epochs"], data["deltas"])).is_none());
            } else if let Some((_, data)) = last.split_once("event: epoch\ndata: ") {
                let data: EpochEvent = serde_json::from_str(data.trim_end()).unwrap();
                assert!(data.epoch > change, "in order");
                change = data.epoch;
            }
            assert!(!last.contains("event: snapshot"), "{last}");
        }
        let (epochs, deltas) = dropped.expect("forty epochs are not held");
        assert_eq!((change, deltas), (40, 2 * epochs - 1), "the first epoch has one delta, the others two");
        assert_eq!(last, "event: bye\ndata: {}\n\n");
    });
}

/// Readers of the last deltas receive as many as they ask for, though pieces have two.
#[test]
fn tail_begins_within_a_piece() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::new();
        scene.epoch(&[(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
        scene.epoch(&[(0, 1, 2)]);
        scene.ending.send_replace(true);
        let of_tails: [&[(Epoch, usize, usize)]; 7] = [
            &[],
            &[(2, 1, 0)],
            &[(2, 2, 0)],
            &[(1, 1, 0), (2, 2, 0)],
            &[(1, 1, 1), (1, 1, 0), (2, 2, 0)],
            &[(1, 2, 1), (1, 1, 0), (2, 2, 0)],
            &[(1, 2, 1), (1, 1, 0), (2, 2, 0)],
        ];
        for (tail, expected) in (0..).zip(of_tails) {
            let (out, mut frames) = mpsc::channel(1);
            let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            let begin = Begin::new(&scene.view, None, Some(tail)).unwrap();
            let view = Arc::clone(&scene.view);
            let ending = scene.ending.subscribe();
            tokio::spawn(DeltaReader { view, is_resumable: false, out, ending, permit }.serve(begin));
            let mut events = Vec::new();
            while let Some(frame) = frames.recv().await {
                let frame = String::from_utf8(frame.to_vec()).unwrap();
                if let Some((_, data)) = frame.split_once("event: epoch\ndata: ") {
                    let event: EpochEvent = serde_json::from_str(data.trim_end()).unwrap();
                    events.push((event.epoch, event.deltas.len(), event.more));
                }
            }
            assert_eq!(events, expected, "tail={tail}");
        }
    });
}
