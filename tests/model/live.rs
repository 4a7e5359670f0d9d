//! The law under live weights: after every epoch, the accumulated deltas are what a fresh run finds with the
//! table in force frozen. The table follows from the number of documents at the ends of epochs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::core::doc::DocId;
use dupflow::core::hash::SketchId;
use dupflow::core::oracle;
use dupflow::core::pair::DocPair;
use dupflow::core::run::metrics::Counter;
use dupflow::core::sketch::{Scheme, Sketch, SketchMaker};
use dupflow::core::text::{Featurizer, IdfTable};
use dupflow::engine::dataflow::Stages;

use crate::data::{self, Event};
use crate::history::{check, cut, events, runs, sizes};
use crate::law::{Accumulated, assert_same};
use crate::pipelines::plan;
use crate::script::{self, Run};

pub(crate) const LIVE: &str = "text = { shingle = \"words:1\", weights = \"tf-idf\", idf = \"live\" }\n\
    sketch = { kind = \"dart\", size = 64, bits = 8 }\nblocking = { bands = 16, rows = 2, cap = 4 }";

/// The corpus, and the table in force, by definition.
pub(crate) struct Corpus {
    stages: Stages,
    featurizer: Featurizer,
    alive: BTreeMap<DocId, String>,
    /// The documents with a token.
    counted: BTreeSet<DocId>,
    table: Arc<IdfTable>,
    tables: u64,
}

impl Corpus {
    pub(crate) fn new(stages: &Stages) -> Self {
        Self {
            stages: stages.clone(),
            featurizer: Featurizer::new(stages.scheme.text.clone()),
            alive: BTreeMap::new(),
            counted: BTreeSet::new(),
            table: Arc::new(IdfTable::new(0, [])),
            tables: 0,
        }
    }

    /// Applies an epoch. At its end a table is due or not, by the number of documents of the table in force.
    pub(crate) fn apply(&mut self, events: &[Event]) {
        for (id, text) in events {
            match text {
                Some(text) => drop(self.alive.insert(id.clone(), text.clone())),
                None => drop(self.alive.remove(id)),
            }
            let counts = text.as_ref().is_some_and(|text| !self.featurizer.terms(text).ids.is_empty());
            let _ = if counts { self.counted.insert(id.clone()) } else { self.counted.remove(id) };
        }
        self.close();
    }

    /// Sets the live documents at the end of an epoch.
    pub(crate) fn become_of(&mut self, alive: BTreeMap<DocId, String>) {
        self.counted.clear();
        for (id, text) in &alive {
            if !self.featurizer.terms(text).ids.is_empty() {
                self.counted.insert(id.clone());
            }
        }
        self.alive = alive;
        self.close();
    }

    /// Ends an epoch, with a new table if one is due.
    fn close(&mut self) {
        let growth = self.stages.scheme.live().expect("live weights");
        if growth.is_due(self.table.documents(), self.counted.len() as u64) {
            let mut holders: BTreeMap<u64, u32> = BTreeMap::new();
            for counted in &self.counted {
                for feature in self.featurizer.terms(&self.alive[counted]).ids {
                    *holders.entry(*feature).or_default() += 1;
                }
            }
            self.table = Arc::new(IdfTable::new(self.counted.len() as u64, holders));
            self.tables += 1;
        }
    }

    /// The scheme under the table in force.
    pub(crate) fn scheme(&self) -> Scheme {
        self.stages.scheme.under(Arc::clone(&self.table))
    }

    /// The live documents that have a sketch under that table.
    pub(crate) fn sketches(&self) -> BTreeMap<DocId, (SketchId, Sketch)> {
        let mut maker = SketchMaker::new(&self.scheme());
        self.alive.iter().filter_map(|(id, text)| Some((id.clone(), maker.sketch(text)?))).collect()
    }

    /// D(C) under the table in force.
    pub(crate) fn pairs(&self) -> BTreeSet<DocPair> {
        oracle::exact(
            &self.sketches(),
            &*self.stages.blocking,
            &*self.stages.filter,
            self.stages.expand_limit,
        )
    }
}

