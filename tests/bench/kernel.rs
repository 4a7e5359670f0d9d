use criterion::{Criterion, criterion_group, criterion_main};
use dupflow::hash::mix;
use dupflow::sketch::kernel::Kernel;
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    for (size, bits) in [(1024, 1), (256, 8), (256, 64), (512, 1)] {
        let n = size / 64 * bits;
        let a: Vec<u64> = (0..n as u64).map(mix).collect();
        let b: Vec<u64> = (0..n as u64).map(|i| mix(i + 1000)).collect();
        for (from, to) in [(0, 64), (64, 128), (128, 256), (0, size)] {
            let mut group = c.benchmark_group(format!("kernel {size}x{bits} {from}..{to}"));
            for (name, kernel) in Kernel::engines(size, bits) {
                group.bench_function(name, |be| {
                    be.iter(|| kernel.differing(black_box(&a), black_box(&b), black_box(from), black_box(to)))
                });
            }
            group.finish();
        }
    }
}
criterion_group!(benches, bench);
criterion_main!(benches);
