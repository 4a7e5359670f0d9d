//! `dupflow compare`: compares two texts, first as the pipeline does, then by every measure and every sketch.

mod measures;
mod sketches;

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use super::PipelineArgs;
use super::arguments::problems::Problems;
use super::examine::{Examiner, SketchComparison, Specimen, verdict_text, without_sketch};
use crate::config::Plan;
use dupflow_connectors::formats::{MAX_RECORD_BYTES, text_of_file};
use dupflow_core::doc::without_separators;
use dupflow_core::sketch::SketchKind;
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Featurizer, IdfTable, Weights};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A file with the first text, or "-" for standard input.
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// A file with the second text, or "-" for standard input.
    #[arg(value_name = "B")]
    pub b: PathBuf,
}

/// Prints the comparison.
///
/// # Errors
/// All problems of the pipeline; texts that cannot be read.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    let (a, b) = if args.a == Path::new("-") && args.b == Path::new("-") {
        problems.note("only one of the two texts can be \"-\"");
        (None, None)
    } else {
        (problems.take(read(&args.a)), problems.take(read(&args.b)))
    };
    let (plan, (a, b)) = problems.settle(plan.zip(a.zip(b)))?;
    super::print(&report(plan, [(&args.a.to_string_lossy(), &a), (&args.b.to_string_lossy(), &b)]))?;
    Ok(ExitCode::SUCCESS)
}

/// Message for a text above the limit for documents.
const TOO_LONG: &str = "it is longer than 64 MiB, which is the most that a document may have";

/// Reads a text without fields, up to the limit for documents.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_RECORD_BYTES)
}

/// Reads a text without fields, of at most `most` bytes.
pub(super) fn read_up_to(path: &Path, most: usize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let fits = |read| if read > most { Err(invalid(TOO_LONG)) } else { Ok(read) };
    let most = (most as u64).saturating_add(1);
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    let no_text = || invalid("it is no UTF-8");
    let text = read.and_then(fits).and_then(|_| text_of_file(path, &bytes).ok_or_else(no_text));
    let text = text.with_context(|| format!("cannot read \"{}\"", path.display()))?;
    Ok(without_separators(&text).into_owned())
}

fn invalid(why: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, why)
}

/// The comparison of two texts with their names.
fn report(mut plan: Plan, [(name_a, a), (name_b, b)]: [(&str, &str); 2]) -> String {
    let is_live = freeze(&mut plan, [a, b]);
    let mut examiner = Examiner::new(&plan);
    let (a, b) = (examiner.examine(a), examiner.examine(b));
    let mut out = format!("pipeline {}, scheme {:016x}\n", plan.name, plan.scheme.fingerprint());
    if is_live {
        out.push_str("document frequencies are live, and these two texts all the documents here\n");
    }
    let _ = write!(out, "A is {name_a}\nB is {name_b}\n\n");
    let mut row = |what: &str, left: &dyn std::fmt::Display, right: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{what:<20}{left:>18}{right:>16}");
    };
    row("", &"A", &"B");
    row("bytes", &a.bytes, &b.bytes);
    row("tokens", &a.tokens, &b.tokens);
    row("shingles", &a.features.len(), &b.features.len());
    row("distinct shingles", &a.distinct(), &b.distinct());
    out.push('\n');
    answer(&mut out, &a, &b, &plan, &mut examiner);
    if a.tokens > 0 && b.tokens > 0 {
        let own = measures::own_weights(&plan.scheme.text.weights, [&a, &b]);
        measures::table(&mut out, &a, &b, own);
        let weights = own.unwrap_or(&Weights::Tf);
        sketches::table(&mut out, &a, &b, &plan.scheme.sketch, weights, &mut examiner);
    }
    out
}

/// Freezes live weights at the document frequencies of these texts. Returns whether the weights were live.
fn freeze(plan: &mut Plan, texts: [&str; 2]) -> bool {
    if plan.scheme.live().is_none() {
        return false;
    }
    let mut featurizer = Featurizer::new(plan.scheme.text.clone());
    let features = texts.map(|text| featurizer.terms(text).to_owned().ids);
    // Texts without a token are not counted.
    let counted = features.into_iter().filter(|ids| !ids.is_empty());
    plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(counted)));
    true
}

/// The pipeline's answer for the two texts.
fn answer(out: &mut String, a: &Specimen, b: &Specimen, plan: &Plan, examiner: &mut Examiner) {
    let (Some(x), Some(y)) = (&a.sketched, &b.sketched) else {
        let without = [a, b].into_iter().filter(|text| text.sketched.is_none());
        let emptiest = without.min_by_key(|text| text.tokens).expect("one of them has no sketch");
        let _ = writeln!(out, "{}", without_sketch(emptiest));
        return;
    };
    let compared = examiner.compare(x, y);
    similarity(out, a, b, &compared, plan, examiner);
    let mut row = |what: &str, value: &str| {
        let _ = writeln!(out, "{what:<28}{value}");
    };
    row("blocks shared", &format!("{} of {}", compared.shared.len(), x.keys.len()));
    row("filter", &verdict_text(&compared.verdict, examiner.looks()));
    if !plan.scheme.pairs.is_empty() {
        row("pairs.where", "not applied: the two texts have no fields");
    }
    let together = if x.id == y.id {
        "copies of one sketch: a pair of similarity 1"
    } else if compared.verdict.accepted.is_none() {
        "no pair: the filter rejects it"
    } else if compared.shared.is_empty() {
        "no pair: no shared block, so that the filter is never asked"
    } else {
        "a pair, as long as one of the shared blocks is live"
    };
    row("together", together);
}

