//! The contract of all kinds of sketches: one table, one function.

use std::sync::Arc;

use super::{Estimator, SectionBase, SectionMode, SketchKind, SketchParams};
use crate::hash::mix;
use crate::text::Features;

/// Every kind with several sizes and widths; kinds with parameters more than once.
fn table() -> Vec<SketchParams> {
    let kinds = [
        SketchKind::Fss,
        SketchKind::MinHash,
        SketchKind::Oph,
        SketchKind::OphOriginal,
        SketchKind::SuperMinHash,
        SketchKind::BottomK,
        SketchKind::MinMax,
        SketchKind::Odd,
        SketchKind::Connected { run: 2 },
        SketchKind::Connected { run: 4 },
        SketchKind::Sectional { sections: 2, mode: SectionMode::Attach, base: SectionBase::Fss },
        SketchKind::Sectional { sections: 5, mode: SectionMode::Pair, base: SectionBase::MinHash },
    ];
    let shapes = [(64, 1), (100, 4), (132, 8)];
    let of = |kind| shapes.map(|(size, bits)| SketchParams { kind, size, bits, wide: 0, seed: 1 });
    let mixed = [SketchKind::Fss, SketchKind::Oph].map(|kind| SketchParams {
        kind,
        size: 200,
        bits: 2,
        wide: 128,
        seed: 1,
    });
    kinds.into_iter().flat_map(of).chain(mixed).collect()
}

fn words(params: &SketchParams, ids: &[u64]) -> Vec<u64> {
    let mut words = vec![42];
    params.sketcher().sketch(Features::set(ids), &mut words);
    assert_eq!(words.remove(0), 42, "words are appended");
    assert_eq!(words.len(), params.words(), "{params:?}");
    words
}

fn ids(n: u64) -> Vec<u64> {
    (0..n).map(|i| mix(i ^ n << 32)).collect()
}

fn is_sectional(params: &SketchParams) -> bool {
    matches!(params.kind, SketchKind::Sectional { .. })
}

#[test]
fn a_sketch_is_a_function_of_the_features_and_of_the_parameters() {
    for params in table() {
        let mut sketcher = params.sketcher();
        // One feature; fewer than components; about as many; many more.
        for n in [1, 2, 7, 50, 130, 3000] {
            let features = ids(n);
            let expected = words(&params, &features);
            for _ in 0..2 {
                let mut again = Vec::new();
                sketcher.sketch(Features::set(&features), &mut again);
                assert_eq!(again, expected, "{params:?}, {n} features: nothing of former texts is left");
            }
            let other = SketchParams { seed: 2, ..params };
            assert_ne!(words(&other, &features), expected, "{params:?}, {n} features");
            assert_ne!(words(&params, &ids(n + 1)), expected, "{params:?}, {n} features");
            if !is_sectional(&params) {
                let mut shuffled = features.clone();
                shuffled.sort_unstable_by_key(|x| mix(*x));
                shuffled.extend_from_slice(&features[..features.len() / 2]);
                assert_eq!(words(&params, &shuffled), expected, "{params:?}: order and repeats");
            }
        }
    }
}

#[test]
fn estimates_are_symmetric_and_1_for_equal_sketches() {
    for params in table() {
        let estimator: Arc<dyn Estimator> = params.estimator();
        for n in [1, 7, 130, 3000] {
            let (a, b) = (words(&params, &ids(n)), words(&params, &ids(n + 1)));
            let (one, far) = (estimator.estimate(&a, &a), estimator.estimate(&a, &b));
            assert!((one - 1.0).abs() < 1e-12, "{params:?}, {n} features: {one}");
            assert!(far.total_cmp(&estimator.estimate(&b, &a)).is_eq(), "{params:?}");
            // Six standard deviations of the least precise sketch, 64 components of one bit, are 0.75.
            assert!(far < 0.9, "{params:?}, {n} features: {far}");
        }
        assert!(estimator.standard_error(1.0).abs() < 1e-9, "{params:?}");
        let errors = [0.9, 0.95].map(|j| estimator.standard_error(j));
        assert!(errors[0] > errors[1] && errors[1] > 0.0, "{params:?}: {errors:?}");
    }
}

/// The stated properties of a kind are consistent with its theoretical variance.
#[test]
fn stated_shapes_and_variances() {
    for params in table() {
        if let Some(shape) = params.shape() {
            assert_eq!(shape.words(), params.words(), "{params:?}");
        }
        if let Some(planes) = params.planes() {
            assert!(planes.words() <= params.words(), "{params:?}");
        }
        let bound = params.estimator().standard_error(0.9).powi(2);
        let known = params.variance(0.9, 100_000);
        assert_eq!(known.is_none(), params.wide > 0, "{params:?}");
        // With very many features components are nearly independent, which is the standard error stated
        // without their number.
        if let Some(variance) = known {
            assert!((variance / bound - 1.0).abs() < 0.02, "{params:?}: {variance} {bound}");
        }
    }
}

/// Texts of a few features: similarity is a multiple of 1/3, which a large sketch resolves.
#[test]
fn tiny_texts() {
    for params in table().into_iter().map(|params| SketchParams { size: 4096, wide: 0, ..params }) {
        if is_sectional(&params) || matches!(params.kind, SketchKind::Odd) {
            continue;
        }
        let (a, b) = (words(&params, &[mix(1), mix(2)]), words(&params, &[mix(2), mix(3)]));
        let estimate = params.estimator().estimate(&a, &b);
        let deviation = match params.kind {
            // Two or three bins decide, or three values.
            SketchKind::OphOriginal | SketchKind::BottomK => 0.0,
            _ => 6.0 * params.variance(1.0 / 3.0, 3).unwrap().sqrt(),
        };
        assert!((estimate - 1.0 / 3.0).abs() <= deviation + 0.01, "{params:?}: {estimate}");
    }
}
