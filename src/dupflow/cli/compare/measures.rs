//! All similarity measures of two texts.
//!
//! Input: the features of two texts. Output: an aligned table with the similarities of [`measures`], one row
//! each: by counts, by shares (tf), and by the pipeline's own weights if these differ.

use std::fmt::Write as _;

use crate::cli::examine::{Specimen, named};
use dupflow_core::text::measures::{self, Measure};
use dupflow_core::text::{Features, Weigher, Weights};

/// The name of the weights.
pub(super) fn weighted_by(weights: &Weights) -> &'static str {
    match weights {
        Weights::Unit => "sets",
        Weights::Count => "counts",
        Weights::Tf => "tf",
        Weights::TfIdf(..) => "tf-idf",
    }
}

/// The weights of the pipeline; `None` if it has none, or a text has no shingle with a weight.
pub(super) fn own_weights<'a>(own: &'a Weights, texts: [&Specimen; 2]) -> Option<&'a Weights> {
    let mut weigher = Weigher::new();
    let mut weighs = |text: &Specimen| !weigher.weigh(text.terms.view(), own).ids.is_empty();
    (*own != Weights::Unit && texts.into_iter().all(&mut weighs)).then_some(own)
}

/// A table of all measures; `own` are the weights of the pipeline, if it has any.
pub(super) fn table(out: &mut String, a: &Specimen, b: &Specimen, own: Option<&Weights>) {
    let _ = writeln!(out, "\n{:<32}{:>6}", "every measure", "exact");
    let mut row = |what: &str, similarity: f64, note: &str| {
        let _ = writeln!(out, "{}", format!("  {what:<30}{similarity:.4}    {note}").trim_end());
    };
    let [mut left, mut right] = [Weigher::new(), Weigher::new()];
    let mut of = |weights: &Weights, measure: fn(Features<'_>, Features<'_>) -> f64| {
        measure(left.weigh(a.terms.view(), weights), right.weigh(b.terms.view(), weights))
    };
    let (common, either) = a.overlap(b);
    let shares = [(a, "A"), (b, "B")].map(|(text, name)| format!("{common} of {name}'s {}", text.distinct()));
    row(
        named(Measure::Jaccard),
        of(&Weights::Unit, measures::jaccard),
        &format!("{common} of {either} distinct shingles in common"),
    );
    row("containment of A in B", of(&Weights::Unit, measures::containment), &shares[0]);
    row("containment of B in A", of(&Weights::Unit, |x, y| measures::containment(y, x)), &shares[1]);
    let own = own.filter(|own| !matches!(own, Weights::Count | Weights::Tf));
    for weights in [&Weights::Count, &Weights::Tf].into_iter().chain(own) {
        let name = format!("{} of {}", named(Measure::WeightedJaccard), weighted_by(weights));
        row(&name, of(weights, measures::weighted_jaccard), "");
    }
    for (weights, note) in [(&Weights::Count, "of tf the same")].into_iter().chain(own.map(|own| (own, ""))) {
        let by = weighted_by(weights);
        row(&format!("{} of {by}", named(Measure::Cosine)), of(weights, measures::cosine), note);
        row(&format!("probability Jaccard of {by}"), of(weights, measures::probability_jaccard), note);
    }
}
