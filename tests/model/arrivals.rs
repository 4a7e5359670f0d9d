//! Files that arrive, grow, are renamed and removed between runs that end anywhere: what the last run leaves
//! accumulates to the pairs of the files that are there.
//!
//! Bug classes: a span that is read twice or never; a position of the state that means another record than
//! before; an output that is corrected only in part, or not again after a run that ended while it corrected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::connectors::formats::{IdRule, InputLayout};
use dupflow::connectors::inputs::{Files, GoneInputs, Input};
use dupflow::connectors::intake::{BadRecords, OnError};
use dupflow::connectors::sinks::MemorySink;
use dupflow::connectors::state;
use dupflow::core::doc::DocId;
use dupflow::core::hash::mix;
use dupflow::core::pair::DocPair;
use dupflow::core::time::SystemClock;
use dupflow::pipeline::{self, Continuity, RunError, RunJob};
use parking_lot::Mutex;

use crate::data::Event;
use crate::history::tested;
use crate::law::{Corpus, assert_same};
use crate::restart::{Ends, open, run};

/// A folder, the output and the state between two runs.
struct World {
    folder: tempfile::TempDir,
    sink: Arc<Mutex<MemorySink>>,
    state: Option<state::MemoryStore>,
    /// The documents of each file, in their order.
    files: BTreeMap<String, Vec<Event>>,
    documents: u64,
}

impl World {
    fn new(keeps: bool) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            sink: Arc::default(),
            state: keeps.then(state::MemoryStore::default),
            files: BTreeMap::new(),
            documents: 0,
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// New documents, each a text of one of few topics.
    fn documents(&mut self, random: u64) -> Vec<Event> {
        let count = random % 6;
        let document = |n: u64| {
            self.documents += 1;
            let topic = mix(random ^ n) % 5;
            let text = format!("the topic {topic} of this text is what all of its words are about {topic}");
            (DocId::new(&format!("d{}", self.documents)).unwrap(), Some(text))
        };
        (0..count).map(document).collect()
    }

    fn write(&self, name: &str) {
        let line =
            |(id, text): &Event| serde_json::json!({ "id": id.as_str(), "text": text }).to_string() + "\n";
        let lines: String = self.files[name].iter().map(line).collect();
        fs::write(self.path(name), lines).unwrap();
    }

    /// Changes a file, or adds one, with a name that sorts anywhere.
    fn change(&mut self, random: u64) {
        let any = self.files.keys().nth(usize::try_from(random % 7).unwrap()).cloned();
        let new = format!("{:03}.jsonl", mix(random) % 1000);
        match (random >> 8 & 7, any) {
            (0, Some(name)) => {
                fs::remove_file(self.path(&name)).unwrap();
                self.files.remove(&name);
            }
            (1, Some(name)) => {
                let documents = self.documents(mix(random ^ 1));
                self.files.insert(name.clone(), documents);
                self.write(&name);
            }
            (2, Some(name)) if !self.files.contains_key(&new) => {
                fs::rename(self.path(&name), self.path(&new)).unwrap();
                let documents = self.files.remove(&name).unwrap();
                self.files.insert(new, documents);
            }
            (3 | 4, Some(name)) => {
                let documents = self.documents(mix(random ^ 2));
                self.files.get_mut(&name).unwrap().extend(documents);
                self.write(&name);
            }
            _ => {
                let documents = self.documents(mix(random ^ 3));
                self.files.insert(new.clone(), documents);
                self.write(&new);
            }
        }
    }

    /// Runs to the end, or to the run's own one.
    fn run(&self, plan: &Plan, random: u64, end: Option<(u64, bool)>) -> Result<(), RunError> {
        let layout = InputLayout { ids: IdRule::Last, ..InputLayout::default() };
        let by_folder = random & 1 == 0;
        let named = if by_folder { self.folder.path().to_owned() } else { self.path("*.jsonl") };
        if self.files.is_empty() {
            return Ok(());
        }
        let inputs = Input::resolve([Path::new(&named)], layout).unwrap();
        let epochs = format!("events:{}", 1 + random % 5).parse().unwrap();
        let files = Files::new(inputs, epochs, Vec::new()).continued(GoneInputs::Delete);
        let stages = pipeline::stages(plan, false);
        let state = self.state.as_ref().map(|store| (open(store), Duration::ZERO));
        let continuity = Continuity { state, ..Continuity::new(&plan.description()) };
        let job = RunJob::new(plan, 1 + usize::try_from(random >> 3 & 1).unwrap(), Box::new(files), {
            let (commits_left, behind) = end.unwrap_or((u64::MAX, false));
            Box::new(Ends { sink: Arc::clone(&self.sink), commits_left, behind })
        });
        let bad = Arc::new(BadRecords::new(OnError::Fail, None));
        let clock = Arc::new(SystemClock::start());
        pipeline::run(RunJob { stages, continuity, bad, clock, ..job }).map(drop)
    }

    /// The pairs that the output accumulates to.
    fn accumulated(&self) -> BTreeSet<DocPair> {
        let mut pairs = BTreeSet::new();
        for (_, pair, diff) in &self.sink.lock().deltas {
            let is_new = if *diff > 0 { pairs.insert(pair.clone()) } else { pairs.remove(pair) };
            assert!(is_new, "{pair:?} is there twice, or less than never");
        }
        pairs
    }
}

/// One history: some changes, a run that may end early, and so on; then a run to the end.
fn history(plan: &Plan, seed: u64) {
    let mut world = World::new(seed & 1 == 0);
    let mut random = mix(seed);
    let mut next = || {
        random = mix(random ^ 0x9e37);
        random
    };
    for round in 0..8 {
        for _ in 0..1 + next() % 3 {
            world.change(next());
        }
        if next() % 8 == 0 && world.state.is_some() {
            world.state = Some(state::MemoryStore::default());
        }
        let chosen = next();
        let end = Some((chosen % 7, chosen & 64 == 0)).filter(|_| round < 7 && chosen & 128 == 0);
        match world.run(plan, next(), end) {
            Ok(()) => {}
            Err(RunError::Sink(error)) if error.to_string() == "the end" => continue,
            Err(error) => panic!("seed {seed}, round {round}: {error}"),
        }
        if world.files.is_empty() {
            continue;
        }
        let stages = pipeline::stages(plan, false);
        let mut corpus = Corpus::new(&stages);
        world.files.values().for_each(|documents| corpus.apply(documents));
        assert_same(&world.accumulated(), &corpus.pairs(&stages), round, run(seed));
    }
}

#[test]
fn files_arrive_in_any_order_between_runs_that_end_anywhere() {
    let plan = Plan::load("exact", &[]).unwrap();
    for seed in 0..u64::from(tested(20)) {
        history(&plan, seed);
    }
}
