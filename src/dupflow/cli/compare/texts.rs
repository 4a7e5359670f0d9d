//! Two texts compared, for embedders: the figures, and what the command writes.

use super::passages::passages_of;
use super::subject::Subject;
use super::{page, report};
use crate::cli::examine::Examiner;
use crate::config::Plan;
use dupflow_core::pair::Similarity;
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Features, TextPiece, Weights, measures};

/// Two texts compared by a pipeline and by every measure.
#[derive(Debug)]
pub struct TextComparison {
    subject: Subject,
    /// Their similarities.
    pub figures: Figures,
}

/// The similarities of two texts, in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Jaccard similarity of the sets of shingles.
    pub jaccard: f64,
    /// The share of the shingles of the first text that the second one has, and the reverse.
    pub containment: [f64; 2],
    /// Weighted Jaccard similarity by counts.
    pub weighted_jaccard: f64,
    /// Cosine by counts.
    pub cosine: f64,
    /// The similarity that the filter accepts; `None` if it rejects the pair, or a text has no sketch.
    pub accepted: Option<Similarity>,
    /// Whether the sketches are equal, or share as many blocks as a candidate needs.
    pub is_candidate: bool,
}

impl TextComparison {
    /// Compares two texts. Live weights are frozen at the document frequencies of the two.
    pub fn new(plan: Plan, [first, second]: [String; 2]) -> Self {
        let subject = Subject::of_texts(plan, [("a".to_owned(), first), ("b".to_owned(), second)]);
        let mut examiner = Examiner::new(&subject.plan);
        let [a, b] = subject.texts.each_ref().map(|text| examiner.examine(&text.text));
        let [x, y] = [&a, &b].map(|text| Features::set(&text.terms.ids));
        let compared = a.sketched.as_ref().zip(b.sketched.as_ref()).map(|(left, right)| {
            if left.id == right.id {
                return (Some(Similarity::ONE), true);
            }
            let compared = examiner.compare(left, right);
            (compared.verdict.accepted, compared.shared.len() >= examiner.least())
        });
        let (accepted, is_candidate) = compared.unwrap_or_default();
        let figures = Figures {
            jaccard: measures::jaccard(x, y),
            containment: [measures::containment(x, y), measures::containment(y, x)],
            weighted_jaccard: examiner.measure(Measure::WeightedJaccard, &Weights::Count, &a, &b),
            cosine: examiner.measure(Measure::Cosine, &Weights::Count, &a, &b),
            accepted,
            is_candidate,
        };
        Self { subject, figures }
    }

    /// The measure of the pipeline.
    pub fn measure(&self) -> Measure {
        self.subject.plan.scheme.measure()
    }

    /// What `dupflow compare --all` prints.
    pub fn text(&self) -> String {
        report::report(&self.subject, true)
    }

    /// The page that `dupflow compare --html` writes.
    pub fn page(&self) -> String {
        page::page(&self.subject)
    }

    /// The pieces of both texts as the pipeline reads them, in order, each with whether the other text has
    /// it too.
    pub fn passages(&self) -> [Vec<(bool, String)>; 2] {
        let piece = |piece: &TextPiece<'_>| (piece.passage.is_some(), piece.text.to_owned());
        passages_of(
            &self.subject.plan.scheme.text,
            self.subject.texts.each_ref().map(|text| &*text.text),
            |passages| [&passages.a, &passages.b].map(|pieces| pieces.iter().map(piece).collect()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(a: &str, b: &str) -> TextComparison {
        let plan = Plan::load("exact", &["threshold=0.5".to_owned(), "text.shingle=words:1".to_owned()]);
        TextComparison::new(plan.unwrap(), [a.to_owned(), b.to_owned()])
    }

    /// By words; as in the module `report`.
    #[test]
    fn figures_by_hand() {
        let comparison = compared("a a b", "a b b c");
        let Figures { jaccard, containment, weighted_jaccard, cosine, accepted, is_candidate } =
            comparison.figures;
        assert_eq!((jaccard, containment), (2.0 / 3.0, [1.0, 2.0 / 3.0]));
        assert!((weighted_jaccard - 0.4).abs() < 1e-9 && (cosine - 4.0 / 30.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!((accepted, is_candidate), (Some(Similarity::clamped(2.0 / 3.0)), true));
        assert!(comparison.text().contains("Jaccard"), "{}", comparison.text());
        assert!(comparison.page().starts_with("<!doctype html>"));
        let [a, b] = comparison.passages();
        let joined = |pieces: &[(bool, String)]| pieces.iter().map(|(_, text)| &**text).collect::<String>();
        assert_eq!((joined(&a).as_str(), joined(&b).as_str()), ("a a b", "a b b c"));
    }

    #[test]
    fn copies_and_empty_texts() {
        let copies = compared("a b", "A, b!").figures;
        assert_eq!((copies.accepted, copies.is_candidate), (Some(Similarity::ONE), true));
        let empty = compared("", "a").figures;
        assert_eq!((empty.accepted, empty.is_candidate), (None, false));
    }
}
