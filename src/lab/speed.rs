//! Time per feature to compute the components of a sketch, from hashes of features; text processing is not
//! included.

use std::hint::black_box;

use super::plot::{Axis, Plot, Series};
use super::table::{ResultTable, row};
use super::{EvaluateError, Findings, Study, StudyContext};
use dupflow_core::hash::mix;
use dupflow_core::sketch::{SketchKind, SketchParams};
use dupflow_core::text::Features;
use dupflow_core::text::measures::Measure;

/// Features of a text, and K.
const SHAPES: [(usize, usize); 4] = [(300, 256), (1000, 256), (1000, 1024), (4000, 256)];

/// The sketch to which all others are compared.
const REFERENCE: SketchKind = SketchKind::MinHash;

/// Sketches that take more than a hundred times as long; measured at the first two shapes only.
const SLOW: [SketchKind; 2] = [SketchKind::Icws, SketchKind::Cws];

/// Features sketched in a round, approximately; slow sketches have one text.
const FEATURES: usize = 20_000;

/// The study of sketching times.
#[derive(Clone, Copy, Debug)]
pub struct SketchSpeed;

impl Study for SketchSpeed {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let mut table = ResultTable::new(
            "speed",
            "Sketching time",
            "Per feature, one thread, 4 bits of each component kept; of each text the least time of rounds \
                in which every sketch has its turn. Simhash has 64 bits at any K. Dart, icws, cws and \
                simhash are given weights, the others sets.",
            "sketch | n, features | K | time, ns/feature | times as fast as minhash",
        );
        let others = SketchKind::ALL.into_iter().filter(|kind| *kind != REFERENCE && !SLOW.contains(kind));
        let fast: Vec<SketchKind> = [REFERENCE].into_iter().chain(others).collect();
        let kinds: Vec<SketchKind> = fast.iter().copied().chain(SLOW).collect();
        let empty = |kind: &SketchKind| Series::new(kind.name(), Vec::new());
        let mut series: Vec<Series> = kinds.iter().map(empty).collect();
        for (place, (features, size)) in SHAPES.into_iter().enumerate() {
            let mut times = time(bench, &fast, features, size, FEATURES.div_ceil(features));
            if place < 2 {
                let slow = time(bench, &SLOW, features, size, 1);
                times.extend(slow);
            }
            for ((kind, nanoseconds), line) in kinds.iter().zip(&times).zip(&mut series) {
                table.push(row![kind.name(), features, size, *nanoseconds, times[0] / nanoseconds]);
                if size == SHAPES[0].1 {
                    line.points.push((features as f64, *nanoseconds));
                }
            }
        }
        Ok(Findings {
            name: "speed".to_owned(),
            title: "Sketching speed".to_owned(),
            about: "From the hashes of a text's features to its sketch; reading the text comes on top."
                .to_owned(),
            tables: vec![table],
            plots: vec![Plot::new(
                "speed",
                format!("Sketching time, K = {}", SHAPES[0].1),
                Axis::log("features of a text"),
                Axis::log("ns per feature"),
                series,
            )],
        })
    }
}

/// A sketch of about K components, of the default width.
fn params(kind: SketchKind, size: usize, seed: u64) -> SketchParams {
    let (size, bits) = if matches!(kind, SketchKind::SimHash { .. }) { (64, 1) } else { (size, 4) };
    SketchParams { kind, size, bits, wide: 0, seed }
}

/// Nanoseconds per feature of each sketch.
fn time(
    bench: &StudyContext<'_>,
    kinds: &[SketchKind],
    features: usize,
    size: usize,
    texts: usize,
) -> Vec<f64> {
    let draw = |text| {
        let mut ids: Vec<u64> = (0..features as u64).map(|x| mix(mix(bench.seed ^ text) ^ x)).collect();
        ids.sort_unstable();
        ids
    };
    let texts: Vec<Vec<u64>> = (0..texts as u64).map(draw).collect();
    let weights: Vec<f64> = (0..features).map(|x| 0.5 * (1 + x % 8) as f64).collect();
    let mut sketchers: Vec<_> = kinds.iter().map(|kind| params(*kind, size, bench.seed).sketcher()).collect();
    let mut words = Vec::new();
    let times = bench.times(kinds.len(), texts.len(), |sketch, text| {
        words.clear();
        let ids = black_box(&texts[text]);
        let of_text = match kinds[sketch].measure() {
            Measure::Jaccard | Measure::Containment | Measure::Hamming => Features::set(ids),
            Measure::WeightedJaccard | Measure::Cosine => Features { ids, weights: &weights },
        };
        sketchers[sketch].sketch(of_text, &mut words);
        black_box(&words);
    });
    times.into_iter().map(|seconds| seconds * 1e9 / (texts.len() * features) as f64).collect()
}
