//! The block index compared with a naive one (a map from key to members): replacing 1,000 of 100,000
//! sketches; loading 100,000 as one epoch and in epochs of 1,000, which should cost the same; and 1,000
//! sketches that enter and leave a hot block of 20,000, with leaders and without.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::collections::BTreeMap;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::block::index::{BlockIndex, Postings};
use dupflow::core::block::{Banding, BlockKey, Blocking, HotRule};
use dupflow::core::hash::{SketchId, mix};
use dupflow::core::sketch::SketchRef;

const TABLES: usize = 18;
const RULE: HotRule = HotRule { cap: 64, leaders: 2, ..HotRule::NEVER };

/// The postings of random sketches; one in ten differs from the one before in a few bits only.
fn sketches(numbers: std::ops::Range<u64>) -> impl Iterator<Item = (SketchId, u64, Vec<BlockKey>)> {
    let banding = Banding::new(448, TABLES, 7, RULE);
    numbers.map(move |n| {
        let source = if n % 10 == 0 { n.saturating_sub(1) } else { n };
        let mut words: Vec<u64> = (0..28).map(|i| mix(source << 8 | i)).collect();
        words[3] ^= n;
        let id = SketchId::new(0, &words);
        let mut keys = Vec::new();
        banding.keys(SketchRef { words: &words, features: &[] }, &mut keys);
        (id, words[0], keys)
    })
}

fn postings(numbers: std::ops::Range<u64>, diff: i8) -> Postings {
    let mut postings = Postings::default();
    for (id, word, keys) in sketches(numbers) {
        keys.into_iter().for_each(|key| postings.key(key));
        postings.sketch(id, word, diff);
    }
    postings
}

fn similar(a: u64, b: u64) -> bool {
    (a ^ b).count_ones() < 20
}

/// A naive index, without tables, slots and lists.
#[derive(Clone, Default)]
struct Naive(BTreeMap<(u16, u64), Vec<(SketchId, u64)>>);

impl Naive {
    fn apply(&mut self, sketches: &[(SketchId, u64, Vec<BlockKey>)], diff: i8) -> u64 {
        let mut met = 0;
        for (id, word, key) in
            sketches.iter().flat_map(|(id, word, keys)| keys.iter().map(move |k| (id, *word, k)))
        {
            let members = self.0.entry((key.table, key.hash())).or_default();
            if diff < 0 {
                members.retain(|(other, _)| other != id);
            }
            met += members.iter().filter(|(_, other)| similar(*other, word)).count() as u64;
            if diff > 0 {
                members.push((*id, word));
            }
        }
        met
    }
}

/// Number of emitted changes of pairs.
fn apply(index: &mut BlockIndex, postings: Postings) -> usize {
    let mut told = 0;
    index.apply([postings], |a, b, _| similar(a, b), |_, _| told += 1);
    told
}

fn blocks(c: &mut Criterion) {
    let mut group = c.benchmark_group("blocks/1000 sketches into 100,000");
    group.throughput(Throughput::Elements(1000)).sample_size(10);
    let (come, go) = (postings(100_000..101_000, 1), postings(100_000..101_000, -1));
    let mut index = BlockIndex::new(TABLES, RULE);
    for thousand in 0..100 {
        apply(&mut index, postings(thousand * 1000..(thousand + 1) * 1000, 1));
    }
    group.bench_function("index, in and out", |b| {
        b.iter_batched(
            || (),
            |()| apply(&mut index, come.clone()) + apply(&mut index, go.clone()),
            BatchSize::PerIteration,
        );
    });

    let mut naive = Naive::default();
    naive.apply(&sketches(0..100_000).collect::<Vec<_>>(), 1);
    let few: Vec<_> = sketches(100_000..101_000).collect();
    group.bench_function("naive, in and out", |b| {
        b.iter_batched(|| (), |()| naive.apply(&few, 1) + naive.apply(&few, -1), BatchSize::PerIteration);
    });
}

fn load(c: &mut Criterion) {
    let mut group = c.benchmark_group("blocks/load 100,000");
    group.throughput(Throughput::Elements(100_000)).sample_size(10);
    for (name, epoch) in [("as one epoch", 100_000), ("in epochs of 1000", 1000)] {
        let epochs: Vec<Postings> =
            (0..100_000).step_by(epoch).map(|start| postings(start..start + epoch as u64, 1)).collect();
        let load = |all: Vec<Postings>| {
            let mut index = BlockIndex::new(TABLES, RULE);
            for postings in all {
                apply(&mut index, postings);
            }
            index
        };
        group.bench_function(name, |b| b.iter_batched(|| epochs.clone(), load, BatchSize::PerIteration));
    }
}

fn hot(c: &mut Criterion) {
    let mut group = c.benchmark_group("blocks/1000 sketches in and out of a hot block of 20,000");
    group.throughput(Throughput::Elements(1000)).sample_size(10);
    let family = |numbers: std::ops::Range<u64>, diff| {
        let mut postings = Postings::default();
        for n in numbers {
            (0..18).for_each(|table| postings.key(BlockKey::new(table, 7)));
            postings.sketch(SketchId::new(0, &[n]), 0, diff);
        }
        postings
    };
    let (come, go) = (family(20_000..21_000, 1), family(20_000..21_000, -1));
    for leaders in [0, 1, 2, 16] {
        let mut index = BlockIndex::new(TABLES, HotRule { cap: 64, leaders, ..HotRule::NEVER });
        apply(&mut index, family(0..20_000, 1));
        group.bench_function(format!("{leaders} leaders"), |b| {
            b.iter(|| apply(&mut index, come.clone()) + apply(&mut index, go.clone()));
        });
    }
}

criterion_group!(benches, blocks, load, hot);
criterion_main!(benches);
