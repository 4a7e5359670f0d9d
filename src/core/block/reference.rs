//! The shingles of a reference as blocks: other texts are looked up in them by their shingles, and have none.
//!
//! In: [scaled](crate::sketch::Scaled) sketches with all values, and in their last word whether they are of
//! the reference. Out: a [`BlockKey`] for each value. Only documents of the reference enter their blocks, so
//! the memory for blocks is that of the reference, whatever the other documents are. Two texts that share a
//! value meet if one of them is of the reference, however many share it: no block is hot, and no pair is
//! missed. All documents of the reference are in their blocks before the first other one is looked up.

use super::blocking::Blocking;
use super::hot::HotRule;
use super::key::BlockKey;
use super::shingles::Shingles;
use crate::pair_rule::PairRule;
use crate::sketch::{Scaled, Scheme, SketchRef};

/// A block for each shingle of a document of the reference.
#[derive(Clone, Debug)]
pub struct ReferenceShingles {
    shingles: Shingles,
    rule: PairRule,
}

impl ReferenceShingles {
    /// The blocking of a scheme of scaled sketches that store all values.
    pub fn for_scheme(scheme: &Scheme) -> Self {
        // Of one value in one, all are kept.
        let shingles = Shingles::scaled(Scaled::new(1, 1, 0), HotRule::NEVER);
        Self { shingles, rule: scheme.pairs.clone() }
    }
}

impl Blocking for ReferenceShingles {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        self.shingles.keys(sketch, out);
    }

    fn tables(&self) -> usize {
        self.shingles.tables()
    }

    fn rule(&self, _table: u16) -> HotRule {
        HotRule::NEVER
    }

    fn enters(&self, sketch: SketchRef<'_>) -> bool {
        self.rule.is_of_reference(sketch.words)
    }

    fn is_one_sided(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{SketchKind, SketchMaker, SketchParams};

    #[test]
    fn a_block_for_each_shingle_of_the_reference() {
        let kind = SketchKind::Scaled { scale: 8, least: 1 };
        let params = SketchParams { kind, ..SketchParams::default() };
        let pairs = PairRule::default().with_reference();
        let scheme = Scheme { sketch: params, exact: true, pairs: pairs.clone(), ..Scheme::default() };
        let blocking = ReferenceShingles::for_scheme(&scheme);
        let text: String = (0..40).map(|n| format!("w{n} ")).collect();
        let of = |is_of_reference| {
            let side = pairs.hashes_of(|_| "", is_of_reference);
            let (_, sketch) = SketchMaker::new(&scheme).sketch_with(&text, &side).unwrap();
            let mut keys = Vec::new();
            blocking.keys(sketch.view(), &mut keys);
            (blocking.enters(sketch.view()), keys)
        };
        let ((enters, keys), (page_enters, page)) = (of(true), of(false));
        assert!(enters && !page_enters && blocking.is_one_sided());
        assert_eq!((keys.len(), keys == page), (38, true), "all three-word shingles, not an eighth of them");
    }
}
