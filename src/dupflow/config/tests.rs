//! Rejected inputs with their messages; the shipped files; documented keys and ranges against accepted ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::described::ConfigKey;
use super::{BUILT_IN, BlockingPlan, ConfigError, Deployment, FilterPlan, Plan, deployment, keys};
use dupflow_core::block::HotRule;
use dupflow_core::block::design::Curve;
use dupflow_core::retention::{Retention, RetentionClock};
use dupflow_core::sketch::SketchKind;
use dupflow_core::sketch::agreement::Agreement;
use dupflow_core::sketch::estimate::standard_error;
use dupflow_core::text::{Html, Spaceless};

pub(super) const MINHASH: &str = include_str!("../../../pipelines/minhash.toml");
const LOCAL: &str = include_str!("../../../config/local.toml");
const KAFKA: &str = include_str!("../../../config/kafka.toml");

pub(super) fn plan(text: &str, overrides: &[&str]) -> Result<Plan, ConfigError> {
    let overrides: Vec<String> = overrides.iter().map(|&typed| typed.to_owned()).collect();
    Plan::parse("p.toml", text, Path::new(""), &overrides)
}

/// The problems of a pipeline, one per line.
pub(super) fn problems(text: &str, overrides: &[&str]) -> Vec<String> {
    match plan(text, overrides) {
        Ok(plan) => panic!("accepted: {plan:?}"),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn values_out_of_range_or_of_the_wrong_type() {
    for (typed, expected) in [
        ("threshold = 0", "threshold: found 0, expected a number above 0 and at most 1"),
        ("threshold = 1.01", "threshold: found 1.01, expected a number above 0 and at most 1"),
        ("threshold = nan", "threshold: found nan, expected a number above 0 and at most 1"),
        ("threshold = \"0.8\"", "threshold: found \"0.8\", expected a number above 0 and at most 1"),
        ("threshold = 2020-01-01", "threshold: found 2020-01-01, expected a number above 0 and at most 1"),
        ("sketch.size = 15", "sketch.size: found 15, expected a whole number from 16 to 32768"),
        ("sketch.size = 32769", "sketch.size: found 32769, expected a whole number from 16 to 32768"),
        ("sketch.size = 448.0", "sketch.size: found 448.0, expected a whole number from 16 to 32768"),
        ("sketch.bits = 0.5", "sketch.bits: found 0.5, expected a number from 1 to 64"),
        ("sketch.seed = -1", "sketch.seed: found -1, expected a whole number from 0 to 2^63 - 1"),
        ("blocking.rows = 65", "blocking.rows: found 65, expected a whole number from 1 to 64"),
        ("blocking.recall = 1.0", "blocking.recall: found 1.0, expected a number above 0 and below 1"),
        ("blocking.cap = 1", "blocking.cap: found 1, expected a whole number from 2 to 1000000"),
        (
            "blocking.hot = \"dead\"",
            "blocking.hot: found \"dead\", expected \"leaders\", \"skip\" or \"never\"",
        ),
        ("blocking.leaders = 65", "blocking.leaders: found 65, expected a whole number from 1 to 64"),
        ("filter.error = 0.2", "filter.error: found 0.2, expected a number above 0 and at most 0.1"),
        ("filter.looks = 64", "filter.looks: found 64, expected a list of whole numbers from 1 to 32768"),
        (
            "text.shingle = 3",
            "text.shingle: found 3, expected \"words:N\" or \"chars:N\" with N from 1 to 100",
        ),
        (
            "text.shingle = \"words:0\"",
            "text.shingle: found \"words:0\", expected \"words:N\" or \"chars:N\" with N from 1 to 100",
        ),
        ("text.normalize = \"NFC\"", "text.normalize: found \"NFC\", expected \"none\", \"nfc\" or \"nfkc\""),
        (
            "output.clusters = \"stars\"",
            "output.clusters: found \"stars\", expected \"components\" or \"star\"",
        ),
        (
            "output.cluster_limit = 1",
            "output.cluster_limit: found 1, expected a whole number from 2 to 10000000",
        ),
        ("output.on_error = true", "output.on_error: found true, expected \"count\" or \"fail\""),
        (
            "text.stop_words = [\"the\", \"don't\", \"two words\"]",
            "text.stop_words: found \"don't\" and 1 more, expected words that are one token each by the rules of [text]",
        ),
    ] {
        assert_eq!(problems(typed, &[]), [format!("p.toml:1: {expected}")]);
    }
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    for (typed, expected) in [
        ("treshold = 0.8", "treshold: unknown key; did you mean \"threshold\"?"),
        ("size = 448", "size: unknown key; did you mean \"sketch.size\"?"),
        ("[blocking]\nrow = 7", "blocking.row: unknown key; did you mean \"blocking.rows\"?"),
        ("[filter]\nseed = 7", "filter.seed: unknown key; did you mean \"sketch.seed\"?"),
        ("[blocks]", "blocks: unknown key"),
        ("colour = 1", "colour: unknown key"),
        (
            "sketch = 448",
            "sketch: found 448, expected a table with the keys kind, size, bits, seed, run, sections, mode, base, bound",
        ),
        ("threshold.value = 1", "threshold.value: unknown key"),
    ] {
        let line = typed.lines().count();
        assert_eq!(problems(typed, &[]), [format!("p.toml:{line}: {expected}")]);
    }
}

#[test]
fn retention_is_parsed_and_invalid_ages_are_refused() {
    let read =
        plan("[retention]\nmax_age = \"30d\"\nmax_documents = 4294967295\nclock = \"wall\"", &[]).unwrap();
    let (max_age, clock) = (Some(Duration::from_secs(30 * 24 * 60 * 60)), RetentionClock::Wall);
    assert_eq!(read.retention, Retention { max_age, max_documents: Some(u64::from(u32::MAX)), clock });
    assert_eq!(
        plan("", &["retention.max_age=90s"]).unwrap().retention.max_age,
        Some(Duration::from_secs(90))
    );
    assert_eq!(
        problems("retention.max_age = 30", &[]),
        [
            "p.toml:1: retention.max_age: found 30, expected an age as in \"30d\", \"12h\", \"5m\" or \"90s\", up to \"36500d\""
        ]
    );
    assert_eq!(
        problems("retention.max_documents = 0", &[]),
        ["p.toml:1: retention.max_documents: found 0, expected a whole number from 1 to 4294967295"]
    );
}

#[test]
fn an_unknown_choice_is_reported_with_the_choices() {
    assert_eq!(
        problems("measure = \"color\"", &[]),
        ["p.toml:1: measure: found \"color\", expected \"jaccard\", \"weighted-jaccard\" or \"cosine\""]
    );
}

#[test]
fn stems_need_words_and_stop_words_are_not_stemmed() {
    let stems = plan("text.stem = \"english\"\ntext.stop_words = [\"Having\"]", &[]).unwrap().scheme.text;
    assert_eq!((stems.stem.name(), &*stems.stop_words), ("english", &["having".to_owned()][..]));
    assert_eq!(
        problems("text.stem = \"german\"", &["text.shingle=chars:5"]),
        ["p.toml:1: text.stem: is for shingles of words; leave it out, or text.shingle = \"words:N\""]
    );
}

#[test]
fn pages_are_extracted_by_default() {
    let of = |text: &str| plan(text, &[]).unwrap().scheme.text.html;
    assert_eq!(
        [of(""), of("text.html = \"text\""), of("text.html = \"none\"")],
        [Html::Text, Html::Text, Html::None]
    );
    assert_eq!(
        problems("text.html = \"page\"", &[]),
        ["p.toml:1: text.html: found \"page\", expected \"none\", \"text\" or \"article\""]
    );
    #[cfg(feature = "article")]
    assert_eq!(of("text.html = \"article\""), Html::Article);
    #[cfg(not(feature = "article"))]
    assert_eq!(
        problems("text.html = \"article\"", &[]),
        ["p.toml:1: text.html: this dupflow was built without articles: build it with the feature `article`"]
    );
}

#[test]
fn counted_single_words_have_smaller_parts() {
    let of = |text: &str| plan(text, &["sketch.kind=dart"]).unwrap().scheme.text.spaceless;
    assert_eq!(of("text = { shingle = \"words:1\", weights = \"tf\" }"), Spaceless::Bag);
    assert_eq!(
        of("text = { shingle = \"words:1\", weights = \"tf\", spaceless = \"part\" }"),
        Spaceless::Part
    );
    assert_eq!(of("text = { shingle = \"words:2\", weights = \"tf\" }"), Spaceless::Part);
    assert_eq!(of("text.shingle = \"words:1\""), Spaceless::Part);
}

#[test]
fn contradictions() {
    for (typed, expected) in [
        (
            "blocking.bands = 64\nblocking.rows = 8",
            "p.toml:2: blocking.rows: bands = 64 and rows = 8 do not fit: ",
        ),
        (
            "blocking.recall = 0.99\nblocking.bands = 18\nblocking.rows = 9",
            "p.toml:1: blocking.recall: bands = 18 and rows = 9 reach a recall of only 0.9511 at similarity 0.8, not 0.99; ",
        ),
        (
            "blocking.kind = \"scan\"\nblocking.cap = 9",
            "p.toml:2: blocking.cap: has no effect with blocking.kind = \"scan\"",
        ),
        (
            "sketch.bits = 1\nblocking.kind = \"groups\"\nblocking.cap = 9",
            "p.toml:3: blocking.cap: has no effect with blocking.kind = \"groups\", of which no block is hot unless blocking.hot is set",
        ),
        (
            "blocking.hot = \"skip\"\nblocking.leaders = 2",
            "p.toml:2: blocking.leaders: has no effect with blocking.hot = \"skip\"",
        ),
        (
            "[filter]\nkind = \"full\"\nlooks = [64]",
            "p.toml:3: filter.looks: has no effect with filter.kind = \"full\"",
        ),
        (
            "filter.verify = \"exact\"\nfilter.kind = \"paper\"",
            "p.toml:1: filter.verify: filter kind \"paper\" decides by the sketches alone; ",
        ),
        (
            "sketch.kind = \"odd\"",
            "p.toml: blocking.kind: \"odd\" has no components to cut bands from; set blocking.kind = \"scan\", or blocking.sketch = \
             \"fss\" for bands of a second sketch",
        ),
        (
            "sketch.kind = \"bottom-k\"\nblocking.kind = \"scan\"\nfilter.kind = \"staged\"",
            "p.toml:3: filter.kind: a sketch of kind \"bottom-k\" is compared as a whole; ",
        ),
        (
            "sketch.kind = \"oph\"\nfilter.kind = \"staged\"\nfilter.verify = \"exact\"",
            "p.toml:2: filter.kind: a sketch of kind \"oph\" promises nothing about exact similarity when ",
        ),
        (
            "sketch.kind = \"bottom-k\"\nsketch.bits = 64\nblocking.kind = \"scan\"",
            "p.toml:2: sketch.bits: has no effect with sketch.kind = \"bottom-k\"",
        ),
        ("sketch.run = 2", "p.toml:1: sketch.run: has no effect with sketch.kind = \"fss\""),
        (
            "sketch.kind = \"sectional\"\nsketch.run = 2",
            "p.toml:2: sketch.run: has no effect with sketch.kind = \"sectional\"",
        ),
        (
            "sketch = { kind = \"connected\", run = 5 }",
            "p.toml:1: sketch.run: size = 448 is no multiple of run = 5",
        ),
        (
            "sketch = { kind = \"connected\", bits = 32, run = 4 }",
            "p.toml:1: sketch.run: run = 4 times bits = 32 is more than 64",
        ),
        (
            "sketch = { kind = \"odd\", bits = 64, size = 1000 }\nblocking.kind = \"scan\"",
            "p.toml:1: sketch.size: an odd sketch has size * bits = 64000 bits, more than 32768",
        ),
        (
            "sketch = { kind = \"odd\", bits = 1.5 }\nblocking.kind = \"scan\"",
            "p.toml:1: sketch.bits: \"odd\" takes 1, 2, 4, 8, 16, 32 or 64",
        ),
        (
            "sketch = { size = 64, bits = 1.5 }",
            "p.toml:1: sketch.bits: bits between two powers of two take a size above 64",
        ),
        ("blocking.size = 64", "p.toml:1: blocking.size: has no effect without blocking.sketch"),
        ("filter.looks = [128, 64]", "p.toml:1: filter.looks: filter looks [128, 64] must ascend, "),
    ] {
        let reported = problems(typed, &[]);
        assert!(reported.len() == 1 && reported[0].starts_with(expected), "{reported:?}");
    }
}

#[test]
fn simhash_has_its_own_sizes() {
    let simhash = |text: &str, overrides: &[&str]| {
        let sketch = plan(text, overrides).unwrap().scheme.sketch;
        assert_eq!(sketch.kind, SketchKind::SimHash);
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
fn all_problems_at_once_in_the_order_of_their_places() {
    let text =
        "threshold = 2\n[sketch]\nkind = \"simsketch\"\nsise = 4\n[blocking]\nrows = 0\nbands = 1000000\n";
    let reported = problems(text, &["sketch.bits=65", "output.onerror=fail", "nonsense"]);
    assert_eq!(
        reported,
        [
            "p.toml:1: threshold: found 2, expected a number above 0 and at most 1",
            "p.toml:3: sketch.kind: found \"simsketch\", expected \"fss\", \"minhash\", \"oph\", \"oph-original\", \"superminhash\", \"bottom-k\", \"min-max\", \"odd\", \"connected\", \"sectional\", \"dart\", \"icws\", \"cws\", \"rejection\" or \"simhash\"",
            "p.toml:4: sketch.sise: unknown key; did you mean \"sketch.size\"?",
            "p.toml:6: blocking.rows: found 0, expected a whole number from 1 to 64",
            "p.toml:7: blocking.bands: found 1000000, expected a whole number from 1 to 32768",
            "--set sketch.bits=65: sketch.bits: found 65, expected a number from 1 to 64",
            "--set output.onerror=fail: output.onerror: unknown key; did you mean \"output.on_error\"?",
            "--set nonsense: expected key=value",
        ]
    );
}

#[test]
fn broken_toml_has_a_line_too() {
    let lines = problems("threshold = 0.8\n[sketch\nsize = = 4\n", &[]);
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(lines[0].starts_with("p.toml:2: "), "{lines:?}");
    assert!(lines[1].starts_with("p.toml:3: "), "{lines:?}");
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

#[test]
fn stop_words_from_a_file_beside_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stop.txt"), "The\n\n of \n").unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "text.stop_words = \"stop.txt\"").unwrap();
    let plan = Plan::load(path.to_str().unwrap(), &[]).unwrap();
    assert_eq!(plan.scheme.text.stop_words, ["of", "the"]);
    std::fs::write(&path, "text.stop_words = \"other.txt\"").unwrap();
    let error = Plan::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(error.contains(":1: text.stop_words: cannot read \""), "{error}");
    assert!(error.contains("other.txt\": "), "{error}");
}

#[test]
fn pipelines_by_name_and_by_path() {
    for (name, _) in BUILT_IN {
        assert_eq!(Plan::load(name, &[]).unwrap().name, *name);
    }
    let error = Plan::load("minhsh", &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "no pipeline \"minhsh\", did you mean \"minhash\"?; built in: minhash, exact, simhash, sectional, weighted, onebit, assured, paper, tour; a file is named with a \"/\" \
         or ends in \".toml\""
    );
    let unreadable = Plan::load("no/such.toml", &[]).unwrap_err();
    assert_eq!(unreadable.to_string(), "cannot read \"no/such.toml\"");
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
    let led = HotRule { cap: 96, leaders: 2 };
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
fn the_default_pipeline_keeps_its_promises() {
    let plan = Plan::load(BUILT_IN[0].0, &[]).unwrap();
    let BlockingPlan::Banding { design, rule } = &plan.blocking else { panic!("{plan:?}") };
    assert_eq!(design.curve, Curve { bands: 18, rows: 7, agreement: Agreement::Bits(4) });
    assert_eq!(*rule, HotRule { cap: 96, leaders: 2 });
    assert!(design.recall >= 0.99);
    assert!(standard_error(plan.threshold, plan.scheme.sketch.size, plan.scheme.sketch.bits) <= 0.02);
    // No shipped pipeline sets bands or rows itself.
    for (name, text) in BUILT_IN {
        let lines = text.lines().filter(|line| line.starts_with("bands =") || line.starts_with("rows ="));
        assert_eq!(lines.count(), 0, "{name}");
    }
    let banding = |name: &str, settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&set| set.to_owned()).collect();
        let loaded = Plan::load(name, &settings).unwrap();
        let BlockingPlan::Banding { design: bands, .. } = loaded.blocking else { panic!("{name}") };
        (bands.curve.bands, bands.curve.rows)
    };
    let shipped =
        ["minhash", "exact", "sectional", "weighted", "paper", "tour"].map(|name| banding(name, &[]));
    assert_eq!(shipped, [(18, 7), (26, 7), (32, 6), (18, 7), (16, 6), (16, 2)]);
    // At another threshold, or for more documents, bands and rows differ.
    assert_eq!(banding("minhash", &["threshold=0.5"]), (57, 4));
    assert_eq!(banding("exact", &["threshold=0.6"]), (70, 5));
    assert_eq!(banding("minhash", &["blocking.documents=10000"]), (14, 6));
    // `exact` has another filter and more bands: it misses fewer of the pairs that it then decides exactly.
    let exact = Plan::load("exact", &[]).unwrap();
    assert_eq!(dupflow_core::sketch::Scheme { exact: false, ..exact.scheme }, plan.scheme);
    let BlockingPlan::Banding { design: of_exact, .. } = &exact.blocking else {
        panic!("{:?}", exact.blocking)
    };
    assert!(of_exact.recall > design.recall, "{of_exact:?}");
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
        [
            "p.toml:1: blocking.kind: is for sketches of one bit a component; set sketch.bits = 1, or sketch.kind = \"simhash\""
        ]
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
    assert!(reported[0].contains("threshold: has no effect with filter.kind = \"hamming\""), "{reported:?}");
    assert!(
        reported[1].contains("blocking.tables: 7 permuted tables do not serve radius 3 on 64 bits"),
        "{reported:?}"
    );
    assert!(
        reported[2].contains("blocking.bands: has no effect with blocking.kind = \"permuted\""),
        "{reported:?}"
    );
}

/// The keys that a commented file names: those that it sets, and those in comments of the form `# key =
/// value`.
fn named_in(text: &str) -> BTreeSet<String> {
    let mut table = String::new();
    let mut keys = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = format!("{name}.");
        }
        let setting = line.strip_prefix("# ").unwrap_or(line).split_once(" = ");
        if let Some((key, _)) = setting
            && !key.contains([' ', ','])
        {
            keys.insert(format!("{table}{key}"));
        }
    }
    keys
}

