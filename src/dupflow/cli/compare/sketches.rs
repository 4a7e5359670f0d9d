//! All sketches of two texts.
//!
//! Input: two texts. Output: an aligned table with one row per kind of sketch: its measure, the exact
//! similarity of the texts, the estimate, and the theoretical standard error at the exact value.
//!
//! Sizes, bits and seed are those of the pipeline if a kind can have them, so that errors are comparable.
//! Otherwise a sketch has 448 components of 4 bits, or 64 bits for simhash. The pipeline's own sketch is made
//! exactly as the pipeline makes it. Weighted kinds and simhash use the pipeline's weights, or tf if it has
//! none.

use std::fmt::Write as _;
use std::mem::discriminant;

use super::measures::weighted_by;
use crate::cli::examine::{Examiner, Specimen, named};
use dupflow_core::sketch::{SectionBase, SketchKind, SketchParams};
use dupflow_core::text::{Features, Weigher, Weights};

/// Standard errors from here on, inclusive, mean that the estimate carries no information.
const USELESS: f64 = 1.0;

/// Most hashes for a sketch that is not the pipeline's own, 2^28: at most about a second. For 448 components
/// that is 600,000 shingles.
const MOST_HASHES: usize = 1 << 28;

/// Number of hashes for a text of `shingles` shingles, for the kinds that compute one for each shingle and
/// component.
fn hashes(params: &SketchParams, shingles: usize) -> usize {
    match params.kind {
        SketchKind::MinHash
        | SketchKind::MinMax
        | SketchKind::Connected { .. }
        | SketchKind::Icws
        | SketchKind::Cws => params.size.saturating_mul(shingles),
        SketchKind::Sectional { base, .. } if base != SectionBase::Fss => {
            params.size.saturating_mul(shingles)
        }
        _ => 0,
    }
}

/// The table for two texts that both have a shingle with a weight under these weights.
pub(super) fn table(
    out: &mut String,
    a: &Specimen,
    b: &Specimen,
    own: &SketchParams,
    weights: &Weights,
    examiner: &mut Examiner,
) {
    let _ = writeln!(
        out,
        "\n{:<16}{:<28}{:>6}  {:<28}{:>6}{:>10}{:>16}",
        "every sketch", "places", "bytes", "of", "exact", "estimate", "standard error"
    );
    let features = a.distinct().max(b.distinct());
    // A scaled sketch has no size in common with the others.
    let own_kind = Some(own.kind).filter(|_| own.scaled().is_some());
    for kind in SketchKind::ALL.into_iter().chain(own_kind) {
        let params = params(kind, own);
        let mark = if params == *own { ">" } else { " " };
        let (name, places, bytes) = (params.kind.name(), places(&params), 8 * params.words());
        if params != *own && hashes(&params, features) > MOST_HASHES {
            let why = format!("left out: a hash for each of {features} shingles and each place");
            let _ = writeln!(out, "{mark} {name:<14}{places:<28}{bytes:>6}  {why}");
            continue;
        }
        let estimator = params.estimator();
        let measure = params.kind.measure();
        let weights = if measure.is_weighted() { weights } else { &Weights::Unit };
        let [x, y] = [a, b].map(|text| words(&params, text, weights));
        let estimate = estimator.estimate(&x, &y).clamp(0.0, 1.0);
        let similarity = examiner.measure(measure, weights, a, b);
        let mut of = named(measure).to_owned();
        let mut exact = similarity;
        let mut alignment = None;
        if let SketchKind::Sectional { sections, mode, .. } = params.kind {
            "sectional".clone_into(&mut of);
            let aligned = a.alignment(b, sections);
            exact = mode.expectation(similarity, aligned.unwrap_or(0.0));
            alignment = aligned.zip(mode.alignment(estimate, similarity));
        } else if measure.is_weighted() {
            let _ = write!(of, " of {}", weighted_by(weights));
        }
        let error = params.standard_error(exact, a.overlap(b).1);
        let error = if error < USELESS { format!("{error:.4}") } else { "-".to_owned() };
        let _ = writeln!(
            out,
            "{mark} {name:<14}{places:<28}{:>6}  {of:<28}{exact:.4}{estimate:>10.4}{error:>16}",
            8 * x.len().max(y.len())
        );
        if let Some((q, estimated)) = alignment {
            let what = "alignment q";
            let _ = writeln!(out, "{:<52}{what:<28}{q:.4}{estimated:>10.4}", "");
        }
    }
    out.push_str(
        "> is the pipeline's own; the standard error is that of estimates at the exact value for texts of \
        these lengths, in theory\n",
    );
}

/// Parameters of a sketch of this kind, as similar as possible to the pipeline's `own`.
fn params(kind: SketchKind, own: &SketchParams) -> SketchParams {
    if discriminant(&kind) == discriminant(&own.kind) {
        return *own;
    }
    let fits = match kind {
        _ if matches!(own.kind, SketchKind::SimHash { .. } | SketchKind::Fingerprint) => false,
        SketchKind::Odd => own.size * own.bits <= 32_768,
        SketchKind::Connected { run } => own.size.is_multiple_of(run) && own.bits * run <= 64,
        _ => true,
    };
    let (size, bits) = match kind {
        SketchKind::SimHash { .. } => (64, 1),
        _ if fits => (own.size, own.bits),
        _ => (448, 4),
    };
    SketchParams { kind, size, bits, wide: 0, seed: own.seed }
}