fn assert_law(stages: &Stages, epochs: &[Vec<Event>], run: Run) -> u64 {
    let mut accumulated = Accumulated::new(script::deltas(stages, epochs, run));
    let mut corpus = Corpus::new(stages);
    for (epoch, events) in (1..).zip(epochs) {
        corpus.apply(events);
        accumulated.advance(epoch);
        assert_same(&accumulated.pairs, &corpus.pairs(), epoch, run);
    }
    accumulated.end();
    assert_eq!(stages.observers.metrics.get(Counter::IdfTables), corpus.tables);
    corpus.tables
}

#[test]
fn live_weights() {
    let plan = plan(LIVE);
    check(150, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
    });
}

#[test]
fn live_weights_with_exact_verification() {
    let plan = plan(&format!("{LIVE}\nfilter = {{ verify = \"exact\" }}"));
    check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
    });
}

/// The shipped pipelines of live weights; of the paper's, fewer samples.
#[test]
fn shipped_pipelines_of_live_weights() {
    let small = |name, more: &[&str]| {
        let typed = ["output.expand_limit=3", "blocking.cap=4"].iter().chain(more);
        Plan::load(name, &typed.map(|s| (*s).to_owned()).collect::<Vec<_>>()).unwrap()
    };
    for plan in [small("weighted", &[]), small("paper", &["sketch.size=64", "filter.looks=[16, 32, 64]"])] {
        check(20, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
        });
    }
}

/// A corpus that grows, empties and grows again makes tables all the way.
#[test]
fn tables_follow_the_size_of_the_corpus() {
    let plan = plan(LIVE);
    let document = |i: usize, text: Option<String>| (DocId::new(&format!("d{i:02}")).unwrap(), text);
    let text = |i: usize| Some(format!("alpha beta gamma w{} w{} w{}", i % 5, i % 7, i / 3));
    let fill = (0..64).map(|i| document(i, text(i)));
    let empty = (0..64).map(|i| document(i, None));
    let events: Vec<Event> = fill.clone().chain(empty).chain(fill).collect();
    // One by one: at 1, 2, 4 … 64 documents, at 32, 16 … 1 and 0, and up again. By sevens: at 7, 14, 28 and
    // 56, at 23, 9 and 2, and up again at 5, 12, 26 and 54. As one epoch: once, from the documents that are
    // left.
    for (size, workers, tables) in [(1, 1, 21), (7, 2, 11), (192, 4, 1)] {
        let stages = dupflow::pipeline::stages(&plan, false);
        let run = Run { workers, serialized: true, seed: 3 };
        assert_eq!(assert_law(&stages, &cut(&events, &[size]), run), tables);
    }
}

/// A whole recorded history, at its end and at three cuts; and its beginning with other cuts and
/// distributions.
#[test]
fn live_weights_on_real_history() {
    let Some(folder) = data::folder("live weights on real history") else { return };
    let all: Vec<Event> = data::feed(&folder.join("feed_tldr_half0.jsonl.zst")).collect();
    let plan = Plan::load("weighted", &[]).unwrap_or_else(|error| panic!("{error}"));
    for (events, workers, size, judged) in
        [(&all[..], 2, 1000, 15_000), (&all[..5000], 1, 500, 2500), (&all[..5000], 4, 250, 1250)]
    {
        let run = Run { workers, serialized: workers == 4, seed: 5 };
        let epochs: Vec<_> = events.chunks(size).map(<[Event]>::to_vec).collect();
        let stages = dupflow::pipeline::stages(&plan, false);
        let mut accumulated = Accumulated::new(script::deltas(&stages, &epochs, run));
        let mut corpus = Corpus::new(&stages);
        let mut cuts = 0;
        for (epoch, of_epoch) in (1..).zip(&epochs) {
            corpus.apply(of_epoch);
            accumulated.advance(epoch);
            let read = usize::try_from(epoch).unwrap() * size;
            if read.is_multiple_of(judged) || read >= events.len() {
                let expected = corpus.pairs();
                assert!(!expected.is_empty());
                assert_same(&accumulated.pairs, &expected, epoch, run);
                cuts += 1;
            }
        }
        accumulated.end();
        assert!(cuts == events.len().div_ceil(judged), "{cuts} cuts");
    }
}
