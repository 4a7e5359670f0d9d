//! A filter behind a [`PairRule`]: sketches whose fields the rule rejects are not compared.
//!
//! The last words of a sketch are the hashes of its fields (see [`Scheme::words`]). The filter inside sees
//! the words before them. A sketch without these words is that of a query text, which has no fields: the
//! rule is not applied to it.
//!
//! With a least share, pairs are directed: one document is of a reference, and the other one has that share
//! of its features. Else the share of either one in the other would do, and a page of a line would be a pair
//! with each long document of the reference that has it.

use std::sync::Arc;

use super::rejection::{Agreeing, RejectedBy};
use super::{PairFilter, Verdict};
use crate::pair::{Similarity, Threshold};
use crate::pair_rule::PairRule;
use crate::sketch::scaled::features_of;
use crate::sketch::{Scheme, SketchRef};

/// A filter behind the rule of a pipeline on the fields of documents.
#[derive(Clone, Debug)]
pub struct RuledFilter {
    rule: PairRule,
    /// Words before the hashes of fields.
    words: usize,
    inside: Arc<dyn PairFilter>,
    /// If pairs are of a document of a reference and another one: the least share of the first that the other
    /// has, inclusive.
    least_share: Option<Threshold>,
}

impl RuledFilter {
    /// The filter of a scheme behind its rule; the filter itself if the rule allows all pairs.
    pub fn around(inside: Arc<dyn PairFilter>, scheme: &Scheme) -> Arc<dyn PairFilter> {
        if scheme.pairs.is_empty() {
            return inside;
        }
        Arc::new(Self { rule: scheme.pairs.clone(), words: scheme.text_words(), inside, least_share: None })
    }

    /// The filter of a scheme of scaled sketches with all values, for documents in which at least `least`
    /// (inclusive) of a document of the reference lies. `inside` accepts all such pairs.
    pub fn of_reference(
        inside: Arc<dyn PairFilter>,
        scheme: &Scheme,
        least: Threshold,
    ) -> Arc<dyn PairFilter> {
        let (rule, words) = (scheme.pairs.clone(), scheme.text_words());
        Arc::new(Self { rule, words, inside, least_share: Some(least) })
    }

    /// The verdict on a pair, from that of the filter inside.
    fn judged(&self, a: SketchRef<'_>, b: SketchRef<'_>, verdict: Verdict) -> Verdict {
        let Some(least_share) = self.least_share else { return verdict };
        let [in_b, in_a] = verdict.accepted.map_or([0.0; 2], Similarity::shares);
        let (item, share) = if self.rule.is_of_reference(a.words) { (a, in_b) } else { (b, in_a) };
        // Shares are rounded, counts are not.
        let features = features_of(item.words[0]);
        let is_enough = (share * features as f64).round() >= least_share.least_of(features) as f64;
        Verdict { accepted: verdict.accepted.filter(|_| is_enough), ..verdict }
    }

    /// The two sketches without their fields; `None` if the rule rejects them.
    fn allowed<'s>(&self, a: SketchRef<'s>, b: SketchRef<'s>) -> Option<[SketchRef<'s>; 2]> {
        let [(a_words, a_fields), (b_words, b_fields)] =
            [a, b].map(|sketch| sketch.words.split_at(self.words));
        let is_of_one_side = self.least_share.is_some()
            && self.rule.is_of_reference(a_fields) == self.rule.is_of_reference(b_fields);
        let is_allowed = !is_of_one_side
            && (a_fields.is_empty() || b_fields.is_empty() || self.rule.allows(a_fields, b_fields));
        is_allowed.then_some([SketchRef { words: a_words, ..a }, SketchRef { words: b_words, ..b }])
    }

    /// A sketch without its fields.
    fn text<'s>(&self, sketch: SketchRef<'s>) -> SketchRef<'s> {
        SketchRef { words: &sketch.words[..self.words], ..sketch }
    }
}

impl PairFilter for RuledFilter {
    fn first_word(&self, a: u64, b: u64) -> bool {
        self.inside.first_word(a, b)
    }