/// The similarity by the pipeline's measure: exact, and estimated from the sketches.
fn similarity(
    out: &mut String,
    a: &Specimen,
    b: &Specimen,
    compared: &SketchComparison,
    plan: &Plan,
    examiner: &mut Examiner,
) {
    let SketchComparison { equal, estimate, standard_error, .. } = compared;
    let mut row = |what: &str, value: f64, note: &str| {
        let _ = writeln!(out, "{}", format!("{what:<28}{value:.4}    {note}").trim_end());
    };
    let (exact, measured) = (examiner.exact(a, b), examiner.measured());
    let (common, either) = a.overlap(b);
    let in_common = format!("{common} of {either} distinct shingles in common");
    row(&format!("{measured}, exact"), exact, if measured == "Jaccard" { &in_common } else { "" });
    let equal = match (equal, examiner.shape()) {
        (Some(equal), Some(shape)) => format!("{equal} of {} components equal, ", shape.size),
        _ => String::new(),
    };
    row(&format!("{measured}, estimated"), *estimate, &format!("{equal}standard error {standard_error:.4}"));
    if let SketchKind::Sectional { sections, mode, .. } = plan.scheme.sketch.kind {
        let jaccard = examiner.measure(Measure::Jaccard, &Weights::Unit, a, b);
        if let Some((q, estimated)) = a.alignment(b, sections).zip(mode.alignment(*estimate, jaccard)) {
            row("alignment q, exact", q, "of what is in common stands in the same section");
            row("alignment q, estimated", estimated, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tour(a: &str, b: &str) -> String {
        report(Plan::load("tour", &[]).unwrap(), [("a", a), ("b", b)])
    }

    #[test]
    fn near_texts() {
        let text =
            tour("the quick brown fox jumps over the lazy dog", "The quick brown fox jumps over a lazy dog!");
        assert!(text.contains("tokens                               9               9\n"), "{text}");
        assert!(
            text.contains("Jaccard, exact              0.6000    6 of 10 distinct shingles in common\n"),
            "{text}"
        );
        assert!(text.contains("accepted with similarity 0.6000 at look 4 of 4"), "{text}");
        assert!(
            text.contains("  a pair, as long as one of the shared blocks is live\n\nevery measure"),
            "{text}"
        );
    }

    #[test]
    fn sketches_without_components_and_with_sections() {
        let report_by = |kind: &str, a: &str, b: &str| {
            let settings = [format!("sketch.kind={kind}"), "blocking.kind=scan".to_owned()];
            report(Plan::load("minhash", &settings).unwrap(), [("a", a), ("b", b)])
        };
        let (a, b) = ("one two three four five", "one two three four six");
        // Two of four shingles are common; a bottom-k sketch holds all of so few.
        let bottom = report_by("bottom-k", a, b);
        assert!(bottom.contains("Jaccard, estimated          0.5000    standard error 0.0236\n"), "{bottom}");
        let sectional = report_by("sectional", a, a);
        assert!(
            sectional.contains("sectional, estimated        1.0000    448 of 448 components equal, "),
            "{sectional}"
        );
        assert!(sectional.contains("alignment q, exact          1.0000    of what"), "{sectional}");
    }

    #[test]
    fn copies_different_texts_and_empty_texts() {
        let copies = tour("one and two", "One, and two.");
        assert!(copies.contains("  copies of one sketch: a pair of similarity 1\n"), "{copies}");
        let strangers = tour("one and two", "three or four");
        assert!(strangers.contains("  no pair: the filter rejects it\n"), "{strangers}");
        assert!(tour("one and two", "?!").ends_with("has no sketch and is in no pair\n"));
    }

    /// Values computed by hand for a a b and a b b c, by words.
    #[test]
    fn every_measure() {
        let plan = Plan::load("simhash", &[]).unwrap();
        let text = report(plan, [("a", "a a b"), ("b", "a b b c")]);
        for row in [
            "cosine, exact               0.7303\n",
            "  Jaccard                       0.6667    2 of 3 distinct shingles in common\n",
            "  containment of A in B         1.0000    2 of A's 2\n",
            "  containment of B in A         0.6667    2 of B's 3\n",
            // (1 + 1) / (2 + 2 + 1); (1/4 + 1/3) / (2/3 + 1/2 + 1/4).
            "  weighted Jaccard of counts    0.4000\n",
            "  weighted Jaccard of tf        0.4118\n",
            // 4 / sqrt(5 * 6).
            "  cosine of counts              0.7303    of tf the same\n",
            // 1 / (1 + 2 + 1) + 1 / (2 + 1 + 1/2).
            "  probability Jaccard of counts 0.5357    of tf the same\n",
        ] {
            assert!(text.contains(row), "{row:?} is not in\n{text}");
        }
    }

    #[test]
    fn live_document_frequencies_are_those_of_the_two_texts() {
        let report_by = |pipeline: &str| {
            report(Plan::load(pipeline, &[]).unwrap(), [("a", "one two three"), ("b", "one two four")])
        };
        let weighted = report_by("weighted");
        assert!(weighted.contains("document frequencies are live, and these two texts all"), "{weighted}");
        // idf is 1 for the common words and 1 + ln(3 / 2) for the others: 2 / (2 + 2 * 1.4055).
        assert!(weighted.contains("weighted Jaccard, exact     0.4157\n"), "{weighted}");
        assert!(weighted.contains("  weighted Jaccard of tf-idf    0.4157\n"), "{weighted}");
        // By ln(N / (df + 1)) no shingle of two texts has a weight.
        let paper = report_by("paper");
        assert!(paper.contains("\na text whose shingles all weigh 0 has no sketch"), "{paper}");
        assert!(paper.contains("\n> cws ") && !paper.contains("of tf-idf"), "{paper}");
    }
}
