//! A filter behind a [`PairRule`]: sketches whose fields the rule rejects are not compared.
//!
//! The last words of a sketch are the hashes of its fields (see [`Scheme::words`]). The filter inside sees
//! the words before them. A sketch without these words is that of a query text, which has no fields: the
//! rule is not applied to it.

use std::sync::Arc;

use super::rejection::{Agreeing, RejectedBy};
use super::{PairFilter, Verdict};
use crate::pair::Similarity;
use crate::pair_rule::PairRule;
use crate::sketch::{Scheme, SketchRef};

/// A filter behind the rule of a pipeline on the fields of documents.
#[derive(Clone, Debug)]
pub struct RuledFilter {
    rule: PairRule,
    /// Words before the hashes of fields.
    words: usize,
    inside: Arc<dyn PairFilter>,
}

impl RuledFilter {
    /// The filter of a scheme behind its rule; the filter itself if the rule allows all pairs.
    pub fn around(inside: Arc<dyn PairFilter>, scheme: &Scheme) -> Arc<dyn PairFilter> {
        if scheme.pairs.is_empty() {
            return inside;
        }
        Arc::new(Self { rule: scheme.pairs.clone(), words: scheme.text_words(), inside })
    }

    /// The two sketches without their fields; `None` if the rule rejects them.
    fn allowed<'s>(&self, a: SketchRef<'s>, b: SketchRef<'s>) -> Option<[SketchRef<'s>; 2]> {
        let [(a_words, a_fields), (b_words, b_fields)] =
            [a, b].map(|sketch| sketch.words.split_at(self.words));
        let is_allowed = a_fields.is_empty() || b_fields.is_empty() || self.rule.allows(a_fields, b_fields);
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
        self.allowed(a, b).map_or(Verdict::RULED_OUT, |[a, b]| self.inside.decide_passed(a, b))
    }

    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        self.allowed(a, b).map_or(Verdict::RULED_OUT, |[a, b]| self.inside.decide(a, b))
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
        self.rule.allows_equal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::WholeFilter;
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
}
