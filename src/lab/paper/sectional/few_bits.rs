//! 004-X1: the lowest b bits of each of k permutations, compared with those of one permutation in k parts.
//!
//! Table 1 lists b bits (Li & König) and one permutation (Li, Owen & Zhang) as separate sketches. Combined
//! they cost one hash per feature and b bits per component. An empty part takes the value of another one
//! (Shrivastava 2017); the program's default fills it in a further round.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::model::SHAPE;
use crate::table::{ResultTable, row};
use crate::{EvaluateError, threads};
use dupflow_core::hash::mix;
use dupflow_core::sketch::{SketchKind, SketchParams};
use dupflow_core::text::Features;

/// b.
const BITS: [usize; 3] = [1, 2, 4];

/// |A ∪ B|: near k, and much larger.
const UNIONS: [usize; 2] = [SHAPE.1, 2_000];

/// J.
const JACCARD: f64 = 0.8;

/// The samplers, with names.
const KINDS: [(&str, SketchKind); 3] =
    [("k permutations", SketchKind::MinHash), ("one permutation", SketchKind::Oph), ("fss", SketchKind::Fss)];

/// Li & König's variance, as table 1 prints it.
fn printed(bits: usize) -> f64 {
    (1.0 - JACCARD) / SHAPE.0 as f64 * (JACCARD + 1.0 / f64::from((1_u32 << bits) - 1))
}

/// The mean square error of a sketch's estimate.
fn error(seed: u64, trials: usize, kind: SketchKind, bits: usize, union: usize) -> f64 {
    let square = |trial: usize| {
        let seed = mix(seed ^ mix(trial as u64));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ids: Vec<u64> = (0..union).map(|_| rng.random()).collect();
        // Eight tenths of all features are common, a tenth belongs to each text.
        let (common, half) = (union * 8 / 10, union * 9 / 10);
        let texts = [ids[..half].to_vec(), [&ids[..common], &ids[half..]].concat()];
        let params = SketchParams { kind, size: SHAPE.0, bits, wide: 0, seed };
        let mut sketcher = params.sketcher();
        let [a, b] = texts.map(|mut text| {
            text.sort_unstable();
            let mut words = Vec::new();
            sketcher.sketch(Features::set(&text), &mut words);
            words
        });
        (params.estimator().estimate(&a, &b) - JACCARD).powi(2)
    };
    (0..trials).map(square).sum::<f64>() / trials as f64
}

/// 004-X1.
pub(super) fn permutations(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let trials = work.size(2_000, 20);
    let cases: Vec<(usize, usize, usize)> = (0..UNIONS.len())
        .flat_map(|u| (0..KINDS.len()).flat_map(move |k| (0..BITS.len()).map(move |b| (u, k, b))))
        .collect();
    let measured = threads::map(work.bench.threads, cases.len(), |n| {
        let (u, k, b) = cases[n];
        error(work.bench.seed, trials, KINDS[k].1, BITS[b], UNIONS[u])
    });
    let mut table = ResultTable::new(
        "004_x1_bits",
        "b bits of k permutations and of one",
        &format!(
            "{trials} pairs, J = {JACCARD}, k = {}; the mean square error, and its ratio to Li & König's \
                variance of k permutations.",
            SHAPE.0
        ),
        "|A ∪ B| | sketch | bits | printed variance | measured | measured / printed",
    );
    for ((u, k, b), error) in cases.iter().zip(&measured) {
        let variance = printed(BITS[*b]);
        table.push(row![UNIONS[*u], KINDS[*k].0, BITS[*b], variance, *error, error / variance]);
    }
    let ratios = |u: usize, k: usize| -> Vec<f64> {
        (0..BITS.len()).map(|b| measured[(u * KINDS.len() + k) * BITS.len() + b] / printed(BITS[b])).collect()
    };
    let shown = |all: &[f64]| all.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", ");
    let line = |of: &str, printed: &str, all: Vec<f64>, basis: Basis, reason: &str| {
        let of = format!("{of}, b = 1, 2, 4: MSE / (1 - J)/k (J + 1/(2^b - 1))");
        ItemLine::new("004-X1", of, printed).measured(shown(&all)).judged(basis).because(reason)
    };
    let of_permutations = [ratios(0, 0), ratios(1, 0)].concat();
    let (crowded, sparse, rounds) = (ratios(1, 1), ratios(0, 1), [ratios(0, 2), ratios(1, 2)].concat());
    let ones = PrintedClaim::each(of_permutations.iter().map(|ratio| (1.0, *ratio)), Matters::From(0.15));
    let most = |all: &[f64]| UnjudgedReason::Shown.checked(PrintedClaim::at_most(1.15, all));
    let lines = vec![
        line(
            "k permutations, |A ∪ B| = 300 and 2,000",
            "1",
            of_permutations,
            Basis::Defined(ones),
            "the law of k independent components",
        ),
        line(
            "one permutation, |A ∪ B| = 2,000",
            "-",
            crowded.clone(),
            most(&crowded),
            "no worse, for a k-th of the hashes, where features are many more than k",
        ),
        line(
            "one permutation, |A ∪ B| = 300",
            "-",
            sparse.clone(),
            UnjudgedReason::Shown.into(),
            "where features are about k, parts are empty and take values of others, which then count twice",
        ),
        line(
            "fss, |A ∪ B| = 300 and 2,000",
            "-",
            rounds.clone(),
            most(&rounds),
            "the default: further rounds fill empty parts, and it errs less where features are few",
        ),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}
