//! Two texts of a known similarity, with shingles of one word.

use dupflow::core::sketch::agreement::Shape;
use dupflow::core::sketch::{Scheme, Sketch, SketchKind, SketchMaker, SketchParams, VERSION};
use dupflow::core::text::{Shingle, TextRules};

/// Two sketches of texts with `union` words together, a share `similarity` of them common. They have `size`
/// components of 64 bits, from which [`narrow`] makes sketches of fewer bits. Trials differ in the words and
/// in the seed.
pub(crate) fn sketches(
    kind: SketchKind,
    size: usize,
    union: usize,
    similarity: f64,
    trial: u64,
) -> (Sketch, Sketch) {
    sketches_by(SketchParams { kind, size, bits: 64, wide: 0, seed: trial }, union, similarity, trial)
}

/// The sketch with `bits` bits of the same components.
pub(crate) fn narrow(sketch: &Sketch, size: usize, bits: usize) -> Vec<u64> {
    Shape::components(size, bits).pack(&sketch.words[1..])
}

/// As [`sketches`], with any sketch parameters.
pub(crate) fn sketches_by(
    params: SketchParams,
    union: usize,
    similarity: f64,
    trial: u64,
) -> (Sketch, Sketch) {
    let common = (1..=union).find(|n| *n as f64 >= similarity * union as f64 - 1e-9).unwrap();
    let own = union - common;
    let words = |ranges: [std::ops::Range<usize>; 2]| ranges.into_iter().flatten().collect::<Vec<_>>();
    let a = words([0..common, common..common + own / 2]);
    let b = words([0..common, common + own / 2..union]);
    sketches_of(params, [&a, &b], trial)
}

/// The sketches of two texts of numbered words.
pub(crate) fn sketches_of(params: SketchParams, texts: [&[usize]; 2], trial: u64) -> (Sketch, Sketch) {
    let rules = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let scheme = Scheme { version: VERSION, text: rules, sketch: params, ..Scheme::default() };
    let mut maker = SketchMaker::new(&scheme);
    let [a, b] = texts.map(|words| {
        let text: Vec<_> = words.iter().map(|word| format!("{trial}x{word}")).collect();
        maker.sketch(&text.join(" ")).unwrap().1
    });
    (a, b)
}
