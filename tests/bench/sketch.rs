//! Features to sketches: the default beside the reference and the others, for short and long texts.

#![expect(missing_docs, reason = "criterion's macros make an item")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::hash::mix;
use dupflow::sketch::{
    BottomK, Fss, MinHash, MinMax, Odd, Oph, OphOriginal, Sampler, SectionMode, Sectional, Sketcher,
    SuperMinHash,
};
use dupflow::text::Features;

/// A text's features to a sketch, whatever its form.
type Make = Box<dyn FnMut(&[u64])>;

fn sampler(mut sampler: impl Sampler + 'static, size: usize) -> Make {
    let mut out = vec![0; size];
    Box::new(move |text| sampler.components(Features::set(text), &mut out))
}

fn sketcher(mut sketcher: impl Sketcher + 'static) -> Make {
    let mut words = Vec::new();
    Box::new(move |text| {
        words.clear();
        sketcher.sketch(Features::set(text), &mut words);
    })
}

fn makers(size: usize) -> [(&'static str, Make); 9] {
    [
        ("fss", sampler(Fss::new(size, 1), size)),
        ("minhash", sampler(MinHash::new(size, 1), size)),
        ("oph", sampler(Oph::new(1), size)),
        ("superminhash", sampler(SuperMinHash::new(size, 1), size)),
        ("min-max", sampler(MinMax::new(size, 1), size)),
        ("sectional", sampler(Sectional::new(size, 2, SectionMode::Attach, 1), size)),
        ("bottom-k", sketcher(BottomK::new(size, 1))),
        ("odd", sketcher(Odd::new(size, 4, 1))),
        ("oph-original", sketcher(OphOriginal::new(size, 4, 1))),
    ]
}

fn sketch(c: &mut Criterion) {
    for (size, features) in
        [448, 256, 1024].into_iter().flat_map(|k| [20u64, 70, 300, 1000, 4000].map(|n| (k, n)))
    {
        let mut group = c.benchmark_group(format!("sketch/{size} components/{features} features"));
        group.throughput(Throughput::Elements(features));
        let texts: Vec<Vec<u64>> =
            (0..64).map(|text| (0..features).map(|i| mix(text << 32 | i)).collect()).collect();
        for (name, mut make) in makers(size) {
            let mut next = texts.iter().cycle();
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| next.next().map(|text| make(text)));
            });
        }
    }
}

criterion_group!(benches, sketch);
criterion_main!(benches);
