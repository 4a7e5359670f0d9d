//! A comparison as text.

use std::fmt::Write as _;

use super::passages::put_text;
use super::subject::{NamedText, PairRuling, Subject};
use super::{measures, sketches};
use crate::cli::examine::{Examiner, SketchComparison, Specimen, shares_text, verdict_text, without_sketch};
use crate::config::Plan;
use dupflow_core::pair::{Overlap, Similarity};
use dupflow_core::sketch::SketchKind;
use dupflow_core::text::Weights;
use dupflow_core::text::measures::Measure;

/// A similarity of equal features may be that much below 1.
const ROUNDING: f64 = 1e-9;

/// The comparison of two texts with their names, its answer first; `is_whole`: with all other measures, and
/// all sketches.
pub(super) fn report(subject: &Subject, is_whole: bool) -> String {
    let Subject { plan, notes, ruling, texts: [a_text, b_text], .. } = subject;
    let mut examiner = Examiner::new(plan);
    let (a, b) = (examiner.examine(&a_text.text), examiner.examine(&b_text.text));
    let mut out = headline([&a, &b], plan, ruling, &mut examiner);
    let _ = writeln!(out, "\n\npipeline {}, scheme {:016x}", plan.name, plan.scheme.fingerprint());
    notes.iter().for_each(|note| out.extend([note.as_str(), "\n"]));
    for (which, NamedText { name, place, .. }) in [("A", a_text), ("B", b_text)] {
        let _ = write!(out, "{which} is ");
        put_text(&mut out, name);
        place.iter().for_each(|place| out.extend([", ", place.as_str()]));
        out.push('\n');
    }
    out.push('\n');
    let mut row = |what: &str, left: &dyn std::fmt::Display, right: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{what:<20}{left:>18}{right:>16}");
    };
    row("", &"A", &"B");
    row("bytes", &a.bytes, &b.bytes);
    row("tokens", &a.tokens, &b.tokens);
    row("shingles", &a.features.len(), &b.features.len());
    row("distinct shingles", &a.distinct(), &b.distinct());
    out.push('\n');
    answer(&mut out, [&a, &b], plan, ruling, &mut examiner);
    if is_whole && a.tokens > 0 && b.tokens > 0 {
        let own = measures::own_weights(&plan.scheme.text.weights, [&a, &b]);
        measures::table(&mut out, &a, &b, own);
        let weights = own.unwrap_or(&Weights::Tf);
        sketches::table(&mut out, &a, &b, &plan.scheme.sketch, weights, &mut examiner);
    }
    out
}

/// Whether two texts are a pair, how similar they are, and why, in one line.
pub(super) fn headline(
    [a, b]: [&Specimen; 2],
    plan: &Plan,
    ruling: &PairRuling,
    examiner: &mut Examiner,
) -> String {
    let (Some(x), Some(y), Some(compared)) = (&a.sketched, &b.sketched, examiner.compare_texts(a, b)) else {
        return without_sketch(emptiest([a, b])).to_owned();
    };
    let accepted = compared.verdict.accepted.map(Similarity::get);
    let found = match accepted {
        _ if x.id == y.id && examiner.exact(a, b) < 1.0 - ROUNDING => {
            "a pair by estimate: two texts that differ have one sketch".to_owned()
        }
        _ if x.id == y.id => "a pair, of copies".to_owned(),
        None if examiner.is_too_short(&compared.verdict) => {
            "no pair: a text is too short for filter.least_words, or for an estimate".to_owned()
        }
        None => format!("no pair: the filter rejects it, the threshold is {}", plan.threshold),
        Some(_) if compared.shared.is_empty() => {
            "no pair: no shared block, so that none compares them".into()
        }
        Some(_) => "a pair".to_owned(),
    };
    let found = match ruling {
        PairRuling::Rejected(why) => format!("no pair: {why}"),
        PairRuling::Unknown if accepted.is_some() => format!("{found}, unless pairs.where rejects it"),
        PairRuling::Allowed | PairRuling::Unknown => found,
    };
    format!("{:.3}: {found}", accepted.unwrap_or(compared.estimate))
}

/// The text with the fewest tokens of those without a sketch.
fn emptiest(texts: [&Specimen; 2]) -> &Specimen {
    let without = texts.into_iter().filter(|text| text.sketched.is_none());
    without.min_by_key(|text| text.tokens).expect("one of them has no sketch")
}

