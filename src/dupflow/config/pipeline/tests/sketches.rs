//! Sketches and blockings by Hamming distance: defaults, and settings that need each other.

use super::{MINHASH, plan, problems};
use crate::config::{BlockingPlan, FilterPlan};
use dupflow_core::block::HotRule;
use dupflow_core::sketch::SketchKind;

#[test]
fn simhash_has_its_own_sizes() {
    let simhash = |text: &str, overrides: &[&str]| {
        let sketch = plan(text, overrides).unwrap().scheme.sketch;
        assert_eq!(sketch.kind, SketchKind::SIMHASH);
        (sketch.size, sketch.bits)
    };
    assert_eq!(simhash("sketch.kind = \"simhash\"", &[]), (64, 1));
    assert_eq!(simhash("sketch.kind = \"simhash\"\nsketch.size = 128\nsketch.bits = 1", &[]), (128, 1));
    // The file's values for its own sketch are dropped; values typed together with the kind are not.
    assert_eq!(simhash("sketch.size = 448\nsketch.bits = 4", &["sketch.kind=simhash"]), (64, 1));
    assert_eq!(simhash("sketch.size = 448", &["sketch.kind=simhash", "sketch.size=32"]), (32, 1));
    assert_eq!(
        problems("sketch.kind = \"simhash\"\nsketch.size = 100\nsketch.bits = 4", &[]),
        [
            "p.toml:2: sketch.size: simhash has 32, 64 or 128 places, not 100",
            "p.toml:3: sketch.bits: simhash has places of 1 bit, not 4"
        ]
    );
}

#[test]
fn sketches_and_what_goes_with_them() {
    let plan =
        |text: &str, overrides: &[&str]| plan(text, overrides).unwrap_or_else(|error| panic!("{error}"));
    // Bands of a second sketch under other hash functions; the file's early looks are dropped.
    let odd = plan(MINHASH, &["sketch.kind=odd", "blocking.sketch=oph", "sketch.seed=3"]);
    let blocks = odd.scheme.blocks.unwrap();
    assert_eq!((blocks.kind, blocks.size, blocks.bits, blocks.seed), (SketchKind::Oph, 256, 4, 4));
    assert_eq!(odd.scheme.block_words(), 28..28 + 16);
    assert!(odd.schedule().is_some_and(|schedule| schedule.first_word().is_some()));
    let bottom = plan(MINHASH, &["sketch.kind=bottom-k", "blocking.kind=scan"]);
    assert!(matches!(bottom.filter, FilterPlan::Whole(_)) && bottom.schedule().is_none());
    let exact = plan(MINHASH, &["sketch.kind=bottom-k", "blocking.sketch=fss", "filter.verify=exact"]);
    assert!(exact.scheme.exact && exact.schedule().is_some_and(|schedule| schedule.count() == 0));
    // About half of the components have two bits, in whole words; bands are cut from the first bit.
    let mixed = plan("sketch.bits = 1.5\nsketch.size = 400", &[]);
    let sketch = mixed.scheme.sketch;
    assert_eq!((sketch.bits, sketch.wide, sketch.words()), (1, 192, 7 + 3));
    assert_eq!((sketch.shape(), mixed.scheme.block_words()), (None, 0..7));
    assert!(matches!(mixed.filter, FilterPlan::Whole(_)));
    let three = plan("sketch.bits = 3", &[]).scheme.sketch;
    assert_eq!((three.bits, three.wide), (2, 256));
    let connected = plan("sketch = { kind = \"connected\", run = 4 }", &[]).scheme.sketch;
    assert_eq!((connected.kind, connected.words()), (SketchKind::Connected { run: 4 }, 16 * 2));
}