#[test]
fn documented_keys_are_the_accepted_keys() {
    fn accepted<K: ConfigKey>(keys: &[&[K]]) -> BTreeSet<String> {
        keys.iter().copied().flatten().map(|key| key.named().to_owned()).collect()
    }
    assert_eq!(named_in(MINHASH), accepted(&[keys::KEYS]));
    let all = accepted(deployment::KEYS);
    // The keys in `[kafka.settings]` are examples.
    let named = named_in(KAFKA).into_iter().filter(|key| !key.starts_with("kafka.settings."));
    assert_eq!(named.chain(["kafka.settings".to_owned()]).collect::<BTreeSet<_>>(), all);
    assert!(named_in(LOCAL).is_subset(&all));
}

/// For each key of a commented file, the comment above it; consecutive keys share one comment.
fn comments_in(text: &str) -> BTreeMap<String, String> {
    let (mut table, mut comment, mut after_key) = (String::new(), String::new(), false);
    let mut comments = BTreeMap::new();
    for line in text.lines() {
        let keys = named_in(line);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = format!("{name}.");
            comment.clear();
        } else if let Some(key) = keys.first() {
            comments.insert(format!("{table}{key}"), comment.clone());
            after_key = true;
        } else {
            if std::mem::take(&mut after_key) {
                comment.clear();
            }
            comment = comment + line.trim_start_matches('#') + " ";
        }
    }
    comments
}

