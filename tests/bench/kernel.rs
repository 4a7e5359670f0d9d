//! Comparing two sketches with every kernel of this machine: one word, some words, all words.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dupflow::core::hash::mix;
use dupflow::core::sketch::agreement::Shape;
use dupflow::core::sketch::kernel::Kernel;

fn engines(c: &mut Criterion) {
    for (size, bits) in [(512, 1), (1024, 1), (448, 4), (256, 8), (256, 64)] {
        let length = Shape::components(size, bits).words() as u64;
        let words = |salt| -> Vec<u64> { (0..length).map(|i| mix(i ^ salt)).collect() };
        let (a, b) = (words(1 << 32), words(2 << 32));
        for (from, to) in [(64, 128), (128, 256), (0, size)] {
            let mut group = c.benchmark_group(format!("kernel/{size} of {bits} bits, {from}..{to}"));
            for (name, kernel) in Kernel::engines(size, bits) {
                group.bench_function(name, |bench| {
                    bench.iter(|| {
                        kernel.differing(black_box(&a), black_box(&b), black_box(from), black_box(to))
                    });
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, engines);
criterion_main!(benches);
