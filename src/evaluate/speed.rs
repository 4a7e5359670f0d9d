//! How long it takes to make the components of a sketch, per feature: hashes of features in, components out; without the text.

use std::hint::black_box;

use super::plot::{Axis, Plot, Series};
use super::table::{Table, row};
use super::{Bench, EvaluateError, Findings, Study};
use crate::hash::mix;
use crate::sketch::{SketchKind, SketchParams};
use crate::text::Features;

/// Features of a text, and K.
const SHAPES: [(usize, usize); 4] = [(300, 256), (1000, 256), (1000, 1024), (4000, 256)];

/// What is timed: one line a sketch; the first one is what the others are compared with.
const SKETCHES: [(&str, SketchKind); 2] = [("minhash", SketchKind::MinHash), ("fss", SketchKind::Fss)];

/// Features sketched in a round, about.
const FEATURES: usize = 20_000;

/// The study.
#[derive(Clone, Copy, Debug)]
pub struct Speed;

impl Study for Speed {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        let mut table = Table::new(
            "speed",
            "Sketching time",
            "Per feature, one thread; of each text the least time of rounds in which every sketch has its turn.",
            &["sketch", "n, features", "K", "time, ns/feature", "times as fast as minhash"],
        );
        let mut series: Vec<Series> = SKETCHES
            .iter()
            .map(|(name, _)| Series { name: (*name).to_owned(), points: Vec::new() })
            .collect();
        for (features, size) in SHAPES {
            let times = time(bench, features, size);
            for (((name, _), nanoseconds), line) in SKETCHES.iter().zip(&times).zip(&mut series) {
                table.push(row![*name, features, size, *nanoseconds, times[0] / nanoseconds]);
                if size == SHAPES[0].1 {
                    line.points.push((features as f64, *nanoseconds));
                }
            }
        }
        Ok(Findings {
            title: "Sketching speed".to_owned(),
            about: "From the hashes of a text's features to its components; reading the text comes on top."
                .to_owned(),
            tables: vec![table],
            plots: vec![Plot {
                name: "speed".to_owned(),
                title: format!("Sketching time, K = {}", SHAPES[0].1),
                x: Axis::log("features of a text"),
                y: Axis::log("ns per feature"),
                series,
            }],
        })
    }
}

/// Nanoseconds per feature of each sketch.
fn time(bench: &Bench<'_>, features: usize, size: usize) -> Vec<f64> {
    let texts: Vec<Vec<u64>> = (0..FEATURES.div_ceil(features) as u64)
        .map(|text| (0..features as u64).map(|x| mix(mix(bench.seed ^ text) ^ x)).collect())
        .collect();
    let mut words = Vec::new();
    let mut sketchers =
        SKETCHES.map(|(_, kind)| SketchParams { kind, size, bits: 64, wide: 0, seed: bench.seed }.sketcher());
    let times = bench.times(SKETCHES.len(), texts.len(), |sketch, text| {
        words.clear();
        sketchers[sketch].sketch(Features::set(black_box(&texts[text])), &mut words);
        black_box(&words);
    });
    times.into_iter().map(|seconds| seconds * 1e9 / (texts.len() * features) as f64).collect()
}
