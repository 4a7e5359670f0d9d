//! Features to sketches, all kinds side by side, for short and long texts.

#![expect(missing_docs, reason = "criterion's macros make an item")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::hash::mix;
use dupflow::core::sketch::{SketchKind, SketchParams};
use dupflow::core::text::Features;

fn sketch(c: &mut Criterion) {
    for (size, features) in
        [448, 256, 1024].into_iter().flat_map(|k| [20u64, 70, 300, 1000, 4000].map(|n| (k, n)))
    {
        let mut group = c.benchmark_group(format!("sketch/{size} components/{features} features"));
        group.throughput(Throughput::Elements(features));
        let ids: Vec<Vec<u64>> =
            (0..64).map(|text| (0..features).map(|i| mix(text << 32 | i)).collect()).collect();
        // Counts as texts have them: most features once, a few often.
        let weights: Vec<f64> = (1..=features).map(|i| (features / i).clamp(1, 20) as f64).collect();
        for kind in SketchKind::ALL {
            let (size, bits, weights): (_, _, &[f64]) = match kind {
                SketchKind::SimHash { .. } => (64, 1, &weights),
                SketchKind::Dart | SketchKind::Icws | SketchKind::Cws => (size, 4, &weights),
                _ => (size, 4, &[]),
            };
            let mut sketcher = SketchParams { kind, size, bits, wide: 0, seed: 1 }.sketcher();
            let mut words = Vec::new();
            let mut next = ids.iter().cycle();
            group.bench_function(BenchmarkId::from_parameter(kind.name()), |b| {
                b.iter(|| {
                    words.clear();
                    if let Some(text) = next.next() {
                        sketcher.sketch(Features { ids: text, weights }, &mut words);
                    }
                });
            });
        }
    }
}

criterion_group!(benches, sketch);
criterion_main!(benches);