    fn decide_passed(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        let inside = self.allowed(a, b).map(|[a, b]| self.inside.decide_passed(a, b));
        inside.map_or(Verdict::RULED_OUT, |verdict| self.judged(a, b, verdict))
    }

    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        let inside = self.allowed(a, b).map(|[a, b]| self.inside.decide(a, b));
        inside.map_or(Verdict::RULED_OUT, |verdict| self.judged(a, b, verdict))
    }

    fn is_too_short(&self, word: u64) -> bool {
        self.inside.is_too_short(word)
    }

    fn looks(&self) -> usize {
        self.inside.looks()
    }

    fn rejected_by(&self, look: u16) -> RejectedBy {
        if look == Verdict::RULED_OUT.look { RejectedBy::Where } else { self.inside.rejected_by(look) }
    }

    fn agreeing(&self, a: SketchRef<'_>, b: SketchRef<'_>, look: u16) -> Option<Agreeing> {
        match self.rejected_by(look) {
            RejectedBy::Where => None,
            _ => self.inside.agreeing(self.text(a), self.text(b), look),
        }
    }

    fn similarity(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Similarity {
        self.inside.similarity(self.text(a), self.text(b))
    }

    fn for_membership(&self) -> Option<Arc<dyn PairFilter>> {
        let inside = self.inside.for_membership()?;
        Some(Arc::new(Self { inside, ..self.clone() }))
    }

    fn pairs_copies(&self) -> bool {
        self.rule.allows_equal() && self.least_share.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{ContainmentFilter, WholeFilter};
    use crate::sketch::{Sketch, SketchKind, SketchMaker, SketchParams};

    #[test]
    fn the_rule_is_before_the_filter() {
        let sketch = SketchParams { kind: SketchKind::Fss, size: 128, bits: 4, wide: 0, seed: 0 };
        let plain = Scheme { sketch, ..Scheme::default() };
        let filter: Arc<dyn PairFilter> = Arc::new(WholeFilter::new(0.5, &sketch).unwrap());
        assert!(Arc::ptr_eq(&RuledFilter::around(Arc::clone(&filter), &plain), &filter));
        let scheme = Scheme { pairs: PairRule::parse("a.host != b.host").unwrap(), ..plain };
        assert_eq!(scheme.words(), 9);
        let ruled = RuledFilter::around(Arc::clone(&filter), &scheme);
        let mut maker = SketchMaker::new(&scheme);
        let texts = ["a b c d e f g h i j k", "a b c d e f g h i j l", "quite another text with other words"];
        let mut made = |text: usize, host: &str| -> Sketch {
            let fields = scheme.pairs.hashes(|_| host);
            maker.sketch_with(texts[text], &fields).unwrap().1
        };
        let (x, y, z) = (made(0, "x"), made(1, "y"), made(2, "y"));
        let same_host = made(1, "x");
        let is_alike = |a: &Sketch, b: &Sketch| ruled.decide(a.view(), b.view()).accepted.is_some();
        assert!(is_alike(&x, &y) && is_alike(&y, &x) && !is_alike(&x, &z));
        assert_eq!(ruled.decide(x.view(), same_host.view()), Verdict::RULED_OUT);
        assert_eq!(ruled.decide_passed(x.view(), x.view()), Verdict::RULED_OUT);
        assert_eq!(ruled.rejected_by(0), RejectedBy::Where);
        let [of_x, beside] = [&x, &same_host].map(Sketch::view);
        assert!(
            ruled.similarity(of_x, beside) == ruled.similarity(of_x, y.view()),
            "fields are not compared"
        );
        assert!(!ruled.pairs_copies() && filter.pairs_copies());
        let text = maker.sketch(texts[1]).unwrap().1;
        assert_eq!(text.words.len(), 8);
        assert!(is_alike(&text, &x) && is_alike(&same_host, &text), "a query text has no fields");
    }

    /// An item of eight shingles, and pages that have four of them, three of them, and the item's first four
    /// alone.
    #[test]
    fn the_share_of_the_reference_decides() {
        let kind = SketchKind::Scaled { scale: 8, least: 16 };
        let sketch = SketchParams { kind, ..SketchParams::default() };
        let pairs = PairRule::default().with_reference();
        let scheme = Scheme { sketch, exact: true, pairs, ..Scheme::default() };
        let inside = ContainmentFilter::new(0.5, sketch.scaled().unwrap(), true, 3).unwrap();
        let filter = RuledFilter::of_reference(Arc::new(inside), &scheme, Threshold::new(0.5).unwrap());
        let mut maker = SketchMaker::new(&scheme);
        let mut made = |text: &str, is_of_reference| -> Sketch {
            let side = scheme.pairs.hashes_of(|_| "", is_of_reference);
            maker.sketch_with(text, &side).unwrap().1
        };
        let item = made("a b c d e f g h i j", true);
        let shares = |page: &Sketch| {
            let verdict = filter.decide(item.view(), page.view());
            let back = filter.decide(page.view(), item.view());
            assert_eq!(back.accepted, verdict.accepted.map(Similarity::flipped));
            verdict.accepted.map(Similarity::shares)
        };
        assert_eq!(shares(&made("a b c d e f x y", false)), Some([0.5, 4.0 / 6.0].map(rounded)));
        assert_eq!(shares(&made("a b c d e x y z", false)), None);
        // All of this page lies in the item, which is not asked for.
        assert_eq!(shares(&made("a b c d e", false)), None);
        assert_eq!(shares(&made("a b c d e f", false)), Some([0.5, 1.0]));
        let (other, page) = (made("a b c d e f g h i j k", true), made("a b c d e f g h i j", false));
        assert_eq!(filter.decide(item.view(), other.view()), Verdict::RULED_OUT);
        assert_eq!(filter.decide(page.view(), page.view()), Verdict::RULED_OUT);
        assert!(!filter.pairs_copies());
    }

    fn rounded(share: f64) -> f64 {
        (share * 1e9).round() / 1e9
    }
}
