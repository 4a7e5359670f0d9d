//! A blocking behind a [`PairRule`]: of a block, only sketches that are equal in the fields that the rule
//! wants equal meet.
//!
//! The keys are those of the blocking inside. The last words of a sketch are the hashes of its fields (see
//! [`Scheme::words`]); of these is its [realm](Blocking::realm). So a block counts, for each realm, the
//! sketches that the rule lets meet: whether they are many, and which of them are leaders, depends on no
//! sketch of another realm. A field that is to be different has no part in it.

use std::sync::Arc;

use super::blocking::Blocking;
use super::hot::HotRule;
use super::key::BlockKey;
use super::near::NearRule;
use crate::pair_rule::{PairRule, Realm};
use crate::sketch::{Scheme, SketchRef};

/// A blocking whose sketches have realms.
#[derive(Clone, Debug)]
pub struct RuledBlocking {
    inside: Arc<dyn Blocking>,
    rule: PairRule,
    /// Words before the hashes of fields.
    words: usize,
}

impl RuledBlocking {
    /// The blocking of a scheme behind its rule; the blocking itself if no field is to be equal.
    pub fn around(inside: Arc<dyn Blocking>, scheme: &Scheme) -> Arc<dyn Blocking> {
        if scheme.pairs.equal_fields().next().is_none() {
            return inside;
        }
        Arc::new(Self { inside, rule: scheme.pairs.clone(), words: scheme.text_words() })
    }
}

impl Blocking for RuledBlocking {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.inside.keys(sketch, out);
    }

    fn tables(&self) -> usize {
        self.inside.tables()
    }

    fn rule(&self, table: u16) -> HotRule {
        self.inside.rule(table)
    }

    fn near(&self, table: u16) -> Option<NearRule> {
        self.inside.near(table)
    }

    fn scan_limit(&self) -> usize {
        self.inside.scan_limit()
    }

    fn enters(&self, sketch: SketchRef<'_>) -> bool {
        self.inside.enters(sketch)
    }

    fn is_one_sided(&self) -> bool {
        self.inside.is_one_sided()
    }

    fn realm(&self, sketch: SketchRef<'_>) -> Option<Realm> {
        self.rule.realm(&sketch.words[self.words..])
    }

    fn has_realms(&self) -> bool {
        true
    }

    fn least(&self) -> usize {
        self.inside.least()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Banding;
    use crate::sketch::SketchMaker;

    #[test]
    fn realms_change_no_key() {
        let rule = HotRule { cap: 2, leaders: 1, ..HotRule::NEVER };
        let words = Scheme::default().block_words();
        let bands: Arc<dyn Blocking> = Arc::new(Banding::new(448, 18, 7, rule).on_words(words));
        let ruled = |pairs: &str| {
            let scheme = Scheme { pairs: PairRule::parse(pairs).unwrap(), ..Scheme::default() };
            (RuledBlocking::around(Arc::clone(&bands), &scheme), scheme)
        };
        assert!(Arc::ptr_eq(&ruled("a.host != b.host").0, &bands));
        let (blocking, scheme) = ruled("a.host != b.host and a.lang == b.lang");
        assert!(blocking.has_realms() && blocking.tables() == 18 && blocking.rule(17) == rule);
        let of = |host: &str, lang: &str| {
            let fields = scheme.pairs.hashes(|field| if field == "host" { host } else { lang });
            let (_, sketch) = SketchMaker::new(&scheme).sketch_with("a b c d e f", &fields).unwrap();
            let mut keys = Vec::new();
            blocking.keys(sketch.view(), &mut keys);
            (keys, blocking.realm(sketch.view()))
        };
        let one = of("x", "de");
        assert_eq!(one, of("y", "de"));
        let other = of("x", "fr");
        assert!(one.0 == other.0 && one.1 != other.1 && one.1.is_some());
        let (_, text) = SketchMaker::new(&scheme).sketch("a b c d e f").unwrap();
        assert_eq!(blocking.realm(text.view()), None);
    }
}