#[test]
fn documented_ranges_are_the_accepted_ranges() {
    let comments = comments_in(MINHASH);
    let mut named = 0;
    for key in keys::KEYS {
        let comment = &comments[key.named()];
        for bound in key.bounds() {
            let is_apart = |(at, _): (usize, &str)| {
                let around = [comment[..at].chars().next_back(), comment[at + bound.len()..].chars().next()];
                !around.into_iter().flatten().any(|c| c.is_ascii_digit())
            };
            assert!(
                comment.match_indices(&bound).any(is_apart),
                "{}: {bound} is not in: {comment}",
                key.name()
            );
            named += 1;
        }
    }
    assert!(named > 80, "{named}");
}

#[test]
fn defaults_are_those_of_the_commented_file() {
    let (written, default) = (plan(MINHASH, &[]).unwrap(), plan("", &[]).unwrap());
    assert_eq!(format!("{written:?}"), format!("{default:?}"));
}

#[test]
fn a_deployment_takes_variables() {
    let none = |_: &str| None;
    let local = Deployment::parse("local.toml", LOCAL, &none).unwrap();
    assert_eq!((local.workers, local.output()), (None, None));
    assert_eq!(local.inputs(), [Path::new("-")]);
    let some = |name: &str| match name {
        "DUPFLOW_WORKERS" => Some("2".to_owned()),
        "DUPFLOW_INPUT" => Some("a b.jsonl".to_owned()),
        _ => Some(String::new()),
    };
    let set = Deployment::parse("local.toml", LOCAL, &some).unwrap();
    assert_eq!((set.workers.map(usize::from), set.output()), (Some(2), None));
    assert_eq!(set.inputs(), [Path::new("a b.jsonl")]);
}

