//! The law, for each kind of stage: small pipelines at T = 0.5, with small limits: a few sketches in a block,
//! three copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dupflow::config::{BUILT_IN, Plan};
use dupflow::core::block::BlockKey;
use dupflow::core::hash::SketchId;
use dupflow::core::run::metrics::Counter;
use dupflow::engine::dataflow::Stages;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::{Corpus, assert_law};
use crate::script::{Run, deltas};

/// One-bit components and bands of two rows: a block holds about a quarter of all sketches.
pub(crate) const CROWDED: &str =
    "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4 }";

/// The settings of a pipeline besides the threshold and the expand limit.
pub(crate) fn plan(settings: &str) -> Plan {
    let text = format!("threshold = 0.5\noutput = {{ expand_limit = 3 }}\n{settings}");
    Plan::parse("test", &text, Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The law, on random histories.
fn holds(settings: &str) {
    law(150, &plan(settings));
}

fn law(histories: u32, plan: &Plan) {
    check(histories, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
        let stages = dupflow::pipeline::stages(plan, false);
        let epochs = cut(&events, &sizes);
        assert_law(&stages, &epochs, run);
        assert_books(&stages, &events);
    });
}

/// Every block above the cap at the end, with its size.
fn crowds(corpus: &Corpus, stages: &Stages) -> BTreeMap<BlockKey, usize> {
    let sketches: BTreeMap<_, _> = corpus.alive.values().map(|(id, sketch)| (id, sketch)).collect();
    let mut keys = Vec::new();
    sketches.values().for_each(|sketch| stages.blocking.keys(sketch.view(), &mut keys));
    keys.sort_unstable();
    let sizes = keys.chunk_by(|a, b| a == b).map(|block| (block[0], block.len()));
    sizes.filter(|(key, size)| *size > stages.blocking.rule(key.table).cap).collect()
}

/// The least sketch of every block above the cap.
fn leaders(corpus: &Corpus, stages: &Stages) -> BTreeMap<BlockKey, SketchId> {
    let mut blocks: BTreeMap<BlockKey, BTreeSet<SketchId>> = BTreeMap::new();
    let mut keys = Vec::new();
    for (id, sketch) in corpus.alive.values() {
        stages.blocking.keys(sketch.view(), &mut keys);
        for key in keys.drain(..) {
            blocks.entry(key).or_default().insert(*id);
        }
    }
    blocks.retain(|key, block| block.len() > stages.blocking.rule(key.table).cap);
    blocks.into_iter().filter_map(|(key, block)| Some((key, *block.first()?))).collect()
}

/// Hot blocks have examples, and counts are those of the history, for any run.
fn assert_books(stages: &Stages, events: &[Event]) {
    let mut corpus = Corpus::new(stages);
    corpus.apply(events);
    let hot: BTreeMap<_, _> =
        stages.observers.hot_blocks.lock().iter().map(|((key, _), block)| (*key, block.sketches)).collect();
    assert_eq!(hot, crowds(&corpus, stages));

    let count = |counter| usize::try_from(stages.observers.metrics.get(counter)).unwrap();
    let (mut alive, mut vain) = (BTreeSet::new(), 0);
    for (id, text) in events {
        match text {
            Some(_) => drop(alive.insert(id)),
            None => vain += usize::from(!alive.remove(id)),
        }
    }
    assert_eq!(count(Counter::Events), events.len());
    assert_eq!(count(Counter::UnknownDeletes), vain);
    assert_eq!(count(Counter::Inserted) - count(Counter::Deleted), alive.len());
    let sketches: BTreeSet<_> = corpus.alive.values().map(|(id, _)| id).collect();
    assert_eq!(count(Counter::SketchesBorn) - count(Counter::SketchesDied), sketches.len());
}

macro_rules! law {
    ($($name:ident $settings:expr;)*) => { $(#[test] fn $name() { holds($settings); })* };
}

law! {
    crowded_blocks CROWDED;
    one_leader "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 2, leaders = 1 }";
    two_leaders "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 3, leaders = 2 }";
    more_leaders_than_a_block_may_have "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, \
        cap = 2, leaders = 4 }";
    leaders_of_large_blocks "sketch = { size = 64, bits = 1 }\nblocking = { bands = 4, rows = 1, cap = 8, \
        leaders = 2 }";
    leaders_with_exact_verification "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap \
        = 3, leaders = 1 }\nfilter = { verify = \"exact\" }";
    nobody_meets_in_hot_blocks "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4, \
        hot = \"skip\" }";
    derived_banding "sketch = { size = 128, bits = 4 }\nblocking = { recall = 0.99, cap = 2 }";
    derived_banding_for_few_documents "sketch = { size = 128, bits = 4 }\nblocking = { recall = 0.99, \
        documents = 30, cap = 3 }";
    derived_banding_for_too_many_documents "sketch = { size = 64, bits = 2 }\nblocking = { recall = 0.9, \
        documents = 1000000, cap = 3, leaders = 1 }";
    derived_banding_for_exact_verification "sketch = { size = 128, bits = 1 }\nblocking = { recall = 0.999, \
        documents = 100, cap = 4 }\nfilter = { verify = \"exact\" }";
    sketches_of_less_than_a_word "sketch = { size = 48, bits = 2 }\nblocking = { bands = 12, rows = 4, cap = \
        3 }";
    exact_verification "sketch = { size = 64, bits = 4 }\nblocking = { recall = 0.9, cap = 3 }\nfilter = { \
        verify = \"exact\" }";
    bands_beside_permuted_tables "sketch = { kind = \"simhash\" }\ntext = { shingle = \"words:1\", weights \
        = \"count\" }\nblocking = { bands = 8, rows = 4, cap = 3, also = { kind = \"permuted\", distance = \
        2, tables = 3 } }";
    groups_counted "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"groups\", distance = 20, common \
        = 4, hot = \"never\" }";
    groups_beside_bands "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"groups\", distance = 4, \
        common = 2, cap = 4, also = { kind = \"banding\", bands = 4, rows = 2 } }";
    groups_counted_within_few_bits "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"groups\", \
        distance = 6, common = 2 }";
    groups_that_may_be_hot "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"groups\", distance = 12, \
        common = 2, cap = 3, hot = \"leaders\" }";
    a_distance_beyond_which_the_filter_accepts "sketch = { size = 128, bits = 1 }\nblocking = { kind \
        = \"permuted\", distance = 2, tables = 3 }";
    hot_bands_beside_hot_tables "sketch = { kind = \"simhash\" }\ntext = { shingle = \"words:1\", weights \
        = \"count\" }\nblocking = { bands = 8, rows = 4, cap = 3, hot = \"leaders\", also = { kind \
        = \"permuted\", distance = 2, tables = 3 } }";
    tables_beside_bands_of_a_second_sketch "sketch = { size = 64, bits = 1 }\nblocking = { sketch = \"fss\", \
        size = 64, bands = 16, rows = 2, cap = 3, leaders = 1, also = { kind = \"permuted\", distance = 3, \
        tables = 4 } }";
    shingles_beside_bands "sketch = { size = 64, bits = 1 }\nblocking = { bands = 2, rows = 16, cap = 4, \
        also = { kind = \"shingles\" } }";
    scan "blocking = { kind = \"scan\" }\nsketch = { size = 64, bits = 2 }";
    scan_with_exact_verification "blocking = { kind = \"scan\" }\nsketch = { size = 64 }\nfilter = { kind \
        = \"full\", verify = \"exact\" }";
    full_comparison "sketch = { size = 128, bits = 1 }\nblocking = { bands = 16, rows = 8, cap = 3 }\nfilter \
        = { kind = \"full\" }";
    paper_filter "sketch = { size = 256, bits = 1 }\nblocking = { bands = 16, rows = 8, cap = 4 }\nfilter = \
        { kind = \"paper\" }";
    minhash "sketch = { kind = \"minhash\", size = 64, bits = 8 }\nblocking = { bands = 32, rows = 2, cap = \
        4 }";
    full_width_minhash "sketch = { kind = \"minhash\", size = 32, bits = 64 }\nblocking = { bands = 16, rows \
        = 2, cap = 3 }";
    oph "sketch = { kind = \"oph\", size = 64, bits = 4 }\nblocking = { bands = 16, rows = 4, cap = 3 }";
    oph_with_exact_verification "sketch = { kind = \"oph\", size = 64 }\nblocking = { bands = 32, rows = 2, \
        cap = 4 }\nfilter = { verify = \"exact\" }";
    superminhash "sketch = { kind = \"superminhash\", size = 64, bits = 8 }\nblocking = { bands = 32, rows = \
        2, cap = 4 }";
    min_max "sketch = { kind = \"min-max\", size = 65, bits = 2 }\nblocking = { bands = 16, rows = 4, cap = \
        3 }";
    connected "sketch = { kind = \"connected\", size = 96, bits = 1, run = 3 }\nblocking = { bands = 16, \
        rows = 2, cap = 3 }";
    sectional_attached "sketch = { kind = \"sectional\", size = 64, bits = 4 }\nblocking = { bands = 32, \
        rows = 2, cap = 3 }";
    sectional_paired "sketch = { kind = \"sectional\", size = 64, mode = \"pair\", sections = 3 }\nblocking \
        = { bands = 32, rows = 2, cap = 3 }";
    sectional_over_minhash "sketch = { kind = \"sectional\", size = 64, base = \"minhash\" }\nblocking = { \
        bands = 32, rows = 2, cap = 3 }";
    fractional_bits "sketch = { size = 130, bits = 1.5 }\nblocking = { bands = 32, rows = 4, cap = 3 }";
    fractional_bits_scanned "sketch = { size = 130, bits = 3 }\nblocking = { kind = \"scan\" }";
    bottom_k_scanned "sketch = { kind = \"bottom-k\", size = 16 }\nblocking = { kind = \"scan\" }";
    bottom_k_in_blocks_of_fss "sketch = { kind = \"bottom-k\", size = 16 }\nblocking = { sketch = \"fss\", \
        size = 64, bands = 32, rows = 2, cap = 3 }";
    bottom_k_with_exact_verification "sketch = { kind = \"bottom-k\", size = 16 }\nblocking = { sketch \
        = \"oph\", bits = 2, cap = 3 }\nfilter = { verify = \"exact\" }";
    odd_scanned "sketch = { kind = \"odd\", size = 64, bits = 2 }\nblocking = { kind = \"scan\" }";
    odd_in_blocks_of_minhash "sketch = { kind = \"odd\", size = 64 }\nblocking = { sketch = \"minhash\", \
        size = 64, bands = 16, rows = 4, cap = 3 }";
    oph_original_scanned "sketch = { kind = \"oph-original\", size = 64 }\nblocking = { kind = \"scan\" }";
    oph_original_in_blocks_of_superminhash "sketch = { kind = \"oph-original\", size = 64, bits = 1 \
        }\nblocking = { sketch = \"superminhash\", size = 64, bands = 32, rows = 2, cap = 3 }";
    connected_in_blocks_of_fss "sketch = { kind = \"connected\", size = 128, bits = 2 }\nblocking = { sketch \
        = \"fss\", size = 64, bits = 1, bands = 16, rows = 4, cap = 3 }";
    character_shingles "text = { shingle = \"chars:5\" }\nsketch = { size = 64, bits = 8 }\nblocking = { \
        bands = 16, rows = 4, cap = 3 }";
}

/// Every sketch with every blocking, where they can be combined.
pub(crate) fn each_admitted(mut each: impl FnMut(&Plan)) {
    let sketches = [
        "kind = \"fss\", size = 64",
        "kind = \"fss\", size = 64, bits = 1",
        "kind = \"fss\", size = 130, bits = 1.5",
        "kind = \"minhash\", size = 64, bits = 1",
        "kind = \"oph\", size = 64, bits = 1",
        "kind = \"oph-original\", size = 64",
        "kind = \"superminhash\", size = 64, bits = 1",
        "kind = \"bottom-k\", size = 16",
        "kind = \"min-max\", size = 64, bits = 1",
        "kind = \"odd\", size = 64, bits = 1",
        "kind = \"connected\", size = 64, bits = 1",
        "kind = \"sectional\", size = 64, bits = 1",
        "kind = \"dart\", size = 64, bits = 1",
        "kind = \"icws\", size = 16, bits = 1",
        "kind = \"cws\", size = 16, bits = 1",
        "kind = \"rejection\", size = 16, bits = 1",
        "kind = \"simhash\"",
        "kind = \"simhash\", size = 32",
        "kind = \"simhash\", size = 128",
    ];
    let blockings = [
        "kind = \"banding\", bands = 8, rows = 2, cap = 4",
        "kind = \"banding\", recall = 0.5, documents = 20, cap = 4",
        "kind = \"banding\", sketch = \"fss\", size = 64, bands = 16, rows = 2, cap = 4",
        "kind = \"permuted\", distance = 2, tables = 3",
        "kind = \"permuted\", distance = 2, tables = 6, cap = 4, hot = \"leaders\"",
        "kind = \"multi-index\", distance = 3, tables = 2",
        "kind = \"groups\", distance = 4, common = 2, cap = 4, hot = \"skip\"",
        "kind = \"groups\", distance = 4, common = 2",
        "kind = \"conjunctions\", distance = 3, common = 2",
        "kind = \"conjunctions\", distance = 3, common = 2, cap = 4, hot = \"leaders\"",
        "kind = \"shingles\", cap = 5",
        "kind = \"scan\"",
    ];
    let mut admitted = 0;
    for sketch in sketches {
        let weights =
            if ["dart", "icws", "cws", "rejection", "simhash"].iter().any(|kind| sketch.contains(kind)) {
                "text = { shingle = \"words:1\", weights = \"count\" }"
            } else {
                ""
            };
        for blocking in blockings {
            let text = format!(
                "threshold = 0.5\noutput = {{ expand_limit = 3 }}\nsketch = {{ {sketch} }}\nblocking = {{ \
                {blocking} }}\n{weights}"
            );
            println!("{sketch}; {blocking}");
            match Plan::parse("test", &text, Path::new(""), &[]) {
                Ok(plan) => {
                    each(&plan);
                    admitted += 1;
                }
                Err(error) => assert!(error.to_string().contains("blocking.kind: "), "{error}"),
            }
        }
    }
    // Except five sketches of more than one bit within a distance, seven ways, and three without components
    // in their own bands, two ways.
    assert_eq!(admitted, sketches.len() * blockings.len() - 7 * 5 - 2 * 3);
}

/// On a few histories each.
#[test]
fn every_sketch_with_every_blocking() {
    each_admitted(|plan| law(8, plan));
}

/// The names of the shipped pipelines of texts, except that of a reference, whose law is in
/// [`items`](crate::items); that of fingerprints is in [`given`](crate::given).
pub(crate) fn shipped() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).filter(|name| !["decontaminate", "fingerprint"].contains(name))
}

/// Small limits for a shipped pipeline: a cap, where it has blocks that may be hot.
pub(crate) fn small(pipeline: &str) -> Vec<String> {
    let is_hot = Plan::load(pipeline, &[]).is_ok_and(|plan| plan.blocking().hot_rule().is_some());
    let cap = is_hot.then_some("blocking.cap=4");
    ["output.expand_limit=3"].into_iter().chain(cap).map(str::to_owned).collect()
}

/// The shipped pipelines, with small caps; those of live weights are in [`live`](crate::live).
#[test]
fn every_shipped_pipeline() {
    let mut frozen = 0;
    for name in shipped() {
        let plan = Plan::load(name, &small(name)).unwrap_or_else(|error| panic!("{error}"));
        if plan.scheme.live().is_none() {
            law(25, &plan);
            frozen += 1;
        }
    }
    assert_eq!((frozen, shipped().count()), (8, 10));
}

/// The histories above contain the cases that could break the law.
#[test]
fn histories_are_eventful() {
    let plan = plan(CROWDED);
    let mut runner = TestRunner::deterministic();
    let (mut heated, mut cooled, mut starred, mut empty, mut unchanged, mut vain) = (0, 0, 0, 0, 0, 0);
    let mut led = 0;
    for _ in 0..50 {
        let events = events(120).new_tree(&mut runner).unwrap().current();
        let stages = dupflow::pipeline::stages(&plan, false);
        let epochs = cut(&events, &[6]);
        let mut corpus = Corpus::new(&stages);
        let (mut before, mut leading) = (BTreeMap::new(), BTreeMap::new());
        for epoch in &epochs {
            corpus.apply(epoch);
            let after = crowds(&corpus, &stages);
            heated += after.keys().filter(|key| !before.contains_key(*key)).count();
            cooled += before.keys().filter(|key| !after.contains_key(*key)).count();
            before = after;
            let leaders = leaders(&corpus, &stages);
            led += leaders
                .iter()
                .filter(|(key, leader)| leading.get(*key).is_some_and(|l| l != *leader))
                .count();
            leading = leaders;
        }
        deltas(&stages, &epochs, Run { workers: 1, serialized: false, seed: 0 });
        starred += stages.observers.metrics.get(Counter::Starred);
        empty += stages.observers.metrics.get(Counter::Empty);
        unchanged += stages.observers.metrics.get(Counter::Unchanged);
        vain += stages.observers.metrics.get(Counter::UnknownDeletes);
    }
    // Per history: blocks become hot and cool by the dozen, leaders change, and the other cases occur at
    // least once in two histories.
    assert!(heated > 50 * 12 && cooled > 50, "{heated} times hot, {cooled} times no longer");
    assert!(led > 50, "{led} changes of a leader");
    let least = [starred, empty, unchanged, vain].into_iter().min();
    assert!(least > Some(25), "{starred} stars, {empty} empty, {unchanged} unchanged, {vain} vain deletes");
}
