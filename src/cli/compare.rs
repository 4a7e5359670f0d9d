//! `dupflow compare`: two texts side by side, exact beside estimated.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::PipelineArgs;
use super::examine::{Comparison, Examiner, Specimen, said};
use super::problems::Problems;
use crate::config::Plan;
use crate::doc::without_separators;
use crate::sketch::{SketchKind, SketchParams};

/// What `compare` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// A file with the one text, or "-" for standard input.
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// A file with the other text, or "-" for standard input.
    #[arg(value_name = "B")]
    pub b: PathBuf,
}

/// Prints the comparison.
///
/// # Errors
/// Everything that is wrong with the pipeline, and texts that cannot be read.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load());
    let (a, b) = if args.a == Path::new("-") && args.b == Path::new("-") {
        problems.note("only one of the two texts can be \"-\"");
        (None, None)
    } else {
        (problems.take(read(&args.a)), problems.take(read(&args.b)))
    };
    let (plan, (a, b)) = problems.settle(plan.zip(a.zip(b)))?;
    super::print(&report(&plan, [(&args.a.to_string_lossy(), &a), (&args.b.to_string_lossy(), &b)]))?;
    Ok(ExitCode::SUCCESS)
}

/// A text without fields.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read \"{}\"", path.display()))?;
    Ok(without_separators(&text).into_owned())
}

/// The comparison of two named texts.
fn report(plan: &Plan, [(name_a, a), (name_b, b)]: [(&str, &str); 2]) -> String {
    let mut examiner = Examiner::new(plan);
    let (a, b) = (examiner.examine(a), examiner.examine(b));
    let mut out = format!(
        "pipeline {}, scheme {:016x}\nA is {name_a}\nB is {name_b}\n\n",
        plan.name,
        plan.scheme.fingerprint()
    );
    let mut row = |what: &str, left: &dyn std::fmt::Display, right: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{what:<20}{left:>16}{right:>16}");
    };
    row("", &"A", &"B");
    row("bytes", &a.bytes, &b.bytes);
    row("tokens", &a.tokens.len(), &b.tokens.len());
    row("shingles", &a.shingles.len(), &b.shingles.len());
    row("distinct shingles", &a.distinct().len(), &b.distinct().len());
    out.push('\n');
    let (Some(x), Some(y)) = (&a.sketched, &b.sketched) else {
        out.push_str("a text without a token has no sketch and is in no pair\n");
        return out;
    };
    let compared = examiner.compare(x, y);
    measures(&mut out, &a, &b, &compared, &plan.scheme.sketch);
    let _ = writeln!(out, "{:<20}{} of {}", "blocks shared", compared.shared.len(), x.keys.len());
    let _ = writeln!(out, "{:<20}{}", "filter", said(&compared.verdict, examiner.looks()));
    let _ = writeln!(
        out,
        "{:<20}{}",
        "together",
        if x.id == y.id {
            "copies of one sketch: a pair of similarity 1"
        } else if compared.verdict.accepted.is_none() {
            "no pair: the filter rejects it"
        } else if compared.shared.is_empty() {
            "no pair: no shared block, so that the filter is never asked"
        } else {
            "a pair, as long as one of the shared blocks is live"
        }
    );
    out
}

fn measures(out: &mut String, a: &Specimen, b: &Specimen, compared: &Comparison, sketch: &SketchParams) {
    let (common, either) = a.overlap(b);
    let exact = common as f64 / either as f64;
    let _ = writeln!(
        out,
        "{:<20}{exact:.4}    {common} of {either} distinct shingles in common",
        "Jaccard, exact"
    );
    let Comparison { equal, estimate, standard_error, .. } = compared;
    let equal = match (equal, sketch.shape()) {
        (Some(equal), Some(shape)) => format!("{equal} of {} components equal, ", shape.size),
        _ => String::new(),
    };
    let SketchKind::Sectional { mode, .. } = sketch.kind else {
        let what = "Jaccard, estimated";
        let _ = writeln!(out, "{what:<20}{estimate:.4}    {equal}standard error {standard_error:.4}");
        return;
    };
    let what = "sectional, estimated";
    let _ = writeln!(out, "{what} {estimate:.4}   {equal}standard error {standard_error:.4}");
    if let Some(q) = mode.alignment(*estimate, exact) {
        let _ = writeln!(out, "{:<20}{q:.4}    of what is in common stands in the same section", "alignment");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tour(a: &str, b: &str) -> String {
        report(&Plan::load("tour", &[]).unwrap(), [("a", a), ("b", b)])
    }

    #[test]
    fn texts_that_are_near() {
        let said =
            tour("the quick brown fox jumps over the lazy dog", "The quick brown fox jumps over a lazy dog!");
        assert!(said.contains("tokens                             9               9\n"), "{said}");
        assert!(
            said.contains("Jaccard, exact      0.6000    6 of 10 distinct shingles in common\n"),
            "{said}"
        );
        assert!(said.contains("accepted with similarity 0.6 at look 4 of 4"), "{said}");
        assert!(said.ends_with("a pair, as long as one of the shared blocks is live\n"), "{said}");
    }

    #[test]
    fn sketches_without_components_and_with_sections() {
        let said = |kind: &str, a: &str, b: &str| {
            let settings = [format!("sketch.kind={kind}"), "blocking.kind=scan".to_owned()];
            report(&Plan::load("minhash", &settings).unwrap(), [("a", a), ("b", b)])
        };
        let (a, b) = ("one two three four five", "one two three four six");
        // Two of four shingles; the k least of so few are all of them.
        let bottom = said("bottom-k", a, b);
        assert!(bottom.contains("Jaccard, estimated  0.5000    standard error 0.0236\n"), "{bottom}");
        let sectional = said("sectional", a, a);
        assert!(
            sectional.contains("sectional, estimated 1.0000   448 of 448 components equal, "),
            "{sectional}"
        );
        assert!(sectional.contains("alignment           1.0000    of what"), "{sectional}");
    }

    #[test]
    fn copies_strangers_and_nothing() {
        assert!(
            tour("one and two", "One, and two.").ends_with("copies of one sketch: a pair of similarity 1\n")
        );
        assert!(tour("one and two", "three or four").ends_with("no pair: the filter rejects it\n"));
        assert!(tour("one and two", "?!").ends_with("has no sketch and is in no pair\n"));
    }
}