#[test]
fn values_of_variables_are_never_printed() {
    let text = "workers = \"${SECRET}\"\nstate.paths = \"x\"\n[source]\ninputs = [\"${MISSING}\"]\nkind = \"queue\"\n\
                epoch = \"${SECRET}\"\n[sink]\nemit = \"${SECRET}\"\npath = \"${SECRET\"\n";
    let secret = |name: &str| (name == "SECRET").then(|| "hunter2".to_owned());
    let error = Deployment::parse("l.toml", text, &secret).unwrap_err().to_string();
    let reported: Vec<&str> = error.lines().collect();
    assert_eq!(
        reported,
        [
            "l.toml:1: workers: found \"${SECRET}\", expected a whole number from 1 to 1024, or \"cores\"",
            "l.toml:2: state.paths: unknown key; did you mean \"state.path\"?",
            "l.toml:4: source.inputs: the variable MISSING of the environment is not set; \"${MISSING:-default}\" gives a \
             default",
            "l.toml:5: source.kind: found \"queue\", expected \"files\", \"kafka\", \"sqlite\" or \"postgres\"",
            "l.toml:6: source.epoch: found \"${SECRET}\", expected \"events:N\", \"every:T\" with T as in \"100ms\", \
             \"events:N,every:T\", \"ts\" or \"all\"",
            "l.toml:8: sink.emit: found \"${SECRET}\", expected \"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\" or \"remove\"",
            "l.toml:9: sink.path: \"${\" without a \"}\"",
        ]
    );
    let empty = Deployment::parse("l.toml", "", &secret).unwrap_err().to_string();
    assert_eq!(
        empty,
        "l.toml: source.inputs: found nothing, expected a list of paths, at least one; \"-\" is standard input"
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
