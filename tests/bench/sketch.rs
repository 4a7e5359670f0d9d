//! Features to sketches: the default beside the reference, for short and long texts.

#![expect(missing_docs, reason = "criterion's macros make an item")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::hash::mix;
use dupflow::sketch::{Cws, Dart, Fss, Icws, MinHash, Sampler, SimHash, Sketcher};
use dupflow::text::Features;

fn sketch(c: &mut Criterion) {
    for features in [20u64, 70, 300, 1000, 4000] {
        let mut group = c.benchmark_group(format!("sketch/{features} features"));
        group.throughput(Throughput::Elements(1));
        let texts: Vec<Vec<u64>> =
            (0..64).map(|text| (0..features).map(|i| mix(text << 32 | i)).collect()).collect();
        let mut out = vec![0; 448];
        let samplers: [(&str, Box<dyn Sampler>); 2] =
            [("fss", Box::new(Fss::new(448, 1))), ("minhash", Box::new(MinHash::new(448, 1)))];
        for (name, mut sampler) in samplers {
            let mut next = texts.iter().cycle();
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| next.next().map(|text| sampler.components(Features::set(text), &mut out)));
            });
        }
    }
}

/// Counts from 1 to 20, most of them small, as weights; MinHash of the same features beside them.
fn weighted(c: &mut Criterion) {
    for (features, size) in [(300u64, 256), (1000, 256), (4000, 256), (300, 1000), (1000, 1000)] {
        let mut group = c.benchmark_group(format!("weighted/{features} features, K {size}"));
        group.throughput(Throughput::Elements(features)).sample_size(20);
        let texts: Vec<Vec<u64>> =
            (0..16).map(|text| (0..features).map(|i| mix(text << 32 | i)).collect()).collect();
        let weights: Vec<f64> = (1..=features).map(|i| (features / i).min(20) as f64).collect();
        let mut out = vec![0; size];
        let samplers: [(&str, Box<dyn Sampler>); 4] = [
            ("dart", Box::new(Dart::new(size, 1))),
            ("cws", Box::new(Cws::new(size, 1))),
            ("icws", Box::new(Icws::new(size, 1))),
            ("minhash", Box::new(MinHash::new(size, 1))),
        ];
        let mut next = texts.iter().cycle().map(|ids| Features { ids, weights: &weights });
        for (name, mut sampler) in samplers {
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| next.next().map(|text| sampler.components(text, &mut out)));
            });
        }
        let (mut simhash, mut words) = (SimHash::new(64, 1), Vec::new());
        group.bench_function(BenchmarkId::from_parameter("simhash, 64 bits"), |b| {
            b.iter(|| {
                words.clear();
                next.next().map(|text| simhash.sketch(text, &mut words))
            });
        });
    }
}

criterion_group!(benches, sketch, weighted);
criterion_main!(benches);