fn words(params: &SketchParams, text: &Specimen, weights: &Weights) -> Vec<u64> {
    // Scaled sketches are those of the pipeline only.
    if let Some((scaled, own)) = params.scaled().zip(text.sketched.as_ref()) {
        let kept = scaled.kept(&own.sketch.features);
        return std::iter::once(own.sketch.words[0]).chain(kept.iter().copied()).collect();
    }
    let mut words = Vec::new();
    let mut weigher = Weigher::new();
    let features = match weights {
        // In text order, since sections depend on it.
        Weights::Unit => Features::set(&text.features),
        _ => weigher.weigh(text.terms.view(), weights),
    };
    params.sketcher().sketch(features, &mut words);
    words
}

/// The components of a sketch as text.
fn places(params: &SketchParams) -> String {
    let SketchParams { kind, size, bits, wide, .. } = *params;
    match kind {
        SketchKind::BottomK => format!("{size} least values"),
        SketchKind::Odd => format!("{} parities of {size}", size * bits),
        SketchKind::Connected { run } => format!("{} runs of {run} x {bits} bits", size / run),
        SketchKind::SimHash { .. } | SketchKind::Fingerprint => format!("{size} bits"),
        SketchKind::Scaled { scale, least } => format!("1 of {scale} values, {least} or more"),
        SketchKind::Sectional { sections, .. } => format!("{size} x {bits} bits, {sections} sections"),
        _ if wide > 0 => format!("{} x {bits}, {wide} x {} bits", size - wide, 2 * bits),
        _ if bits == 1 => format!("{size} x 1 bit"),
        _ => format!("{size} x {bits} bits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;

    /// With the seed of the pipelines; two texts of 200 words that differ in every tenth.
    #[test]
    fn estimates_are_within_five_standard_errors_of_what_they_estimate() {
        for pipeline in ["minhash", "sectional", "simhash", "onebit"] {
            let plan = Plan::load(pipeline, &[]).unwrap();
            let mut examiner = Examiner::new(&plan);
            let text = |other: &str| -> String {
                (0..200).map(|i| format!("{}{i} ", if i % 10 == 0 { other } else { "w" })).collect()
            };
            let (a, b) = (examiner.examine(&text("x")), examiner.examine(&text("y")));
            let mut out = String::new();
            table(&mut out, &a, &b, &plan.scheme.sketch, &Weights::Tf, &mut examiner);
            let rows: Vec<_> = out.lines().skip(2).filter(|row| !row.contains("alignment q")).collect();
            let (note, rows) = rows.split_last().unwrap();
            assert!(note.starts_with("> is") && rows.len() == SketchKind::ALL.len(), "{out}");
            let own: Vec<_> = rows.iter().filter(|row| row.starts_with('>')).collect();
            assert!(own.len() == 1 && own[0].contains(plan.scheme.sketch.kind.name()), "{out}");
            for row in rows {
                let numbers: Vec<f64> =
                    row[80..].split_whitespace().map(|number| number.parse().unwrap()).collect();
                let [exact, estimate, error] = numbers[..] else { panic!("{row}") };
                assert!(exact > 0.3 && (exact - estimate).abs() <= 5.0 * error, "{pipeline}: {row}");
            }
        }
    }

    #[test]
    fn parameters_fit_every_kind() {
        for (pipeline, expected) in [("paper", (448, 4)), ("simhash", (448, 4)), ("minhash", (448, 4))] {
            let own = Plan::load(pipeline, &[]).unwrap().scheme.sketch;
            let connected = params(SketchKind::Connected { run: 2 }, &own);
            assert_eq!((connected.size, connected.bits), expected, "{pipeline}");
        }
        let own = Plan::load("paper", &[]).unwrap().scheme.sketch;
        let fss = params(SketchKind::Fss, &own);
        assert_eq!((fss.size, fss.bits), (1000, 64));
        assert_eq!(params(SketchKind::Cws, &own), own);
        assert_eq!(params(SketchKind::SIMHASH, &own).words(), 1);
    }

    /// A hash for each of 448 components takes too long for 600,000 shingles. Such kinds are left out and
    /// named; all others are listed, and the pipeline's own is made in any case.
    #[test]
    fn long_texts_leave_out_what_takes_long() {
        for (pipeline, settings, left_out) in [
            ("minhash", &[][..], &["minhash", "min-max", "connected", "icws", "cws"][..]),
            ("minhash", &["sketch.kind=min-max"], &["minhash", "connected", "icws", "cws"]),
        ] {
            let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
            let plan = Plan::load(pipeline, &settings).unwrap();
            let mut examiner = Examiner::new(&plan);
            let text: String = (0..600_010).map(|n| format!("{n} ")).collect();
            let (a, b) = (examiner.examine(&text), examiner.examine("1 2 3 4 5"));
            assert_eq!((a.tokens, a.distinct(), a.overlap(&b)), (600_010, 600_008, (3, 600_008)));
            let mut out = String::new();
            table(&mut out, &a, &b, &plan.scheme.sketch, &Weights::Tf, &mut examiner);
            let found: Vec<_> =
                (out.lines().filter(|row| row.contains("left out: a hash for each of 600008 shingles")))
                    .filter_map(|row| row[2..].split(' ').next())
                    .collect();
            assert_eq!(found, left_out, "{out}");
            assert!(SketchKind::ALL.iter().all(|kind| out.contains(&format!(" {} ", kind.name()))), "{out}");
        }
    }
}
