//! Blocking against its curve: how often two texts of a known similarity share a block.

use dupflow::config::{BlockingPlan, Plan};
use dupflow::core::block::banding::Curve;
use dupflow::core::block::{Banding, BlockKey, Blocking, HotRule};
use dupflow::core::sketch::agreement::Agreement;
use dupflow::core::sketch::{Sketch, SketchKind, SketchRef};

use crate::bounds;
use crate::synthetic::{narrow, sketches};

const TRIALS: usize = 1000;

/// The share of pairs that become candidates, with bands cut from sketches of `size` components.
fn candidates(kind: SketchKind, size: usize, curve: Curve, union: usize, similarity: f64) -> f64 {
    let Agreement::Bits(bits) = curve.agreement else { panic!("{curve:?}") };
    let banding = Banding::new(size, curve.bands, curve.rows, HotRule::NEVER);
    let keys = |sketch: &Sketch| {
        let mut keys: Vec<BlockKey> = Vec::new();
        banding.keys(SketchRef { words: &narrow(sketch, size, bits), features: &[] }, &mut keys);
        keys
    };
    let shares = (0..TRIALS as u64).filter(|trial| {
        let (a, b) = sketches(kind, size, union, similarity, *trial);
        keys(&a).iter().zip(keys(&b)).any(|(x, y)| *x == y)
    });
    shares.count() as f64 / TRIALS as f64
}

/// Independent components: the curve is exact.
#[test]
fn minhash_follows_the_curve() {
    let curve = Curve { bands: 16, rows: 4, agreement: Agreement::Bits(2) };
    for similarity in [0.2, 0.4, 0.5, 0.6, 0.8] {
        let (found, expected) =
            (candidates(SketchKind::MinHash, 64, curve, 60, similarity), curve.probability(similarity));
        let slack = bounds::of_share(TRIALS, expected);
        assert!((found - expected).abs() <= slack, "J {similarity}: {found}, by the curve {expected}");
    }
}

/// The design of the default pipeline. Dependence between components only raises recall at high similarities:
/// it spreads matches more evenly over the bands, so that fewer pairs have no common band.
#[test]
fn the_default_design_follows_the_curve() {
    let plan = Plan::load("minhash", &[]).unwrap_or_else(|error| panic!("{error}"));
    let BlockingPlan::Banding { design, .. } = &plan.blocking else { panic!("{:?}", plan.blocking) };
    println!("share of pairs that are candidates, and the curve's {:?}", design.curve);
    for union in [20, 60, 300, 2000] {
        for similarity in [0.3, 0.5, 0.6, 0.7, 0.8, 0.9] {
            let expected = design.curve.probability(similarity);
            let found = candidates(SketchKind::Fss, plan.scheme.sketch.size, design.curve, union, similarity);
            println!("  {union:5} features, J = {similarity}: {found:.4} {expected:.4}");
            let slack = bounds::of_share(TRIALS, expected);
            assert!(found >= expected - slack, "union {union} J {similarity}: {found} {expected}");
        }
    }
}
