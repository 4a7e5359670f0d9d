//! The block index beside a naive one (a map from key to members that are met one by one): loading sketches in epochs of
//! 1,000, and replacing 1,000 of 100,000.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::collections::BTreeMap;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::block::index::{BlockIndex, Posting};
use dupflow::block::{Banding, Blocking};
use dupflow::hash::{SketchId, mix};
use dupflow::sketch::SketchRef;

const TABLES: usize = 18;
const CAP: usize = 512;

/// The postings of random sketches, one in ten a copy of the one before but for a few bits.
fn postings(sketches: std::ops::Range<u64>, diff: i8) -> Vec<Posting> {
    let banding = Banding::new(448, TABLES, 7, CAP);
    let mut keys = Vec::new();
    let mut postings = Vec::new();
    for n in sketches {
        let source = if n % 10 == 0 { n.saturating_sub(1) } else { n };
        let mut words: Vec<u64> = (0..28).map(|i| mix(source << 8 | i)).collect();
        words[3] ^= n;
        let id = SketchId::of(0, &words);
        banding.keys(SketchRef { words: &words, features: &[] }, &mut keys);
        postings.extend(keys.drain(..).map(|key| Posting { key, id, word: words[0], diff }));
    }
    postings
}

fn similar(a: u64, b: u64) -> bool {
    (a ^ b).count_ones() < 20
}

/// What the index does, without its tables, slots and crowds.
#[derive(Clone, Default)]
struct Naive(BTreeMap<(u16, u32), Vec<(SketchId, u64)>>);

impl Naive {
    fn apply(&mut self, postings: &[Posting]) -> u64 {
        let mut met = 0;
        for p in postings {
            let members = self.0.entry((p.key.table, p.key.hash)).or_default();
            if p.diff < 0 {
                members.retain(|(id, _)| *id != p.id);
            }
            met += members.iter().filter(|(_, word)| similar(*word, p.word)).count() as u64;
            if p.diff > 0 {
                members.push((p.id, p.word));
            }
        }
        met
    }
}

fn blocks(c: &mut Criterion) {
    let mut group = c.benchmark_group("blocks/1000 sketches into 100,000");
    group.throughput(Throughput::Elements(1000)).sample_size(10);
    let (come, go) = (postings(100_000..101_000, 1), postings(100_000..101_000, -1));
    let apply = |index: &mut BlockIndex, postings: &[Posting]| {
        let mut met = 0;
        index.apply(&mut postings.to_vec(), |a, b, _| similar(a, b), |_, _| met += 1);
        met
    };

    let mut index = BlockIndex::new(TABLES, CAP);
    for thousand in 0..100 {
        apply(&mut index, &postings(thousand * 1000..(thousand + 1) * 1000, 1));
    }
    group.bench_function("index, in and out", |b| {
        b.iter_batched(
            || (),
            |()| apply(&mut index, &come) + apply(&mut index, &go),
            BatchSize::PerIteration,
        );
    });

    let mut naive = Naive::default();
    naive.apply(&postings(0..100_000, 1));
    group.bench_function("naive, in and out", |b| {
        b.iter_batched(|| (), |()| naive.apply(&come) + naive.apply(&go), BatchSize::PerIteration);
    });
}

criterion_group!(benches, blocks);
criterion_main!(benches);