/// What the pipeline saw of the two texts.
fn answer(
    out: &mut String,
    [a, b]: [&Specimen; 2],
    plan: &Plan,
    ruling: &PairRuling,
    examiner: &mut Examiner,
) {
    let (Some(x), Some(compared)) = (&a.sketched, examiner.compare_texts(a, b)) else { return };
    similarity(out, a, b, &compared, plan, examiner);
    let mut row = |what: &str, value: &str| {
        let _ = writeln!(out, "{what:<28}{value}");
    };
    let blocks = format!("{} of {}; one that is not hot suffices", compared.shared.len(), x.keys.len());
    row("blocks shared", &blocks);
    row("filter", &verdict_text(&compared.verdict, ["A", "B"], examiner));
    if !plan.scheme.pairs.is_empty() {
        let ruled = match ruling {
            PairRuling::Allowed => "allows the pair",
            PairRuling::Rejected(_) => "rejects the pair",
            PairRuling::Unknown => "not applied: the two texts have no fields",
        };
        row("pairs.where", ruled);
    }
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
    let in_each = match [a, b].map(Specimen::distinct) {
        [0, _] | [_, 0] => String::new(),
        [of_a, of_b] => {
            let overlap = Overlap { shared: common, of_a, of_b };
            shares_text(overlap.similarity(), "A", "B").unwrap_or_default()
        }
    };
    let note = match plan.scheme.measure() {
        Measure::Jaccard if measured == "Jaccard" => in_common,
        Measure::Containment => in_each,
        _ => String::new(),
    };
    row(&format!("{measured}, exact"), exact, &note);
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

    fn report_of(plan: Plan, texts: [(&str, &str); 2]) -> String {
        report(&Subject::of_texts(plan, texts.map(|(name, text)| (name.to_owned(), text.to_owned()))), true)
    }

    fn tour(a: &str, b: &str) -> String {
        report_of(Plan::load("tour", &[]).unwrap(), [("a", a), ("b", b)])
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
            text.starts_with("0.600: a pair\n\npipeline tour") && text.contains("\n\nevery measure"),
            "{text}"
        );
    }

    #[test]
    fn sketches_without_components_and_with_sections() {
        let report_by = |kind: &str, a: &str, b: &str| {
            let settings = [format!("sketch.kind={kind}"), "blocking.kind=scan".to_owned()];
            report_of(Plan::load("minhash", &settings).unwrap(), [("a", a), ("b", b)])
        };
        let (a, b) = ("one two three four five", "one two three four six");
        // Two of four shingles are common; a bottom-k sketch holds all of so few.
        let bottom = report_by("bottom-k", a, b);
        assert!(bottom.contains("Jaccard, estimated          0.5000    standard error 0.0000\n"), "{bottom}");
        let sectional = report_by("sectional", a, a);
        assert!(
            sectional.contains("sectional, estimated        1.0000    448 of 448 components equal, "),
            "{sectional}"
        );
        assert!(sectional.contains("alignment q, exact          1.0000    of what"), "{sectional}");
    }

    /// Six words in nine, with shingles of one word: all of A in B, two thirds of B in A.
    #[test]
    fn a_text_in_another() {
        let settings = ["text.shingle=words:1", "filter.least_words=3"].map(str::to_owned);
        let plan = Plan::load("contained", &settings).unwrap();
        let text = report_of(
            plan,
            [("a", "one two three four five six"), ("b", "a b c one two three four five six")],
        );
        let shares = "1.0000 of A in B, 0.6667 of B in A";
        assert!(text.contains(&format!("containment, exact          1.0000    {shares}\n")), "{text}");
        let verdict = format!("accepted with similarity 1.0000 ({shares}) at look 2 of 2, after 6 values");
        assert!(text.contains(&verdict), "{text}");
        assert!(text.contains("containment, estimated      1.0000    standard error 0.0000\n"), "{text}");
    }

    #[test]
    fn copies_different_texts_and_empty_texts() {
        let copies = tour("one and two", "One, and two.");
        assert!(copies.starts_with("1.000: a pair, of copies\n"), "{copies}");
        let strangers = tour("one and two", "three or four");
        assert!(strangers.starts_with("0.000: no pair: the filter rejects it"), "{strangers}");
        assert!(
            tour("one and two", "?!").starts_with("a text without a token has no sketch and is in no pair\n")
        );
    }

    /// Values computed by hand for a a b and a b b c, by words.
    #[test]
    fn every_measure() {
        let plan = Plan::load("simhash", &[]).unwrap();
        let text = report_of(plan, [("a", "a a b"), ("b", "a b b c")]);
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
            report_of(Plan::load(pipeline, &[]).unwrap(), [("a", "one two three"), ("b", "one two four")])
        };
        let weighted = report_by("weighted");
        assert!(weighted.contains("document frequencies are live, and these two texts all"), "{weighted}");
        // idf is 1 for the common words and 1 + ln(3 / 2) for the others: 2 / (2 + 2 * 1.4055).
        assert!(weighted.contains("weighted Jaccard, exact     0.4157\n"), "{weighted}");
        assert!(weighted.contains("  weighted Jaccard of tf-idf    0.4157\n"), "{weighted}");
        // By ln(N / (df + 1)) no shingle of two texts has a weight.
        let paper = report_by("paper");
        assert!(paper.starts_with("a text whose shingles all weigh 0 has no sketch"), "{paper}");
        assert!(paper.contains("\n> cws ") && !paper.contains("of tf-idf"), "{paper}");
    }
}
