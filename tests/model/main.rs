//! The law: after every epoch of any history, the accumulated deltas are what the oracle makes of the corpus.
//!
//! Histories are random and short, so that they shrink to something one can read; the corpus is small, so that blocks and groups of
//! copies often cross their caps. Bug classes: a retraction that is not the exact negative of what was emitted; a
//! result that depends on the order of arrival, on the cut into epochs, on the number of workers or on the codec; what
//! dies and comes back within the epochs in flight.

mod history;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dupflow::block::{BlockKey, Blocking};
use dupflow::dataflow::Stages;
use dupflow::doc::DocId;
use dupflow::filter::{PairFilter, Verdict};
use dupflow::oracle;
use dupflow::pair::{DocPair, Pair, Similarity};
use dupflow::sketch::{Scheme, SketchKind, SketchMaker, SketchRef};
use dupflow::text::TextRules;
use dupflow::time::Epoch;
use proptest::prelude::*;
use script::{Event, Run};

/// Accumulates deltas and compares with the oracle after every epoch.
fn assert_law(stages: &Stages, epochs: &[Vec<Event>], run: Run) {
    let mut deltas = script::deltas(&script::stages(stages.clone()), epochs, run).into_iter().peekable();
    let mut maker = SketchMaker::new(&stages.scheme);
    let mut corpus = BTreeMap::new();
    let mut pairs: BTreeSet<DocPair> = BTreeSet::new();
    for (epoch, events) in (1 as Epoch..).zip(epochs) {
        for (id, text) in events {
            match text.as_ref().and_then(|text| maker.sketch(text)) {
                Some(sketched) => corpus.insert(id.clone(), sketched),
                None => corpus.remove(id),
            };
        }
        let mut last: Option<(Pair<DocId>, isize)> = None;
        // Retractions sort before the additions of the same pair, so at no line is a pair there twice or less than never.
        while let Some((_, pair, diff)) = deltas.next_if(|(e, ..)| *e == epoch) {
            assert!(diff == 1 || diff == -1, "{pair:?} changes by {diff}");
            assert!(last < Some((pair.pair.clone(), diff)), "epoch {epoch} is not sorted");
            last = Some((pair.pair.clone(), diff));
            assert!(if diff > 0 { pairs.insert(pair) } else { pairs.remove(&pair) });
        }
        let expected = oracle::exact(&corpus, &*stages.blocking, &*stages.filter, stages.expand_limit);
        let wrong: Vec<_> = pairs.symmetric_difference(&expected).collect();
        assert!(wrong.is_empty(), "after epoch {epoch}, {run:?}: {wrong:?}");
    }
    assert_eq!(deltas.next(), None, "deltas of an epoch that was not, or out of order");
}

#[derive(Debug)]
struct Bands(usize);
impl Blocking for Bands {
    fn keys(&self, words: &[u64], out: &mut Vec<BlockKey>) {
        out.extend((0..8u16).map(|table| BlockKey { table, hash: (words[0] >> (8 * table) & 0xff) as u32 }));
    }
    fn tables(&self) -> usize {
        8
    }
    fn cap(&self) -> usize {
        self.0
    }
}

#[derive(Debug)]
struct Plain;
impl PairFilter for Plain {
    fn first_word(&self, a: u64, b: u64) -> bool {
        (a ^ b).count_ones() < 20
    }
    fn decide(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Verdict {
        let differ: u32 = a.words.iter().zip(b.words).map(|(x, y)| (x ^ y).count_ones()).sum();
        let similarity = 1.0 - f64::from(differ) / 128.0;
        let accepted = (self.first_word(a.words[0], b.words[0]) && similarity >= 0.7)
            .then(|| Similarity::clamped(similarity));
        Verdict { accepted, look: 1, components: 64 }
    }
    fn looks(&self) -> usize {
        1
    }
}

fn stages() -> Stages {
    Stages {
        scheme: Scheme {
            version: 1,
            text: TextRules::default(),
            kind: SketchKind::Fss,
            size: 128,
            bits: 1,
            seed: 1,
            exact: false,
        },
        blocking: Arc::new(Bands(4)),
        filter: Arc::new(Plain),
        expand_limit: 3,
        evidence: false,
        metrics: Arc::new(dupflow::metrics::Metrics::new(1)),
        dead_blocks: Arc::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_law_holds(
        events in history::events(0..120),
        sizes in proptest::collection::vec(1usize..20, 1..5),
        workers in prop_oneof![Just(1usize), Just(2), Just(4)],
        serialized: bool,
        seed: u64,
    ) {
        assert_law(&stages(), &history::cut(&events, &sizes), Run { workers, serialized, seed });
    }
}
