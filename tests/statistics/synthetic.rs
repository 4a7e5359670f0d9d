//! Two texts of a known similarity, under word shingles of one.

use dupflow::sketch::{Scheme, Sketch, SketchKind, SketchMaker, SketchParams, VERSION};
use dupflow::text::{Shingle, TextRules};

/// Two sketches of texts with `union` words together, of which the share `similarity` is common: `size` components of all
/// 64 bits, so that the first b planes are the sketch of b bits. Trials differ in the words and in the seed.
pub(crate) fn sketches(
    kind: SketchKind,
    size: usize,
    union: usize,
    similarity: f64,
    trial: u64,
) -> (Sketch, Sketch) {
    let common = (1..=union).find(|n| *n as f64 >= similarity * union as f64 - 1e-9).unwrap();
    let own = union - common;
    let text = |ranges: [std::ops::Range<usize>; 2]| {
        let words = ranges.into_iter().flatten().map(|word| format!("{trial}x{word}"));
        words.collect::<Vec<_>>().join(" ")
    };
    let a = text([0..common, common..common + own / 2]);
    let b = text([0..common, common + own / 2..union]);
    let rules = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let params = SketchParams { kind, size, bits: 64, seed: trial };
    let scheme = Scheme { version: VERSION, text: rules, sketch: params, blocks: None, exact: false };
    let mut maker = SketchMaker::new(&scheme);
    let mut sketch = |words: &str| maker.sketch(words).unwrap().1;
    (sketch(&a), sketch(&b))
}
