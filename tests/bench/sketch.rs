//! Features to sketches: the default beside the reference, for short and long texts.

#![expect(missing_docs, reason = "criterion's macros make an item")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::hash::mix;
use dupflow::sketch::{Fss, MinHash, Sampler};
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

criterion_group!(benches, sketch);
criterion_main!(benches);