/// A kind that promises a distance has no hot blocks unless `blocking.hot` is set together with it.
#[test]
fn kinds_by_distance_have_no_hot_blocks_by_default() {
    let rules = |text: &str, overrides: &[&str]| {
        let plan = plan(text, overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
        let rule = |blocking: &BlockingPlan| match blocking {
            BlockingPlan::Banding { rule, .. } | BlockingPlan::Hamming { rule, .. } => *rule,
            other => panic!("{other:?}"),
        };
        (rule(&plan.blocking), plan.also.as_ref().map(rule))
    };
    let led = HotRule { cap: 96, leaders: 2, ..HotRule::NEVER };
    let bit = "sketch.bits = 1\n";
    for kind in ["permuted", "multi-index", "groups", "conjunctions"] {
        let text = format!("{bit}blocking.distance = 3\nblocking.kind = \"{kind}\"");
        assert_eq!(rules(&text, &[]).0, HotRule::NEVER, "{kind}");
        assert_eq!(rules(&text, &["blocking.hot=leaders"]).0, led);
        assert_eq!(rules(&format!("{text}\nblocking.hot = \"skip\""), &[]).0, HotRule { leaders: 0, ..led });
        // `blocking.hot` that the file sets for its own kind does not apply to another kind.
        let banding =
            format!("{bit}blocking.kind = \"banding\"\nblocking.hot = \"leaders\"\nblocking.cap = 9");
        let kind = format!("blocking.kind={kind}");
        assert_eq!(rules(&banding, &[&kind, "blocking.distance=3"]).0, HotRule::NEVER);
        assert_eq!(
            rules(&banding, &[&kind, "blocking.distance=3", "blocking.hot=leaders"]).0,
            HotRule { cap: 9, ..led }
        );
    }
    let also = ["blocking.also.kind=permuted", "blocking.also.distance=3"];
    assert_eq!(rules(bit, &also), (led, Some(HotRule::NEVER)));
    assert_eq!(rules(&format!("{bit}blocking.hot = \"leaders\""), &also), (led, Some(HotRule::NEVER)));
    let all = [also[0], also[1], "blocking.hot=leaders"];
    assert_eq!(rules(bit, &all), (led, Some(led)));
}

#[test]
fn hamming_blocking_and_what_it_needs() {
    let design = |text: &str, overrides: &[&str]| match plan(text, overrides).unwrap().blocking {
        BlockingPlan::Hamming { design, .. } => design,
        other => panic!("{other:?}"),
    };
    let simhash = "sketch.kind = \"simhash\"\nfilter.kind = \"hamming\"\nblocking.distance = 3\n";
    for (tables, keys) in [(4, 4), (10, 10), (16, 16), (20, 20)] {
        let text = format!("{simhash}blocking.kind = \"permuted\"\nblocking.tables = {tables}");
        assert_eq!((design(&text, &[]).keys(), design(&text, &[]).radius()), (keys, 3));
    }
    assert_eq!(design(simhash, &["blocking.kind=multi-index", "blocking.tables=2"]).keys(), 64);
    // T is the cosine at the given distance.
    let hamming = plan(simhash, &["blocking.kind=scan"]).unwrap();
    assert!((hamming.threshold - (3.0 * std::f64::consts::PI / 64.0).cos()).abs() < 1e-12);
    // Without a distance the radius is the number of bits that the filter lets differ: 1024 (1 - 0.9) / 2.
    let onebit = "threshold = 0.9\nsketch.bits = 1\nsketch.size = 1024\nblocking.kind = \"groups\"";
    assert_eq!(design(onebit, &[]).radius(), 51);
    assert_eq!(
        problems("blocking.kind = \"groups\"", &[]),
        ["p.toml:1: blocking.kind: is for sketches of one bit a component; set sketch.bits = 1, or \
            sketch.kind = \"simhash\""]
    );
    // The filter by distance works without a distance too: at a cosine of 0.98 at most 4 of 64 bits differ,
    // and the blocks have the same radius.
    let unset = ["blocking.distance=", "blocking.tables=", "threshold=0.98"];
    let near = plan(&format!("{simhash}blocking.kind = \"permuted\"\nblocking.tables = 10"), &unset).unwrap();
    assert_eq!((near.threshold, near.schedule().unwrap().looks().last().unwrap().accept_from), (0.98, 60));
    assert!(matches!(near.blocking, BlockingPlan::Hamming { design: of, .. } if of.radius() == 4));
    let reported = problems(
        &format!(
            "{simhash}threshold = 0.9\nblocking.kind = \"permuted\"\nblocking.tables = 7\nblocking.bands = 4"
        ),
        &[],
    );
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(reported[0].contains("threshold: has no effect with blocking.distance = "), "{reported:?}");
    assert!(
        reported[1].contains("blocking.tables: 7 permuted tables do not serve radius 3 on 64 bits"),
        "{reported:?}"
    );
    assert!(
        reported[2].contains("blocking.bands: has no effect with blocking.kind = \"permuted\""),
        "{reported:?}"
    );
}

/// Schemes from before `sketch.base` existed keep their fingerprint; another base has another one, and only
/// sectional sketches have a base.
#[test]
fn the_base_of_sectional_sketches() {
    let scheme = |base: &[&str]| plan("sketch.kind = \"sectional\"", base).unwrap().scheme.fingerprint();
    assert_eq!(scheme(&[]), scheme(&["sketch.base=fss"]));
    assert_ne!(scheme(&[]), scheme(&["sketch.base=minhash"]));
    assert!(problems("", &["sketch.base=minhash"])[0].contains("sketch.base"));
}
