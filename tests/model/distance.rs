//! The promise of a distance: no pair of fingerprints within it is missed, whatever the texts share.
//!
//! The reference is brute force over all fingerprints. Texts are made from a few templates, so that their
//! fingerprints agree in most bits and blocks are large. Under the rule of leaders pairs are missed here,
//! which is checked too.

use std::collections::BTreeSet;
use std::sync::Arc;

use dupflow::config::Plan;
use dupflow::core::block::{BlockKey, Blocking, HotRule, NearRule};
use dupflow::core::doc::DocId;
use dupflow::core::hash::mix;
use dupflow::core::pair::Pair;
use dupflow::core::sketch::SketchRef;
use dupflow::engine::dataflow::Stages;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::{Accumulated, Corpus, assert_law};
use crate::pipelines::plan;
use crate::script::{self, Run};

/// A text of one of three templates; the words of the template outweigh the text's own words.
fn text(n: u64) -> String {
    let template = (0..40).map(|word| format!("t{}w{word} ", n % 3).repeat(3));
    let own = (0..16).map(|word| format!("x{} ", mix(n << 8 ^ word) % 5000));
    template.chain(own).collect()
}

/// 1,500 documents are added, 300 of them change and 300 are deleted.
fn history() -> Vec<Event> {
    let id = |n: u64| DocId::new(&format!("d{n:04}")).unwrap();
    let come = (0..1500).map(|n| (id(n), Some(text(n))));
    let change = (0..300).map(|n| (id(n * 5), Some(text(10_000 + n))));
    let go = (0..300).map(|n| (id(n * 5 + 2), None));
    come.chain(change).chain(go).collect()
}

/// The pairs that a filter accepts among all fingerprints.
fn brute_force(corpus: &Corpus, stages: &Stages) -> BTreeSet<Pair<DocId>> {
    let all: Vec<_> = corpus.alive.iter().map(|(id, (_, sketch))| (id, sketch.view())).collect();
    let mut pairs = BTreeSet::new();
    for (i, (a, x)) in all.iter().enumerate() {
        for (b, y) in &all[i + 1..] {
            if stages.filter.decide(*x, *y).accepted.is_some() {
                pairs.extend(Pair::new((*a).clone(), (*b).clone()));
            }
        }
    }
    pairs
}

/// A blocking that searches blocks of more than this many members.
#[derive(Debug)]
struct Searched(Arc<dyn Blocking>, usize);

impl Blocking for Searched {
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

    fn scan_limit(&self) -> usize {
        self.1
    }

    fn least(&self) -> usize {
        self.0.least()
    }
}

fn searched(stages: Stages, walked: usize) -> Stages {
    Stages { blocking: Arc::new(Searched(Arc::clone(&stages.blocking), walked)), ..stages }
}

fn found(stages: &Stages, epochs: &[Vec<Event>]) -> BTreeSet<Pair<DocId>> {
    let mut accumulated =
        Accumulated::new(script::deltas(stages, epochs, Run { workers: 2, serialized: false, seed: 7 }));
    (1..).zip(epochs).for_each(|(epoch, _)| accumulated.advance(epoch));
    accumulated.end().into_iter().map(|found| found.pair).collect()
}

#[test]
fn no_pair_within_the_distance_is_missed() {
    let history = history();
    let epochs = cut(&history, &[40]);
    let mut expected: Option<BTreeSet<Pair<DocId>>> = None;
    for (settings, may_be_hot) in [
        (&["blocking.tables=4"][..], true),
        (&["blocking.tables=10"], true),
        (&["blocking.tables=16"], true),
        (&["blocking.tables=20"], false),
        (&["blocking.kind=multi-index", "blocking.tables=2"], false),
        (&["blocking.kind=multi-index", "blocking.tables=4"], true),
        (&["blocking.kind=groups"], true),
        (&["blocking.kind=groups", "blocking.common=1"], true),
        (&["blocking.kind=conjunctions"], false),
        (&["blocking.kind=conjunctions", "blocking.common=1"], true),
    ] {
        let stages = |more: &[&str]| {
            let typed: Vec<_> = settings.iter().chain(more).map(|&typed| typed.to_owned()).collect();
            dupflow::pipeline::stages(&Plan::load("simhash", &typed).unwrap(), false)
        };
        let stages_of_all = stages(&[]);
        let expected = expected.get_or_insert_with(|| {
            let mut corpus = Corpus::new(&stages_of_all);
            corpus.apply(&history);
            let pairs = brute_force(&corpus, &stages_of_all);
            assert!(pairs.len() > 5000);
            pairs
        });
        let missed = |found: BTreeSet<Pair<DocId>>| {
            assert!(found.is_subset(expected), "{settings:?}");
            expected.len() - found.len()
        };
        assert_eq!(missed(found(&stages_of_all, &epochs)), 0, "{settings:?}");
        assert_eq!(
            missed(found(&searched(stages_of_all, 50), &epochs)),
            0,
            "{settings:?}, large blocks searched"
        );
        let led = missed(found(&stages(&["blocking.hot=leaders"]), &epochs));
        assert!(led > 0 || !may_be_hot, "{settings:?}");
    }
}

/// The law where blocks are walked and searched in turn, also with filters that accept pairs beyond the
/// distance.
#[test]
fn blocks_are_searched_once_they_are_large() {
    for settings in [
        "sketch = { kind = \"simhash\" }\ntext = { shingle = \"words:1\", weights = \"count\" }\nblocking = \
        { kind = \"permuted\", distance = 3, tables = 4 }",
        "sketch = { kind = \"simhash\", size = 128 }\ntext = { shingle = \"words:1\", weights = \"count\" \
        }\nblocking = { kind = \"groups\", distance = 11, common = 2 }",
        "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"permuted\", distance = 7, tables = 8, cap = \
        4, also = { kind = \"banding\", bands = 8, rows = 2 } }",
        "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"multi-index\", distance = 5, tables = 3 }",
    ] {
        let plan = plan(settings);
        check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&searched(dupflow::pipeline::stages(&plan, false), 2), &cut(&events, &sizes), run);
        });
    }
}
