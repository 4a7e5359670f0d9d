//! Cutting a sketch into bands. Deciding a pair: by stages beside the full comparison; merging features with an end in sight beside a plain merge.
//!
//! A mix is what a filter meets in a scan of web-like documents: nearly all pairs have almost nothing in common.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dupflow::block::{Banding, Blocking, HotRule};
use dupflow::filter::{FilterKind, FilterParams, PairFilter, Staged, Target, shared_features};
use dupflow::hash::mix;
use dupflow::sketch::kernel::Kernel;
use dupflow::sketch::{Sketch, SketchRef};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SIZE: usize = 1024;
const PAIRS: usize = 1000;

/// Pairs of one-bit sketches at similarities drawn from `similarity`.
fn pairs(mut similarity: impl FnMut(&mut StdRng) -> f64) -> Vec<(Sketch, Sketch)> {
    let mut rng = StdRng::seed_from_u64(1);
    let pair = |_| {
        let s = similarity(&mut rng);
        let a: Vec<u64> = (0..SIZE / 64).map(|_| rng.random()).collect();
        let change = |word: &u64| {
            (0..64).fold(*word, |word, bit| word ^ u64::from(rng.random_bool((1.0 - s) / 2.0)) << bit)
        };
        let b = a.iter().map(change).collect();
        let sketch = |words| Sketch { words, features: [].into() };
        (sketch(a.into()), sketch(b))
    };
    (0..PAIRS).map(pair).collect()
}

/// Shares of similarities like those of pairs of fund reports: 97 % near nothing, 3 % near-duplicates.
fn mixed(rng: &mut StdRng) -> f64 {
    if rng.random_bool(0.97) { rng.random_range(0.0..0.1) } else { rng.random_range(0.8..1.0) }
}

fn decide(c: &mut Criterion) {
    let filter = |kind| {
        let params = FilterParams { kind, ..FilterParams::default() };
        Staged::new(Target::new(0.8, SIZE, 1).expect("a threshold"), &params).expect("default parameters")
    };
    let filters = [("staged", FilterKind::Staged), ("paper", FilterKind::Paper), ("full", FilterKind::Full)]
        .map(|(n, k)| (n, filter(k)));
    let portable = Kernel::scalar(SIZE, 1);
    let corpora =
        [("0.02", pairs(|_| 0.02)), ("0.3", pairs(|_| 0.3)), ("0.8", pairs(|_| 0.8)), ("mix", pairs(mixed))];
    for (name, corpus) in &corpora {
        let mut group = c.benchmark_group(format!("filter/1000 pairs at {name}"));
        for (kind, staged) in &filters {
            group.bench_function(*kind, |bench| {
                bench.iter(|| {
                    corpus
                        .iter()
                        .filter(|(a, b)| staged.decide(a.view(), b.view()).accepted.is_some())
                        .count()
                });
            });
        }
        // What a program without looks and without kernels would do.
        group.bench_function("naive", |bench| {
            let accept = |(a, b): &&(Sketch, Sketch)| portable.differing(&a.words, &b.words, 0, SIZE) <= 102;
            bench.iter(|| corpus.iter().filter(accept).count());
        });
        // What the block operator does: the first words only, through the trait.
        group.bench_function("first word", |bench| {
            let staged: &dyn PairFilter = &filters[0].1;
            let passes = |(a, b): &&(Sketch, Sketch)| staged.first_word(a.words[0], b.words[0]);
            bench.iter(|| corpus.iter().filter(passes).count());
        });
        group.finish();
    }
}

/// Two ascending lists with this similarity, of 1150 features together.
fn features(similarity: f64) -> (Vec<u64>, Vec<u64>) {
    let mut rng = StdRng::seed_from_u64(2);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in (0..1150).map(mix) {
        let both = rng.random_bool(similarity);
        let first = rng.random_bool(0.5);
        if both || first {
            a.push(x);
        }
        if both || !first {
            b.push(x);
        }
    }
    a.sort_unstable();
    b.sort_unstable();
    (a, b)
}

fn naive_merge(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    common
}

fn merge(c: &mut Criterion) {
    for similarity in [0.3, 0.6, 0.85, 1.0] {
        let mut group = c.benchmark_group(format!("features/1150 at {similarity}"));
        let lists = features(similarity);
        // J >= 0.8, of 1150 in the union.
        let needed = (lists.0.len() + lists.1.len()) * 4 / 9;
        // A fresh copy each time: else the predictor learns the one pair by heart.
        let fresh = |shift: &mut u64| {
            *shift += 1;
            let turn = |list: &[u64]| {
                let mut turned: Vec<u64> = list.iter().map(|x| mix(x ^ *shift)).collect();
                turned.sort_unstable();
                turned
            };
            (turn(&lists.0), turn(&lists.1))
        };
        let mut shift = 0;
        group.bench_function("merge", |bench| {
            bench.iter_batched(
                || fresh(&mut shift),
                |(a, b)| shared_features(black_box(&a), black_box(&b), needed),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("naive", |bench| {
            bench.iter_batched(
                || fresh(&mut shift),
                |(a, b)| naive_merge(black_box(&a), black_box(&b)) >= needed,
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

/// What every distinct sketch pays: one key a band.
fn keys(c: &mut Criterion) {
    for (size, bits, bands, rows) in [(1024, 1, 44, 22), (256, 8, 26, 8), (256, 64, 26, 8)] {
        let banding = Banding::new(size, bands, rows, HotRule::NEVER);
        let words: Vec<u64> = (0..(size / 64 * bits) as u64).map(mix).collect();
        let mut out = Vec::new();
        c.bench_function(&format!("keys/{bands} bands of {rows} rows of {bits} bits"), |bench| {
            bench.iter(|| {
                out.clear();
                banding.keys(black_box(SketchRef { words: &words, features: &[] }), &mut out);
                out.len()
            });
        });
    }
}

/// What a pipeline pays once.
fn plan(c: &mut Criterion) {
    for size in [256, 1024, 4096] {
        let target = Target::new(0.8, size, 1).expect("a threshold");
        c.bench_function(&format!("schedule/{size}"), |bench| {
            bench.iter(|| Staged::new(target, &FilterParams::default()));
        });
    }
}

criterion_group!(benches, keys, decide, merge, plan);
criterion_main!(benches);
